"""`python3 -m stage COMMAND`: demo NUMBER, record [NUMBER...], rehearse, present.

All of it on loopback. Status 0: as wanted; 1: something failed; 2: bad usage.
"""

import argparse
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

from stage import control, scene
from stage.play import play
from stage.scene import Demo, Event

RECORDINGS = Path("slides/recordings")
DYGRAPHS = Path("/usr/share/javascript/dygraphs/dygraph.min.js")  # as in slides/module.mk
WIDTH = 60


def recording(demo: Demo) -> Path:
    return RECORDINGS / f"{demo.name}.jsonl"


def show(demo: Demo, build: Path) -> bool:
    """In the terminal: a bar for each point."""
    top = [demo.top]

    def tell(event: Event) -> None:
        if "begin" in event:
            print(f"{demo.title}\n{demo.y}:")
        elif "note" in event:
            print(f"  -- {event['note']}")
        elif "failed" in event:
            print(f"  {event['failed']}", file=sys.stderr)
        elif "line" in event:
            y = event["y"]
            top[0] = max(top[0], y or 0, 1e-9)
            bar = "nobody was served" if not y else "#" * max(1, round(WIDTH * y / top[0]))
            shown = "-" if y is None else f"{y:g}"
            print(f"{event['x']:>7g}  {event['line']:12} {shown:>8}  {bar}", flush=True)

    return play(demo, build, scene.DOCROOT, tell, threading.Event())


def record(demo: Demo, build: Path) -> bool:
    events: list[Event] = []
    start = time.monotonic()

    def tell(event: Event) -> None:
        events.append({"at": round(time.monotonic() - start, 2), **event})

    if not play(demo, build, scene.DOCROOT, tell, threading.Event()):
        print(f"demo {demo.number} ({demo.name}): not recorded: {events[-1]}", file=sys.stderr)
        return False
    name = os.uname()  # no host, no path
    system = f"{name.sysname} {name.release.split('-')[0]}"
    about = {"date": time.strftime("%Y-%m-%d"), "system": system, "cores": os.cpu_count()}
    lines = [about, *events]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    RECORDINGS.mkdir(exist_ok=True)
    recording(demo).write_text(text, encoding="utf-8")
    print(f"demo {demo.number} ({demo.name}): {len(events)} events, {events[-1]['at']} s")
    return True


def rehearse(build: Path) -> bool:
    """Each demo once, and what else the stage needs: a list of what will work."""
    good = True

    def line(ok: bool, what: str, why: str = "") -> None:
        nonlocal good
        good = good and ok
        print(f"  {'ok  ' if ok else 'NOT '} {what}{': ' + why if why and not ok else ''}")

    for demo in scene.demos():
        events: list[Event] = []
        if sys.stdout.isatty():
            print(f"  ...  demo {demo.number}, {demo.title}", end="\r", flush=True)
        ok = play(demo, build, scene.DOCROOT, events.append, threading.Event())
        lively = {e["line"] for e in events if "line" in e and e["y"]}
        if ok and len(lively) < len(demo.acts):
            ok, events = False, [{"failed": "a line has no point"}]
        line(ok, f"demo {demo.number}, {demo.title}", str(events[-1].get("failed", "")))
        line(recording(demo).exists(), f"     its recording, {recording(demo)}", "make demo-record")
    most = max(n for demo in scene.demos() for act in demo.acts for n in act.silent)
    may = scene.allowed(most)
    line(may == most, f"{most} silent clients", f"{may} is what the limit allows (ulimit -n)")
    line(shutil.which("setpriv") is not None, "servers end with the show, whatever happens",
         "apt-get install util-linux")  # fmt: skip
    line(DYGRAPHS.exists(), "demos are drawn", "apt-get install libjs-dygraphs, make slides")
    decks = sorted((build / "slides").glob("deck*.html"))
    line(bool(decks), "a deck: " + ", ".join(d.name for d in decks), "make slides TRACK=talk45")
    print("\n" + ("All of it will work on stage." if good else "What says NOT will fall back."))
    return good


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="stage", description="The talk on stage.")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("command", choices=("demo", "record", "rehearse", "present"))
    parser.add_argument("words", nargs="*", help="numbers of demos; of present: DECK PORT")
    given = parser.parse_args(words)
    if given.command == "rehearse":
        return 0 if rehearse(given.build) else 1
    if given.command == "present":
        deck, port = given.words
        return control.present(given.build, Path(deck), port)
    known = scene.demos()
    for unknown in set(given.words) - {str(demo.number) for demo in known}:
        listed = "; ".join(f"{demo.number} {demo.title}" for demo in known)
        print(f"make demo: N={unknown}: there is no such demo; {listed}", file=sys.stderr)
        return 2
    chosen = [demo for demo in known if str(demo.number) in given.words or not given.words]
    act = show if given.command == "demo" else record
    failed = [demo for demo in chosen if not act(demo, given.build)]
    return 1 if failed else 0
