"""A race, and a board of races, for eyes: lines for the terminal, and a page with a row of dots for each lap.

All that a file says goes through foreign.line() and, on a page, escape().
"""

import math
import re
from collections.abc import Iterable, Sequence
from html import escape

from quest.ground import foreign
from quest.my import finish
from quest.my.finish import LAPS, MINE, Gain, Lap, Race
from quest.spec.model import LEAST

WIDEST = 34  #: characters of a name in a table
SAYS = "Above 1.00 yours is better. In brackets: where the median lies (95 % or more); around 1.00: not decided."

STYLE = """
:root{color-scheme:light dark;--page:#fffefb;--text:#23241f;--soft:#5f6158;--rule:#dcdad0;--mine:#10479a;--ours:#8a8a92;
--track:#f1efe8}
@media(prefers-color-scheme:dark){:root{--page:#1b1c1a;--text:#dddcd4;--soft:#a3a398;--rule:#3a3b36;--mine:#7aa5ee;
--ours:#8d8d86;--track:#252623}}
body{margin:0 auto;padding:1rem 1rem 3rem;max-width:60rem;background:var(--page);color:var(--text);
font:16px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:2rem 0 .3rem}p{margin:.3rem 0;color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .5rem;border-bottom:1px solid var(--rule);text-align:right}
th:first-child,td:first-child{text-align:left;
min-width:5.5rem;overflow-wrap:break-word}th{font-weight:600}tr.mine td{font-weight:600}
td.plot{width:34%;min-width:5.5rem}
@media(max-width:40rem){th,td{padding:.3rem .25rem;font-size:.85rem}}
.track{position:relative;display:block;height:1.1rem;background:var(--track)}
.track i{position:absolute;top:0;bottom:0}
.one{width:1px;background:var(--soft)}.line{top:.45rem!important;bottom:.45rem!important;background:var(--ours)}
.dot{width:.7rem;margin:.2rem 0 .2rem -.35rem;border-radius:50%;background:var(--ours)}
.mine .line,.mine .dot{background:var(--mine)}
.flag{color:var(--soft);white-space:normal;text-align:left}
"""


def title(race: Race, server: str) -> str:
    """As tables call it: one's own by its owner's name, another's with its version."""
    if server == MINE:
        return "yours" if race.name == MINE else foreign.line(race.name)
    version = next((one.version for one in race.servers if one.name == server), "")
    number = re.search(r"\d+\.\d+(\.\d+)?", version)
    return f"{server} {number[0]}" if number else server


def cell(race: Race, server: str, lap: Lap) -> str:
    """The median; of the memory, how much of it is the server's own, and not the kernel's."""
    if race.failed(server, lap):
        return "-"
    own = f" ({race.part_text(server, 'own', lap.unit)} its own)" if lap.name == "idle" else ""
    return race.text(server, lap) + own


# ---- the terminal --------------------------------------------------------------------------------


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns of text: the first stands to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([f"{row[0]:{widths[0]}}", *(f"{text:>{w}}" for text, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]


def race_lines(race: Race) -> list[str]:
    """A table of values, one of ratios to one's own server, and what failed."""
    rows = [["", *(lap.title for lap in LAPS)]]
    rows += [[title(race, s.name), *(cell(race, s.name, lap) for lap in LAPS)] for s in race.servers]
    pairs = [[f"{title(race, MINE)} against", *(lap.title for lap in LAPS)]]
    for other in (server.name for server in race.servers if server.name != MINE):
        gains = [finish.gain(race, lap, MINE, other) for lap in LAPS]
        pairs.append([title(race, other), *(f"{one.text} {one.word}" if one else "-" for one in gains)])
    text = [*table(rows), "", *table(pairs), SAYS, *failures(race)]
    text.append(score_line(race))
    return text


def score_line(race: Race) -> str:
    """The score, or why there is none."""
    if (whole := finish.score(race)) is not None:
        return f"Score {whole:.0f}: {race.reference} has 100; there is no maximum."
    return f"No score: it needs a value of each lap, and {LEAST} rounds in which the machine did nothing else."


def failures(race: Race) -> list[str]:
    """A line for each lap that a server has no value of."""
    return [
        f"{title(race, server.name)}, {lap.title}: {why}"
        for server in race.servers
        for lap in LAPS
        if (why := race.failed(server.name, lap))
    ]


# ---- the page ------------------------------------------------------------------------------------


def page(heading: str, parts: Iterable[str]) -> str:
    """A whole page: nothing is fetched, and no script runs."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>{escape(heading)}</title>\n'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">\n<style>{STYLE}</style>\n'
        f"<h1>{escape(heading)}</h1>\n" + "\n".join(parts) + "\n</html>\n"
    )


def rows(head: Sequence[str], body: Iterable[tuple[bool, Sequence[str]]]) -> str:
    """A table. `body`: whether a line is of one's own server, and its cells, which are HTML."""
    top = "".join(f'<th scope="col">{escape(text)}</th>' for text in head)
    lines = ""
    for own, cells in body:
        lines += f"<tr{' class=mine' if own else ''}>{''.join(map(_cell, cells))}</tr>\n"
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead>\n<tbody>{lines}</tbody></table></div>'


def _cell(text: str) -> str:
    return f'<td class="plot">{text}</td>' if text.startswith('<span class="track"') else f"<td>{text}</td>"


def ends(gains: Iterable[Gain | None]) -> tuple[float, float]:
    """The ends of an axis on which all of these are, and 1: 0.5 and 2 at least."""
    values = [v for one in gains if one for v in (one.value, one.low or one.value, one.high or one.value)]
    return min([0.5, *values]), max([2.0, *values])


def track(one: Gain | None, axis: tuple[float, float]) -> str:
    """A dot with the line of its interval, on a logarithmic axis with a mark at 1. The numbers stand beside it."""
    low, high = (math.log(end) for end in axis)

    def place(value: float) -> float:
        return 2 + 96 * (math.log(value) - low) / (high - low)

    marks = f'<i class="one" style="left:{place(1):.1f}%"></i>'
    if one:
        if one.low is not None and one.high is not None:
            left, right = place(one.low), place(one.high)
            marks += f'<i class="line" style="left:{left:.1f}%;width:{right - left:.1f}%"></i>'
        marks += f'<i class="dot" style="left:{place(one.value):.1f}%"></i>'
    return f'<span class="track" aria-hidden="true">{marks}</span>'


def race_page(race: Race) -> str:
    """A lap each: values, ratios to the reference server as dots, and how one's own stands to each."""
    parts = [f"<p>{escape(about(race))}</p>", f"<p>{escape(score_line(race))}</p>"]
    for lap in LAPS:
        gains = {server.name: finish.gain(race, lap, server.name, race.reference) for server in race.servers}
        axis = ends(gains.values())
        head = ["", "median", f"right is better than {race.reference}", f"{title(race, MINE)} against it"]
        body = []
        for server in race.servers:
            against = finish.gain(race, lap, MINE, server.name) if server.name != MINE else None
            words = f"{against.text} {against.word}" if against else ""
            cells = [title(race, server.name), cell(race, server.name, lap)]
            body.append((server.name == MINE, [*map(escape, cells), track(gains[server.name], axis), escape(words)]))
        parts.append(f"<h2>{escape(lap.title)}</h2>\n{rows(head, body)}")
    parts += [f"<p>{escape(line)}</p>" for line in failures(race)]
    parts.append(
        "<p>A dot is the median of the rounds, its line holds that with 95 % or more; the mark is the reference server."
        " Where the line crosses the mark, nothing is decided.</p>"
    )
    return page(f"A race: {title(race, MINE)}", parts)


def about(race: Race) -> str:
    """When and where, in a line."""
    return foreign.line(f"{race.time[:10]}, {race.machine}, profile {race.profile}, {len(race.servers)} servers")
