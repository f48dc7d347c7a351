"""What a micro-benchmark prints, and what it has used, as a repetition."""

from typing import Any

import pytest

from quest.ground.errors import RepetitionError
from quest.ground.processes import Usage
from quest.measure import micro


def test_columns_are_numbers_where_they_can_be() -> None:
    text = "n\tns\terror\n1\t2.5\t-\n-7\t1e3\tEMFILE\n+3\tinf\t0\n"
    assert micro.parse_samples(text, {"n": "live"}) == {
        "live": [1, -7, 3], "ns": [2.5, 1000.0, "inf"], "error": ["-", "EMFILE", 0],
    }  # fmt: skip
    assert micro.parse_samples("ns\n5", {}) == {"ns": [5]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no header line"),
        ("\t\n1\t2\n", "no header line"),
        ("a\tb\n", "no samples"),
        ("a\tb\n1\t2\n1\n", "line 3 of stdout has 1 columns, the header 2"),
        ("a\n1\n1\t2\n", "line 3 of stdout has 2 columns, the header 1"),
    ],
)
def test_what_is_no_table_fails_the_repetition(text: str, why: str) -> None:
    with pytest.raises(RepetitionError, match=why):
        micro.parse_samples(text, {})


def test_what_a_program_has_used() -> None:
    used: dict[str, Any] = micro.usage_scalars(Usage(1.5, 0.25, 3, 4, 5, 6, 7), "server_")
    assert used == {
        "server_cpu_s": 1.75, "server_user_s": 1.5, "server_system_s": 0.25,
        "server_voluntary_switches": 3, "server_involuntary_switches": 4,
        "server_minor_faults": 5, "server_max_rss_kib": 6, "server_integral_sizes": 7,
    }  # fmt: skip
