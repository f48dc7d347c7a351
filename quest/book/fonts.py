"""The fonts of the deck, in a style sheet that holds them: a slide is laid out alike on every machine.

    python3 -m quest.book.fonts OUT FOLDER

FOLDER has what setup/fetch.py brought. A family that is not there is left out: the deck then has the fonts of the
system, which slides/theme.css names behind it. Status 2 and one line if a family is there in part.
"""

import base64
from pathlib import Path
from typing import NamedTuple

from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other


class Face(NamedTuple):
    """One file of a family."""

    family: str  #: as theme.css names it
    folder: str  #: where fetch.py has put it
    file: str
    weight: int
    style: str


SANS, MONO = ("Atkinson Hyperlegible", "atkinson-hyperlegible"), ("IBM Plex Mono", "ibm-plex-mono")
FACES = (
    Face(*SANS, "AtkinsonHyperlegible-Regular.ttf", 400, "normal"),
    Face(*SANS, "AtkinsonHyperlegible-Italic.ttf", 400, "italic"),
    Face(*SANS, "AtkinsonHyperlegible-Bold.ttf", 700, "normal"),
    Face(*MONO, "IBMPlexMono-Regular.ttf", 400, "normal"),
    Face(*MONO, "IBMPlexMono-Italic.ttf", 400, "italic"),
    Face(*MONO, "IBMPlexMono-Bold.ttf", 700, "normal"),
)


def rule(face: Face, content: bytes) -> str:
    """The face with its file in it."""
    data = base64.b64encode(content).decode("ascii")
    return (
        f'@font-face {{ font-family: "{face.family}"; font-weight: {face.weight}; font-style: {face.style}; '
        f"src: url(data:font/ttf;base64,{data}) format('truetype'); }}\n"
    )


def style_sheet(folder: Path) -> str:
    """All faces of the families that are below `folder`. InputError if one lacks a file."""
    rules = []
    for face in FACES:
        if not (folder / face.folder).is_dir():
            continue
        path = folder / face.folder / "files" / face.file
        if not path.is_file():
            raise InputError(f"{path}: not there (rm -r {folder / face.folder}*, then make deps)")
        rules.append(rule(face, path.read_bytes()))
    return "".join(rules) or "/* no font was fetched: those of the system */\n"


def main(arguments: list[str]) -> int:
    """OUT FOLDER"""
    if len(arguments) != 2:
        raise InputError("fonts: OUT FOLDER")
    write_if_other(Path(arguments[0]), style_sheet(Path(arguments[1])))
    return 0


if __name__ == "__main__":
    run_main(main)
