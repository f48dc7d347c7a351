"""Waiting for what comes true in the end, or not."""

from functools import partial

import pytest

from quest.measure import waiting


def later_than(now: list[float], moment: float) -> bool:
    return now[0] >= moment


def test_it_is_tried_until_it_is_true_or_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda pause: now.__setitem__(0, now[0] + pause))
    for true_at, patience, result, end in (
        (0.0, 0.0, True, 0.0),
        (2.0, 3.0, True, 2.0),
        (3.0, 3.0, True, 3.0),
        (9.0, 3.0, False, 4.0),  # the first try after the time is over is the last
        (9.0, 0.0, False, 1.0),
    ):
        now[0] = 100.0
        found = waiting.comes_true(partial(later_than, now, 100 + true_at), patience, pause=1.0)
        assert (found, now[0] - 100) == (result, end)
