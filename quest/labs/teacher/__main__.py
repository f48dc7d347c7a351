"""`python3 -m quest.labs.teacher COMMAND NAME=VALUE...`, as labs/module.mk calls it.

Status 0, or 2 with one line that says what is wrong.
"""

import sys
from pathlib import Path

try:
    from quest.ground import foreign
    from quest.ground.entry import begin, ended
    from quest.ground.errors import InputError
    from quest.labs.errors import LabError
    from quest.labs.lab import Lab, load
    from quest.labs.measuring import lab as measure
    from quest.labs.teacher import bundle, similar, tables
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


def _variant(given: Given) -> int:
    """0: none."""
    variant = given.get("VARIANT", "")
    if variant and not (variant.isascii() and variant.isdigit() and 0 < int(variant) < 1 << 31):
        raise LabError(f"VARIANT={variant}: a number from 1 to {(1 << 31) - 1}, another a class")
    return int(variant or 0)


def _tests(given: Given) -> dict[str, str]:
    """Of either kind of lab: id -> what its failure means."""
    if Path(f"labs/{given['CH']}/measure.toml").exists():
        asked = {question.id: question.ask for question in measure.load(given["CH"]).questions}
        return {"prediction": "no prediction", "data": "too few rounds"} | asked
    return {test.id: test.fail for test in _lab(given).tests}


def run(command: str, given: Given) -> int:
    build = Path(given["BUILD"])
    if command == "merge":
        from quest.labs.teacher import merge

        return merge.merge(given.get("RUNS", "").split(), build / "merge")
    if command == "tables":
        table, into, junit = Path(given["CSV"]), given.get("JSON"), given.get("JUNIT")
        return tables.write(given["CH"], _tests(given), table, into, junit)
    if command == "autograder":
        if (sandbox := given.get("SANDBOX", "")) not in ("", "no"):
            raise LabError(f"SANDBOX={sandbox}: there is only SANDBOX=no: points without one")
        return bundle.autograder(_lab(given), build, sandbox)
    if command == "similar":
        folder = given.get("DIR", "")
        if not Path(folder).is_dir() or not folder:
            raise LabError(f"DIR={folder}: name a folder with a folder for each student")
        return similar.show(_lab(given), Path(folder), _variant(given))
    hints = given.get("HINTS", "yes")
    if hints not in ("yes", "no"):
        raise LabError(f"HINTS={hints}: yes or no")
    return bundle.handout(_lab(given), build, hints == "yes", _variant(given))


def main(words: list[str]) -> int:
    given = {name: text for name, _, text in (word.partition("=") for word in words[1:]) if text}
    try:
        return ended(lambda: run(words[0], given), "lab: ")
    except (LabError, InputError) as error:
        print(f"lab: {foreign.line(str(error))}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 2


if __name__ == "__main__":
    begin()
    sys.exit(main(sys.argv[1:]))
