"""The show: the deck served by 15-slashdot, and a small control process that plays the demos.

15-slashdot serves a folder that holds the deck and nothing else, below a name that cannot be
guessed: other users of this machine, and pages that point a domain of theirs here, do not find it.
A page may start a demo only if it has the token of this show, comes from the deck's own address
(Origin), and asks for 127.0.0.1 by this name (Host). One demo is played at a time; it ends with
the connection that asked for it, which is to say with the slide.
"""

import hmac
import json
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import webbrowser
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from quest.ground.entry import os_error_text
from quest.ground.files import changed_ns, write_whole
from quest.learn import local
from quest.learn.run import free_port
from quest.learn.words import Wrong
from quest.stage import demos, scene
from quest.stage.demos import Demo
from quest.stage.events import Event
from quest.stage.play import play


class Control(local.Server):
    """The control process of a show whose deck is at `origin`."""

    def __init__(self, build: Path, origin: str) -> None:
        super().__init__(0, Handler)
        self.build, self.origin, self.token = build, origin, secrets.token_urlsafe(24)
        self.turn = threading.Lock()
        self.current = threading.Event()
        self.player: threading.Thread | None = None  # of the last demo

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    def begin(self) -> threading.Event:
        """Ends the demo that is played; the event by which the new one is ended."""
        with self.turn:
            self.current.set()
            self.current = threading.Event()
            return self.current


class Handler(local.Handler):
    """Answers a page of the deck that asks for a demo."""

    server: Control
    protocol_version = "HTTP/1.1"

    def get(self, place: str) -> None:
        """/demo?demo=NAME&token=...: plays the demo, with an event of the stream for each of its
        events.
        """
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if not self._may(asked.get("token", "")):
            raise local.Refused(HTTPStatus.FORBIDDEN, "this page may start nothing")
        demo = next((d for d in demos.demos() if d.name == asked.get("demo")), None)
        if place != "/demo" or not demo:
            raise local.Refused(HTTPStatus.NOT_FOUND, "there is no such demo")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.end_headers()
        self._play(demo)
        self.close_connection = True

    def do_HEAD(self) -> None:
        """Refused."""
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "nothing here answers HEAD")

    def _play(self, demo: Demo) -> None:
        stop = self.server.begin()
        events: queue.Queue[Event] = queue.Queue()
        arguments = (demo, self.server.build, scene.DOCROOT, events.put, stop)
        player = self.server.player = threading.Thread(target=play, args=arguments)
        player.start()
        try:
            while player.is_alive() or not events.empty():
                try:
                    text = f"data: {json.dumps(events.get(timeout=0.25).message())}\n\n"
                except queue.Empty:
                    text = ": still here\n\n"  # so that a page that has gone is noticed
                self.wfile.write(text.encode())
        except OSError:
            pass  # the slide was left
        finally:
            stop.set()
            player.join()

    def _may(self, token: str) -> bool:
        return (
            hmac.compare_digest(token.encode(), self.server.token.encode())
            and self.headers.get("Origin") == self.server.origin
            and self.headers.get("Host") == f"{local.HERE}:{self.server.port}"
        )


class Stand:
    """The folder that is served: the deck alone, as it is in build/slides whenever it is looked at.
    It is a copy because the server follows no link out of its folder.
    """

    def __init__(self, deck: Path, folder: Path) -> None:
        self.deck, self.folder = deck, folder / secrets.token_urlsafe(12)
        self.folder.mkdir()
        self.taken = changed_ns(deck)
        self._take()

    def _take(self) -> None:
        write_whole(self.folder / self.deck.name, self.deck.read_bytes())

    def refresh(self) -> None:
        """A deck made anew during the show is there when the page is loaded anew. One that cannot be taken, as where
        the disk is full, does not end the show: it goes on with the deck that it has.
        """
        changed = changed_ns(self.deck)
        if changed in (0, self.taken):  # 0: it is being made
            return
        self.taken = changed
        try:
            self._take()
        except OSError as error:
            print(f"present: the deck is shown as it was: {os_error_text(error)}", file=sys.stderr)


def present(build: Path, deck: Path, port: str, open_browser: bool) -> int:
    """The show, until Ctrl-C, SIGTERM, SIGHUP, or the end of the server; its status. `open_browser`: with
    the deck in it.
    """
    if not deck.is_file():
        print(f"present: {deck} is not there (make slides)", file=sys.stderr)
        return 1
    scene.heed_signals()
    with tempfile.TemporaryDirectory(prefix="quest-show-") as folder:
        stand = Stand(deck, Path(folder))
        with scene.Scene(build, Path(folder)) as serving:
            try:
                url = serving.serve("15-slashdot", ("-w", "1"), free_port(port))
            except (scene.Failed, Wrong) as failed:
                print(f"present: {failed}", file=sys.stderr)
                return 1
            control = Control(build, url.rstrip("/"))
            threading.Thread(target=control.serve_forever, daemon=True).start()
            target = f"{stand.folder.name}/{deck.name}?stage={control.port}.{control.token}"
            return _run_show(serving.processes[0], control, url + target, stand, open_browser)


def _run_show(server: subprocess.Popen[str], control: Control, page: str, stand: Stand, open_browser: bool) -> int:
    def ended(*_: object) -> None:
        control.current.set()
        server.terminate()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the last: its terminal was closed
        signal.signal(number, ended)
    print(
        f"deck          {page}\n"
        f"speaker view  {page}&speaker\n"
        "S in the deck opens the speaker view too, F fills the screen, Ctrl-C here ends the show.\n"
        f"Without a server, and with recorded demos: open {stand.deck} in the browser.",
        flush=True,
    )
    if open_browser:
        webbrowser.open(page)
    while True:
        try:
            status = server.wait(1)
            break
        except subprocess.TimeoutExpired:
            stand.refresh()
    control.current.set()
    control.shutdown()
    if control.player:  # what it has mounted is not left
        control.player.join(scene.END_SECONDS)
    if status in (0, -signal.SIGTERM):
        return 0
    print(f"present: 15-slashdot has ended (status {status}), and the show with it", file=sys.stderr)
    return 1
