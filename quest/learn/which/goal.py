"""The goal `which`: three questions about a server that runs on this machine, answered from /proc."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from quest.ground import foreign
from quest.learn.chapters import chapter
from quest.learn.which import proc as reading
from quest.learn.which import seen
from quest.learn.which.models import Model, Verdict, best, judge, number
from quest.learn.which.proc import KERNEL_THREAD, Proc
from quest.learn.which.seen import Server, Watched, settled
from quest.learn.words import Wrong

LOOKS, PAUSE_S = 5, 0.1
ENOUGH_S = 3.0  # after that no further look is begun
MOST_S = 30.0  # for all of it: one look takes long where many other processes run
MOST_LINES = 6  # of calls, the most frequent first
WIDE = 15


def which(settings: dict[str, str]) -> int:
    """`make which`, of PID. Wrong, in one line, if that is no server, or may not be looked at."""
    if not settings.get("PID"):
        raise Wrong("which server? PID=4711: the number of its process, as pgrep -a nginx shows it")
    if not Path("/proc/self/stat").exists():
        raise Wrong("this system has no /proc as Linux has it")
    word = settings["PID"]
    if not (word.isascii() and word.isdigit()) or len(word) > 9:
        raise Wrong(f"PID={word}: there is no such process")
    proc = Proc(deadline=time.monotonic() + MOST_S)
    pid = server_of(proc, int(word))
    print("\n".join(map(foreign.line, told(list(looks(proc, pid)), pid))))
    return 0


def server_of(proc: Proc, number_given: int) -> int:
    """The process that this number stands for. Wrong if there is none, or it is no server."""
    stat = proc.stat(number_given)
    if not stat:
        hidden = ", or /proc hides it (hidepid): ask as root" if proc.hides_others() else ""
        raise Wrong(f"PID={number_given}: there is no such process{hidden}")
    pid = proc.process_of(number_given)
    name = f"PID={pid} ({foreign.line(stat.name)})"
    if stat.flags & KERNEL_THREAD:
        raise Wrong(f"{name} is a thread of the kernel, and no server")
    if stat.state in "ZX" and proc.home(pid) == proc.root / str(pid):
        raise Wrong(f"{name} has ended, and its parent has not waited for it")
    if problem := _no_server(proc, pid):
        raise Wrong(f"{name}{problem if proc.stat(pid) else ' has just ended'}")
    return pid


def _no_server(proc: Proc, pid: int) -> str:
    """Why it cannot be told of, as the end of a sentence; "" if it can. One that has just ended seems to be hidden."""
    if proc.descriptors(pid).hidden:
        return f": you may not see its descriptors; as root: sudo make which PID={pid}"
    if reading.look(proc, pid).addresses:
        return ""
    below = reading.listening_below(proc, pid)
    child = proc.stat(below) if below else None
    hint = f"; its child {below} ({foreign.line(child.name)}) does: PID={below}" if child else ""
    return f" is no server: it listens on no socket{hint}"


def looks(proc: Proc, pid: int) -> Iterable[Server]:
    """At most LOOKS of them, and after ENOUGH_S only one; those at which nothing was left are left out."""
    enough = time.monotonic() + ENOUGH_S
    for turn in range(LOOKS):
        if turn:
            time.sleep(PAUSE_S)
        server = reading.look(proc, pid)
        if server.processes:
            yield server
        if proc.over() or time.monotonic() >= enough:
            return


# ---- what is said


def told(seen_looks: Sequence[Server], pid: int) -> list[str]:
    """The lines. Wrong if no look has found the process."""
    if not seen_looks:
        raise Wrong(f"PID={pid} has ended, or could not be read within {MOST_S:g} s")
    server = settled(seen_looks)
    verdict = best([*map(judge, seen_looks), judge(server)])
    first = server.processes[0]
    lines = [
        f"{first.name}, PID {first.pid}, listens on {', '.join(server.addresses)}", "",
        *_item("1 How many?", _counts(server, seen_looks)),
        *_item("2 Asleep in?", calls_of(server)),
        *_item("3 Which wait?", which_wait(verdict)),
        *_item("Model", models_of(verdict)),
        *_item("Chapter", chapters_of(verdict)),
        *_item("Because", list(verdict.because)),
    ]  # fmt: skip
    if verdict.ask:
        lines += _item("To be sure", [verdict.ask])
    return lines + _item("Not visible", list(server.hidden) or ["nothing: all could be read"])


def _item(name: str, texts: Sequence[str]) -> list[str]:
    return [f"{'' if place else name:{WIDE}}{text}" for place, text in enumerate(texts)]


def _counts(server: Server, seen_looks: Sequence[Server]) -> list[str]:
    """Processes and threads now, and how many there were at each number of connections that was seen."""
    processes = number(server.process_count, "process", "processes")
    queue = f", {server.queued} of them in the queue of accept()" if server.queued else ""
    now = f"{processes}, {number(server.thread_count, 'thread')}; {number(server.connections, 'connection')}{queue}"
    kernel = sum(process.kernel_workers for process in server.processes)
    lines = [now, *([f"{number(kernel, 'thread')} of the kernel beside these, for an io_uring"] if kernel else [])]
    by_connections = {look.connections: (look.process_count, look.thread_count) for look in seen_looks}
    if len(by_connections) > 1:
        lines += [
            f"  with {number(connections, 'connection')}: {number(many, 'process', 'processes')}, "
            f"{number(threads, 'thread')}"
            for connections, (many, threads) in sorted(by_connections.items())
        ]
    return lines


def calls_of(server: Server) -> list[str]:
    """How many threads sleep in which call, and what for."""
    counts: Counter[str] = Counter()
    for process in server.processes:
        for thread in process.threads:
            wait = thread.wait
            what = _purpose(wait, process.watching.get(wait.fd) if wait.fd is not None else None)
            counts[f"{wait.call or WORDS.get(wait.kind, wait.kind)}{f': {what}' if what else ''}"] += 1
        if process.more_threads:
            counts["not looked at: there are too many"] += process.more_threads
    common = counts.most_common()
    lines = [f"{number(count, 'thread')}  {text}" for text, count in common[:MOST_LINES]]
    rest = sum(count for _, count in common[MOST_LINES:])
    return [*lines, *([f"{number(rest, 'thread')}  in other calls"] if rest else [])]


WORDS = {
    seen.RUNS: "no call: it runs", seen.DISK: "a wait for a disk", seen.HIDDEN: "not visible",
    seen.OTHER: "another call",
}  # fmt: skip
PURPOSES = {
    seen.ACCEPT: "a new connection", seen.CLIENT: "one client", seen.LOCK: "work, or another thread",
    seen.RING: "any event of the ring", seen.QUEUE: "a signal, of a socket or another",
    seen.SIGNALS: "a signal", seen.CHILDREN: "the end of a child", seen.SLEEP: "some time to pass",
    seen.TURN: "its turn among the processes", seen.DISK: "a file",
}  # fmt: skip


def _purpose(wait: seen.Wait, watched: Watched | None) -> str:
    if watched is not None:
        parts = (
            (watched.listening, "listening socket"), (watched.connections, "connection"),
            (watched.others, "other descriptor"),
        )  # fmt: skip
        return "a list of " + (", ".join(number(count, noun) for count, noun in parts if count) or "nothing")
    if wait.count is not None:
        return f"a list of {number(wait.count, 'descriptor')}"
    return PURPOSES.get(wait.kind, "") if wait.call else ""


def which_wait(verdict: Verdict) -> list[str]:
    """The clients that wait while a handler computes, and while it reads."""
    lines = []
    for model in verdict.models:
        of = f" ({model.name})" if len(verdict.models) > 1 else ""
        lines.append(f"while a handler computes{of}: {model.computes}")
        lines.append(f"while it reads a file{of}: {model.reads}")
    return lines or ["cannot be told without the model"]


def models_of(verdict: Verdict) -> list[str]:
    """Its name, or the names of those that it may be."""
    names = [model.name for model in verdict.models]
    if len(names) > 1:
        return [f"one of these: {names[0]}", *(f"              {name}" for name in names[1:])]
    return names or ["cannot be told from what can be seen"]


def chapters_of(verdict: Verdict) -> list[str]:
    """The chapters of the book that the models stand on, with their titles."""
    slugs = dict.fromkeys(slug for model in verdict.models for slug in _there(model))
    return [f"{slug}: {about.title}" for slug in slugs if (about := chapter(slug))] or ["none"]


def _there(model: Model) -> list[str]:
    return [slug for slug in model.chapters if chapter(slug)]
