"""Adds up the minutes of the deck: schedule.py [ROOT [TRACK]]

Prints a line for each section of the deck and a column for each track of slides/tracks.toml, with
the track's limit; with TRACK a line for each of its slides, with the minute at which it begins.
Ends with 1 when a track is longer than its limit, and when there is no such track. Breaks are not
counted. Minutes that cannot be read are the lint's.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tracks import Slide, Track, read_slides, read_tracks, sources, track_of


def by_section(slides: list[Slide]) -> dict[str, list[str]]:
    """Title of each section -> the ids of its slides."""
    found: dict[str, list[str]] = {}
    section = ""
    for slide in slides:
        section = slide.title if slide.opens or not section else section
        found.setdefault(section, []).append(slide.id)
    return found


def minutes(slides: list[Slide]) -> float:
    return sum(slide.minutes for slide in slides)


def cell(slides: list[Slide]) -> str:
    return f"{minutes(slides):g} min ({len(slides)})" if slides else "–"


def table_of(slides: list[Slide], tracks: list[Track]) -> str:
    told = {t.name: [slide for _, part in t.parts(slides) for slide in part] for t in tracks}
    rows = [["Section", *told]]
    for section, ids in by_section(slides).items():
        rows.append([section, *(cell([s for s in own if s.id in ids]) for own in told.values())])
    rows.append(["Sum", *map(cell, told.values())])
    limits = [
        f"{t.limit:g} min" + (f" x {len(t.units)}" if len(t.units) > 1 else "") for t in tracks
    ]
    rows.append(["Limit", *limits])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
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
            indent = "" if slide.opens else "  "
            lines.append(f"{minute:6g}  {slide.minutes:6g}  {indent}{slide.title}")
            minute += slide.minutes
        lines.append(f"{minute:6g}          end")
    if track.questions:
        lines.append(f"        {track.questions:6g}  questions")
    return "\n".join(lines)


def over_limit(slides: list[Slide], tracks: list[Track]) -> Iterator[str]:
    for track in tracks:
        for unit, part in track.parts(slides):
            if minutes(part) > track.limit:
                name = f"{track.name}, {unit}" if unit else track.name
                yield f"schedule: {name} takes {minutes(part):g} min, limit {track.limit:g} min"


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".")
    tracks, found = read_tracks(root / "slides/tracks.toml"), sources(root)
    slides = read_slides(found)
    if len(arguments) > 1:
        print(running_order(slides, track_of(arguments[1], tracks)))
    else:
        print(table_of(slides, tracks))
    problems = list(over_limit(slides, tracks))
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
