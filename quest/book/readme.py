"""Keeps the numbers of README.md at those of the committed reference run, and its picture at the committed recordings.

    python3 -m quest.book.readme            writes them
    python3 -m quest.book.readme --check    status 1 if a number of README.md is another or unbound, or the picture old

A number stands between two comments that Markdown does not show: <!--n KEY-->41 µs<!--/n-->. KEY is
a key of build/data/numbers.json (benchmarks/README.md). What is measured and is not of that run is
marked, and the words beside it say where it is from: <!--own-->5 min<!--/own-->. The picture is that
of the book's first page (quest/book/player).
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from quest.book.player import front
from quest.book.player.picture import picture
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_whole

README, FIGURE = Path("README.md"), Path("figures/readme.svg")
OWN = re.compile(r"<!--own-->[^<]*<!--/own-->")
#: Code, and where links lead.
NOT_PROSE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.M | re.S)
UNITS = "[nµumk]?s|min|minutes|seconds|hours|times|(?:[kMG]i?)?B|bytes|files|names|requests|replies|packets"
MEASURED = re.compile(rf"\d[\d., ]*(?:(?:{UNITS})\b|%)")
BOUND = re.compile(r"<!--n (?P<key>[^ ]+)-->(?P<text>[^<]*)<!--/n-->")


def export(data: Path) -> dict[str, str]:
    """The numbers of the reference run, by key, as text."""
    command = [sys.executable, "-m", "quest", "export", f"BUILD={data.parent}", "RESULTS=reference"]
    subprocess.run(command, check=True)
    numbers = json.loads((data / "numbers.json").read_text(encoding="utf-8"))
    return {key: number["text"] for key, number in numbers.items()}


def unbound(text: str) -> list[str]:
    """Numbers with a unit of what is measured that no run is named for."""
    for not_measured in (BOUND, OWN, NOT_PROSE):
        text = not_measured.sub(" ", text)
    return MEASURED.findall(text)


def bound(text: str, numbers: dict[str, str]) -> str:
    """The text with these numbers in place of those that it has. InputError: a key is unknown."""

    def number(match: re.Match[str]) -> str:
        key = match["key"]
        if key not in numbers:
            raise InputError(f"{README}: unknown key {key}")
        return f"<!--n {key}-->{numbers[key]}<!--/n-->"

    return BOUND.sub(number, text)


def faults(text: str, numbers: dict[str, str]) -> list[str]:
    """One line for each number that is another than the run's, or typed by hand."""
    old = [
        f"{README}: {match['key']} is not {match['text']}; make readme"
        for match in BOUND.finditer(text)
        if numbers.get(match["key"]) != match["text"]
    ]
    typed = [f"{README}: {each} is typed by hand: <!--n KEY--> binds it" for each in unbound(text)]
    return old + typed


def drawn() -> str:
    """The picture, of the committed recordings."""
    return picture(front.recorded(Path()))


def main(arguments: list[str]) -> int:
    """No argument: README.md and its figure are written; --check: only looked at."""
    if arguments not in ([], ["--check"]):
        raise InputError("readme: [--check]")
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        numbers = export(Path(folder, "data"))
        new = bound(text, numbers)
        if not arguments:
            write_whole(FIGURE, drawn())
            write_whole(README, new)
            return 0
    wrong = faults(text, numbers)
    if FIGURE.read_text(encoding="utf-8") != drawn():
        wrong.append(f"{FIGURE} is not what the recordings show; make readme")
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    run_main(main)
