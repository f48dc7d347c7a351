"""A plug-in of pytest (quest.labs.plugin): records what became of each test, and starts its
programs in a cell that lives as long as it does.

--record names a file that gets a line (protocol.Ending) for each test as soon as it has ended: so
it is there even if pytest is killed. --cell-plan (protocol.CellPlan), if it is there, says how the
cell is made. The cell alone shares this pytest's network.
"""

import inspect
import json
import signal
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from quest.labs.cell import Cell, Filter, loopback_up
from quest.labs.protocol import CellPlan, Ending, to_json
from tests.conformance import tracing
from tests.conformance.process import Server
from tests.conformance.wire import ContractBroken
from tests.conftest import SERVERS

MOMENT = 0.5  #: seconds: a server that was just killed may still be about to end
MOST_SAID = 1 << 14  #: characters of a reason
cells: list[Cell] = []
records: list[Path] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("the labs' judge").addoption
    add("--record", type=Path, required=True, help="the file for what became of each test")
    add("--cell-plan", help="JSON: the cell in which programs are started")


def pytest_configure(config: pytest.Config) -> None:
    records.append(config.getoption("--record"))
    given = config.getoption("--cell-plan")
    if given is None:
        return
    plan = CellPlan(**json.loads(str(given)))
    loopback_up()
    # A cell refuses clone3 (confine.c), and clone follows: one thread would be counted twice.
    tracing.FORKS = tracing.FORKS.replace("clone3,", "")
    root = Path(plan.root)
    calls = Filter(Path(plan.confine), Path(plan.filter), tuple(plan.options))
    cells.append(Cell(plan.user, [root / "real", root / "tmp"], calls))
    for name in plan.programs:
        script = cells[0].script(root / "real" / name, plan.limits)
        (root / "bin" / name).write_text(script, encoding="utf-8")


def pytest_unconfigure() -> None:
    while cells:
        cells.pop().end()


def _why(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # of a skip: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")[:MOST_SAID]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr or "")[:MOST_SAID]


def _end(server: Server) -> str:
    """How it has ended although it was not stopped; "" if it runs, or was stopped."""
    if server.stopped is not None:
        return ""
    try:
        status = server.wait(MOMENT)
    except ContractBroken:  # it still runs
        return ""
    if status >= 0:
        return f"ended with status {status}"
    named = {int(one): f" ({one.name})" for one in signal.Signals}  # not all real-time signals
    return f"was ended by signal {-status}{named.get(-status, '')}"


def _for_a_student(item: pytest.Item, call: pytest.CallInfo[None]) -> str:
    """What was tested and what was seen; not where in our tests that was."""
    assert call.excinfo is not None
    about = inspect.getdoc(getattr(item, "function", None)) or ""
    seen = str(call.excinfo.value) or call.excinfo.typename
    return "\n\n".join(filter(None, [about, seen[:MOST_SAID]]))


def _note_the_end(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    outcome = yield
    report = outcome.get_result()
    if report.failed and report.when == "call":
        servers: list[Server] = item.stash.get(SERVERS, [])
        report.end = next(filter(None, map(_end, servers)), "")
        report.why = _why(report)
        report.longrepr = _for_a_student(item, call)


pytest_runtest_makereport = pytest.hookimpl(hookwrapper=True)(_note_the_end)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.outcome == "passed":
        return
    why, server = getattr(report, "why", "") or _why(report), getattr(report, "end", "")
    function = report.nodeid.rpartition("::")[2].partition("[")[0]
    with records[0].open("a", encoding="utf-8") as file:
        file.write(to_json(Ending(report.outcome, why, server, function)) + "\n")
