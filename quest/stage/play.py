"""Plays a demo: the acts side by side, each reporting its points as they come."""

import threading
import time
from pathlib import Path

from quest.stage.demos import Act, Demo
from quest.stage.events import End, Listener, Note, Point
from quest.stage.scene import Scene, allowed, files_per_s, measured, share_of_busiest, slept

SETTLE_SECONDS = 0.3  # until silent clients have connected
SWEEP_POINTS = 3  # whose median is shown


def play(demo: Demo, build: Path, docroot: Path, report: Listener, stop: threading.Event) -> bool:
    """Reports events until the demo has ended or is stopped; whether it was played to its end.

    The first is Begin, the last End, with the reason if it was stopped or a program has failed.
    """
    report(demo.begin())
    failures: list[str] = []
    with Scene(build, docroot) as scene:
        start = time.monotonic()
        threads = [threading.Thread(target=_act, args=(scene, demo, act, start, report, failures)) for act in demo.acts]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if stop.wait(0.1) or failures:
                scene.close()
    if stop.is_set() or failures:
        report(End("the demo was stopped" if stop.is_set() else failures[0]))
        return False
    report(End())
    return True


def _act(scene: Scene, demo: Demo, act: Act, start: float, report: Listener, failures: list[str]) -> None:
    try:
        if scene.over.wait(act.begin):
            return
        if act.script:
            url = scene.serve_script(act.script)
        else:
            url = scene.serve(act.server, act.args, docroot=scene.disk() if act.readers else None)
        if demo.x == "silent":
            _sweep(scene, demo, act, url, report)
        elif demo.measure == "share":
            _shares(scene, demo, act, url, start, report)
        else:
            _in_time(scene, demo, act, url, start, report)
    except Exception as error:  # whatever it is: this act was not played to its end
        if not scene.over.is_set():
            failures.append(str(error) or type(error).__name__)


def _sweep(scene: Scene, demo: Demo, act: Act, url: str, report: Listener) -> None:
    """A point for each number of silent clients."""
    for count in map(allowed, act.silent):
        report(Note(f"{count} silent clients"))
        with scene.silent(url, count):
            scene.over.wait(SETTLE_SECONDS)
            values = [measured(scene, demo, url) for _ in range(SWEEP_POINTS)]
            scene.check(act)
        answered = sorted(filter(None, values))
        report(Point(act.server, count, answered[len(answered) // 2] if answered else None))


def _shares(scene: Scene, demo: Demo, act: Act, url: str, start: float, report: Listener) -> None:
    """A point for each load: the share of the busiest worker."""
    pid = scene.server_of(act).pid
    before = slept(pid)
    while (now := time.monotonic() - start) < act.end and not scene.over.is_set():
        measured(scene, demo, url)
        scene.check(act)
        after = slept(pid)
        report(Point(act.server, round(now, 1), share_of_busiest(before, after)))
        before = after


def _in_time(scene: Scene, demo: Demo, act: Act, url: str, start: float, report: Listener) -> None:
    """A point whenever one is measured."""

    def until(moment: float, readers: int = 0) -> None:
        while (now := time.monotonic() - start) < moment and not scene.over.is_set():
            y = files_per_s(scene, url, readers) if readers else measured(scene, demo, url)
            scene.check(act)
            report(Point(act.server, round(now, 1), y))

    if act.readers:
        few, many = act.readers
        report(Note(_count(few, "reader")))
        until(act.arrive, few)
        report(Note(_count(many, "reader"), act.arrive))
        until(act.end, many)
        return
    count = allowed(act.silent[0]) if act.silent else 0
    crowd = scene.silent(url, count) if count else scene.computing(url, act.computes)
    who = _count(count, "silent client") if count else f"one client that has fib({act.computes}) computed"
    until(act.arrive)
    report(Note(f"{who} at {act.server}", act.arrive))
    with crowd:
        until(act.leave)
    report(Note(f"gone from {act.server}", act.leave))
    until(act.end)


def _count(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"
