"""The goals demo, demo-record, rehearse and present: all of it on loopback. Status 0: as wanted; 1: failed."""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from quest.ground.entry import under_way
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.stage import control, scene, seen
from quest.stage.demos import Demo, demos
from quest.stage.events import Begin, End, Event, Note, Point
from quest.stage.play import play

RECORDINGS = Path("slides/recordings")
DYGRAPHS = Path("/usr/share/javascript/dygraphs/dygraph.min.js")  # as in slides/module.mk
WIDTH = 60  # of a bar, in characters, if the terminal has room for it
BESIDE = 36  # characters of a line that are not its bar: the numbers before it, and the ">" behind it


def recording(demo: Demo) -> Path:
    """The file that a page plays where the demo does not run."""
    return RECORDINGS / f"{demo.name}.jsonl"


def bar(y: float | None, top: float, width: int) -> str:
    """A bar of so many characters for `top`, and one more for what is higher."""
    if not y:
        return "no request was answered"
    return "#" * width + ">" if y > top else "#" * max(1, round(width * y / top))


def play_in_terminal(demo: Demo, build: Path) -> bool:
    """In the terminal: a bar for each point. All bars have one scale: where the axis has a top they
    come with their points, and one that is longer ends in ">"; else all come at the end.
    """
    events: list[Event] = []
    room = shutil.get_terminal_size((WIDTH + BESIDE, 0)).columns - BESIDE  # a bar that is broken shows nothing
    width = max(4, min(WIDTH, room))

    def line(point: Point, top: float) -> str:
        shown = "-" if point.y is None else f"{point.y:g}"
        return f"{point.x:>7g}  {point.line:12} {shown:>8}  {bar(point.y, top, width)}"

    def report(event: Event) -> None:
        events.append(event)
        if isinstance(event, Begin):
            x = "silent clients" if demo.x == "silent" else demo.x
            print(f"{demo.title}\n{x}, server, {demo.y}:")
        elif isinstance(event, Note):
            print(f"  -- {event.text}", flush=True)
        elif isinstance(event, End) and event.why:
            print(f"  {event.why}", file=sys.stderr)
        elif isinstance(event, Point) and demo.top:
            print(line(event, demo.top), flush=True)

    done = play(demo, build, scene.DOCROOT, report, threading.Event())
    if not demo.top:
        scale = seen.top(demo, events) or 1.0
        print("\n".join(line(event, scale) for event in events if isinstance(event, Point)), flush=True)
    return done


def record(demo: Demo, build: Path) -> bool:
    """Plays the demo and writes its events, with their seconds, to its recording. False if it did not end well."""
    messages: list[dict[str, object]] = []
    start = time.monotonic()

    def report(event: Event) -> None:
        messages.append({"at": round(time.monotonic() - start, 2), **event.message()})

    if not play(demo, build, scene.DOCROOT, report, threading.Event()):
        print(f"demo {demo.number} ({demo.name}): not recorded: {messages[-1]}", file=sys.stderr)
        return False
    name = os.uname()  # no host, no path
    system = f"{name.sysname} {name.release.split('-')[0]}"
    about = {"date": time.strftime("%Y-%m-%d"), "system": system, "cores": os.cpu_count()}
    lines = [about, *messages]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    RECORDINGS.mkdir(exist_ok=True)
    write_whole(recording(demo), text)
    print(f"demo {demo.number} ({demo.name}): {len(messages)} events, {messages[-1]['at']} s")
    return True


def rehearse(build: Path) -> bool:
    """Each demo once, and what else the stage needs: a list of what will work."""
    good = True

    def line(ok: bool, what: str, why: str = "") -> None:
        nonlocal good
        good = good and ok
        print(f"  {'ok  ' if ok else 'NOT '} {what}{': ' + why if why and not ok else ''}")

    for demo in demos():
        events: list[Event] = []
        with under_way(f"  ...  demo {demo.number}, {demo.title}"):
            played = play(demo, build, scene.DOCROOT, events.append, threading.Event())
        last = events[-1]
        why = seen.missing(demo, events) if played else last.why if isinstance(last, End) else ""
        line(not why, f"demo {demo.number}, {demo.title}", why)
        line(recording(demo).exists(), f"     its recording, {recording(demo)}", "make demo-record")
    most = max(n for demo in demos() for act in demo.acts for n in act.silent)
    may = scene.allowed(most)
    line(may == most, f"{most} silent clients", f"the limit allows {may} (ulimit -n)")
    line(shutil.which("setpriv") is not None, "servers end with the show, even if it is killed",
         "apt-get install util-linux")  # fmt: skip
    line(DYGRAPHS.exists(), "demos are drawn", "apt-get install libjs-dygraphs, make slides")
    decks = sorted((build / "slides").glob("deck*.html"))
    bare = [d.name for d in decks if b'class="no-address"' in d.read_bytes()]
    line(
        not bare,
        "the address on the last slide",
        "make slides URL=https://..., for " + ", ".join(bare),
    )
    line(bool(decks), "a deck: " + ", ".join(d.name for d in decks), "make slides TRACK=talk45")
    bad = "What is marked NOT will not work on stage; a demo is then shown from its recording."
    print("\n" + ("All of it will work on stage." if good else bad))
    return good


def _has_browser() -> bool:
    """Whether a window can be opened for whom this terminal is."""
    return sys.stdout.isatty() and (bool(os.environ.get("DISPLAY")) or sys.platform == "darwin")


# ---- the goals: each takes the settings of quest/command/goals.py and gives the status -----------

Given = dict[str, str]


def _build(given: Given) -> Path:
    return Path(given.get("BUILD", "build"))


def deck(given: Given) -> Path:
    """The deck of TRACK=, or the whole one."""
    track = given.get("TRACK")
    return _build(given) / "slides" / (f"deck-{track}.html" if track else "deck.html")


def present_deck(given: Given) -> int:
    """The show, until Ctrl-C."""
    return control.present(_build(given), deck(given), given.get("PORT", "8000"), _has_browser())


def rehearse_all(given: Given) -> int:
    """0 if all of it will work on stage."""
    scene.heed_signals()
    return 0 if rehearse(_build(given)) else 1


def demo(given: Given) -> int:
    """Plays the demos of N= in the terminal."""
    return _each(given, play_in_terminal)


def demo_record(given: Given) -> int:
    """Records the demos of N=."""
    return _each(given, record)


def _each(given: Given, act: Callable[[Demo, Path], bool]) -> int:
    """The demos that N= names, or all."""
    known = demos()
    numbers = given.get("N", "").replace(",", " ").split()
    for unknown in set(numbers) - {str(one.number) for one in known}:
        listed = "; ".join(f"{one.number} {one.title}" for one in known)
        raise InputError(f"N={unknown}: there is no such demo; {listed}")
    chosen = [one for one in known if str(one.number) in numbers or not numbers]
    scene.heed_signals()
    return 1 if [one for one in chosen if not act(one, _build(given))] else 0
