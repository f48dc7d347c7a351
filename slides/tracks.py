"""The tracks of the deck: which slides, in which order, for how long.

    tracks.py TRACK      prints `id minutes` for each slide of the track, in its order

A track of slides/tracks.toml is a list of words "id" or "id minutes", where the minutes are those
of the slide in this track, or names of files of slides. One with `units` has several such lists.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "chapters" / "pandoc"))
from source import Source as Source
from source import read_toml


@dataclass(frozen=True)
class Slide:
    id: str
    title: str
    minutes: float
    file: str  # 02-fork
    opens: bool  # a section: a heading of level 1


@dataclass(frozen=True)
class Track:
    name: str
    title: str
    limit: float  # minutes, of each unit where there are several
    questions: float  # minutes that are kept free after them
    units: tuple[tuple[str, tuple[str, ...]], ...]  # title, words
    backup: tuple[str, ...]  # after the end, for questions

    def parts(self, slides: list[Slide]) -> list[tuple[str, list[Slide]]]:
        """The title of each unit, and its slides. SystemExit: it names one that is not there."""
        return [(title, _chosen(self.name, words, slides)) for title, words in self.units]

    def named(self) -> set[str]:
        """Ids and files, without minutes."""
        words = [word for _, unit in self.units for word in unit]
        return {word.partition(" ")[0] for word in (*words, *self.backup)}

    def slides(self, slides: list[Slide]) -> list[Slide]:
        """All of it, in its order; those for questions take no time."""
        told = [slide for _, part in self.parts(slides) for slide in part]
        backup = _chosen(self.name, self.backup, slides)
        return [*told, *(replace(slide, minutes=0.0) for slide in backup)]


def _chosen(name: str, words: tuple[str, ...], slides: list[Slide]) -> list[Slide]:
    found = []
    for word in words:
        id, _, minutes = word.partition(" ")
        those = [slide for slide in slides if id in (slide.id, slide.file)]
        if not those:
            sys.exit(f'slides/tracks.toml: {name}: no slide has the id "{id}"')
        try:
            found += [replace(s, minutes=float(minutes)) if minutes else s for s in those]
        except ValueError:
            sys.exit(f'slides/tracks.toml: {name}: "{word}": an id, and minutes if need be')
    return found


def read_tracks(path: Path) -> list[Track]:
    try:
        return [_track(name, entry) for name, entry in read_toml(path).items()]
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{path}: a track has a title, minutes and slides; wrong or missing: {error}")


def _track(name: str, entry: dict[str, Any]) -> Track:
    units = entry["units"] if "units" in entry else [{"title": "", "slides": entry["slides"]}]
    listed = tuple((unit["title"], tuple(unit["slides"])) for unit in units)
    return Track(
        name, entry["title"], float(entry["minutes"]), float(entry.get("questions", 0)), listed,
        tuple(entry.get("backup", ())),
    )  # fmt: skip


def sources(root: Path) -> list[Source]:
    return [Source(path) for path in sorted((root / "slides").glob("[0-9]*.md"))]


def read_slides(found: list[Source]) -> list[Slide]:
    """In the order of the files; minutes that are none count as 0 (lint says so)."""
    slides = []
    for source in found:
        for heading, _ in source.sections(2):
            values = heading.attributes.values
            minutes = values.get("minutes", "")
            slides.append(
                Slide(
                    heading.attributes.id, heading.text,
                    float(minutes) if minutes.replace(".", "", 1).isdigit() else 0.0,
                    source.path.stem, heading.level == 1,
                )
            )  # fmt: skip
    return slides


def track_of(name: str, tracks: list[Track]) -> Track:
    for track in tracks:
        if track.name == name:
            return track
    known = ", ".join(track.name for track in tracks)
    sys.exit(f'schedule: there is no track "{name}"; known: {known}')


def main(arguments: list[str]) -> int:
    root = Path()
    track = track_of(arguments[0], read_tracks(root / "slides/tracks.toml"))
    for slide in track.slides(read_slides(sources(root))):
        print(slide.id, f"{slide.minutes:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
