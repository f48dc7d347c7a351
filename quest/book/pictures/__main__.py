"""Draws the pictures of the slides:

    python3 -m quest.book.pictures DATA OUT [reference]

DATA   what the exporter left (build/data)
OUT    gets wall-NAME.svg, or wall-NAME.skipped with the reason
reference   everything shown is the reference run's: no number is marked

A file is written only if it differs. Status 2 and one line if the data cannot be read.
"""

from collections.abc import Callable
from pathlib import Path

from quest.book.pictures import asking, memory, tally, waits
from quest.book.pictures.data import Data, Missing, read
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other

PICTURES: dict[str, Callable[[Data], str]] = {
    "wall-slow-client": waits.slow_client,
    "wall-forty": waits.forty,
    "wall-shop": waits.shop,
    "wall-memory": memory.memory,
    "wall-poll": asking.poll,
    "wall-sigio": asking.sigio,
    "wall-tally": tally.tally,
}


def draw(data: Data, out: Path) -> list[str]:
    """Writes all; the names of those that cannot be drawn, each with its reason in the .skipped."""
    skipped = []
    for name, make in PICTURES.items():
        try:
            kind, content = "svg", make(data)
        except Missing as reason:
            kind, content = "skipped", f"{reason}\n"
            skipped.append(f"SKIP {name}.svg: {reason}")
        other = "skipped" if kind == "svg" else "svg"
        (out / f"{name}.{other}").unlink(missing_ok=True)
        write_if_other(out / f"{name}.{kind}", content)
    return skipped


def main(arguments: list[str]) -> int:
    """DATA OUT [reference]"""
    if len(arguments) not in (2, 3) or arguments[2:] not in ([], ["reference"], ["here"]):
        raise InputError("pictures: DATA OUT [reference]")
    for line in draw(read(Path(arguments[0]), arguments[2:] == ["reference"]), Path(arguments[1])):
        print(line)
    return 0


if __name__ == "__main__":
    run_main(main)
