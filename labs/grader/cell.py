"""A cell (bubblewrap(1)): where what was handed in is built and run. It has a user, mounts,
processes, an IPC and a host name of its own, an empty environment, and only the files that are
named. Its network is that of whoever starts it: a compiler's none, a server's the loopback of its
judge.

The judge stays outside. It starts a program inside with nsenter(1), so that the program is its
child and the cell outlives it: what the program leaves behind can be seen, and ends with the cell.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from conformance import proc

TOOLS = ("bwrap", "nsenter", "unshare", "prlimit", "setpriv")
READY_SECONDS = 20.0
HOSTS = b"127.0.0.1 localhost\n"
SYSTEM = ("/bin", "/sbin", "/lib", "/lib64")
#: What a program may be told: how a sanitizer ends.
TOLD = ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS")


def path_of(tool: str) -> str:
    return shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") or tool


def as_user(user: int) -> list[str]:
    ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    return [path_of("setpriv"), *ids, "--pdeathsig=KILL", "--"]


def _outside(user: int | None) -> list[str]:
    """Who makes a cell: bubblewrap wants no capabilities, and root becomes somebody else."""
    if user is not None:
        return as_user(user)
    none = ["--ambient-caps=-all", "--inh-caps=-all"]
    return [path_of("setpriv"), *none, "--pdeathsig=KILL", "--"]


def walls(
    user: int | None, see: Iterable[Path], own: Iterable[Path] = (), compiler: bool = False
) -> list[str]:
    """The command that runs another, behind it, in a cell that sees `see` and may write to `own`.

    compiler: with all of /usr, and without a network."""
    words = [
        *_outside(user), path_of("bwrap"), "--unshare-user", "--unshare-pid", "--unshare-ipc",
        "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv",
        "--hostname", "lab", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
    ]  # fmt: skip
    if compiler:
        words += ["--unshare-net", "--ro-bind", "/usr", "/usr", "--setenv", "PATH", os.defpath]
        words += ["--ro-bind-try", "/etc/alternatives", "/etc/alternatives"]
        for folder in filter(os.path.exists, SYSTEM):
            link = os.path.islink(folder)
            words += ["--symlink" if link else "--ro-bind"]
            words += [os.readlink(folder) if link else folder, folder]
    for option, paths in (("--ro-bind", see), ("--bind", own)):
        for path in paths:
            words += [option, str(path), str(path)]
    return words


def libraries(program: Path) -> set[Path]:
    """The shared libraries of a program of ours, the loader among them; none of a static one."""
    interpreter = subprocess.run(
        ["readelf", "-l", str(program)], capture_output=True, text=True, check=False
    ).stdout
    if "interpreter: " not in interpreter:
        return set()
    loader = interpreter.split("interpreter: ")[1].split("]")[0]
    listed = subprocess.run(
        [loader, "--list", str(program)], capture_output=True, text=True, check=False
    ).stdout
    words = [word for line in listed.splitlines() for word in line.split()]
    return {Path(word) for word in words if word.startswith("/")} | {Path(loader)}


def judge_in_a_network_of_its_own() -> list[str]:
    """The prefix of a judge: only it and its cells share a loopback. Without root it becomes the
    owner of a user namespace, and so of the cells in it."""
    mine = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [path_of("unshare"), *mine, "--net", "--"]


@functools.cache
def unavailable(user: int | None) -> str:
    """Why no cell can be had here; "" if one can."""
    if "LAB_NO_CELL" in os.environ:
        return "LAB_NO_CELL is set"
    for tool in TOOLS:
        if shutil.which(path_of(tool)) is None:
            package = "bubblewrap" if tool == "bwrap" else "util-linux"
            return f"{tool} is not installed (Debian: {package})"
    true = path_of("true")
    cell = [*walls(user, (), compiler=True), "--", true]
    done = subprocess.run(
        [*judge_in_a_network_of_its_own(), *cell], capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    return "" if done.returncode == 0 else f"no sandbox here: {last[0]}"


@dataclass
class Cell:
    """A cell that stays until it is ended: with Cell.start(...) as cell."""

    user: int | None
    process: subprocess.Popen[bytes]
    init: int  #: the pid, outside, of its first process

    @classmethod
    def start(cls, user: int | None, see: Iterable[Path]) -> Self:
        holder = Path(path_of("sleep"))
        seen = [*see, holder, *libraries(holder)]
        reading, writing = os.pipe()
        hosts, names = os.pipe()
        os.write(names, HOSTS)
        os.close(names)
        told = ["--ro-bind-data", str(hosts), "/etc/hosts", "--info-fd", str(writing)]
        process = subprocess.Popen(
            [*walls(user, seen), *told, "--", str(holder), "infinity"],
            pass_fds=[writing, hosts], stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writing)
        os.close(hosts)
        with os.fdopen(reading) as info:
            text = info.read()
        cell = cls(user, process, json.loads(text)["child-pid"] if text else 0)
        deadline = time.monotonic() + READY_SECONDS
        while not cell._ready():
            if process.poll() is not None or time.monotonic() > deadline:
                cell.end()
                raise RuntimeError("the sandbox did not start")
            time.sleep(0.002)
        return cell

    def _ready(self) -> bool:
        """Its mounts are made: the holder runs."""
        return any(proc.text(pid, "comm") == "sleep\n" for pid in proc.children(self.init))

    def script(self, program: Path, limits: list[str]) -> str:
        """To be started in the place of a program: the same, inside. nsenter passes its end on."""
        ids = ["--preserve-credentials"]
        if self.user is not None:
            ids = ["-S", str(self.user), "-G", str(self.user)]
        enter = [path_of("nsenter"), "-t", str(self.init), "-U", "-m", "-p", "-i", "-u", *ids, "--"]
        told = " ".join(f'{name}="${name}"' for name in TOLD)
        drop = [path_of("setpriv"), "--no-new-privs", "--"]
        rest = shlex.join([*limits, *drop, *enter, str(program)])
        return f'#!/bin/sh\nexec {path_of("env")} -i LC_ALL=C {told} {rest} "$@"\n'

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
