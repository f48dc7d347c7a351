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
from dataclasses import asdict, dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from quest.ground.files import changed_ns
from quest.learn import local, path, state
from quest.learn.chapters import chapter
from quest.learn.run import free_port, say_taken
from quest.learn.state import Folders, folders
from quest.learn.words import Wrong

FIRST_PORT = "8000"
LIVE = Path(__file__).with_name("live.js")
WATCHED = ("chapters", "code", "figures", "slides", "benchmarks/experiments")
EVERY = 0.5  # seconds between two looks at what is watched


@dataclass
class PageState:
    """What live.js shows: of a chapter its steps and drawings, of the contents how much is done."""

    steps: list[dict[str, str]] = field(default_factory=list)  # kind, command, mark, stage
    guesses: dict[str, list[float | None]] = field(default_factory=dict)  # by number
    chapters: dict[str, str] = field(default_factory=dict)  # 09-epoll -> "2 of 5"


def page_state(slug: str, places: Folders) -> PageState:
    """Of a chapter; for another slug that of the page of contents."""
    by_slug = {about.slug: some for about, some in path.marked_steps(places).items()}
    if slug not in by_slug:  # the contents
        return PageState(
            chapters={
                each: f"{sum(step.mark == path.DONE for step in some)} of {len(some)}" for each, some in by_slug.items()
            }
        )
    return PageState(
        [{"kind": s.kind, "command": s.command, "mark": s.mark, "stage": s.stage} for s in by_slug[slug]],
        state.read_progress(places.progress).drawings(slug),
    )


class Book(local.Handler):
    """build/book, and the answers to live.js."""

    places: Folders
    version: ClassVar[list[int]] = [0]  # counts how often the book was made anew

    def get(self, place: str) -> None:
        if place == "/live.js":
            self.send(LIVE.read_bytes(), "text/javascript")
        elif place == "/version":
            self.send(json.dumps(self.version[0]).encode(), "application/json")
        elif place.startswith("/state/"):
            page = page_state(unquote(place.removeprefix("/state/")), self.places)
            self.send(json.dumps(asdict(page), allow_nan=False).encode(), "application/json")
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
            y, shown = drawing(body)
            kept = state.keep_drawing(self.places.progress, slug, which, y)
            if shown:
                kept = state.note_step(self.places.progress, "predict", slug) and kept
        elif about and what == "done" and which in {s.kind for s in path.steps(about, self.places)}:
            kept = state.note_step(self.places.progress, which, slug)
        else:
            raise local.Refused(HTTPStatus.FORBIDDEN, "this page may change nothing")
        if not kept:
            raise local.Refused(HTTPStatus.INSUFFICIENT_STORAGE, "not kept: the terminal of make read says why")
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
        sent = local.finite_json(body)
        points, shown = sent["y"], sent.get("shown", False)
        if not (state.is_drawing(points) and points and isinstance(shown, bool | float)):
            raise TypeError("y, or shown")
        return points[:1000], bool(shown)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise local.Refused(HTTPStatus.BAD_REQUEST, "this is not a drawing") from None


def dates() -> dict[Path, int]:
    """When each file that is watched was last changed, in nanoseconds. One with a date in the future hides no other.
    What an editor keeps beside them (`.#a.md`, `#a.md#`, `.a.md.swp`) is none of them.
    """
    files = (f for folder in WATCHED for f in Path(folder).rglob("*") if "__pycache__" not in f.parts)
    return {path: ns for path in files if path.name[0] not in ".#" and (ns := changed_ns(path))}


def has_changed(before: dict[Path, int], now: dict[Path, int]) -> bool:
    """Whether a file is new or has another date. One that is gone may be about to come back: an editor replaces it."""
    return any(before.get(path) != ns for path, ns in now.items())


def stale(build: Path) -> str:
    """Why the book has to be made before it is read; "" if it is whole, with the newest numbers. A
    `make book` that was ended early leaves pages, and none or an older build/book/whole.
    """
    whole = build / "book" / "whole"
    if not whole.exists():
        return "the book is not finished"
    if any(changed_ns(page) > changed_ns(whole) for page in build.glob("book/*.html")):
        return "the book is finished first"
    return "your new numbers are put in" if path.is_older(whole, build / "results") else ""


def make_book() -> bool:
    """Whether `make book` has made it."""
    done = subprocess.run(["make", "--no-print-directory", "book"], check=False)
    return done.returncode == 0


def _watch(version: list[int]) -> None:
    seen: dict[Path, int] = {}
    while True:
        try:
            now = dates()
        except OSError:  # a folder was removed under our eyes
            now = seen
        changed, seen = bool(seen) and has_changed(seen, now), now
        if changed:
            began = time.monotonic()
            if make_book():
                version[0] += 1
                print(f"made in {time.monotonic() - began:.1f} s", flush=True)
        time.sleep(EVERY)


def serve_book(settings: dict[str, str], watching: bool = False) -> int:
    """`make read`: serves build/book until Ctrl-C. Takes PORT, BUILD and WORK; Wrong: no book."""
    places = folders(settings)
    build = places.build
    wanted = settings.get("PORT", FIRST_PORT)
    free_port(wanted)  # what cannot be is said before the book is made, which may take a minute
    page = build / "book" / "index.html"
    why = "" if watching else stale(build)
    if why and page.exists():
        print(f"{why}; this takes about a minute", flush=True)
    if (why or watching) and not make_book():
        if not page.exists():
            raise Wrong("there is no book to read: make book says why")
        print("some pages could not be made again, and are old: make book says why", flush=True)
    if not page.exists():
        raise Wrong("there is no book without pandoc (make deps installs it); read its source: chapters/")
    handler = type("OfThisBuild", (Book,), {"places": places})
    if watching:
        threading.Thread(target=_watch, args=(Book.version,), daemon=True).start()
    serve = partial(handler, directory=str(build / "book"))
    port = free_port(wanted)
    say_taken(wanted, port)
    with local.Server(port, serve) as server:
        first = build / "book" / f"{path.current_chapter(places).slug}.html"
        open_at = first.name if first.exists() else ""
        print(f"\n  open  http://127.0.0.1:{port}/{open_at}\n  stop  Ctrl-C\n", flush=True)
        with suppress(KeyboardInterrupt):  # the way out that was named
            server.serve_forever()
    print()
    return 0


def watch(settings: dict[str, str]) -> int:
    """`make watch`: as serve_book(), and what changes is made anew."""
    return serve_book(settings, watching=True)
