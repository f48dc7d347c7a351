"""Keeps the numbers and the figure of README.md at those of the committed reference run.

    python3 -m quest.book.readme            writes them
    python3 -m quest.book.readme --check    status 1 if a number of README.md is another or unbound

A number stands between two comments that Markdown does not show: <!--n KEY-->41 µs<!--/n-->. KEY is
a key of build/data/numbers.json (benchmarks/README.md). What is measured and is not of that run is
marked, and the words beside it say where it is from: <!--own-->5 min<!--/own-->. The figure is
drawn by gnuplot from the same run; its bytes depend on gnuplot's version, so only the numbers are
checked.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path("README.md")
FIGURE, FIGURE_SCRIPT = Path("figures/readme.svg"), Path("figures/slow-client.gp")
OWN = re.compile(r"<!--own-->[^<]*<!--/own-->")
#: Code, and where links lead.
NOT_TOLD = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.M | re.S)
UNITS = (
    "[nµumk]?s|min|minutes|seconds|hours|times|(?:[kMG]i?)?B|bytes|files|names|requests|replies"
    "|packets"
)
MEASURED = re.compile(rf"\d[\d., ]*(?:(?:{UNITS})\b|%)")
BOUND = re.compile(r"<!--n (?P<key>[^ ]+)-->(?P<text>[^<]*)<!--/n-->")


def export(data: Path) -> dict[str, str]:
    """The numbers of the reference run, by key, as text."""
    command = [sys.executable, "-m", "quest.report", "export", "--data", str(data)]
    subprocess.run(command, check=True, env=os.environ | {"RESULTS": "reference"})
    numbers = json.loads((data / "numbers.json").read_text(encoding="utf-8"))
    return {key: number["text"] for key, number in numbers.items()}


def unbound(text: str) -> list[str]:
    """Numbers with a unit of what is measured that no run is named for."""
    for told in (BOUND, OWN, NOT_TOLD):
        text = told.sub(" ", text)
    return MEASURED.findall(text)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.exit("usage: readme.py [--check]")
    old, wrong = README.read_text(encoding="utf-8"), []
    with tempfile.TemporaryDirectory() as folder:
        numbers = export(Path(folder))

        def number(match: re.Match[str]) -> str:
            key = match["key"]
            if key not in numbers:
                sys.exit(f"{README}: unknown key {key}")
            if match["text"] != numbers[key]:
                wrong.append(f"{README}: {key} is not {match['text']}; make readme")
            return f"<!--n {key}-->{numbers[key]}<!--/n-->"

        new = BOUND.sub(number, old)
        for text in unbound(old):
            wrong.append(f"{README}: {text} is typed by hand: <!--n KEY--> binds it")
        if not arguments:
            draw = ["sh", "figures/draw.sh", "readme", str(FIGURE_SCRIPT), folder, str(FIGURE)]
            subprocess.run(draw, check=True)
            README.write_text(new, encoding="utf-8")
            return 0
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
