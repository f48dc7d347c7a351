"""A headless Chromium that opens one page and prints it, driven over its own pipe.

`chromium --print-to-pdf` prints when the page has loaded; reveal.js lays out its pages after that,
and the result is one blank page with status 0. So the DevTools protocol is spoken here
(https://chromedevtools.github.io/devtools-protocol/): JSON messages that end with a zero byte, over
descriptors 3 and 4 of the browser (--remote-debugging-pipe). No port, no driver, no network.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--disable-quic",
    "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--no-default-browser-check", "about:blank",
]  # fmt: skip
ABOVE_PIPE = 10
PRINT = {
    "preferCSSPageSize": True,
    "printBackground": True,
    "generateTaggedPDF": True,
    "generateDocumentOutline": True,
}
LAST_WORDS = 300


class ChromiumError(Exception):
    """What went wrong, in one line."""


class Browser:
    """A running Chromium with one page; every wait ends at `deadline` (time.monotonic())."""

    def __init__(self, to: int, of: int, deadline: float) -> None:
        self.to, self.of, self.deadline = to, of, deadline
        self.rest = b""
        self.number = 0
        self.session = ""
        self.events: list[str] = []

    def receive(self) -> dict[str, Any]:
        """The next message."""
        while b"\0" not in self.rest:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.of], [], [], left)[0]:
                raise ChromiumError("Chromium does not answer in time")
            piece = os.read(self.of, 1 << 16)
            if not piece:
                raise ChromiumError("Chromium has ended")
            self.rest += piece
        message, self.rest = self.rest.split(b"\0", 1)
        return dict(json.loads(message))

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """The result of a command; events that come before it are kept."""
        self.number += 1
        command: dict[str, object] = {
            "id": self.number,
            "method": method,
            "params": parameters,
        }
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self.to, data) :]
        except BrokenPipeError:
            raise ChromiumError("Chromium has ended") from None
        while True:
            message = self.receive()
            if message.get("id") == self.number:
                break
            self.events.append(message.get("method", ""))
        if "error" in message:
            raise ChromiumError(f"{method}: {message['error'].get('message')}")
        return dict(message["result"])

    def open(self, address: str) -> None:
        """Opens the address; returns when the page has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        self.call("Page.enable")
        self.events.clear()
        failed = self.call("Page.navigate", url=address).get("errorText")
        if failed:
            raise ChromiumError(f"{address}: {failed}")
        while "Page.loadEventFired" not in self.events:
            self.events.append(self.receive().get("method", ""))

    def evaluate(self, script: str) -> Any:  # whatever JSON can hold
        """The value of a JavaScript expression; a promise is waited for."""
        result = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in result:
            thrown = result["exceptionDetails"].get("exception", {})
            text = str(thrown.get("description") or thrown.get("value"))
            raise ChromiumError(f"in the page: {text.splitlines()[0]}")
        return result["result"].get("value")

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", **PRINT)["data"])


def spawn(program: str, profile: Path, to: int, of: int) -> int:
    """Starts the browser as leader of a process group; its descriptors 3 and 4 are `to`, `of`."""
    arguments = [program, f"--user-data-dir={profile / 'profile'}", *FLAGS]
    if os.geteuid() == 0:
        arguments.insert(1, "--no-sandbox")  # as root Chromium starts no other way
    log = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        program,
        arguments,
        {**os.environ, "HOME": str(profile)},  # what it writes beside its profile goes there too
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(profile / "log"), log, 0o600),
            (os.POSIX_SPAWN_DUP2, to, 3),
            (os.POSIX_SPAWN_DUP2, of, 4),
        ],
        setpgroup=0,
    )


def end(pid: int) -> None:
    """Ends the browser and what it has started; they hold nothing that is worth a farewell."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def pipe() -> tuple[int, int]:
    """Read end and write end, clear of the numbers that the browser's ends get."""
    ends = os.pipe()
    raised = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, ABOVE_PIPE) for fd in ends]
    for fd in ends:
        os.close(fd)
    return raised[0], raised[1]


@contextlib.contextmanager
def running(program: str, seconds: float) -> Iterator[Browser]:
    """A browser for at most so many seconds; raises ChromiumError with its last words."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        profile = Path(folder)
        (its_input, to), (of, its_output) = pipe(), pipe()
        try:
            pid = spawn(program, profile, its_input, its_output)
        except OSError as error:
            raise ChromiumError(f"{program}: {error.strerror}") from None
        finally:
            os.close(its_input)
            os.close(its_output)
        try:
            yield Browser(to, of, time.monotonic() + seconds)
        except ChromiumError as error:
            log = (profile / "log").read_text(errors="replace").strip().splitlines()
            words = f": {log[-1][:LAST_WORDS]}" if log and "has ended" in str(error) else ""
            raise ChromiumError(f"{error}{words}") from None
        finally:
            end(pid)
            os.close(to)
            os.close(of)
