"""The style sheet with the deck's fonts."""

import base64
import re
from pathlib import Path

import pytest

from quest.book import fonts
from quest.ground.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def put(folder: Path, *names: str) -> None:
    for face in fonts.FACES:
        if face.folder in names:
            (folder / face.folder / "files").mkdir(parents=True, exist_ok=True)
            (folder / face.folder / "files" / face.file).write_bytes(face.file.encode())


def test_a_family_that_is_there_is_held_whole(tmp_path: Path) -> None:
    put(tmp_path, "ibm-plex-mono")
    text = fonts.style_sheet(tmp_path)
    found = re.findall(r'font-family: "(.*?)"; .*? url\(data:font/ttf;base64,(.*?)\)', text)
    assert [(family, base64.b64decode(data)) for family, data in found] == [
        ("IBM Plex Mono", face.file.encode()) for face in fonts.FACES if face.folder == "ibm-plex-mono"
    ]
    assert text.count("@font-face") == len(found) == 3


def test_without_fonts_there_is_a_style_sheet_all_the_same(tmp_path: Path) -> None:
    assert fonts.main([str(tmp_path / "fonts.css"), str(tmp_path / "none")]) == 0
    assert "@font-face" not in (tmp_path / "fonts.css").read_text(encoding="utf-8")


def test_half_a_family_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, "atkinson-hyperlegible")
    (tmp_path / "atkinson-hyperlegible/files" / fonts.FACES[0].file).unlink()
    with pytest.raises(InputError, match="Regular.ttf: not there"):
        fonts.style_sheet(tmp_path)


def test_the_deck_asks_for_what_is_fetched() -> None:
    theme = (ROOT / "slides/theme.css").read_text(encoding="utf-8")
    assert all(f'"{family}"' in theme for family, _ in (fonts.SANS, fonts.MONO))
