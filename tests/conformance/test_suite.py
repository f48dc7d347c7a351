"""The suite itself: every line of the contract has a test, every exemption a use."""

from pathlib import Path

import pytest

from tests.conformance.matrix import EXEMPT, LINES, MODELS
from tests.conformance.programs import COLLECTED, variants

HERE = Path(__file__).parent


def collected(config: pytest.Config) -> dict[str, set[str]]:
    """Line of the contract -> the servers for which a test of it was collected."""
    items: list[pytest.Item] = config.stash[COLLECTED]
    files = {item.path for item in items}
    missing = set(HERE.glob("test_*.py")) - files
    whole = str(config.getoption("--servers")) == ",".join(MODELS) and "glibc" in variants(config)
    if missing or not whole:
        pytest.skip("only a part of the suite was collected")
    lines: dict[str, set[str]] = {line: set() for line in LINES}
    for item in items:
        marker = item.get_closest_marker("contract")
        target = getattr(getattr(item, "callspec", None), "params", {}).get("target")
        if marker is not None and target is not None:
            for line in marker.args:
                lines[line].add(target.name)
    return lines


def test_every_line_has_a_test_and_every_exemption_a_use(pytestconfig: pytest.Config) -> None:
    """One that must fail is run (xfail, strict); here: that there is something to run."""
    lines = collected(pytestconfig)
    assert [line for line in LINES if not lines[line]] == []
    assert [key for key in EXEMPT if key[0] not in lines[key[1]]] == []
