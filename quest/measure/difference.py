"""Where a student's server first does something else than ours, with the same clients."""

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import product

from quest.measure.form import Moment, Recorded, Recording

Key = tuple[str, str, str, int]
FOR_CHILDREN = ("waitpid", "waitid")


@dataclass(frozen=True)
class Difference:
    """The first one. ours, yours: indices of calls; None where there is none any more."""

    ours: int | None
    yours: int | None
    text: str


def key(call: Recorded) -> Key:
    """What has to be the same: the call, for whom, with which error, and whether it slept for one client. Three things
    may differ between two runs of one server: accept() sleeps or not, as the next client comes late or early; futex()
    sleeps or not, as other threads are slow or quick; and waitpid() fails or not, as children have ended or run.
    """
    failed = call.note if call.result == -1 and call.name not in FOR_CHILDREN else ""
    about = call.note if call.name in ("epoll_ctl", "shutdown", "io_uring_enter") else failed
    return call.name, call.letter, about, int(call.sleeps_for() != "" and call.name != "futex")


def of_task(recording: Recording, name: str, for_children: bool = False) -> list[int]:
    """The calls of the task of that name: those that wait for children, or all others. A call that a signal has
    interrupted is left out, as the server makes it again.
    """
    numbers = [n for n, task in enumerate(recording.tasks) if task.name == name]
    return [
        n
        for n, call in enumerate(recording.calls)
        if call.task in numbers
        and (call.name in FOR_CHILDREN) == for_children
        and not call.note.startswith("interrupted")
    ]


def first(ours: Recording, yours: Recording) -> Difference | None:
    """None if every process and thread makes the same calls in the same order; else the difference that comes first.
    The calls that wait for children have an order of their own: a handler makes them whenever a child ends.
    """
    found: list[tuple[int, Difference]] = []
    names = [task.name for task in ours.tasks]
    names += [task.name for task in yours.tasks if task.name not in names]
    for name, for_children in product(names, (False, True)):
        a, b = of_task(ours, name, for_children), of_task(yours, name, for_children)
        keys_a, keys_b = [key(ours.calls[n]) for n in a], [key(yours.calls[n]) for n in b]
        if keys_a == keys_b:
            continue
        same = next((n for n, (x, y) in enumerate(zip(keys_a, keys_b, strict=False)) if x != y), min(len(a), len(b)))
        left = a[same] if same < len(a) else None
        right = b[same] if same < len(b) else None
        before = yours.calls[b[same - 1]] if 0 < same <= len(b) else None
        times = [ours.calls[left].t if left is not None else None, yours.calls[right].t if right is not None else None]
        when = min(t for t in times if t is not None)
        after = f"after {said(before)}, " if before else ""
        here = f"In {name}, {after}ours {does(ours, left)}; yours {does(yours, right)}"
        text = f"{here}{again(keys_a, keys_b, same)}."
        found.append((when, Difference(left, right, text)))
    return min(found, key=lambda each: each[0])[1] if found else None


def said(call: Recorded) -> str:
    """A call and what came of it, in a few words."""
    about = f" for {call.letter}" if call.letter else ""
    came = f" ({call.note})" if call.note else ""
    return f"{call.name}({call.fd if call.name == 'close' else ''}){about}{came}"


def does(recording: Recording, index: int | None) -> str:
    """The call, and where it stands in the source."""
    if index is None:
        return "makes no further call"
    call = recording.calls[index]
    _, file, line, _ = recording.sites[recording.stacks[call.stack][-1]]
    sleeps = ", and sleeps in it" if call.asleep else ""
    return f"calls {said(call)}, {file} line {line}{sleeps}"


def again(ours: list[Key], yours: list[Key], same: int) -> str:
    """How they go on: whether only a call is missing or only one is added."""
    blocks = SequenceMatcher(None, ours[same:], yours[same:], autojunk=False).get_matching_blocks()
    block = blocks[0]
    if block.size and block.a == 0 and block.b:
        return f"; then, {block.b} {'call' if block.b == 1 else 'calls'} later, they go on alike"
    if block.size and block.b == 0 and block.a:
        return f": {block.a} {'call of ours is' if block.a == 1 else 'calls of ours are'} missing there"
    return ""


def mark(yours: Recording, difference: Difference) -> None:
    """Makes a moment of it, the first in rank."""
    n = difference.yours if difference.yours is not None else len(yours.calls) - 1
    t, task, call = (yours.calls[n].t, yours.calls[n].task, n) if n >= 0 else (0, None, None)  # without any call
    moment = Moment(t, 1, task, call, "Here yours begins to differ.", difference.text, "clients")
    yours.moments = sorted([*yours.moments, moment], key=lambda each: each.t)
