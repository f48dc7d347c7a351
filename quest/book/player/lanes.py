"""Who works and who waits, as lanes of HTML: places are percentages, so that one drawing fits every width.

Thick works, thin sleeps, a dashed outline is silent: it can be read without colour. player.css has heights and colours.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from quest.book.player.recording import Client, milliseconds, plain_clients, traced_clients
from quest.book.player.scale import MARGIN_US, Scale
from quest.measure.form import Recorded, Recording

MOST_LANES = 8
#: Of the width: a note of a cut, on a phone.
NOTE_WIDTH = 0.24
#: And at the width of a page, beside a time.
SHORT_NOTE = 0.07


def percent(part: float) -> str:
    return f"{100 * part:.2f}".rstrip("0").rstrip(".") + "%"


def span(scale: Scale, begin: float, end: float) -> str:
    left, right = scale.at(begin), scale.at(end)
    return f"left:{percent(left)};width:{percent(right - left)}"


def bar(scale: Scale, begin: float, end: float, classes: str, letter: str = "", text: str = "") -> str:
    colour = f" {letter}" if letter else ""
    return f'<i class="{classes}{colour}" style="{span(scale, begin, end)}">{escape(text)}</i>'


def longest_free(scale: Scale, begin: float, end: float) -> tuple[float, float]:
    """The longest part of this time that no cut crosses, as places."""
    left, right = scale.at(begin), scale.at(end)
    inside = [place for place, _ in scale.cuts() if left < place < right]
    edges = [left, *(edge for place in inside for edge in (place - 0.012, place + 0.012)), right]
    pairs = list(zip(edges[::2], edges[1::2], strict=True))
    return max(pairs, key=lambda pair: pair[1] - pair[0])


def label(scale: Scale, begin: float, end: float, letter: str, *texts: str) -> str:
    left, right = longest_free(scale, begin, end)
    style = f"left:{percent(left)};width:{percent(right - left)}"
    shorter = "|".join(escape(text) for text in texts)
    return f'<b class="says {letter}" style="{style}" data-says="{shorter}"><span>{escape(texts[0])}</span></b>'


# ---- clients -------------------------------------------------------------------------------------


def client_track(scale: Scale, client: Client, plain: Client, end: int) -> Iterator[str]:
    """Connecting and sending, silent, waiting, receiving: as far as the client came."""
    letter, sent = client.letter, client.sent if client.sent is not None else end
    yield bar(scale, client.connect, sent if client.half is None else client.half, "works", letter)
    if client.half is not None:
        texts = ["silent"]
        if plain.half is not None and plain.sent is not None:
            pause = milliseconds(plain.sent - plain.half)
            texts = [f"says nothing for {pause}", f"silent for {pause}", "silent"]
        yield bar(scale, client.half, sent, "silent", letter)
        yield label(scale, client.half, sent, letter, *texts)
    first = client.first if client.first is not None else end
    yield bar(scale, sent, first, "waits", letter)
    yield label(scale, sent, first, letter, "waits for its page", "waits")
    if client.first is not None:
        yield bar(scale, first, client.done if client.done is not None else end, "works", letter)


# ---- processes and threads -----------------------------------------------------------------------


@dataclass(frozen=True)
class Stretch:
    """What a task does for a while: it works, or sleeps in a call."""

    begin: int
    end: int
    letter: str
    sleep: Recorded | None
    ticks: Sequence[int] = ()


def stretches(recording: Recording, task: int, end: int) -> list[Stretch]:
    """Work for one client is one stretch; between two calls the task works for the client of the first."""
    one = recording.tasks[task]
    born = one.born if one.born is not None else -1
    until = min(end, one.ended if one.ended is not None else end)
    calls = list(recording.calls_of(task))
    found: list[Stretch] = []

    def work(begin: int, stop: int, letter: str, ticks: Sequence[int]) -> None:
        last = found[-1] if found else None
        if last and last.sleep is None and last.letter == letter and last.end == begin:
            found[-1] = Stretch(last.begin, stop, letter, None, [*last.ticks, *ticks])
        elif stop > begin:
            found.append(Stretch(begin, stop, letter, None, ticks))

    if calls and calls[0].t > max(born, 0):
        work(max(born, 0), calls[0].t, calls[0].letter if born >= 0 else "", ())
    for call, after in zip(calls, [*calls[1:], None], strict=True):
        stop = after.t if after else until
        if call.asleep:
            over = until if call.took is None else call.t + call.took
            found.append(Stretch(call.t, over, call.sleeps_for(), call))
            work(over, stop, call.letter, ())
        else:
            work(call.t, stop, call.letter, [call.t])
    return [stretch for stretch in found if stretch.begin < end and stretch.end > 0]


def ticks(scale: Scale, times: Sequence[int]) -> str:
    """A short stroke for each call."""
    if not times:
        return ""
    path = "".join(f"M{1000 * scale.at(t):.1f} 0v1" for t in times)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="ticks" viewBox="0 0 1000 1" '
        'preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{path}"/></svg>'
    )


def sleep_text(call: Recorded) -> tuple[str, ...]:
    letter, name = call.sleeps_for(), f"{call.name}()"
    if letter:
        return (f"sleeps in {name}, for {letter}", f"{name}, for {letter}", f"for {letter}")
    return (f"sleeps in {name}", name, "asleep")


def task_track(recording: Recording, scale: Scale, task: int) -> Iterator[str]:
    all_ticks: list[int] = []
    for stretch in stretches(recording, task, scale.points[-1]):
        begin, end = stretch.begin, stretch.end
        if stretch.sleep:
            yield bar(scale, begin, end, "sleeps", stretch.letter)
            yield label(scale, begin, end, stretch.letter, *sleep_text(stretch.sleep))
        else:
            yield bar(scale, begin, end, "works", stretch.letter or "N", stretch.letter)
            all_ticks += stretch.ticks
    ended, collected = recording.tasks[task].ended, recording.tasks[task].collected
    if ended is not None and collected is not None and collected > ended:
        yield bar(scale, ended, collected, "zombie")
    yield ticks(scale, all_ticks)


def serves(recording: Recording, task: int) -> bool:
    return any(call.letter for call in recording.calls_of(task))


def drawn_tasks(recording: Recording) -> tuple[list[int], list[int]]:
    """The tasks with a lane of their own, and those that share one: all that never serve, and what is too much."""
    all_tasks = range(len(recording.tasks))
    own = [task for task in all_tasks if task == 0 or serves(recording, task)]
    own = own if len(recording.tasks) > MOST_LANES else list(all_tasks)
    own = own[: MOST_LANES - (1 if len(own) < len(recording.tasks) else 0)]
    return own, [task for task in all_tasks if task not in own]


def shared_track(recording: Recording, scale: Scale, tasks: Sequence[int]) -> str:
    sleeping = all(all(call.asleep for call in recording.calls_of(task)) for task in tasks)
    whole = bar(scale, scale.points[0], scale.points[-1], "sleeps" if sleeping else "mixed")
    texts = ("asleep all the time",) if sleeping else ("work and sleep like these, not drawn", "not drawn")
    return whole + label(scale, scale.points[0], scale.points[-1], "", *texts)


def forks(recording: Recording, scale: Scale, own: Sequence[int]) -> Iterator[str]:
    """A line from the parent to each that is born while we look."""
    for row, task in enumerate(own):
        one = recording.tasks[task]
        if one.parent in own and one.born is not None:
            style = f"--from:{own.index(one.parent)};--to:{row};left:{percent(scale.at(one.born))}"
            yield f'<i class="fork" style="{style}"></i>'


# ---- together ------------------------------------------------------------------------------------


def lane(name: str, track: str, classes: str, data: str = "") -> str:
    return f'<div class="lane {classes}"{data}><b class="name">{escape(name)}</b><div class="track">{track}</div></div>'


def zigzag(place: float) -> str:
    """A cut through all lanes."""
    teeth = "l5 7l-5 7" * 60
    return (
        f'<i class="cut" style="left:{percent(place)}">'
        '<svg xmlns="http://www.w3.org/2000/svg" width="22" height="100%" aria-hidden="true">'
        f'<path d="M8 0{teeth}"/><path d="M4 0{teeth}"/><path d="M13 0{teeth}"/></svg></i>'
    )


def cut_notes(cuts: Sequence[tuple[float, int]]) -> Iterator[str]:
    """What is cut out. Two that are so near that their notes would touch have one."""
    near: list[list[tuple[float, int]]] = []
    for cut in cuts:
        if near and cut[0] - near[-1][-1][0] < NOTE_WIDTH:
            near[-1].append(cut)
        else:
            near.append([cut])
    for each in near:
        place = sum(at for at, _ in each) / len(each)
        text = " and ".join(f"{gap / 1000:.0f}" for _, gap in each)
        yield f'<i class="cut-note" style="left:{percent(place)};--part:{place:.2f}">{text} ms cut</i>'


def axis(scale: Scale) -> Iterator[str]:
    """Begin and end of the traced run, where no note of a cut is in their place: on a phone that is farther."""
    places = [place for place, _ in scale.cuts()]
    end = scale.points[-1] - MARGIN_US
    first, last = min(places, default=1.0), max(places, default=0.0)
    if first > SHORT_NOTE:
        far = " rare" if first < NOTE_WIDTH else ""
        yield f'<i class="cut-note axis{far}" style="left:{percent(scale.at(0))};--part:0">0 ms</i>'
    if last < 1 - SHORT_NOTE:
        far = " rare" if last > 1 - NOTE_WIDTH else ""
        yield f'<i class="cut-note axis{far}" style="left:{percent(scale.at(end))};--part:1">{end / 1000:.0f} ms</i>'


def lane_names(recording: Recording) -> list[str]:
    """Of its processes or threads, as they stand before their lanes."""
    own, others = drawn_tasks(recording)
    return [recording.tasks[task].name for task in own] + [f"{len(others)} more"] * bool(others)


def group(recording: Recording, scale: Scale) -> str:
    """Clients, then processes or threads."""
    plain = plain_clients(recording)
    rows = [
        lane(client.letter, "".join(client_track(scale, client, plain[client.letter], recording.end)),
             f"client {client.letter}")
        for client in traced_clients(recording)
    ]  # fmt: skip
    own, others = drawn_tasks(recording)
    tasks = [
        lane(recording.tasks[task].name, "".join(task_track(recording, scale, task)), "task", f' data-task="{task}"')
        for task in own
    ]
    if others:
        tasks.append(lane(f"{len(others)} more", shared_track(recording, scale, others), "task rest"))
    lines = "".join(forks(recording, scale, own))
    return (
        f'<div class="clients">{"".join(rows)}</div>'
        f'<div class="tasks"><div class="field">{lines}</div>{"".join(tasks)}</div>'
    )


def dots(recording: Recording, scale: Scale) -> str:
    return "".join(f'<i class="dot" style="left:{percent(scale.at(moment.t))}"></i>' for moment in recording.moments)


def lanes(recordings: Sequence[Recording], scale: Scale, at: int) -> str:
    """The lanes of one server, or of two on one scale. `at`: now."""
    units, letters = scale.units[-1], max(len(name) for recording in recordings for name in lane_names(recording))
    cuts = scale.cuts()
    groups = "".join(
        f'<div class="group" data-side="{side}">'
        + (f'<p class="server">{escape(recording.server)}</p>' if len(recordings) > 1 else "")
        + group(recording, scale)
        + f'<div class="lane dots"><b class="name"></b><div class="track">{dots(recording, scale)}</div></div></div>'
        for side, recording in enumerate(recordings)
    )
    cross = "".join(zigzag(place) for place, _ in cuts)
    notes = "".join((*cut_notes(cuts), *axis(scale)))
    return (
        f'<div class="scroll"><div class="lanes" style="--units:{units:.1f};--letters:{letters}">{groups}'
        f'<div class="cuts"><b class="name"></b><div class="track">{notes}</div></div>'
        f'<div class="over">{cross}<i class="now" style="left:{percent(scale.at(at))}"></i></div></div></div>'
    )
