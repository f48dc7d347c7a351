"""Claims that no measurement could deny: a test is their judge, and its result the verdict.

pytest writes the outcome of each test that the ledger names into tests.json, beside the result files: those of the
reader's build by themselves (tests/conftest.py), those of the reference where somebody commits a copy.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from quest.ground.errors import InputError
from quest.ground.files import write_whole

FILE = "tests.json"
PASSED, FAILED = "passed", "failed"


def named(ledger: Path) -> set[str]:
    """The tests that a ledger names, as `tests/micro/test_x.py::test_y`. Nothing of one that cannot be read: the
    ledger's own tests complain of that.
    """
    try:
        claims = tomllib.loads(ledger.read_text(encoding="utf-8")).get("claim", [])
    except (OSError, ValueError):
        return set()
    return {str(claim["test"]) for claim in claims if "test" in claim}


def read(folder: Path) -> Mapping[str, str]:
    """Test -> PASSED or FAILED, in the folder of some results; {} if there is no file. InputError for a wrong one."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        outcomes = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(outcomes, dict) or not set(outcomes.values()) <= {PASSED, FAILED}:
        raise InputError(f'{path}: must be a table of tests, each "{PASSED}" or "{FAILED}"')
    return outcomes


def summed(outcomes: Iterable[tuple[str, str]], wanted: Iterable[str]) -> dict[str, str]:
    """Of the tests that are wanted, which ran: FAILED if any of its cases, `test_y[x]`, did. `outcomes`: of each case
    that passed or failed.
    """
    found: dict[str, str] = {}
    for case, outcome in outcomes:
        test = case.partition("[")[0]
        if test in wanted and found.get(test) != FAILED:
            found[test] = outcome
    return found


def note(folder: Path, outcomes: Mapping[str, str]) -> None:
    """Adds outcomes to those in a folder of results, and makes it."""
    if outcomes:
        folder.mkdir(parents=True, exist_ok=True)
        whole = json.dumps({**read(folder), **outcomes}, indent=1, sort_keys=True)
        write_whole(folder / FILE, f"{whole}\n".encode())
