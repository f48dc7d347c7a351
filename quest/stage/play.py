"""Plays a demo: the acts side by side, each telling its points as they come."""

import threading
import time
from pathlib import Path

from quest.stage.scene import Act, Demo, Failed, Scene, Tell, allowed, files, point


def play(demo: Demo, build: Path, docroot: Path, tell: Tell, stop: threading.Event) -> bool:
    """Tells events until the demo has ended or is stopped; whether it was played to its end.

    {"begin"...}; {"line": "07-poll", "x": 4.5, "y": 50.0} (y null: no request was answered);
    {"note": "..."}; last {"end": true}, or {"failed": "why"} if it was stopped or something ended.
    """
    tell(demo.begin())
    failures: list[str] = []
    with Scene(build, docroot) as scene:
        start = time.monotonic()
        threads = [
            threading.Thread(target=_act, args=(scene, demo, act, start, tell, failures))
            for act in demo.acts
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if stop.wait(0.1) or failures:
                scene.close()
    if stop.is_set() or failures:
        tell({"failed": "the demo was stopped" if stop.is_set() else failures[0]})
        return False
    tell({"end": True})
    return True


def _act(scene: Scene, demo: Demo, act: Act, start: float, tell: Tell, failures: list[str]) -> None:
    try:
        if scene.over.wait(act.begin):
            return
        url = scene.serve(act.server, act.args, docroot=scene.disk() if act.readers else None)
        if demo.x == "silent":
            _sweep(scene, demo, act, url, tell)
        else:
            _in_time(scene, demo, act, url, start, tell)
    except (Failed, OSError, ValueError, KeyError) as error:
        if not scene.over.is_set():
            failures.append(str(error))


def _sweep(scene: Scene, demo: Demo, act: Act, url: str, tell: Tell) -> None:
    for count in map(allowed, act.silent):
        tell({"note": f"{count} silent clients"})
        with scene.silent(url, count):
            scene.over.wait(0.3)
            values = sorted(filter(None, (point(scene, demo, url) for _ in range(3))))
        scene.check(act.server)
        tell({"line": act.server, "x": count, "y": values[len(values) // 2] if values else None})


def _in_time(scene: Scene, demo: Demo, act: Act, url: str, start: float, tell: Tell) -> None:
    def until(moment: float, readers: int = 0) -> None:
        """A point whenever one is ready."""
        while (now := time.monotonic() - start) < moment and not scene.over.is_set():
            y = files(scene, url, readers) if readers else point(scene, demo, url)
            scene.check(act.server)
            tell({"line": act.server, "x": round(now, 1), "y": y})

    if act.readers:
        few, many = act.readers
        tell({"note": _so_many(few, "reader")})
        until(act.arrive, few)
        tell({"note": _so_many(many, "reader"), "x": act.arrive})
        until(act.end, many)
        return
    count = allowed(act.silent[0])
    until(act.arrive)
    tell({"note": f"{_so_many(count, 'silent client')} at {act.server}", "x": act.arrive})
    with scene.silent(url, count):
        until(act.leave)
    tell({"note": f"gone from {act.server}", "x": act.leave})
    until(act.end)


def _so_many(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count} {what}s"
