"""`python3 -m teacher COMMAND NAME=VALUE...`, as labs/module.mk calls it.

Status 0, or 2 with one line that says what is wrong.
"""

import sys
from collections.abc import Callable
from pathlib import Path

try:
    from grader.errors import LabError
    from grader.lab import Lab, load
    from measuring import lab as measure

    from harness.errors import InputError
    from teacher import bundle, merge, similar, tables
except ImportError as error:
    print(f"lab: {error}: make deps installs it (Debian: python3-pytest)", file=sys.stderr)
    raise SystemExit(2) from None

Given = dict[str, str]


def _lab(given: Given) -> Lab:
    if not given.get("CH"):
        raise LabError("which lab? CH=02-fork; make labs lists them")
    if Path(f"labs/{given['CH']}/measure.toml").exists():
        raise LabError(f"CH={given['CH']}: nothing is built in a lab that measures; make grade")
    return load(given["CH"])


def _folder(given: Given) -> Path:
    folder = Path(given.get("DIR") or ".")
    if "DIR" not in given or not folder.is_dir():
        raise LabError(f"DIR={given.get('DIR', '')}: name a folder with a folder for each student")
    return folder


def _autograder(given: Given) -> int:
    return bundle.autograder(_lab(given), Path(given["BUILD"]))


def _variant(given: Given) -> int:
    """0: none."""
    variant = given.get("VARIANT", "")
    if variant and not (variant.isascii() and variant.isdigit() and 0 < int(variant) < 1 << 31):
        raise LabError(f"VARIANT={variant}: a number from 1 to {(1 << 31) - 1}, another a class")
    return int(variant or 0)


def _handout(given: Given) -> int:
    hints = given.get("HINTS", "yes")
    if hints not in ("yes", "no"):
        raise LabError(f"HINTS={hints}: yes or no")
    return bundle.handout(_lab(given), Path(given["BUILD"]), hints == "yes", _variant(given))


def _similar(given: Given) -> int:
    return similar.show(_lab(given), _folder(given), _variant(given))


def _tables(given: Given) -> int:
    if Path(f"labs/{given['CH']}/measure.toml").exists():
        asked = {question.id: question.ask for question in measure.load(given["CH"]).questions}
        tests = {"prediction": "no prediction", "data": "too few rounds"} | asked
    else:
        tests = {test.id: test.fail for test in _lab(given).tests}
    table, into = Path(given["CSV"]), given.get("JSON")
    return tables.write(given["CH"], tests, table, into, given.get("JUNIT"))


def _merge(given: Given) -> int:
    return merge.merge(given.get("RUNS", "").split(), Path(given["BUILD"]) / "merge")


COMMANDS: dict[str, Callable[[Given], int]] = {
    "autograder": _autograder,
    "handout": _handout,
    "similar": _similar,
    "tables": _tables,
    "merge": _merge,
}


def main(words: list[str]) -> int:
    given = {name: text for name, _, text in (word.partition("=") for word in words[1:]) if text}
    try:
        return COMMANDS[words[0]](given)
    except (LabError, InputError) as error:
        line = str(error)
    except BrokenPipeError:  # nobody reads stderr either: make merge 2>&1 | head
        return 0
    except OSError as error:
        line = f"{error.filename}: {error.strerror}"
    print(f"lab: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
