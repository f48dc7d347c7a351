"""A folder of its own for one grading: what was handed in, built, as the conformance tests look for
it. It goes with everything in it, however the grading ends, and so does what was started there."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from quest.labs import files, place, starter
from quest.labs.cell import CONFINE, Confinement, Filter, confinement
from quest.labs.errors import CannotJudge, LabError
from quest.labs.lab import TREE, Lab
from tests.conformance import proc

NOT_THE_ANSWER = shutil.ignore_patterns("*.c", "*.py", "*.o")
ROOM_MIB = 160  #: of a docroot, with one file that no socket's buffers hold, and of what is built
MESSAGE_LINES = 20
COMPILER_SECONDS = 60.0


class NotBuilt(Exception):
    """What was handed in is no program. The first line says why, the others are the compiler's."""


@dataclass(frozen=True)
class Toolchain:
    """How the real server is built, as make says it (labs/module.mk)."""

    compiler: tuple[str, ...]
    flags: tuple[str, ...]
    objects: tuple[Path, ...]  #: of the real server, from below the tree's root
    libraries: tuple[str, ...] = ()  #: that it is linked with: -luring

    @classmethod
    def of_make(cls) -> Self:
        try:
            words = [shlex.split(os.environ.get(f"LAB_{name}", "")) for name in ("CC", "FLAGS")]
        except ValueError as error:
            raise LabError(f"CC and CFLAGS are words as of a shell: {error}") from None
        objects = tuple(Path(name) for name in os.environ.get("LAB_OBJECTS", "").split())
        if not all(words) or not objects:
            raise LabError("start it by make (make check CH=..., make grade CH=...)")
        named = os.environ.get("LAB_LIBS", "").split()
        # Into the program: where it runs there is the C library, and no other.
        libraries = ("-Wl,-Bstatic", *named, "-Wl,-Bdynamic") if named else ()
        return cls(tuple(words[0]), tuple(words[1]), objects, libraries)


class Sandbox:
    """box.take(folder); box.build(tools); then box.root is a --build. At last box.close()."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.calls: Filter | None = None
        self.root, self._claim = place.claim()
        try:
            if shutil.disk_usage(self.root).free < ROOM_MIB << 20:
                room = f"{self.root.parent} has less than {ROOM_MIB} MiB of room"
                raise CannotJudge(f"{room}; another place: TMPDIR=")
            for name in ("hand-in", "bin", "real", "tmp", "judge", "walls"):
                (self.root / name).mkdir(mode=0o755)
            self.confinement: Confinement = confinement(lab.limits, self.root)
            if self.confinement.user is not None:
                for name in ("real", "tmp"):
                    os.chown(self.root / name, self.confinement.user, self.confinement.user)
                if self.confinement.no_cell:  # then the tests run some servers as nobody
                    self.root.chmod(0o711)
                    for name in ("hand-in", "judge"):
                        os.chown(self.root / name, -1, self.confinement.user)
                        (self.root / name).chmod(0o750)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        end_descendants()
        place.remove(self.root)
        os.close(self._claim)

    def take(self, folder: Path) -> None:
        """Copies what is handed in, and nothing else that lies beside it."""
        there = {path.name for path in folder.iterdir()}
        missing = [name for name in self.lab.files if name not in there]
        if len(missing) == len(self.lab.files):
            raise LabError(f"{folder}: nothing to judge: there is no {', no '.join(missing)}")
        if missing:
            raise NotBuilt(f"there is no {', no '.join(missing)}")
        for name in self.lab.files:
            data = files.read(folder / name)
            if len(data) > files.FILE_BYTES:
                raise NotBuilt(f"{name} is longer than {files.FILE_BYTES >> 20} MiB")
            (self.root / "hand-in" / name).write_bytes(data)

    @property
    def has_ours(self) -> bool:
        """Whether our solution is here, and not only what a student begins with."""
        can = self.lab.kind != "extend" or shutil.which("patch") is not None
        return self.lab.is_whole and can

    def take_ours(self) -> None:
        """What we wrote; in a tree without our solution, what a student begins with."""
        folder = self.root / "hand-in"
        for name in self.lab.files:
            text = starter.clean(self.lab.source(name).read_text(encoding="utf-8"))
            (folder / name).write_text(text, encoding="utf-8")
        if self.lab.patch.exists() and self.has_ours:
            command = ["patch", "-s", "-p1", "-i", str(self.lab.patch)]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                raise LabError(f"{self.lab.patch}: {done.stdout.strip()}")

    def put_aside(self, whose: str) -> None:
        """Keeps what was built, for swap_in()."""
        folder = self.root / "judge" / whose
        folder.mkdir(exist_ok=True)
        for program in self._sources():
            shutil.copyfile(self.root / "real" / program, folder / program)

    def swap_in(self, whose: str) -> None:
        for program in self._sources():
            path = self.root / "real" / program
            path.unlink(missing_ok=True)  # not written over: somebody may still run it
            shutil.copyfile(self.root / "judge" / whose / program, path)
            path.chmod(0o755)

    def build(self, tools: Toolchain) -> str:
        """Makes the server, and the lab's programs; returns the compiler's warnings. The headers of
        code/ come along, its programs do not: what is handed in shall be what is judged."""
        code = self.root / "code"
        shutil.copytree(TREE / "code", code, ignore=NOT_THE_ANSWER, dirs_exist_ok=True)
        self._build_filter(tools)
        real = [self.lab.source(name).relative_to(TREE) for name in self.lab.files]
        given = tuple(str(path.with_suffix(".o")) for path in real)
        objects = []
        for number, path in enumerate(tools.objects):
            if not str(path).endswith(given):
                objects.append(f"real/{number}.o")
                shutil.copyfile(TREE / path, self.root / objects[-1])
                (self.root / objects[-1]).chmod(0o644)
        text = ""
        for program, sources in self._sources().items():
            command = [*tools.compiler, *tools.flags, "-o", f"real/{program}", *sources, *objects]
            text += self._compile([*command, *tools.libraries])
            script = self.root / "bin" / program
            script.write_text(self.confinement.script(self.root / "real" / program))
            script.chmod(0o755)
        return text

    def _build_filter(self, tools: Toolchain) -> None:
        """The filter of system calls, before anything that was handed in is read."""
        if self.confinement.no_cell or self.calls is not None:
            return
        shutil.copyfile(CONFINE, self.root / "hand-in" / CONFINE.name)
        made = self.root / "real" / CONFINE.stem
        command = [*tools.compiler, "-D_GNU_SOURCE", "-O1", "-o", f"real/{CONFINE.stem}"]
        self._compile([*command, f"hand-in/{CONFINE.name}"])
        (self.root / "hand-in" / CONFINE.name).unlink()
        confine = self.root / "walls" / CONFINE.stem
        shutil.copyfile(made, confine)
        confine.chmod(0o755)
        made.unlink()
        self.calls = Filter.of(confine, self.lab.limits.io_uring)

    def _sources(self) -> dict[str, list[str]]:
        """Program -> what it is made of, beside the real objects."""
        programs = {Path(name).stem: [f"hand-in/{name}"] for name in self.lab.programs}
        server = [name for name in self.lab.files if name not in self.lab.programs]
        sources = [f"hand-in/{name}" for name in server if name.endswith(".c")]
        return {self.lab.slug: sources, **programs}

    def keep_programs(self, folder: Path) -> None:
        """Copies to try by hand. Whoever runs the last one goes on running it."""
        for program in self._sources():
            part = folder / f"{program}.part"
            shutil.copy(self.root / "real" / program, part)
            part.replace(folder / program)

    def cell(self) -> dict[str, object]:
        """What quest.labs.plugin has to know."""
        how = self.confinement
        limits, programs = how.prlimit(self.lab.limits), list(self._sources())
        known: dict[str, object] = {
            "user": how.user,
            "root": str(self.root),
            "limits": limits,
            "programs": programs,
        }
        if self.calls is not None:
            calls = [self.calls.confine, self.calls.data]
            known["calls"] = [*map(str, calls), *self.calls.options]
        return known

    def _compile(self, command: list[str]) -> str:
        limits = replace(self.lab.limits, cpu_seconds=60, memory_mib=2048, file_mib=32)
        log = self.root / "compiler.log"
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": str(self.root / "tmp")}
        with contextlib.ExitStack() as stack:
            out, calls = stack.enter_context(log.open("wb")), None
            if self.calls is not None:
                calls = stack.enter_context(self.calls.data.open("rb")).fileno()
            try:
                done = subprocess.run(
                    self.confinement.compiler(command, limits, self.root, calls), cwd=self.root,
                    env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                    start_new_session=True, timeout=COMPILER_SECONDS, check=False,
                    pass_fds=() if calls is None else (calls,),
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                end_descendants()
                raise NotBuilt(f"the compiler took more than {COMPILER_SECONDS:.0f} s") from None
        text = _first_lines(log)
        if done.returncode != 0:
            raise NotBuilt("it does not build\n" + text)
        return text


def _first_lines(log: Path) -> str:
    """What the compiler says, to a length that can be read."""
    with log.open("rb") as file:
        lines = file.read(1 << 16).decode(errors="replace").replace("hand-in/", "").splitlines()
    more = ["..."] if len(lines) > MESSAGE_LINES else []
    return "\n".join([*(line[:200] for line in lines[:MESSAGE_LINES]), *more])


# ---- ending all that was started, also what has left its session and its parents


def _descendants() -> set[int]:
    """All running processes below this one. An orphan is our child (become_subreaper())."""
    found, new = set[int](), {os.getpid()}
    while new:
        new = {child for pid in new for child in proc.children(pid)} - found
        found |= new
    return {pid for pid in found if proc.alive(pid)}


def _send(pids: set[int], signum: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def end_descendants(limit: float = 20.0) -> None:
    """Stops all before it kills the first: what is stopped starts nobody. Then collects those who
    have ended; not to be called while a subprocess of ours is waited for elsewhere."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0] > 0:
                pass
        except ChildProcessError:  # nobody is left
            return
        stopped: set[int] = set()
        while (new := _descendants() - stopped) and time.monotonic() < deadline:
            _send(new, signal.SIGSTOP)
            stopped |= new
        _send(stopped, signal.SIGKILL)
        time.sleep(0.01)
