"""Numbers as a reader sees them."""

from __future__ import annotations

import pytest

from harness.statistics import units


@pytest.mark.parametrize(
    ("value", "unit", "low", "high", "text", "interval"),
    [
        (41.3, "µs", 40.2, 43.1, "41 µs", "40–43 µs"),
        (41.34, "µs", 41.2, 41.5, "41.3 µs", "41.2–41.5 µs"),
        (0.52, "µs", None, None, "520 ns", ""),
        (999.7, "µs", None, None, "1.0 ms", ""),
        (999.2, "ms", 990, 1008, "999 ms", "990–1008 ms"),
        (1234.5, "ms", 1150, 1300, "1.2 s", "1.1–1.3 s"),
        (75.0, "s", None, None, "75 s", ""),
        (22.9, "ns", None, None, "23 ns", ""),
        (0.3, "ns", None, None, "0.30 ns", ""),
        (58817.2, "requests/s", 58000, 59500, "58.8k requests/s", "58.0–59.5k requests/s"),
        (5260.9, "requests/s", None, None, "5300 requests/s", ""),
        (1.31e6, "requests/s", None, None, "1.3 million requests/s", ""),
        (2.59e10, "forks", None, None, "26 billion forks", ""),
        (1.913, "", 1.85, 1.97, "1.9", "1.9–2.0"),
        (1.913, "", 1.90, 1.93, "1.91", "1.90–1.93"),
        (12.34, "%", None, None, "12 %", ""),
        (-3.2, "%", -5.1, 1.3, "−3.2 %", "−5.1 to 1.3 %"),
        (1024, "", None, None, "1024", ""),
        (3, "", None, None, "3", ""),
        (4096, "bytes", 4096, 4096, "4096 bytes", "4096 bytes"),
        (4096, "bytes", 4095, 4096, "4100 bytes", "4095–4096 bytes"),
        (4096, "bytes", None, None, "4096 bytes", ""),
        (19034, "/s", None, None, "19k/s", ""),
        (250, "/s", None, None, "250/s", ""),
        (4.5e6, "B/s", None, None, "4.5 MB/s", ""),
        (0, "µs", 0, 0, "0 ns", "0 ns"),
    ],
)
def test_text(
    value: float, unit: str, low: float | None, high: float | None, text: str, interval: str
) -> None:
    assert units.text(value, unit, low, high) == text
    assert units.interval(value, unit, low, high) == interval


@pytest.mark.parametrize(("share", "text"), [(0.083, "8.3 %"), (0.0996, "10 %"), (0.5, "50 %")])
def test_shares(share: float, text: str) -> None:
    assert units.percent(share) == text
