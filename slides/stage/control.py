"""The show: the deck served by 15-slashdot, and a small control process that plays the demos.

A page may start a demo only if it has the token of this show, comes from the deck's own address
(Origin), and asks for 127.0.0.1 by this name (Host: no name that somebody points here). One demo
is played at a time; it ends with the connection that asked for it, which is to say with the slide.
"""

import ctypes
import hmac
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import threading
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from reader.run import free_port
from reader.words import Wrong
from stage import scene
from stage.play import play

HERE = "127.0.0.1"
PR_SET_PDEATHSIG = 1


class Control(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, build: Path, origin: str) -> None:
        super().__init__((HERE, 0), Handler)
        self.build, self.origin, self.token = build, origin, secrets.token_urlsafe(24)
        self.turn = threading.Lock()
        self.current = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def begin(self) -> threading.Event:
        """Ends the demo that runs; the word to end the new one."""
        with self.turn:
            self.current.set()
            self.current = threading.Event()
            return self.current


class Handler(BaseHTTPRequestHandler):
    server: Control
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self._may(asked.get("token", "")):
            return self.send_error(403, "this page may start nothing")
        demo = next((d for d in scene.demos() if d.name == asked.get("demo")), None)
        if parts.path != "/demo" or not demo:
            return self.send_error(404, "there is no such demo")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.send_header("Access-Control-Allow-Origin", self.server.origin)
        self.end_headers()
        return self._play(demo)

    def _play(self, demo: scene.Demo) -> None:
        stop = self.server.begin()
        events: queue.Queue[scene.Event] = queue.Queue()
        words = (demo, self.server.build, scene.DOCROOT, events.put, stop)
        player = threading.Thread(target=play, args=words)
        player.start()
        try:
            while player.is_alive() or not events.empty():
                try:
                    text = f"data: {json.dumps(events.get(timeout=0.25))}\n\n"
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
            and self.headers.get("Host") == f"{HERE}:{self.server.port}"
        )

    def log_message(self, format: str, *args: object) -> None:
        pass


def present(build: Path, deck: Path, port: str) -> int:
    """Until Ctrl-C, SIGTERM, or the end of the server."""
    if not deck.is_file():
        print(f"present: {deck} is not there (make slides)", file=sys.stderr)
        return 1
    if sys.platform == "linux":  # when make is killed, so is the show; elsewhere Ctrl-C has to do
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with scene.Scene(build, build) as serving:
        try:
            url = serving.serve("15-slashdot", ("-w", "1"), free_port(port))
        except (scene.Failed, Wrong) as failed:
            print(f"present: {failed}", file=sys.stderr)
            return 1
        control = Control(build, url.rstrip("/"))
        threading.Thread(target=control.serve_forever, daemon=True).start()
        place = f"{deck.relative_to(build).as_posix()}?stage={control.port}.{control.token}"
        return _show(serving.processes[0], control, url + place, deck)


def _show(server: subprocess.Popen[str], control: Control, page: str, deck: Path) -> int:
    print(
        f"deck          {page}\n"
        f"speaker view  {page}&speaker\n"
        "S in the deck opens the speaker view too, F fills the screen, Ctrl-C here ends the show.\n"
        f"Without a server, and with recorded demos: open {deck} in the browser.",
        flush=True,
    )

    def ended(*_: object) -> None:
        control.current.set()
        server.terminate()

    signal.signal(signal.SIGINT, ended)
    signal.signal(signal.SIGTERM, ended)
    if sys.stdout.isatty() and (os.environ.get("DISPLAY") or sys.platform == "darwin"):
        webbrowser.open(page)
    status = server.wait()
    control.current.set()
    control.shutdown()
    return 0 if status in (0, -signal.SIGTERM) else 1
