"""A bare Debian tree on disk: made, given the network and the checkout, measured, removed."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

import machine_setup

PREFIX = "fresh-machine-"
# The first process of these namespaces is killed with its parent, and everything in them with it.
DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL"]
PRIVATE = [*DIE_WITH_US, "unshare", "--mount", "--pid", "--fork", "--kill-child"]
HOMES = {0: "/root/quest", 1000: "/home/student/quest"}


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @classmethod
    def by_signal(cls, number: int, _frame: FrameType | None) -> None:
        raise cls(number)


def own_mounts(path: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [place for line in lines if (place := line.split()[4]).startswith(f"{path}/")]


def remove(path: Path) -> None:
    """rm -rf, but never through a mount. Our namespace has none there unless somebody made one."""
    places = own_mounts(path)
    if places:
        raise machine_setup.SetupError(f"{places[0]} is mounted in the tree; not removed")
    subprocess.run(["rm", "-rf", "--one-file-system", str(path)], check=True)


def remove_stale() -> None:
    """Trees of runs that were killed with SIGKILL: only those cannot clean up themselves."""
    for path in Tree.base().glob(f"{PREFIX}*"):
        maker = path.name.removeprefix(PREFIX).split("-")[0]
        if maker.isdigit() and not Path("/proc", maker).exists():
            print(f"removing {path}, left by a run that was killed", flush=True)
            remove(path)


class Tree:
    """`with Tree(...)`: at the end it is gone, whatever happened."""

    def __init__(self, suite: str, log: Path, seconds: float, keep: bool = False) -> None:
        self.suite = suite
        self.log = log
        self.deadline = time.monotonic() + seconds
        self.keep = keep
        self.seconds = 0.0
        self.peak_mb = 0
        self.namespace = ""  # of the processes in it, once they run
        folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-{suite}-", dir=self.base())
        self.path = Path(folder)
        self.path.chmod(0o755)  # a user of the tree must get to its root

    @staticmethod
    def base() -> Path:
        return Path(os.environ.get("TMPDIR", "/var/tmp"))

    @staticmethod
    def home(uid: int) -> str:
        """The checkout of this user, as a path in the tree."""
        return HOMES[uid]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, _: TracebackType | None
    ) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not stop the removal
        if self.keep:
            print(f"kept: {self.path}")
        else:
            remove(self.path)

    def make(self, sources: list[machine_setup.Source]) -> None:
        command = machine_setup.debootstrap_command(self.suite, self.path, sources[0].uri)
        print(f"making a bare {self.suite} ...", flush=True)
        began = time.monotonic()
        with self.log.open("wb") as log:
            self._run([*PRIVATE, "--mount-proc", *command], log.fileno())
            machine_setup.give_network(self.path, sources, self.suite)
            # An installer leaves the lists of packages up to date.
            self._run([*PRIVATE, "chroot", str(self.path), "apt-get", "-q", "update"], log.fileno())
        self.seconds = time.monotonic() - began
        self.measure()

    def _run(self, command: list[str], log: int) -> None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        environment |= machine_setup.proxies(os.environ)
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = child.wait(timeout=self.deadline - time.monotonic())
        except BaseException:
            child.kill()
            child.wait()
            raise
        if status:
            print("\n".join(self.last_lines(15)))
            raise subprocess.CalledProcessError(status, command)

    def copy_checkout(self, root: Path, uids: list[int], uncommitted: bool) -> None:
        """One checkout for each user that has something to run."""
        for uid in sorted(set(uids)):
            if uid:
                self._add_user(uid)
            place = self.path / HOMES[uid][1:]
            if uncommitted:
                copy_working_tree(root, place)
            else:
                git = ["git", "clone", "--quiet", "--depth", "1", root.as_uri(), str(place)]
                subprocess.run(git, check=True)
            subprocess.run(["chown", "-R", f"{uid}:{uid}", str(place)], check=True)
            place.parent.chmod(0o700)  # others cannot enter it, as is usual for homes

    def _add_user(self, uid: int) -> None:
        add = ["useradd", "--uid", str(uid), "--create-home", "--shell", "/bin/sh", "student"]
        subprocess.run(["chroot", str(self.path), *add], check=True)

    def measure(self) -> int:
        """MB on disk now. If a file vanishes while du looks, its status is not 0: that is fine."""
        command = ["nice", "du", "-sxm", str(self.path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        size = int(done.stdout.split()[0]) if done.stdout.split() else 0
        self.peak_mb = max(self.peak_mb, size)
        return size

    def last_lines(self, number: int) -> list[str]:
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 65536))
            text = log.read().decode(errors="replace").replace("\r", "\n")
            return [line for line in text.splitlines() if line.strip()][-number:]
        return []

    def traces_left(self) -> list[str]:
        """After the removal: what of the tree can still be seen from outside."""
        if self.keep:
            return []
        left = [f"mount left: {place}" for place in own_mounts(self.path)]
        if self.path.exists():
            left.append(f"folder left: {self.path}")
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if os.readlink(entry / "ns/pid") == self.namespace:
                        left.append(f"process left: {entry.name}")
        return left


def copy_working_tree(root: Path, place: Path) -> None:
    """What git would commit if all were added; not what it ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    for name in done.stdout.decode().split("\0"):
        source = root / name
        if name and source.exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place / name, follow_symlinks=False)
