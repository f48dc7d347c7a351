"""What all tests share: where the programs are, how patient to be, and a server per test that is
ended with it.
"""

import contextlib
import dataclasses
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import place
from tests.conformance import process, programs, site, tracing
from tests.conformance.matrix import EXEMPT, FOLDERS, MODELS, sampled
from tests.conformance.process import Patience, Server, Target, Unprivileged
from tests.conformance.programs import Run, Start, Traced
from tests.conformance.wire import ContractBroken, transcripts

SERVERS = pytest.StashKey[list[Server]]()


# ---- options


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("servers under test").addoption
    add("--build", default="build", help="folder of the built programs")
    add("--variants", default="glibc", help=f"which of {','.join(FOLDERS)}")
    add("--servers", default=",".join(MODELS), help="which of the servers")
    add("--about", default="", metavar="SLUG", help="the tests of one server, and no others")
    add("--patience", type=float, default=0.0, help="scale all time-outs by this: no calibration")
    add("--longest", type=int, default=1200, help="seconds after which a test that has not ended fails; 0: never")
    add("--part", default="", metavar="N/M", help="the Nth of M parts of the tests: for M machines (.ci/run)")
    # for the labs, where that has points of its own; and their sandbox
    add("--unjudged", action="store_true", help="end servers without judging them")
    add("--in-cell", action="store_true", help="programs are started in a cell (quest/labs)")


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what runs in the background with SIGINT ignored, and every program that is
    started then would inherit that. --about chooses the server, too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if (about := str(config.getoption("--about"))) in MODELS:
        config.option.servers = about
    of_a_lab = config.pluginmanager.hasplugin("quest.labs.plugin")  # the judge has tried the place
    if of_a_lab or hasattr(config, "workerinput"):
        return
    if lack := place.lacking(Path(str(config.getoption("--build")))):
        raise pytest.UsageError(lack)


def _end_in_time(item: pytest.Item) -> Generator[None]:
    """A test that waits for ever fails, and says where: the others go on."""

    longest: int = item.config.getoption("--longest")

    def too_long(*_: object) -> None:
        pytest.fail(f"it has not ended after {longest} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(longest)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


pytest_runtest_call = pytest.hookimpl(hookwrapper=True)(_end_in_time)


# ---- which tests run against which server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    only = metafunc.definition.get_closest_marker("servers")
    kind = programs.kind_of(metafunc.definition)
    if "target" in metafunc.fixturenames:
        known = programs.targets(metafunc.config, kind)
        chosen = [t for t in known if only is None or t.name in only.args]
        some = sampled(metafunc.function.__name__, [t.name for t in chosen])
        rows = [pytest.param(t, marks=[pytest.mark.others] * (t.name not in some)) for t in chosen]
        metafunc.parametrize("target", rows, ids=str, indirect=True)
    elif "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", programs.variants(metafunc.config, kind))


def _exempt(item: pytest.Item) -> None:
    """Skips the test, or demands that it fails, if its server is exempt from one of its lines."""
    marker = item.get_closest_marker("contract")
    target = item.callspec.params.get("target") if hasattr(item, "callspec") else None
    if marker is None or target is None:
        return
    for line in marker.args:
        if exemption := EXEMPT.get((target.name, line)):
            reason = f"{line}: {exemption.reason}"
            expected = pytest.mark.xfail(strict=True, reason=reason, raises=ContractBroken)
            item.add_marker(expected if exemption.must_fail else pytest.mark.skip(reason=reason))


def _select(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if not wanted(item)])
    items[:] = filter(wanted, items)


def _collected(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Which tests are run, and in which order."""
    config.stash[programs.COLLECTED] = list(items)
    for item in items:
        _exempt(item)
    if about := str(config.getoption("--about")):
        _select(config, items, lambda item: programs.is_about(item, about))
    if part := str(config.getoption("--part")):
        number, parts = map(int, part.split("/"))
        _select(config, items, lambda item: zlib.crc32(item.nodeid.encode()) % parts == number - 1)
    yield  # here -k and -m take items away: what waits is spread among those that are left
    if hasattr(config, "workerinput"):
        from tests.scheduling import spread

        items[:] = spread(items, how_long, lambda item: item.nodeid)


pytest_collection_modifyitems = pytest.hookimpl(hookwrapper=True)(_collected)


def how_long(item: pytest.Item) -> int:
    """By its marks; 0 if it does not wait."""
    return 2 if item.get_closest_marker("slow") else 1 if item.get_closest_marker("long") else 0


def _scheduler(config: pytest.Config, log: Any) -> object:
    """What -n means, --dist load, is ours."""
    from tests.scheduling import AsTheyCome

    return AsTheyCome(config, log) if config.getoption("dist") == "load" else None


pytest_xdist_make_scheduler = pytest.hookimpl(optionalhook=True)(_scheduler)


# ---- what others read of it


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Notes how pytest has ended, which .ci/again reads; and what the tests say that the ledger names, into the results
    of the build that was tested: make claims reads it there. pytest-xdist's workers leave both to the process that has
    heard of all tests.
    """
    if hasattr(session.config, "workerinput"):
        return
    if (cache := getattr(session.config, "cache", None)) is not None:
        cache.set("tests/ended", int(exitstatus))
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    ledger = programs.TREE / "benchmarks/claims.toml"
    if reporter is None or not ledger.exists():
        return  # a bundle of a lab has no ledger
    from quest.report import tested

    reports = [(one, word) for word in (tested.PASSED, tested.FAILED) for one in reporter.getreports(word)]
    cases = ((f"tests/{one.nodeid.removeprefix('tests/')}", word) for one, word in reports)
    found = tested.summed(cases, tested.named(ledger))
    tested.note(programs.TREE / str(session.config.getoption("--build")) / "results", found)


# ---- what a failure shows


def _show_exchange(item: pytest.Item) -> Generator[None, Any, None]:
    """Adds the bytes both ways and the server's stderr to the report of a failure."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        for server in item.stash.get(SERVERS, []):
            name, said = server.target, transcripts(server.connections)
            report.sections.append((f"{name}: last connections", said))
            report.sections.append((f"{name}: stderr", server.stderr()))


pytest_runtest_makereport = pytest.hookimpl(hookwrapper=True)(_show_exchange)


# ---- fixtures


@pytest.fixture(scope="session")
def patience(pytestconfig: pytest.Config) -> Patience:
    factor = float(pytestconfig.getoption("--patience"))
    return Patience(factor) if factor > 0 else process.calibrate()


@pytest.fixture(scope="session")
def top() -> Iterator[Path]:
    """A folder that other users can search too: some servers run as one. pytest's own is for one
    user.
    """
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def docroot(top: Path) -> site.Site:
    """The docroot that no test changes."""
    folder = top / "shared"
    folder.mkdir()
    return site.build(folder)


@pytest.fixture
def unprivileged(top: Path, pytestconfig: pytest.Config) -> Unprivileged:
    user = Unprivileged(top, bool(pytestconfig.getoption("--in-cell")))
    if (reason := user.unavailable()) is not None:
        pytest.skip(reason)
    return user


@pytest.fixture
def own_site(top: Path) -> Iterator[site.Site]:
    """A small docroot of the test's own, to be changed at will."""
    with tempfile.TemporaryDirectory(dir=top) as folder:
        yield site.Site(Path(folder))


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Target:
    """The server under test, in one variant. It has to be there: a suite that skips what was not
    built passes.
    """
    chosen: Target = request.param
    if not os.access(chosen.binary, os.X_OK):
        from quest.measure import needs  # a bundle of a lab is without the harness

        if lacking := needs.missing_library(chosen.binary.name, programs.TREE):
            pytest.skip(f"{lacking.reason}: {lacking.remedy}")
        pytest.fail(f"{chosen.binary} is not there: make it, or choose other --variants", False)
    if not shutil.which("setpriv"):
        pytest.fail("setpriv is not there (Debian: util-linux): servers are to end with us", False)
    lines = request.node.get_closest_marker("contract")
    if chosen.variant == "libkqueue" and lines is not None and "mechanism" in lines.args:
        pytest.skip("the library has threads, sockets and waits of its own")
    return chosen


@pytest.fixture
def start(
    target: Target, docroot: site.Site, patience: Patience, request: pytest.FixtureRequest
) -> Iterator[Start]:
    """start(*options, ...) -> a server that is ended and judged with the test.

    root: another docroot. here: another working folder, without DOCROOT unless named. user: run it
    unprivileged. The rest goes to Launch.
    """
    servers: list[Server] = []
    request.node.stash[SERVERS] = servers

    def start_one(
        *options: str, root: Path | None = None, user: Unprivileged | None = None,
        here: Path | None = None, **more: Any,
    ) -> Server:  # fmt: skip
        program = target
        folder = root or (None if here is not None else docroot.root)
        if user is not None:
            program = dataclasses.replace(target, binary=user.reachable(target.binary))
            more["as_user"] = user.prefix
        launch = process.Launch(folder, options, cwd=here, **more)
        try:
            servers.append(Server(program, launch, patience))
        except process.Unsupported as error:
            pytest.skip(str(error))
        return servers[-1]

    yield start_one
    complaints = []
    with contextlib.ExitStack() as ending:
        for server in servers:
            ending.callback(server.release)
        for server in [] if request.config.getoption("--unjudged") else servers:
            try:
                server.finish()
            except process.Misbehaved as error:
                complaints.append(str(error))
    if complaints:
        raise process.Misbehaved("\n".join(complaints))


@pytest.fixture
def server(start: Start) -> Server:
    return start()


@pytest.fixture
def traced(target: Target, start: Start, tmp_path: Path) -> Traced:
    """traced(calls, *options, inject=, path=, ...) -> a server, and the trace of these calls of it.

    operations: of one with a ring, show and inject its operations, which are no system calls. The
    rest goes to start().
    """
    names = itertools.count()

    def start_one(
        calls: str, *options: str, inject: str | Sequence[str] = (), path: Path | None = None,
        operations: bool = False, wrapper: Sequence[str] = (), **more: Any,
    ) -> tuple[Server, tracing.Trace]:  # fmt: skip
        output = tmp_path / f"trace{next(names)}"
        if operations and target.model.ring:
            trace: tracing.Trace = tracing.RingTrace(target, output, inject)
        else:
            trace = tracing.Trace(output, calls, inject=inject, path=path)
        wrapped = [*wrapper, *trace.wrapper()]
        return start(*options, wrapper=wrapped, env=trace.env | more.pop("env", {}), **more), trace

    return start_one


@pytest.fixture
def run(patience: Patience) -> Run:
    """run(program, *args, ...) -> the completed process of a program that ends by itself."""

    def run_one(
        *command: str | Path, env: dict[str, str] | None = None, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        words = [str(word) for word in command]
        done = process.run_bounded(
            words, patience.limit, env=process.environment(**(env or {})), **{"stdin": subprocess.DEVNULL, **more}
        )
        out, said = (text.decode(errors="replace").replace("\r\n", "\n") for text in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(words, done.returncode, out, said)

    return run_one
