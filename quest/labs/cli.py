"""From NAME=value words, as make and its users write them, to the settings of the labs' commands.
In the environment labs/module.mk adds LAB_CC and others, which say how it builds.
"""

import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from quest.ground.errors import Stopped
from quest.ground.processes import end_with_parent
from quest.labs.commands import COMMANDS, SEEDS, run
from quest.labs.errors import LabError
from quest.labs.settings import Settings, Toolchain

#: Those whose value is a path, from the root of the tree, where make starts us.
PATHS = {"JSON": "results", "LOGS": "logs", "CSV": "table", "WORK": "work", "DIR": "hand_in", "CLASS": "class_file",
         "GRADEBOOK": "gradebook"}  # fmt: skip
NUMBERS: dict[str, tuple[str, type[int] | type[float], int]] = {
    "PATIENCE": ("patience", float, 100),
    "PROCESSES": ("processes", int, 10000),
    "N": ("hint", int, 1000),
    "SEED": ("seed", int, SEEDS),
    "JOBS": ("jobs", int, 64),
}
OTHERS = ("CH", "ONLY", "SURE", "SANDBOX", "HINTS", "RUNS", "STUDENT", "NAMES")
KNOWN = (*PATHS, *NUMBERS, *OTHERS, "STAGE")


def _stop(number: int, _frame: FrameType | None) -> None:
    """An exception, so that sandboxes are removed. Make's end brings a second signal, which would
    end that work."""
    signal.signal(number, signal.SIG_IGN)
    raise Stopped(number)


def run_words(words: Sequence[str], environment: Mapping[str, str]) -> int:
    """The status of a command: its name, and NAME=value words. InputError for what is wrong."""
    command, *given = words or [""]
    if command not in COMMANDS:
        raise LabError(f"which command? {', '.join(COMMANDS)} (labs/README.md)")
    settings = settings_of(given, environment)
    end_with_parent()
    signal.signal(signal.SIGTERM, _stop)
    return run(command, settings)


def settings_of(words: Iterable[str], environment: Mapping[str, str]) -> Settings:
    """From NAME=value words; one without a value counts as not given."""
    given = {name: text for name, _, text in (word.partition("=") for word in words) if text}
    if unknown := set(given) - set(KNOWN):
        raise LabError(f"{min(unknown)}: there is no such setting. There are: {', '.join(KNOWN)}")
    if given.get("SANDBOX", "no") != "no":
        raise LabError(f"SANDBOX={given['SANDBOX']}: the only value is no: points without a sandbox")
    if given.get("HINTS", "yes") not in ("yes", "no"):
        raise LabError(f"HINTS={given['HINTS']}: it must be yes or no")
    paths = {field: Path(given[name]) for name, field in PATHS.items() if name in given}
    numbers = {
        field: _number(name, given[name], kind, most) for name, (field, kind, most) in NUMBERS.items() if name in given
    }
    built = [environment.get(f"LAB_{name}", "") for name in ("CC", "FLAGS", "OBJECTS", "LIBS")]
    only = given.get("ONLY", "")
    return Settings(
        lab=given.get("CH", ""),
        build=Path(environment.get("LAB_BUILD", "build")),
        runs=tuple(map(Path, given.get("RUNS", "").split())),
        only=tuple(name for name in only.split(",") if name) or ((only,) if only else ()),
        stage=given.get("STAGE", ""),
        sure="SURE" in given,
        hints=given.get("HINTS") != "no",
        student=given.get("STUDENT", ""),
        names=given.get("NAMES") != "no",
        sandbox_wanted="SANDBOX" not in given,
        no_cell="LAB_NO_CELL is set" if "LAB_NO_CELL" in environment else "",
        tools=Toolchain.of_words(*built) if all(built[:3]) else None,
        **paths,  # type: ignore[arg-type]
        **numbers,  # type: ignore[arg-type]
    )


def _number(name: str, text: str, kind: type[int] | type[float], most: float) -> int | float:
    try:
        number = kind(text)
    except ValueError:
        number = kind(0)
    if not 0 < number <= most:
        raise LabError(f"{name}={text}: give a number above 0, at most {most:g}")
    return number
