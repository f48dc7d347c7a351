"""sigio-overflow: what comes of a queue that is full, and what signals say.

Run: python3 -m pytest tests/micro/test_sigio_overflow.py --variants=glibc,diet
"""

from __future__ import annotations

from pathlib import Path

from micro_support import rows, run


def overflow(folder: Path, room: int, expected: dict[str, int]) -> dict[str, float]:
    """The columns for 30 events. The kernel counts the signals of a user in all processes, so that
    another program's may be in the way: then it is tried again."""
    for _ in range(10):
        status, out, err = run([folder / "sigio-overflow", "-n", "30", "-q", str(room)])
        assert (status, err) == (0, "")
        [row] = rows(out)
        found = dict(zip(out.splitlines()[0].split("\t"), row, strict=True))
        if all(found[name] == value for name, value in expected.items()):
            break
    assert {name: found[name] for name in expected} == expected
    return found


def test_a_full_queue_tells_of_itself_once_and_can_be_emptied(folder: Path) -> None:
    expected = {
        "events": 30,
        "room": 10,
        "signals": 10,
        "in_order": 10,
        "lost": 20,
        "overflow": 1,
        "poll_finds": 30,
        "after_default": 10,
        "after_ignore": 0,
        "closed": 10,
    }
    found = overflow(folder, 10, expected)
    assert found["in_band"] == found["in_revents"] == 0x41
    assert found["hup_band"] != found["hup_revents"]


def test_without_overflow_there_is_no_sigio(folder: Path) -> None:
    overflow(folder, 30, {"signals": 30, "lost": 0, "overflow": 0})
