"""Six servers beside one another, each with the same four clients: the first page of the book.

Time is linear here and the clients' times are those without a tracer. What is said of a server is held
against its recording: who waits is measured, and who sleeps for B is counted at REST_US, where the picture rests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from quest.book.player.recording import Client, asleep_at, plain_clients, read_recording, traced_clients
from quest.ground.errors import InputError
from quest.measure.form import FOLDER, Recording

#: Where the picture rests: B is silent, and one sees who waits.
REST_US = 200_000
LATE_US = 40_000
PLAY_S = 6
SCENE = "slow"


@dataclass(frozen=True)
class Said:
    """What is printed of a server: what it is; who waits; why. `for_one`: how many sleep for B alone at REST_US."""

    what: str
    waits: str
    why: str
    for_one: int


SERVERS = {
    "01-iterative": Said("one process, a client at a time", "C and D wait.", "The only process sleeps for B.", 1),
    "02-fork": Said("a process for each client", "No other client waits.", "The process made for B sleeps.", 1),
    "03-prefork": Said(
        "16 processes, made at the start", "No other client waits.", "One of the 16 processes sleeps for B.", 1
    ),
    "05-pool": Said(
        "16 threads, made at the start", "No other client waits.", "One of the 16 threads sleeps for B.", 1
    ),
    "09-epoll": Said("one thread for all clients", "No other client waits.", "No thread sleeps for B alone.", 0),
    "13-uring": Said("one thread, jobs for the kernel", "No other client waits.", "The kernel waits for B instead.", 0),
}
#: With sixteen slow clients the sixteen are all asleep: what then becomes of one more is a recording of its own.
SEVENTEENTH = "player-05-pool.seventeenth.html"
#: In five of the six rows no other client waits, so that their lanes look alike.
ALIKE = "From 02 on the lanes look alike: only B waits."
DIFFERENCE = (
    "What differs is who sleeps for B, as the squares show: a process in 02 and 03, a thread in 05, none in 09 and "
    "13. 09 asks the kernel which clients are ready and then reads and sends itself; 13 gives the kernel the reads "
    "and sends as jobs and is told when they are done."
)
AXIS_MS = 50


def recorded(root: Path) -> list[Recording]:
    """The six, of the tree at `root`. InputError: one is not there."""
    return [read_recording(root / FOLDER / f"{name}.{SCENE}.json") for name in SERVERS]


def late(recording: Recording) -> list[str]:
    """The clients that waited long without having been silent themselves, in the run without a tracer."""
    found = []
    for letter, client in plain_clients(recording).items():
        if client.half is None and (client.done is None or client.done - client.connect >= LATE_US):
            found.append(letter)
    return found


def landmarks(client: Client) -> list[int]:
    times = (client.connect, client.half, client.sent, client.done)
    return [t for t in times if t is not None]


def traced_time(recording: Recording, t: int) -> int:
    """The moment of the traced run at which as much had happened as at t of the plain one, by what clients did."""
    pairs = [(0, 0)]
    plain = plain_clients(recording)
    for client in traced_clients(recording):
        pairs += zip(landmarks(plain[client.letter]), landmarks(client), strict=False)
    pairs.sort()
    before = max(pair for pair in pairs if pair[0] <= t)
    after = [pair for pair in pairs if pair[0] > t]
    if not after:
        return before[1] + t - before[0]
    (a, x), (b, y) = before, after[0]
    return round(x + (y - x) * (t - a) / (b - a))


def squares(recording: Recording, t: int) -> str:
    """A letter for each process or thread at t of the plain run: `.` asleep for any, `-` works for none in
    particular, `B` works for B, `b` asleep for B only.
    """
    at = traced_time(recording, t)
    signs = ""
    for number, task in enumerate(recording.tasks):
        if not task.is_alive(at):
            continue
        if call := asleep_at(recording, number, at):
            signs += call.sleeps_for().lower() or "."
            continue
        last = [call.letter for call in recording.calls_of(number) if call.t <= at]
        signs += (last[-1] or "-") if last else "."  # what makes no call at all does not work
    return signs


def changes(recording: Recording, until: int) -> list[tuple[int, str]]:
    """The squares from each millisecond on in which they differ from before."""
    found: list[tuple[int, str]] = []
    for ms in range(until // 1000 + 1):
        now = squares(recording, ms * 1000)
        if not found or found[-1][1] != now:
            found.append((ms, now))
    return found


def check(recording: Recording) -> Said:
    """What is said of it. InputError: the recording shows something else."""
    said = SERVERS[recording.server]
    waits = late(recording)
    expected = f"{' and '.join(waits)} wait." if waits else "No other client waits."
    for_one = squares(recording, REST_US).count("b")
    if said.waits != expected or said.for_one != for_one:
        what = f"{expected} {for_one} sleep for B alone"
        raise InputError(f"{recording.name}: quest/book/player/front.py says {said.waits} {said.why} It shows: {what}")
    return said


def end_of(recordings: Sequence[Recording]) -> int:
    """What all rows show, in microseconds of the plain run."""
    done = [client.done or 0 for recording in recordings for client in plain_clients(recording).values()]
    return max(done) + 12_000


# ---- HTML ----------------------------------------------------------------------------------------


def place(t: float, end: int) -> str:
    return f"{100 * t / end:.2f}%"


def client_bars(client: Client, end: int) -> str:
    def span(begin: int, stop: int) -> str:
        return f"left:{place(begin, end)};width:{place(stop - begin, end)}"

    parts = [f'<i class="asks" style="left:{place(client.connect, end)}"></i>']
    sent, done = client.sent if client.sent is not None else end, client.done if client.done is not None else end
    if client.half is not None:
        parts.append(f'<i class="silent" style="{span(client.half, sent)}">silent</i>')
    if done - sent >= LATE_US:
        parts.append(f'<i class="waits" style="{span(sent, done)}">waits</i>')
    parts.append(f'<i class="has" style="left:{place(done, end)}">✓</i>')
    return "".join(parts)


def square(sign: str, is_first: bool) -> str:
    """`is_first`: main, where there are others: it stands apart, and has an m while it has no client's letter."""
    kind = {".": "", "-": "busy"}.get(sign, "one" if sign.islower() else "busy")
    letter = sign.upper() if sign.isalpha() else ""
    text = letter or ("m" if is_first else "")
    return f'<i class="sq {kind} {letter}{" first" if is_first else ""}">{text}</i>'


def row(recording: Recording, end: int) -> str:
    said = check(recording)
    lanes = "".join(
        f'<div class="track {letter}"><b>{letter}</b><div class="bars">{client_bars(client, end)}</div></div>'
        for letter, client in plain_clients(recording).items()
    )
    signs = squares(recording, REST_US)
    many = len(signs) > 1
    drawn = "".join(square(sign, many and at == 0) for at, sign in enumerate(signs))
    states = " ".join(f"{ms}:{text}" for ms, text in changes(recording, end))
    waits = "late" if late(recording) else "well"
    return (
        f'<a class="row" href="player-{recording.server}.html"><span class="who"><b>{escape(recording.server)}</b> '
        f'<span>{escape(said.what)}</span></span><div class="lanes" aria-hidden="true">{lanes}'
        '<div class="over"><i></i></div></div>'
        f'<span class="said"><span class="squares" aria-hidden="true" data-states="{states}">{drawn}</span>'
        f'<span><b class="{waits}">{escape(said.waits)}</b> {escape(said.why)}</span></span></a>'
    )


def beside(middle: str, classes: str) -> str:
    """What stands above or below all lanes, on their clock."""
    return (
        f'<div class="row {classes}" aria-hidden="true"><span></span>'
        f'<div class="lanes"><div class="over">{middle}</div></div><span></span></div>'
    )


def axis(end: int) -> str:
    ticks = range(0, end // 1000 + 1, AXIS_MS)
    units = {ticks[-1]: " ms"}
    return "".join(f'<i style="left:{place(ms * 1000, end)}">{ms}{units.get(ms, "")}</i>' for ms in ticks)


TITLE = "Four clients. One of them is slow."
QUESTION = "Who has to wait for B?"


def front(recordings: Sequence[Recording]) -> str:
    """The first page's picture: complete without a script, which only lets it play (front.js)."""
    end = end_of(recordings)
    rows = "".join(row(recording, end) for recording in recordings)
    names = [f'<b class="{letter}">{letter}</b>' for letter in "ABCD"]
    first = recordings[0].server
    clock = f'<b class="clock">now: {REST_US // 1000} ms</b>'
    return (
        f'<section class="front" data-end="{end // 1000}" data-rest="{REST_US // 1000}" data-seconds="{PLAY_S}" '
        f'style="--at:{place(REST_US, end)}"><h2 class="unnumbered">{TITLE}</h2>'
        f"<p>{names[0]}, {names[1]}, {names[2]} and {names[3]} ask six servers for the same page. "
        f"{names[1]} stops in the middle of its request for a quarter of a second. <strong>{QUESTION}</strong></p>"
        f'<div class="rows">{beside(clock, "top")}{rows}'
        f"{beside(axis(end), 'axis')}</div>"
        f'<div class="foot"><button class="main" type="button" hidden="">▶ play ({PLAY_S} s)</button>'
        f'<a class="go" href="player-{first}.html">step through {first} ›</a>'
        '<span class="legend"><span><i class="sq"></i> asleep, wakes for any client</span> '
        '<span><i class="sq one B">B</i> asleep, for B only</span> <span><i class="sq busy A">A</i> works for A'
        '<span class="moving"> (brief: press play)</span></span> '
        '<span><i class="sq">m</i> main, which made the others</span></span></div>'
        f'<p class="note"><strong>{ALIKE}</strong> {DIFFERENCE}</p>'
        '<p class="note"><strong>Sixteen are not always enough.</strong> With 16 slow clients all 16 processes of 03, '
        f'or threads of 05, sleep, and <a href="{SEVENTEENTH}">a seventeenth client waits</a>.</p>'
        '<p class="how">Recorded, not drawn; clients’ times without the tracer.</p></section>\n'
    )
