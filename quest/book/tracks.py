"""The tracks of the deck: which slides, in which order, for how long.

    tracks.py               a line for each section of the deck, a column for each track
    tracks.py TRACK         its slides, and the minute at which each begins
    tracks.py TRACK ids     `id minutes` for each of its slides, and for those it has in reserve

A track of slides/tracks.toml is a list of words "id" or "id minutes", where the minutes are those
of the slide in this track, or names of files of slides. One with `units` has several such lists.
Status 1: a track is longer than its limit, is not there, or names what is not there. Breaks are not
counted. Minutes that cannot be read are the lint's.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from quest.book.source import Source, read_toml

TRACKS = Path("slides/tracks.toml")


@dataclass(frozen=True)
class Slide:
    id: str
    title: str
    minutes: float
    file: str  # 02-fork
    section: str  # title of the slide that opens it


class Track:
    def __init__(self, name: str, entry: dict[str, Any]) -> None:
        self.name, self.title = name, str(entry["title"])
        self.limit = float(entry["minutes"])  # of each unit where there are several
        self.questions = float(entry.get("questions", 0))  # minutes, kept free after them
        units = entry.get("units") or [{"title": "", "slides": entry["slides"]}]
        self.units = [(str(unit["title"]), list(map(str, unit["slides"]))) for unit in units]
        self.backup = list(map(str, entry.get("backup", [])))  # after the end, for questions

    def parts(self, slides: list[Slide]) -> list[tuple[str, list[Slide]]]:
        """The title of each unit, and its slides. SystemExit: it names one that is not there."""
        return [(title, self._chosen(words, slides)) for title, words in self.units]

    def named(self) -> set[str]:
        """Ids and files, without minutes."""
        words = [word for _, unit in self.units for word in unit]
        return {word.partition(" ")[0] for word in words + self.backup}

    def slides(self, slides: list[Slide]) -> list[Slide]:
        """All of it, in its order; those for questions take no time."""
        told = [slide for _, part in self.parts(slides) for slide in part]
        return told + [replace(each, minutes=0.0) for each in self._chosen(self.backup, slides)]

    def _chosen(self, words: list[str], slides: list[Slide]) -> list[Slide]:
        found = []
        for word in words:
            id, _, minutes = word.partition(" ")
            those = [slide for slide in slides if id in (slide.id, slide.file)]
            if not those:
                sys.exit(f'{TRACKS}: {self.name}: no slide has the id "{id}"')
            try:
                found += [replace(s, minutes=float(minutes)) if minutes else s for s in those]
            except ValueError:
                sys.exit(f'{TRACKS}: {self.name}: "{word}": an id, and minutes if need be')
        return found


def read_tracks() -> list[Track]:
    try:
        return [Track(name, entry) for name, entry in read_toml(TRACKS).items()]
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{TRACKS}: a track has a title, minutes and slides; wrong or missing: {error}")


def sources() -> list[Source]:
    return [Source(path) for path in sorted(Path("slides").glob("[0-9]*.md"))]


def read_slides() -> list[Slide]:
    """In the order of the files; minutes that are none count as 0 (lint says so)."""
    slides: list[Slide] = []
    section = ""
    for source in sources():
        for heading, _ in source.sections():
            section = heading.text if heading.level == 1 or not section else section
            text = heading.values.get("minutes", "")
            minutes = float(text) if text.replace(".", "", 1).isdigit() else 0.0
            slides.append(Slide(heading.id, heading.text, minutes, source.path.stem, section))
    return slides


def total(slides: list[Slide]) -> float:
    return sum(slide.minutes for slide in slides)


def cell(slides: list[Slide]) -> str:
    return f"{total(slides):g} min ({len(slides)})" if slides else "–"


def table_of(slides: list[Slide], tracks: list[Track]) -> str:
    told = {t.name: [slide for _, part in t.parts(slides) for slide in part] for t in tracks}
    rows = [["Section", *told]]
    for section in dict.fromkeys(slide.section for slide in slides):
        own = ([slide for slide in part if slide.section == section] for part in told.values())
        rows.append([section, *map(cell, own)])
    rows.append(["Sum", *map(cell, told.values())])
    limits = [
        f"{t.limit:g} min" + (f" x {len(t.units)}" if len(t.units) > 1 else "") for t in tracks
    ]
    rows.append(["Limit", *limits])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-2], rule, *lines[-2:]])


def running_order(slides: list[Slide], track: Track) -> str:
    """The slides of a track: when each begins, how long it takes."""
    lines = [f"{track.title}: {track.name}, at most {track.limit:g} min", "begins   takes  slide"]
    for unit, part in track.parts(slides):
        minute = 0.0
        lines += ["", unit] if unit else []
        for slide in part:
            indent = "" if slide.title == slide.section else "  "
            lines.append(f"{minute:6g}  {slide.minutes:6g}  {indent}{slide.title}")
            minute += slide.minutes
        lines.append(f"{minute:6g}          end")
    if track.questions:
        lines.append(f"        {track.questions:6g}  questions")
    return "\n".join(lines)


def over_limit(slides: list[Slide], tracks: list[Track]) -> Iterator[str]:
    for track in tracks:
        for unit, part in track.parts(slides):
            if total(part) > track.limit:
                name = f"{track.name}, {unit}" if unit else track.name
                yield f"schedule: {name} takes {total(part):g} min, limit {track.limit:g} min"


def main(name: str = "", ids: str = "") -> int:
    slides, tracks = read_slides(), read_tracks()
    chosen = {track.name: track for track in tracks}
    if name and name not in chosen:
        sys.exit(f'schedule: there is no track "{name}"; known: {", ".join(chosen)}')
    if ids:
        for slide in chosen[name].slides(slides):
            print(slide.id, f"{slide.minutes:g}")
        return 0
    print(running_order(slides, chosen[name]) if name else table_of(slides, tracks))
    problems = list(over_limit(slides, tracks))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
