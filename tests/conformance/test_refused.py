"""One call refused while a server serves, once and for ever: of each server the calls that all
have, with an error each. The whole table is `make server-tables`.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance import refused, tracing
from tests.conformance.matrix import contract, kind
from tests.conformance.process import Target
from tests.conformance.refused import Cell

pytestmark = [kind("model"), pytest.mark.long]  # what is refused is waited for
#: For each server those of them that it has.
SAMPLE = {
    "EPERM": {"accept", "accept4", "ACCEPT"},
    "EIO": {"recvfrom", "RECV", "close"},
    "ENOBUFS": {"sendto", "writev", "SEND"},
    "ENOMEM": {"select", "pselect6", "poll", "io_uring_enter"},
    "EINVAL": {"epoll_wait", "epoll_pwait", "rt_sigtimedwait"},
    "ENOSPC": {"epoll_ctl"},
    "EMFILE": {"openat2", "OPENAT2"},
}

Verdicts = dict[Cell, tuple[str, str]]


def verdicts_on(target: Target, folder: Path, calls: dict[str, set[str]]) -> Verdicts:
    """Of those calls of this server, each with its error."""
    if (reason := tracing.unavailable()) is not None:
        pytest.skip(reason)
    if target.variant != "glibc":
        pytest.skip("preload.c gets into programs that are linked dynamically")
    folder.chmod(0o755)
    site = refused.own_site(folder)
    build = target.binary.parent.parent
    row = next(row for row in refused.ROWS if row.slug == target.name)
    known = {cell.call for cell in refused.cells_of(build, site, row)}
    cells = [Cell(row, call, error, call.isupper()) for error, names in calls.items() for call in sorted(names & known)]
    with ThreadPoolExecutor(len(cells)) as pool:
        found = pool.map(lambda cell: refused.judge(build, site, cell), cells)
        return dict(zip(cells, found, strict=True))


@contract("survives", "accept-errors")
def test_a_refused_call(target: Target, tmp_path: Path) -> None:
    found = verdicts_on(target, tmp_path, SAMPLE)
    assert len(found) >= (3 if target.model.under_inetd else 4), found
    holes = [f"{cell}: {both}" for cell, both in found.items() if refused.is_hole(both)]
    assert not holes, "\n".join(holes)


@contract("survives", servers=("01-iterative", "03-prefork", "04-threads", "05-pool"))
def test_no_time_outs_for_the_connection(target: Target, tmp_path: Path) -> None:
    """Without them a client could hold its server for ever, so it is told that it is not served."""
    found = verdicts_on(target, tmp_path, {"ENOBUFS": {"setsockopt"}})
    assert list(found.values()) == [("answers", "503")]


def test_a_hole_is_seen() -> None:
    for verdict in ("DEAF", "SPINS 5000/s, 90%", "FORGETS 2", "ENDS with -11 and []"):
        assert refused.is_hole(("answers", verdict))
        assert refused.is_hole((verdict, "answers"))
    for verdict in ("answers", "closes", "ends", "waits", "503"):
        assert not refused.is_hole((verdict, verdict))
