"""The freeze: how many lines of each language, and how many files, each folder may have (budgets.tsv beside this file).

`make budgets` prints the table; `make lint` fails where a folder has more. A folder that needs more gets it in that
file, in the commit that needs it, with the reason in DECISIONS.md.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from quest.command import help as help_of_goals
from quest.command.settings import Given
from quest.ground.errors import InputError

TABLE = Path(__file__).with_name("budgets.tsv")
LANGUAGES = {".py": "python", ".c": "c", ".h": "c", ".lua": "lua"}
COUNTS = ("python", "c", "lua", "files")
WIDEST = 120  #: characters of a line of DECISIONS.md
DECISIONS = Path("DECISIONS.md")


class Budget(NamedTuple):
    """Of a folder and all below it, without the folders below that have a line of their own."""

    folder: str  #: "." for the tree's root
    most: dict[str, int]  #: what is counted (COUNTS) -> how many at most


def budgets(table: Path = TABLE) -> list[Budget]:
    """The table. InputError for a line that is none."""
    rows = []
    for number, line in enumerate(table.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        folder, *numbers = line.split("\t")
        if len(numbers) != len(COUNTS) or not all(text.isdecimal() for text in numbers):
            raise InputError(f"{table}:{number}: a folder and {len(COUNTS)} numbers, with tabs between")
        rows.append(Budget(folder, dict(zip(COUNTS, map(int, numbers), strict=True))))
    return rows


def tracked() -> list[str]:
    """The files that git keeps, without what was measured. InputError where there is no git to ask."""
    listed = b""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=False)
        listed = done.stdout if done.returncode == 0 else b""
        why = (done.stderr.decode(errors="replace").splitlines() or ["it keeps none of this folder"])[0]
    except OSError as error:
        why = str(error)
    if not listed:  # the tree of an archive, perhaps in a repository of something else
        raise InputError(f"budgets are of tracked files, and git does not list them: {why}")
    names = listed.decode(errors="surrogateescape").split("\0")
    return [name for name in names if name and not name.startswith("benchmarks/results/") and Path(name).is_file()]


def counted(files: list[str], folders: list[str]) -> dict[str, dict[str, int]]:
    """Folder -> how many lines and files it has. A file counts in the deepest of `folders` above it."""
    counts = {folder: dict.fromkeys(COUNTS, 0) for folder in folders}
    for name in files:
        above = [str(parent) for parent in Path(name).parents]
        folder = next(folder for folder in above if folder in counts)
        counts[folder]["files"] += 1
        if language := LANGUAGES.get(Path(name).suffix):
            counts[folder][language] += Path(name).read_bytes().count(b"\n")
    return counts


def table() -> list[tuple[Budget, dict[str, int]]]:
    """Each folder's budget, and what it has."""
    allowed = budgets()
    have = counted(tracked(), [budget.folder for budget in allowed])
    return [(budget, have[budget.folder]) for budget in allowed]


def print_budgets(_: Given) -> int:
    """What each folder has, of what it may have."""
    rows = table()
    print(f"{'':22}" + "".join(f"{name:>18}" for name in COUNTS))
    for budget, have in rows:
        cells = (f"{have[name]} of {budget.most[name]}" if budget.most[name] or have[name] else "-" for name in COUNTS)
        print(f"{budget.folder:22}" + "".join(f"{cell:>18}" for cell in cells))
    print(f"{'all':22}" + "".join(f"{sum(have[name] for _, have in rows):>18}" for name in COUNTS))
    return 0


def problems() -> list[str]:
    """What is over its budget, and lines of DECISIONS.md that are too long."""
    over = [
        f"{budget.folder}: {have[name]} {'files' if name == 'files' else f'lines of {name}'}, {budget.most[name]} at "
        f"most: make it less, or say in {DECISIONS} why it needs more, and raise {TABLE.name}"
        for budget, have in table()
        for name in COUNTS
        if have[name] > budget.most[name]
    ]
    lines = DECISIONS.read_text(encoding="utf-8").splitlines()
    wide = [n for n, line in enumerate(lines, 1) if len(line) > WIDEST and not line.startswith("|")]
    return over + [f"{DECISIONS}:{number}: longer than {WIDEST} characters" for number in wide]


def check(_: Given) -> int:
    """For `make lint`: 0, or 1 with a line for each thing that is wrong."""
    wrong = [*problems(), *help_of_goals.readme_problems()]
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0
