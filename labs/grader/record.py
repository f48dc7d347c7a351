"""A plug-in of pytest (-p grader.record): a line for each test that has ended, as soon as it has.

The file is the one that LAB_RECORD names. So what was seen is there even if pytest is killed.
"""

from __future__ import annotations

import json
import os

import pytest


def _why(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):  # of a skip: file, line, reason
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr or "")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.outcome == "passed":
        return
    line = {"outcome": report.outcome, "why": _why(report)}
    with open(os.environ["LAB_RECORD"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
