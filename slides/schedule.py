"""Adds up the minutes of the deck: schedule.py [ROOT [TRACK]]

Prints a line for each section and a column for each track of slides/tracks.toml, with the track's
limit; with TRACK a line for each of its slides, with the minute at which it begins. Ends with 1
when a track is longer than its limit, when a slide's minutes or tracks cannot be read, and when
there is no such track. Breaks are not counted.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "chapters" / "pandoc"))
from source import Block, Source, read_toml


@dataclass
class Track:
    name: str
    title: str
    limit: float


@dataclass
class Slide:
    title: str
    minutes: float
    tracks: list[str]


@dataclass
class Section:
    """A `#` heading with its slides."""

    title: str
    slides: list[Slide]

    def of(self, track: str) -> list[Slide]:
        return [slide for slide in self.slides if track in slide.tracks]

    def minutes(self, track: str) -> float:
        return sum(slide.minutes for slide in self.of(track))


def read_tracks(path: Path) -> list[Track]:
    try:
        return [
            Track(name, entry["title"], float(entry["minutes"]))
            for name, entry in read_toml(path).items()
        ]
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{path}: a track has a title and minutes; wrong or missing: {error}")


def check_slide(heading: Block, tracks: set[str]) -> str:
    """What is wrong with the minutes or tracks of a slide, or nothing."""
    minutes, named = (
        heading.attributes.values.get("minutes", ""),
        heading.attributes.values.get("track", ""),
    )
    if not re.fullmatch(r"\d+(\.\d+)?", minutes):
        return f'slide "{heading.text}": minutes="{minutes}" is no number'
    unknown = set(named.split()) - tracks
    if unknown or not named:
        return f'slide "{heading.text}": track="{named}"; known: {", ".join(sorted(tracks))}'
    return ""


def add_up(sources: list[Source], tracks: list[Track]) -> tuple[list[Section], list[str]]:
    """The sections in order, and a line for each slide that cannot be counted."""
    names = {track.name for track in tracks}
    sections: list[Section] = []
    problems = []
    for source in sources:
        for heading, _ in source.sections(2):
            if heading.level == 1 or not sections:
                sections.append(Section(heading.text, []))
            problem = check_slide(heading, names)
            if problem:
                problems.append(f"{source.path}:{heading.line}: {problem}")
                continue
            values = heading.attributes.values
            slide = Slide(heading.text, float(values["minutes"]), values["track"].split())
            sections[-1].slides.append(slide)
    return sections, problems


def cell(section: Section, track: str) -> str:
    slides = len(section.of(track))
    return f"{section.minutes(track):g} min ({slides})" if slides else "–"


def table_of(sections: list[Section], tracks: list[Track]) -> str:
    total = Section("Sum", [slide for section in sections for slide in section.slides])
    rows = [["Section", *(track.name for track in tracks)]]
    rows += [[s.title, *(cell(s, t.name) for t in tracks)] for s in [*sections, total]]
    rows += [["Limit", *(f"{track.limit:g} min" for track in tracks)]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(tracks) + 1)]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1:-2], rule, *lines[-2:]])


def running_order(sections: list[Section], track: Track) -> str:
    """The slides of a track: when each begins, how long it takes."""
    lines = [f"{track.title}: {track.name}, at most {track.limit:g} min", "begins   takes  slide"]
    minute = 0.0
    for section in sections:
        for slide in section.of(track.name):
            indent = "" if slide is section.slides[0] else "  "
            lines.append(f"{minute:6g}  {slide.minutes:6g}  {indent}{slide.title}")
            minute += slide.minutes
    return "\n".join([*lines, f"{minute:6g}          end"])


def over_limit(sections: list[Section], tracks: list[Track]) -> list[str]:
    result = []
    for track in tracks:
        total = sum(section.minutes(track.name) for section in sections)
        if total > track.limit:
            result.append(f"schedule: {track.name} takes {total:g} min, limit {track.limit:g} min")
    return result


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".")
    tracks = read_tracks(root / "slides/tracks.toml")
    sources = [Source(path) for path in sorted((root / "slides").glob("[0-9]*.md"))]
    sections, problems = add_up(sources, tracks)
    if len(arguments) > 1:
        chosen = [track for track in tracks if track.name == arguments[1]]
        if not chosen:
            known = ", ".join(track.name for track in tracks)
            sys.exit(f'schedule: there is no track "{arguments[1]}"; known: {known}')
        print(running_order(sections, chosen[0]))
    else:
        print(table_of(sections, tracks))
    problems += over_limit(sections, tracks)
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
