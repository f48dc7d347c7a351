"""`make read`: the book in the browser, with what you have done of each chapter. `make watch`: the
same, made anew and shown anew whenever a chapter, a server or a figure is changed.

The pages are those of build/book. A script of ours is put into them on the way: it asks for the
path, ticks a chapter as read, and reloads the page when the book has changed.
"""

import json
import re
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from quest.learn import local, path, state
from quest.learn.chapters import chapter
from quest.learn.run import free_port, say_taken
from quest.learn.words import Wrong

FIRST_PORT = "8000"
LIVE = Path(__file__).with_name("live.js")
WATCHED = ("chapters", "code", "figures", "slides", "benchmarks/experiments")
EVERY = 0.5  # seconds between two looks at what is watched


def chapter_state(slug: str, build: Path) -> dict[str, Any]:
    """What the page shows: each step of its chapter, and whether it is done."""
    way = {about.slug: some for about, some in path.way(build).items()}
    if slug not in way:  # the contents: how much of each is done
        count = {
            each: f"{sum(step.mark == path.DONE for step in some)} of {len(some)}"
            for each, some in way.items()
        }
        return {"steps": [], "guesses": {}, "chapters": count}
    return {
        "steps": [{"kind": s.kind, "command": s.command, "mark": s.mark} for s in way[slug]],
        "guesses": {
            key.removeprefix("drawn-"): guess["y"]
            for key, guess in state.read()["guesses"].get(slug, {}).items()
            if key.startswith("drawn-")
        },
    }


class Book(local.Handler):
    """build/book, and the answers to live.js."""

    build: Path
    version: ClassVar[list[int]] = [0]

    def get(self, place: str) -> None:
        if place == "/live.js":
            self.send(LIVE.read_bytes(), "text/javascript")
        elif place == "/version":
            self.send(json.dumps(self.version[0]).encode(), "application/json")
        elif place.startswith("/state/"):
            found = chapter_state(unquote(place.removeprefix("/state/")), self.build)
            self.send(json.dumps(found, allow_nan=False).encode(), "application/json")
        elif place.endswith((".html", "/")):
            self._page(place)
        else:
            super().get(place)

    def post(self, place: str, body: bytes) -> None:
        """/done/SLUG/STEP, and /guess/SLUG/NUMBER with what was drawn: to have shown it is to have
        predicted. Only from our own pages: others cannot set this header.
        """
        words = unquote(place).strip("/").split("/")
        what, slug, which = words if len(words) == 3 else ("", "", "")
        about = chapter(slug) if self.headers.get("X-Reader") == "1" else None
        if about and what == "guess" and re.fullmatch("[0-9]{1,3}", which):
            drawn, shown = drawing(body)
            state.keep_guess(slug, f"drawn-{which}", {"y": drawn})
            if shown:
                state.note("predict", slug)
        elif about and what == "done" and which in {s.kind for s in path.steps(about, self.build)}:
            state.note(which, slug)
        else:
            raise local.Refused(HTTPStatus.FORBIDDEN, "this page may change nothing")
        self.send(b"{}", "application/json")

    def _page(self, place: str) -> None:
        file = Path(self.translate_path(place))
        text = local.read_file(file / "index.html" if place.endswith("/") else file)
        script = b'<script src="/live.js"></script></body>'
        self.send(text.replace(b"</body>", script, 1), "text/html; charset=utf-8")


def drawing(body: bytes) -> tuple[list[float | None], bool]:
    """What a page sends of a drawing, {"y": [1.5, null, ...], "shown": true}: a number for each
    place of x, and whether the curve has been shown.
    """
    try:
        drawn = local.finite_json(body)
        if not isinstance(drawn["y"], list):
            raise TypeError("y")
        points = [None if y is None else float(y) for y in drawn["y"]][:1000]
        if not points:
            raise ValueError("no point")
        return points, bool(drawn.get("shown"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise local.Refused(HTTPStatus.BAD_REQUEST, "this is not a drawing") from None


def newest() -> float:
    """When something that is watched was last changed."""
    files = (
        f for folder in WATCHED for f in Path(folder).rglob("*") if "__pycache__" not in f.parts
    )
    return max((f.stat().st_mtime for f in files if f.is_file()), default=0.0)


def stale(build: Path) -> str:
    """Why the book has to be made before it is read; "" if it is whole, with the newest numbers. A
    `make book` that was ended early leaves pages, and none or an older build/book/whole.
    """
    whole = build / "book" / "whole"
    if not whole.exists():
        return "the book is not finished"
    finished = whole.stat().st_mtime
    if any(page.stat().st_mtime > finished for page in build.glob("book/*.html")):
        return "the book is finished first"
    return "your new numbers are put in" if path.older(whole, build / "results") else ""


def make_book() -> bool:
    done = subprocess.run(["make", "--no-print-directory", "book"], check=False)
    return done.returncode == 0


def _watch(version: list[int]) -> None:
    seen = newest()
    while True:
        time.sleep(EVERY)
        try:
            now = newest()
        except OSError:
            continue  # removed between two looks
        if now > seen:
            seen = now
            began = time.monotonic()
            if make_book():
                version[0] += 1
                print(f"made in {time.monotonic() - began:.1f} s", flush=True)


def read(settings: dict[str, str], watching: bool = False) -> int:
    build = Path(settings.get("BUILD", "build"))
    wanted = settings.get("PORT", FIRST_PORT)
    port = free_port(wanted)
    say_taken(wanted, port)
    page = build / "book" / "index.html"
    why = "" if watching else stale(build)
    if why and page.exists():
        print(f"{why}: about a minute", flush=True)
    if (why or watching) and not make_book():
        if not page.exists():
            raise Wrong("there is no book to read: make book says why")
        print("some of these pages are older than what they show: make book says why", flush=True)
    if not page.exists():
        raise Wrong("there is no book to read without pandoc (make deps); its source: chapters/")
    handler = type("OfThisBuild", (Book,), {"build": build})
    if watching:
        threading.Thread(target=_watch, args=(Book.version,), daemon=True).start()
    serve = partial(handler, directory=str(build / "book"))
    with local.Server(port, serve) as server:
        here = build / "book" / f"{path.here(build).slug}.html"
        open_at = here.name if here.exists() else ""
        print(f"\n  open  http://127.0.0.1:{port}/{open_at}\n  stop  Ctrl-C\n", flush=True)
        with suppress(KeyboardInterrupt):  # the way out that was named
            server.serve_forever()
    print()
    return 0


def watch(settings: dict[str, str]) -> int:
    return read(settings, watching=True)
