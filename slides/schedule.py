"""Adds up the minutes of the deck: schedule.py [ROOT]

Prints a line for each section and a column for each track of slides/tracks.toml, with the track's
limit; ends with 1 when a track is longer than its limit, or a slide's minutes or tracks cannot be
read. Breaks are not counted.
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
class Section:
    """A `#` heading with its slides: minutes by track, number of slides by track."""

    title: str
    minutes: dict[str, float]
    slides: dict[str, int]


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
                sections.append(
                    Section(heading.text, dict.fromkeys(names, 0.0), dict.fromkeys(names, 0))
                )
            problem = check_slide(heading, names)
            if problem:
                problems.append(f"{source.path}:{heading.line}: {problem}")
                continue
            for name in heading.attributes.values["track"].split():
                sections[-1].minutes[name] += float(heading.attributes.values["minutes"])
                sections[-1].slides[name] += 1
    return sections, problems


def cell(minutes: float, slides: int) -> str:
    return f"{minutes:g} min ({slides})" if slides else "–"


def table_of(sections: list[Section], tracks: list[Track]) -> str:
    total = Section(
        "Sum",
        {t.name: sum(s.minutes[t.name] for s in sections) for t in tracks},
        {t.name: sum(s.slides[t.name] for s in sections) for t in tracks},
    )
    rows = [["Section", *(track.name for track in tracks)]]
    rows += [
        [s.title, *(cell(s.minutes[t.name], s.slides[t.name]) for t in tracks)]
        for s in [*sections, total]
    ]
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


def over_limit(sections: list[Section], tracks: list[Track]) -> list[str]:
    result = []
    for track in tracks:
        total = sum(section.minutes[track.name] for section in sections)
        if total > track.limit:
            result.append(f"schedule: {track.name} takes {total:g} min, limit {track.limit:g} min")
    return result


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".")
    tracks = read_tracks(root / "slides/tracks.toml")
    sources = [Source(path) for path in sorted((root / "slides").glob("[0-9]*.md"))]
    sections, problems = add_up(sources, tracks)
    print(table_of(sections, tracks))
    problems += over_limit(sections, tracks)
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
