"""Tests that fail in company and pass alone: `pytest --unsteady=3`, as CI calls it (`.ci/run`).

What failed is run again when all have ended, one test at a time, twice. If every one passes both
times, and they are at most as many as the option says, the run is good; they are named, and the
last line counts them. Elsewhere such a test is a failure: a race in it, or in what it tests.
"""

import re
import subprocess
import sys
from collections.abc import Generator

import pytest

AGAIN = 2  #: times that a test has to pass alone
#: options of conftest.py that say what is tested
OWN = ("build", "variants", "servers", "patience")


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run what failed again alone, twice; so many that then pass do no harm"
    parser.addoption("--unsteady", type=int, default=0, metavar="MOST", help=text)


def passes_alone(config: pytest.Config, test: str) -> bool:
    """In a process of its own; what it says is printed if it does not pass."""
    own = [f"--{name}={config.getoption(name, None)}" for name in OWN if name in config.option]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", *own, test]
    done = subprocess.run(
        command, cwd=config.invocation_params.dir, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    # A test that is skipped this time has not passed.
    passed = re.search(r"^1 (passed|xfailed)", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not passed:
        print(done.stdout)
    return done.returncode == 0 and passed is not None


def _run_again(session: pytest.Session) -> Generator[None, None, None]:
    """After the summary, and with xdist in the process that no test runs in."""
    yield
    most = session.config.getoption("unsteady")
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if not most or session.exitstatus != pytest.ExitCode.TESTS_FAILED or reporter is None:
        return
    reports = [*reporter.stats.get("failed", []), *reporter.stats.get("error", [])]
    failed = list(dict.fromkeys(report.nodeid for report in reports))
    print()
    if len(failed) > most or any(isinstance(report, pytest.CollectReport) for report in reports):
        print(f"{len(failed)} failed: too many, or too early, to be run again")
        return
    for test in failed:
        whole = f"{session.config.rootpath}/{test}"
        if not all(passes_alone(session.config, whole) for _ in range(AGAIN)):
            print(f"fails alone too: {test}")
            return
    for test in failed:
        print(f"unsteady: {test} failed, and passed alone, twice")
    print(f"{len(failed)} unsteady, at most {most} are let pass")
    session.exitstatus = pytest.ExitCode.OK


pytest_sessionfinish = pytest.hookimpl(hookwrapper=True, tryfirst=True)(_run_again)
