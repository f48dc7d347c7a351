"""A plug-in of pytest (quest.labs.plugin): tells what became of each test, and starts its programs
in a cell that lives as long as it does.

LAB_RECORD names a file that gets a line for each test as soon as it has ended: so what was seen is
there even if pytest is killed. LAB_CELL, if it is there, says how: {"user": 61000 or null, "root":
folder of the grading, "limits": [prlimit ...], "programs": [names], "calls": [confine, its filter,
its options]}: bin/NAME there is then real/NAME in the cell. Nobody shares this pytest's network but
the cell.
"""

import inspect
import json
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from quest.labs.cell import Cell, Filter, loopback_up
from tests.conformance import tracing
from tests.conformance.process import Server
from tests.conformance.wire import ContractBroken
from tests.conftest import SERVERS

MOMENT = 0.5  #: seconds: who has just been killed may still be on the way out
cells: list[Cell] = []


def pytest_configure() -> None:
    if "LAB_CELL" not in os.environ:
        return
    how = json.loads(os.environ.pop("LAB_CELL"))
    loopback_up()
    # A cell refuses clone3 (confine.c), and clone follows: one thread would be counted twice.
    tracing.FORKS = tracing.FORKS.replace("clone3,", "")
    root = Path(how["root"])
    confine, data, *options = how["calls"]
    calls = Filter(Path(confine), Path(data), tuple(options))
    cells.append(Cell(how["user"], [root / "real", root / "tmp"], calls))
    for name in how["programs"]:
        script = cells[0].script(root / "real" / name, how["limits"])
        (root / "bin" / name).write_text(script, encoding="utf-8")


def pytest_unconfigure() -> None:
    while cells:
        cells.pop().end()


def _why(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # of a skip: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr or "")


def _end(server: Server) -> str:
    """How it has ended while it was asked for more; "" if it goes on, or was to end."""
    if server.stopped is not None:
        return ""
    try:
        status = server.wait(MOMENT)
    except ContractBroken:  # it still runs
        return ""
    if status >= 0:
        return f"ended with status {status}"
    return f"was ended by signal {-status} ({signal.Signals(-status).name})"


def _told(item: pytest.Item, call: pytest.CallInfo[None]) -> str:
    """What was tested and what was seen: where in our tests that was helps no student."""
    assert call.excinfo is not None
    about = inspect.getdoc(getattr(item, "function", None)) or ""
    seen = str(call.excinfo.value) or call.excinfo.typename
    return "\n\n".join(filter(None, [about, seen]))


def _note_the_end(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    if report.failed and report.when == "call":
        servers: list[Server] = item.stash.get(SERVERS, [])
        report.end = next(filter(None, map(_end, servers)), "")
        report.why = _why(report)
        report.longrepr = _told(item, call)


pytest_runtest_makereport = pytest.hookimpl(hookwrapper=True)(_note_the_end)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.outcome == "passed":
        return
    end = getattr(report, "end", "")
    line = {
        "outcome": report.outcome,
        "why": getattr(report, "why", "") or _why(report),
        "end": end,
    }
    with open(os.environ["LAB_RECORD"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
