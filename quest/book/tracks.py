"""The tracks of the deck: which slides, in which order, for how long.

    python3 -m quest.book.tracks show '' OUTLINE...      a line for each section of the deck, a
                                                         column for each track
    python3 -m quest.book.tracks show TRACK OUTLINE...   its slides, and when each begins
    python3 -m quest.book.tracks ids TRACK OUTLINE...    `id minutes` for each of its slides, and
                                                         for those it has in reserve

A track of slides/tracks.toml is a list of words "id" or "id minutes", where the minutes are those
of the slide in this track, or files of slides ("02-fork.md"). One with `units` has several such lists.
Status 1: a track is longer than its limit. Breaks are not counted. Minutes that cannot be read are
the lint's.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from quest.book.outline import Outline, read_outlines
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.toml import Doc, read_toml, record_of

TRACKS = Path("slides/tracks.toml")


@dataclass(frozen=True)
class Slide:
    """A heading of level 1 or 2 in the deck."""

    id: str
    title: str
    minutes: float
    file: str  # 02-fork.md
    section: str  # title of the slide that opens it


@dataclass(frozen=True)
class Unit:
    """What is shown in one go."""

    title: Annotated[str, Doc("what it is called")]  # "" where the track has only one
    words: Annotated[tuple[str, ...], Doc('"id", "id minutes" or a file of slides', key="slides")]


@dataclass(frozen=True)
class Track:
    """An entry of slides/tracks.toml."""

    name: str
    title: Annotated[str, Doc("what it is called")]
    limit: Annotated[float, Doc("minutes, at most, of each unit", key="minutes")]
    questions: Annotated[float, Doc("minutes that are kept free after them")] = 0
    words: Annotated[tuple[str, ...], Doc("of its only unit: as there", key="slides")] = ()
    several: Annotated[tuple[Unit, ...], Doc("what is shown on several days", key="units")] = ()
    backup: Annotated[tuple[str, ...], Doc("slides after the end, for questions")] = ()

    def fault(self) -> str:
        """What is wrong with the track as a whole."""
        return "" if bool(self.words) != bool(self.several) else 'it has either "slides" or "units"'

    @property
    def units(self) -> tuple[Unit, ...]:
        """One or several."""
        return self.several or (Unit("", self.words),)

    def parts(self, slides: list[Slide]) -> list[tuple[str, list[Slide]]]:
        """The title of each unit, and its slides. InputError: it names one that is not there."""
        return [(unit.title, self._chosen(unit.words, slides)) for unit in self.units]

    def shown(self, slides: list[Slide]) -> list[Slide]:
        """The slides of all units."""
        return [slide for _, part in self.parts(slides) for slide in part]

    def named(self) -> set[str]:
        """Ids and files (02-fork.md), without minutes."""
        words = [word for unit in self.units for word in unit.words]
        return {word.partition(" ")[0] for word in (*words, *self.backup)}

    def with_backup(self, slides: list[Slide]) -> list[Slide]:
        """All of it, in its order; those for questions take no time."""
        backup = [replace(each, minutes=0.0) for each in self._chosen(self.backup, slides)]
        return self.shown(slides) + backup

    def _chosen(self, words: Sequence[str], slides: list[Slide]) -> list[Slide]:
        chosen = []
        for word in words:
            id, _, minutes = word.partition(" ")
            those = [slide for slide in slides if id in (slide.id, slide.file)]
            if not those:
                raise InputError(f'{TRACKS}: {self.name}: no slide has the id "{id}"')
            try:
                chosen += [replace(s, minutes=float(minutes)) if minutes else s for s in those]
            except ValueError:
                what = f'"{word}": an id, and minutes if need be'
                raise InputError(f"{TRACKS}: {self.name}: {what}") from None
        return chosen


def read_tracks() -> list[Track]:
    """Those of slides/tracks.toml, in its order. InputError, in one line, for a mistake in it."""
    return [record_of(Track, table, f"{TRACKS}: {name}", name=name) for name, table in read_toml(TRACKS).items()]


def slides_of(outlines: list[Outline]) -> list[Slide]:
    """In the order of the files; minutes that are none count as 0 (lint says so)."""
    slides: list[Slide] = []
    section = ""
    for outline in outlines:
        for heading, _ in outline.sections():
            section = heading.text if heading.level == 1 or not section else section
            text = heading.values.get("minutes", "")
            minutes = float(text) if text.replace(".", "", 1).isdigit() else 0.0
            slides.append(Slide(heading.id, heading.text, minutes, outline.source.name, section))
    return slides


def total(slides: list[Slide]) -> float:
    """Minutes."""
    return sum(slide.minutes for slide in slides)


def _cell(slides: list[Slide]) -> str:
    return f"{total(slides):g} min ({len(slides)})" if slides else "–"


def table_of(slides: list[Slide], tracks: list[Track]) -> str:
    """Minutes and number of slides: a row for each section, a column for each track."""
    shown = {track.name: track.shown(slides) for track in tracks}
    rows = [["Section", *shown]]
    for section in dict.fromkeys(slide.section for slide in slides):
        own = ([slide for slide in part if slide.section == section] for part in shown.values())
        rows.append([section, *map(_cell, own)])
    rows.append(["Sum", *map(_cell, shown.values())])
    limits = [f"{t.limit:g} min" + (f" x {len(t.units)}" if len(t.units) > 1 else "") for t in tracks]
    rows.append(["Limit", *limits])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-2], rule, *lines[-2:]])


def running_order(slides: list[Slide], track: Track) -> str:
    """The slides of a track: the minute at which each begins, the minutes that it takes."""
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
    """A line for each unit that takes longer than its track allows."""
    for track in tracks:
        for unit, part in track.parts(slides):
            if total(part) > track.limit:
                name = f"{track.name}, {unit}" if unit else track.name
                yield f"schedule: {name} takes {total(part):g} min, limit {track.limit:g} min"


def main(arguments: list[str]) -> int:
    """show|ids, the track ("" for all), the outlines of the slides."""
    if len(arguments) < 2 or arguments[0] not in ("show", "ids"):
        raise InputError("schedule: show|ids TRACK OUTLINE...")
    what, name, *names = arguments
    slides, tracks = slides_of(read_outlines(names)[1]), read_tracks()
    by_name = {track.name: track for track in tracks}
    if (name or what == "ids") and name not in by_name:
        raise InputError(f'schedule: there is no track "{name}"; known: {", ".join(by_name)}')
    if what == "ids":
        for slide in by_name[name].with_backup(slides):
            print(slide.id, f"{slide.minutes:g}")
        return 0
    print(running_order(slides, by_name[name]) if name else table_of(slides, tracks))
    problems = list(over_limit(slides, tracks))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    run_main(main)
