"""A player as a piece of HTML: lanes at their best moment, a table of all moments, and the data for
player.js. It says what it has to say without a script, on paper and to a screen reader; the script adds what moves.
"""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from quest.book.player.excerpts import excerpts
from quest.book.player.lanes import lanes
from quest.book.player.recording import best, milliseconds
from quest.book.player.scale import scale_of
from quest.measure.form import Moment, Recording


def said(moment: Moment) -> str:
    return f"<b>{escape(moment.head)}</b> {escape(moment.rest)}"


def where(recording: Recording, moment: Moment) -> tuple[str, str, str]:
    """Who, in which function, at which line."""
    if moment.call is None:
        return "the client", "", ""
    call = recording.calls[moment.call]
    who = recording.tasks[call.task].name
    site = recording.sites[recording.stacks[call.stack][-1]]
    return who, f"{site.function}()", f"{site.file.removeprefix('code/')}:{site.line}"


def table(recording: Recording) -> str:
    rows = []
    for moment in recording.moments:
        who, function, line = where(recording, moment)
        cells = "".join(f"<td>{escape(text)}</td>" for text in (who, function, line))
        rows.append(f'<tr><th scope="row">{milliseconds(moment.t)}</th>{cells}<td>{said(moment)}</td></tr>')
    heads = "".join(
        f'<th scope="col">{text}</th>' for text in ("when, traced", "who", "function", "line", "what happens")
    )
    caption = f"{recording.server}: the moments of this recording"
    return (
        f'<table class="steps"><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def data_of(recording: Recording, root: Path) -> dict[str, object]:
    """What player.js reads: the recording, and what the build has made of it."""
    shown, of_site = excerpts(recording, root)
    told = recording.table()
    names = ("server", "end", "tasks", "clients", "open", "stacks", "calls", "ring", "moments")
    return {
        **{name: told.get(name) for name in names},
        "sites": [[site.function, site.file, site.line] for site in recording.sites],
        "code": [[one.first, "\n".join(one.lines)] for one in shown],
        "codeOf": of_site,
        "best": best(recording),
    }


def script(value: object) -> str:
    """JSON inside a page: no end tag can stand in it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'


def player(recordings: Sequence[Recording], root: Path) -> str:
    """The player of one recording, or of two side by side. InputError: a recorded line is not in the tree."""
    scale = scale_of(*recordings)
    first = recordings[0]
    rest = first.moments[best(first)]
    data = {
        "scale": [list(scale.points), [round(unit, 2) for unit in scale.units]],
        "sides": [data_of(recording, root) for recording in recordings],
    }
    classes = "player two" if len(recordings) > 1 else "player"
    return (
        f'<div class="{classes}" data-player="{escape(first.name)}"><p class="say">{said(rest)}</p>'
        f"{lanes(recordings, scale, rest.t)}{''.join(map(table, recordings))}{script(data)}</div>\n"
    )
