"""Process 1 of the fresh machine: mounts what a machine has, runs commands in it, reaps, reports.

Started by prove.py as the first process of a PID namespace, in a mount namespace of its own. So its
end, however it comes, ends every process in the tree and takes every mount away.

stdin: one JSON object (machine.py). stdout: an event in JSON a line. stderr: what commands print.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1",
         "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"}  # fmt: skip


def report(**event: object) -> None:
    print(json.dumps(event), flush=True)


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def mount_all(tree: Path) -> None:
    """/proc and /sys as they are; /dev of its own, or files in /dev/shm would outlive the tree."""
    mount("--bind", tree, tree)  # only a mount can become the root
    mount("-t", "proc", "proc", tree / "proc")
    mount("--rbind", "/sys", tree / "sys")
    dev = tree / "dev"
    mount("-t", "tmpfs", "-o", "mode=755", "dev", dev)
    for name in DEVICES:
        if Path("/dev", name).exists():
            (dev / name).touch()
            mount("--bind", Path("/dev", name), dev / name)
    make_fuse(dev / "fuse")
    for name, target in LINKS.items():
        (dev / name).symlink_to(target)
    for name in ("pts", "shm"):
        (dev / name).mkdir()
    mount("-t", "devpts", "-o", "newinstance,ptmxmode=666,mode=620", "devpts", dev / "pts")
    mount("-t", "tmpfs", "-o", "mode=1777", "shm", dev / "shm")


def make_fuse(device: Path) -> None:
    """Open to users, as udev makes it; in a container that of the machine may be root's alone."""
    here = Path("/dev/fuse")
    if not here.exists():
        return
    try:
        os.mknod(device, stat.S_IFCHR, here.stat().st_rdev)
        device.chmod(0o666)
        os.close(os.open(device, os.O_RDWR))
    except OSError:  # devices of our own are not for us
        device.unlink(missing_ok=True)
        device.touch()
        mount("--bind", here, device)


def enter(tree: Path) -> None:
    """The tree becomes the root. In a mere chroot the kernel refuses user namespaces."""
    subprocess.run(["pivot_root", str(tree), str(tree / "mnt")], check=True)
    os.chdir("/")
    subprocess.run(["/usr/bin/umount", "--lazy", "/mnt"], check=True)


def mounts() -> list[str]:
    """All mount points."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line.split()[4] for line in lines]


def processes() -> dict[int, str]:
    """All processes of the namespace but this one: process id -> command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != "1":
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # gone meanwhile
            found[int(entry.name)] = b" ".join(words).decode(errors="replace").strip()
    return found


def wait_for(child: int) -> int:
    """The child's status as a shell gives it. Reaps meanwhile what lost its parent: init's work."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def end_leftovers() -> list[str]:
    """What still runs two seconds after a command's end: told, then ended."""
    deadline = time.monotonic() + 2
    while (left := processes()) and time.monotonic() < deadline:
        time.sleep(0.1)
        reap()
    if left:
        os.kill(-1, signal.SIGKILL)
        reap()
    return list(left.values())


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def run(step: dict[str, Any], environment: dict[str, str]) -> None:
    """One command as a user of the tree would type it: no terminal, a plain environment."""
    uid = int(step["uid"])
    folder = step["folder"]
    before = mounts()
    print(f"\n$ {step['command']}", file=sys.stderr, flush=True)
    began = time.monotonic()
    script = 'cd "$1" && exec sh -c "$2"'
    words = ["/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    words += ["sh", "-c", script, "sh", folder, step["command"]]
    child = subprocess.Popen(
        words, env=environment | step["environment"], stdin=subprocess.DEVNULL, stdout=sys.stderr
    )
    status = wait_for(child.pid)
    child.returncode = status  # reaped above: Popen must not wait for it again
    seconds = time.monotonic() - began
    left = [f"process: {line}" for line in end_leftovers()]
    left += [f"mount: {place}" for place in mounts() if place not in before]
    report(event="step", title=step["title"], status=status, seconds=seconds, left=left)


def main() -> None:
    order = json.load(sys.stdin)
    tree = Path(order["tree"])
    report(event="start", namespace=os.readlink("/proc/self/ns/pid"))
    mount_all(tree)
    enter(tree)
    for step in order["steps"]:
        run(step, order["environment"])
    report(event="end")


if __name__ == "__main__":
    main()
