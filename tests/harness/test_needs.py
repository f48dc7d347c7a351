"""What an experiment can need, and what is said where it is not met."""

from functools import partial
from pathlib import Path

import pytest

from quest.ground import places
from quest.measure import limits, needs
from quest.measure.limits import Cap
from tests.harness.made_up import machine


def test_an_unknown_need_is_a_program_with_a_remedy() -> None:
    assert places.program("sh").ok
    answer = places.program("no-such-program")
    assert answer == (False, "no-such-program is not installed", "apt-get install no-such-program")
    # The rest is told by packages.tsv.
    brought = {name: places.PACKAGES[name] for name in ("cc", "h2load", "tcpserver")}
    assert brought == {"cc": "gcc libc6-dev", "h2load": "nghttp2-client", "tcpserver": "ucspi-tcp"}
    assert {"nginx", "tcpserver"} <= places.PEERS
    assert "wrk" not in places.PEERS


def test_what_others_would_notice_needs_room_or_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, enough in ((999, False), (1000, True)):
        caps = [Cap(most, "ulimit -u")]
        monkeypatch.setattr(limits, "RESOURCES", {"processes": partial(list, caps)})
        assert needs.processes().ok == enough
        assert f"{most} processes, a quarter of ulimit -u" in needs.processes().reason or enough
    assert not needs.probe("many").ok
    assert needs.probe("many", many=True).ok


@pytest.mark.parametrize(
    ("program", "header", "lacks"),
    [
        ("x", "no-such-header.h", True),
        ("x", "no-such-header.h|header:sys/stat.h", False),  # elsewhere it is in another folder
        ("y", "no-such-header.h", False),
        ("z", "no-such-header.h", False),
    ],
)
def test_a_program_without_its_library_says_which_package_brings_it(
    tmp_path: Path, program: str, header: str, lacks: bool
) -> None:
    rules = "x_NEEDS := stdio.h no-such-header.h # why\ny_NEEDS := stdio.h\n"
    table = f"# head\nlibno-dev\tbuild\theader:{header}\tno\tx\n"
    machine(tmp_path, {"code/module.mk": rules, "table": table})
    lacking = needs.missing_library(program, tmp_path, tmp_path / "table")
    wanted = (False, "libno-dev is not installed", "apt-get install libno-dev")
    assert lacking == (wanted if lacks else None)
