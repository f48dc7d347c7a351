"""The moments of a recording that matter, found by rule, each with the sentence that is said about it.

Every rule gives its moments a rank; the best nine are kept. Milliseconds in a sentence are those of the plain run.
"""

import errno
from collections.abc import Callable, Iterator, Sequence

from quest.measure.form import Guest, Moment, Recorded, Recording

MOST = 9
NEAR_US = 1000  # of two moments that near to each other the better one is kept
LONG_US = 40_000
SOON_US = 5000  # a client that is served has gone by then
FEW = 3  # so many clients are named
LATE_US = 10_000  # a page that comes later than that, and later than all undisturbed ones, is late
LOOPS = {"poll", "select", "epoll_wait", "sigtimedwait", "io_uring_enter", "io_getevents"}
RECEIVING = {"recv", "read", "recvmsg", "readv"}
SENDING = {"send", "write", "writev", "sendmsg", "sendfile", "splice"}
READING = {"pread", "preadv2", "read"}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class View:
    """A recording, and the questions that the rules ask of it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.calls = list(enumerate(recording.calls))
        self.clients = {guest.letter: guest for guest in recording.clients}
        self.accepted = {call.letter: (n, call) for n, call in self.calls if call.name == "accept" and call.letter}
        self.ring = recording.ring or []
        self.since = {letter: self.end(call) for letter, (_, call) in self.accepted.items()} | {
            event.letter: event.t for event in self.ring if event.opcode == "accept" and event.letter
        }

    def name(self, task: int, first: bool = False) -> str:
        """As it stands in a sentence, or at its beginning."""
        name = self.recording.tasks[task].name
        return name[0].upper() + name[1:] if first and name != "main" else name

    def kind(self, task: int) -> str:
        return "thread" if self.recording.tasks[task].kind == "thread" else "process"

    def end(self, call: Recorded) -> int:
        """When it returned, or the recording's end."""
        end = call.end()
        return self.recording.end if end is None else end

    def asleep(self, t: int) -> dict[int, Recorded]:
        """The tasks that sleep at that time, each with its call."""
        return {call.task: call for _, call in self.calls if call.asleep and call.t <= t < self.end(call)}

    def alive(self, t: int) -> set[int]:
        """The tasks that are there at that time."""
        return {n for n, task in enumerate(self.recording.tasks) if task.is_alive(t)}

    def open(self, t: int) -> list[str]:
        """The clients that are accepted, and not done, at that time."""
        return [
            letter
            for letter, guest in self.clients.items()
            if letter in self.since and self.since[letter] <= t < guest.acts[-1][0]
        ]

    def taken(self, letter: str, t: int, task: int) -> Recorded | None:
        """The first call for a client after that time by another task than this one."""
        return next((c for _, c in self.calls if c.letter == letter and c.t > t and c.task != task), None)

    def plain_us(self, letter: str, first: int = 0, last: int = 5) -> int | None:
        """Of the plain run: between two of the six times."""
        times = self.recording.plain.get(letter)
        a, b = (times[first], times[last]) if times else (None, None)
        return None if a is None or b is None else b - a

    def silent(self, letter: str, t: int) -> bool:
        """Whether a client has paused in the middle of its request then."""
        half, sent = self.clients[letter].times[2:4]
        return half is not None and half <= t and (sent is None or t < sent)


def ms(us: int) -> str:
    """`0.3 ms`, `232 ms`."""
    return f"{us / 1000:.1f} ms" if us < 9950 else f"{us / 1000:.0f} ms"


def number(n: int) -> str:
    """In words up to nine."""
    return NUMBERS[n] if n < len(NUMBERS) else str(n)


Rule = Callable[[View], Iterator[Moment]]


# ---- a client held up by another -----------------------------------------------------------------


def not_accepted(view: View) -> Iterator[Moment]:
    """Connected, while no task sleeps where it would notice."""
    for letter, guest in view.clients.items():
        connected = guest.times[1]
        if letter not in view.accepted or connected is None:
            continue
        accept = view.accepted[letter][1]
        sleeping = view.asleep(connected)
        held = {task: call for task, call in sleeping.items() if call.letter and call.name != "accept"}
        if view.end(accept) - connected < LONG_US or not held or any(c.name in LOOPS for c in sleeping.values()):
            continue
        if any(call.name == "accept" for call in sleeping.values()):
            continue
        task, call = next(iter(held.items()))
        which = f"{view.name(task)} sleeps in {call.name}(), for {call.letter}."
        if len(held) > 1:
            plural = "threads" if view.kind(task) == "thread" else "processes"
            which = f"all {len(held)} {plural} that accept sleep, each for another client."
        rest = f"The kernel has finished the handshake; {which}"
        yield Moment(connected, 1, task, None, f"{letter} connects, and is not accepted.", rest, "queue")


def not_served(view: View) -> Iterator[Moment]:
    """Accepted, while every thread that serves sleeps for another client."""
    for letter, (n, accept) in view.accepted.items():
        accepted = view.end(accept)
        serves = view.taken(letter, accepted, accept.task)
        if serves is None or serves.t - accepted < LONG_US:
            continue
        held = {task: call for task, call in view.asleep(accepted).items() if call.letter and call.name != "accept"}
        if len(held) > 1:
            rest = f"All {len(held)} sleep, each for a client of its own; {letter} waits in the server's own queue."
            head = f"{letter} is accepted, and no thread is free."
            yield Moment(accepted, 1, accept.task, n, head, rest, "asleep")


def late_page(view: View) -> Iterator[Moment]:
    """The page of a client that did nothing out of the ordinary, and waited for another."""
    for letter, guest in ordinary(view):
        us, done = view.plain_us(letter), guest.times[5]
        if us is not None and done is not None and us >= LATE_US:
            held_by = {call.letter for call in view.asleep(guest.times[1] or 0).values() if call.name != "accept"}
            others = sorted(held_by - {"", letter})
            rest = f"It did nothing wrong: it waited for {others[0] if len(others) == 1 else 'another client'}."
            if reads_disk(view, letter):
                rest = "The disk took that long."
            yield Moment(done, 6, None, None, f"{letter} has its page after {ms(us)}.", rest, "clients")


def reads_disk(view: View, letter: str) -> bool:
    """Whether a read of a file for this client has waited."""
    in_ring = [event.t for event in view.ring if event.letter == letter and event.opcode == "read"]
    if in_ring and in_ring[-1] - in_ring[0] >= LATE_US:
        return True
    return any(c.asleep and c.letter == letter and c.name in READING | {"sendfile"} for _, c in view.calls)


def page(view: View) -> Iterator[Moment]:
    """The other pages."""
    for letter, guest in ordinary(view):
        us, done = view.plain_us(letter), guest.times[5]
        if us is not None and done is not None and us < LATE_US:
            yield Moment(done, 7, None, None, f"{letter} has its page after {ms(us)}.", "", "clients")


def ordinary(view: View) -> list[tuple[str, Guest]]:
    return [(letter, guest) for letter, guest in view.clients.items() if not guest.does]


# ---- who sleeps, and who does not ----------------------------------------------------------------


def sleeps_for_one(view: View) -> Iterator[Moment]:
    """A task sleeps for one client."""
    found: list[Moment] = []
    for n, call in view.calls:
        guest = view.clients.get(call.letter)
        if not call.asleep or guest is None or call.name not in RECEIVING | SENDING:
            continue
        if call.name in SENDING and guest.does != "reads late":
            continue
        if view.end(call) - call.t < LONG_US:
            continue
        rest = left_to_serve(view, call)
        if call.name in SENDING:
            rest = f"{call.letter} does not read, and the buffers between them are full. {rest}"
        head = f"{view.name(call.task, True)} falls asleep in {call.name}(), for {call.letter}."
        found.append(Moment(call.t, 2, call.task, n, head, rest, "asleep"))
    yield from found[:1] + found[1:][-1:]  # sixteen of them say the same


def left_to_serve(view: View, sleep: Recorded) -> str:
    """Who waits for a client, and who can accept others meanwhile."""
    if len(view.alive(sleep.t)) == 1:
        return "No other process is left to serve other clients."
    alive, held = view.alive(sleep.t), {sleep.task} | held_by_one(view, sleep.t)
    accepting = {call.task for _, call in view.calls if call.name == "accept"} & alive
    free, kind = accepting - held, "threads" if view.kind(sleep.task) == "thread" else "processes"
    if not free:
        return f"All {len(accepting)} {kind} that accept wait, each for a client of its own." if accepting else ""
    name = view.name(sleep.task)
    pool = {n for n in alive - accepting if view.recording.tasks[n].born is None}
    if sleep.task in pool and pool <= held:
        return f"All {len(pool)} {kind} wait, each for a client of its own; main only accepts."
    others = view.name(min(free)) if len(free) == 1 else f"{number(len(free))} other {kind}"
    return f"Only {name} waits for {sleep.letter}; {others} can accept others."


def held_by_one(view: View, t: int) -> set[int]:
    """The tasks that sleep at that time for a client of their own."""
    return {task for task, call in view.asleep(t).items() if call.letter and call.name != "accept"}


def long_sleep(view: View) -> Iterator[Moment]:
    """The longest sleep of a loop, for all clients that are open."""
    sleeps = [(view.end(c) - c.t, n, c) for n, c in view.calls if c.asleep and c.name in LOOPS and c.t >= 0]
    while_served = [each for each in sleeps if each[0] >= LONG_US and view.open(each[2].t + SOON_US)]
    if not while_served:
        return
    _, n, call = max(while_served)
    there = view.open(call.t + SOON_US)
    silent = [letter for letter in there if view.silent(letter, call.t)]
    rest = ""
    if len(there) == 1:
        rest = f"Only {there[0]} is open" + (f", and {there[0]} is silent." if silent else ".")
    elif len(there) <= FEW:
        rest = f"{' and '.join(there)} are open" + (", and silent." if silent == there else ".")
    head = f"The server sleeps in {call.name}(), for all its clients at once."
    yield Moment(call.t, 3, call.task, n, head, rest, "asleep")


def again(view: View) -> Iterator[Moment]:
    """EAGAIN in the middle of a request, or of a reply."""
    for n, call in view.calls:
        if call.note != "EAGAIN" or not call.letter:
            continue
        if call.name in RECEIVING and view.silent(call.letter, call.t):
            head = f"{call.name}() says EAGAIN: no more from {call.letter} yet."
            rest = "The server does not wait; it returns to its loop."
            yield Moment(call.t, 3, call.task, n, head, rest, "ready")
            return
        if call.name in SENDING:
            head = f"{call.name}() says EAGAIN: no more room for {call.letter}."
            rest = "The server does not wait; it goes on when the kernel says that there is room."
            yield Moment(call.t, 2, call.task, n, head, rest, "interest")
            return


def second_half(view: View) -> Iterator[Moment]:
    """A client that has paused goes on."""
    for letter, guest in view.clients.items():
        sent = guest.times[3]
        if guest.does != "pauses" or sent is None:
            continue
        for n, call in view.calls:
            got = call.letter == letter and call.name in RECEIVING and (call.result or 0) > 0 and view.end(call) >= sent
            if got:
                rest = f"{call.name}() returns {call.result} bytes; the request is whole."
                yield Moment(max(sent, call.t), 5, call.task, n, f"{letter} goes on.", rest, "ready")
                return
        for event in view.ring:
            if event.letter == letter and event.opcode == "recv" and event.what == "complete" and event.t >= sent:
                rest = f"Its receive completes: {event.result} bytes; the request is whole."
                yield Moment(event.t, 5, 0, entering(view, event.t), f"{letter} goes on.", rest, "ring")
                return


def entering(view: View, t: int) -> int | None:
    """The call by which the thread learned of what happened in the ring then."""
    return next((n for n, c in view.calls if c.name == "io_uring_enter" and view.end(c) >= t), None)


def silence(view: View) -> Iterator[Moment]:
    """A client pauses in the middle of its request."""
    for letter, guest in view.clients.items():
        half, us = guest.times[2], view.plain_us(letter, 2, 3)
        if guest.does == "pauses" and half is not None and us is not None:
            rest = f"{guest.sizes[0]} of {guest.sizes[1]} bytes are sent; the rest comes after {ms(us)}."
            yield Moment(half, 8, None, None, f"{letter} falls silent.", rest, "clients")
            return


# ---- births, ends, and what is handed on ---------------------------------------------------------


def first_birth(view: View) -> Iterator[Moment]:
    """A process or thread for a client."""
    for n, call in view.calls:
        if call.name == "fork" and call.letter:
            rest = f"Both have the connection; {view.name(call.task)} closes its copy."
            yield Moment(call.t, 4, call.task, n, f"fork(): a process for {call.letter}.", rest, "descriptors")
            return
        if call.name == "pthread_create" and call.letter:
            rest = "Threads share their descriptors: nothing is copied, and nothing has to be closed."
            yield Moment(call.t, 4, call.task, n, f"pthread_create(): a thread for {call.letter}.", rest, "descriptors")
            return


def handed_on(view: View) -> Iterator[Moment]:
    """One thread wakes another for a client."""
    for n, call in view.calls:
        if call.name != "futex" or call.note in ("wait", "", "wake 0") or not call.letter:
            continue
        sleepers = [c for c in view.asleep(call.t).values() if c.name == "futex"]
        taker = view.taken(call.letter, call.t, call.task)
        if taker is not None and sleepers:
            head = f"{view.name(call.task, True)} hands {call.letter} to {view.name(taker.task)}."
            rest = f"One futex() wakes one of {len(sleepers)} that sleep."
            yield Moment(call.t, 4, call.task, n, head, rest, "asleep")
            return


def in_the_ring(view: View) -> Iterator[Moment]:
    """A read that stays in the ring while the thread waits for whatever comes next."""
    events = view.ring
    for event in events:
        if event.what != "submit" or event.opcode not in RECEIVING | {"poll_add"} or not event.letter:
            continue
        later = (e for e in events if e.what == "complete" and e.letter == event.letter and e.t > event.t)
        over = next((e for e in later if e.opcode == event.opcode), None)
        if over is not None and over.t - event.t >= LONG_US:
            n = entering(view, event.t)
            head = f"The read for {event.letter} stays in the ring."
            if event.opcode == "poll_add":
                head = f"The wait for room for {event.letter} stays in the ring."
            rest = "The thread asks for the next completion, whichever it is."
            yield Moment(event.t, 4, 0, n, head, rest, "ring")
            return


def first_accept(view: View) -> Iterator[Moment]:
    """The first client comes."""
    for letter, (n, call) in view.accepted.items():
        rest = f"accept() returns descriptor {call.result}."
        yield Moment(max(view.end(call), 0), 9, call.task, n, f"{letter} connects.", rest, "descriptors")
        return
    for event in view.ring:
        if event.opcode == "accept" and event.letter:
            rest = "The accept that has waited in the ring completes."
            yield Moment(event.t, 9, 0, entering(view, event.t), f"{event.letter} connects.", rest, "ring")
            return


def first_collected(view: View) -> Iterator[Moment]:
    """A zombie goes."""
    for n, call in view.calls:
        if call.name == "waitpid" and call.result is not None and call.result > 0:  # -1: there is no child
            head = f"{view.name(call.task, True)} collects {view.name(call.result)}."
            yield Moment(call.t, 9, call.task, n, head, "Until now it was a zombie.", "asleep")
            return


# ---- what a scene is made for --------------------------------------------------------------------


def reset(view: View) -> Iterator[Moment]:
    """A client gives up, and the server learns of it."""
    for letter, guest in view.clients.items():
        when = next((t for t, act, _ in guest.acts if act == "reset"), None)
        if when is None:
            continue
        rest = f"It had sent {guest.sizes[0] or guest.sizes[1]} of {guest.sizes[1]} bytes." if guest.sizes[0] else ""
        yield Moment(when, 5, None, None, f"{letter} gives up: its connection is reset.", rest, "clients")
        for n, call in view.calls:
            if call.letter == letter and call.note in ("ECONNRESET", "EPIPE"):
                head = f"{call.name}() says {call.note}: {letter} is gone."
                rest = "The server closes the connection and goes on."
                yield Moment(max(when, call.t), 2, call.task, n, head, rest, "descriptors")
                return
        for event in view.ring:
            if event.letter == letter and event.result == -errno.ECONNRESET:
                head = f"The {event.opcode} for {letter} completes with ECONNRESET: {letter} is gone."
                rest = "The server closes the connection and goes on."
                yield Moment(event.t, 2, 0, entering(view, event.t), head, rest, "ring")
                return


def pipelined(view: View) -> Iterator[Moment]:
    """Several requests in one go."""
    for n, call in view.calls:
        guest = view.clients.get(call.letter)
        if guest and guest.does == "pipelines" and call.name in RECEIVING and call.result == guest.sizes[1]:
            sends = [c for _, c in view.calls if c.letter == call.letter and c.name in SENDING]
            replies = [c for c in sends if (c.result or 0) > 0]
            head = f"One {call.name}() returns all requests of {call.letter}."
            rest = "The server answers them in their order, without asking for more."
            yield Moment(call.t, 2, call.task, n, head, rest, "ready")
            if len(replies) > 1:
                second = replies[1]
                head = f"The second reply for {call.letter} follows at once."
                where = view.recording.calls.index(second)
                yield Moment(second.t, 4, second.task, where, head, "No call has waited in between.", "ready")
            return
    for event in view.ring:
        guest = view.clients.get(event.letter)
        whole = guest and guest.does == "pipelines" and event.result == guest.sizes[1]
        if whole and event.opcode == "recv" and event.what == "complete":
            head = f"One receive completes with all requests of {event.letter}."
            rest = "The server answers them in their order, without asking for more."
            yield Moment(event.t, 2, 0, entering(view, event.t), head, rest, "ring")
            return


def overflow(view: View) -> Iterator[Moment]:
    """The queue of signals is full."""
    for n, call in view.calls:
        if call.name == "sigtimedwait" and call.note.startswith("SIGIO"):
            rest = "Signals are lost; the server polls all its descriptors once."
            yield Moment(view.end(call), 1, call.task, n, "SIGIO: the queue of signals is full.", rest, "ready")
            return


def from_disk(view: View) -> Iterator[Moment]:
    """A file that is not in memory."""
    for n, call in view.calls:
        if call.name == "preadv2" and call.note.endswith("EAGAIN"):
            others = (c for _, c in view.calls if c.task != call.task and c.t > call.t)
            helper = next((c for c in others if c.name in READING), None)
            rest = f"{view.name(helper.task, True)} reads it; the loop goes on." if helper else ""
            yield Moment(call.t, 2, call.task, n, "preadv2() says EAGAIN: the file is not in memory.", rest, "asleep")
            break
    for n, call in view.calls:
        if call.name in READING | {"sendfile"} and call.asleep and view.end(call) - call.t < LONG_US * 100:
            loop = any(c.task == call.task and c.name in LOOPS for _, c in view.calls)
            head = f"{view.name(call.task, True)} falls asleep in {call.name}(), for the disk."
            rest = "Its loop stands still: all clients wait." if loop else f"Only {view.name(call.task)} waits."
            if call.name in READING or loop:
                yield Moment(call.t, 2, call.task, n, head, rest, "asleep")
                return


def many_ready(view: View) -> Iterator[Moment]:
    """One wait tells of several clients."""
    best: tuple[int, int] | None = None
    for n, call in view.calls:
        letters = [word for word in call.note.split() if word in view.clients] if call.name in LOOPS else []
        if len(letters) > 1 and (best is None or len(letters) > best[0]):
            best = len(letters), n
    if best is not None:
        count, n = best
        call = view.recording.calls[n]
        head = f"One {call.name}() returns {number(count)} clients."
        rest = f"{view.name(call.task, True)} serves them one after the other."
        yield Moment(view.end(call), 2, call.task, n, head, rest, "ready")


def all_accepted(view: View) -> Iterator[Moment]:
    """One wait, and then accept() until there is none left."""
    waits = [(n, call) for n, call in view.calls if call.name in LOOPS and "listen" in call.note.split()]
    for n, wait in waits:
        task = [call for _, call in view.calls[n + 1 :] if call.task == wait.task]
        end = next((k for k, call in enumerate(task) if call.name in LOOPS), len(task))
        accepted = [call.letter for call in task[:end] if call.name == "accept" and call.letter]
        got = [letter for letter in accepted if (view.clients[letter].times[1] or 0) <= view.end(wait) + NEAR_US]
        if len(got) > 1:
            head = f"One {wait.name}() tells of {number(len(got))} clients."
            rest = "It names the listening socket alone; accept() is called until it says EAGAIN."
            yield Moment(max(view.end(wait), 0), 3, wait.task, n, head, rest, "queue")
            return


def queued(view: View) -> Iterator[Moment]:
    """Several are connected, and none of them is accepted yet."""
    times = sorted(guest.times[1] or 0 for guest in view.clients.values())
    if not view.since:  # who is accepted is not known: the ring could not be seen, or nothing could
        return
    for t in reversed(times):
        there = [
            letter
            for letter, guest in view.clients.items()
            if (guest.times[1] or 0) <= t < view.since.get(letter, view.recording.end)
        ]
        if len(there) > 1 and times[-1] - t < NEAR_US:
            names = ", ".join(there[:-1]) + f" and {there[-1]}"
            rest = "The kernel has finished their handshakes, and keeps them in the queue of the listening socket."
            yield Moment(t, 3, None, None, f"{names} are connected, and not accepted yet.", rest, "queue")
            return


RULES: tuple[Rule, ...] = (
    not_accepted, not_served, overflow, sleeps_for_one, reset, pipelined, from_disk, many_ready, all_accepted, queued,
    again, long_sleep, first_birth, handed_on, in_the_ring, second_half, late_page, page, silence, first_accept,
    first_collected,
)  # fmt: skip


def found(recording: Recording) -> list[Moment]:
    """At most nine, in the order of time."""
    view = View(recording)
    return best([moment for rule in RULES for moment in rule(view)])


def best(moments: Sequence[Moment]) -> list[Moment]:
    """The best nine, none too near to a better one, in the order of time."""
    kept: list[Moment] = []
    for moment in sorted(moments, key=lambda each: (each.rank, each.t)):
        if len(kept) < MOST and all(abs(moment.t - other.t) >= NEAR_US for other in kept):
            kept.append(moment)
    return sorted(kept, key=lambda each: each.t)
