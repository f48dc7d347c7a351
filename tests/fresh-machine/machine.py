"""The fresh machine while it runs: namespaces around a tree, and commands in them, one by one."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import machine_setup
from fresh_tree import PRIVATE, Tree

TICK = 20.0  # seconds between two lines of progress
PATHS = {
    0: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    1000: "/usr/local/bin:/usr/bin:/bin",
}


class TimeIsUp(Exception):
    """The proof took longer than it may."""


@dataclass(frozen=True)
class Step:
    """A command, who types it, what it must leave in the checkout; or how it must refuse."""

    command: str
    uid: int = 0
    makes: tuple[str, ...] = ()
    refuses: str = ""  # it must end with another status than 0, and say this at its end

    def making(self, names: Iterable[str]) -> Self:
        return replace(self, makes=tuple(names))


@dataclass(frozen=True)
class Outcome:
    status: int
    seconds: float
    left: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # its last lines


class Machine:
    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def run(self, steps: list[Step]) -> list[Outcome]:
        """The outcome of each step that ended. Nothing of the machine runs when this returns."""
        with self.tree.log.open("ab") as log:
            child = subprocess.Popen(
                [*PRIVATE, "--ipc", "--propagation", "private", sys.executable,
                 str(Path(__file__).with_name("first_process.py"))],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        try:
            assert child.stdin
            child.stdin.write(json.dumps(self._order(steps)).encode())
            child.stdin.close()
            return self._watch(child, steps)
        finally:
            child.kill()  # the first process goes with it (--kill-child), and all others with that
            child.wait()

    def _order(self, steps: list[Step]) -> dict[str, Any]:
        return {
            "tree": str(self.tree.path),
            "environment": {"SHELL": "/bin/sh"} | machine_setup.proxies(os.environ),
            "steps": [
                {
                    "command": step.command, "title": step.command, "uid": step.uid,
                    "folder": Tree.home(step.uid),
                    "environment": {
                        "PATH": PATHS[step.uid], "HOME": str(Path(Tree.home(step.uid)).parent),
                        "USER": "student" if step.uid else "root",
                        "LOGNAME": "student" if step.uid else "root",
                    },
                }
                for step in steps
            ],
        }  # fmt: skip

    def _watch(self, child: "subprocess.Popen[bytes]", steps: list[Step]) -> list[Outcome]:
        events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=_read_events, args=(child, events), daemon=True).start()
        outcomes: list[Outcome] = []
        began = time.monotonic()
        print(f"$ {steps[0].command}", flush=True)
        while True:
            try:
                event = events.get(timeout=TICK)
            except queue.Empty:
                self._progress(began)
                continue
            size = self.tree.measure()
            if event and event["event"] == "start":
                self.tree.namespace = event["namespace"]
                continue
            if event is None or event["event"] == "end":
                return outcomes
            said = self.tree.last_lines(25)
            outcomes.append(Outcome(event["status"], event["seconds"], event["left"], said))
            took = f"{event['seconds']:.0f} s"
            print(f"  status {event['status']} after {took}, {size} MB", flush=True)
            began = time.monotonic()
            if len(outcomes) < len(steps):
                print(f"$ {steps[len(outcomes)].command}", flush=True)

    def _progress(self, began: float) -> None:
        now = time.monotonic()
        last = "".join(self.tree.last_lines(1))[:76]
        minutes, seconds = divmod(int(now - began), 60)
        print(f"  {minutes:2}:{seconds:02}  {self.tree.measure():5} MB  {last}", flush=True)
        if now > self.tree.deadline:
            raise TimeIsUp("not ended in time; --minutes allows more")


def _read_events(
    child: "subprocess.Popen[bytes]", events: "queue.Queue[dict[str, Any] | None]"
) -> None:
    assert child.stdout
    for line in child.stdout:
        events.put(json.loads(line))
    events.put(None)
