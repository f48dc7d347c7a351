"""A folder of its own for one grading, with the submission built where the conformance tests look
for programs. It is removed however the grading ends, and what was started there is ended.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from quest.labs import files, place, starter
from quest.labs.cell import CONFINE, Confinement, Filter, confinement
from quest.labs.errors import CannotJudge, LabError
from quest.labs.lab import TREE, Lab
from quest.labs.protocol import CellPlan
from quest.labs.settings import Toolchain
from tests.conformance import proc

NOT_THE_ANSWER = shutil.ignore_patterns("*.c", "*.py", "*.o")
ROOM_MIB = 160  #: of a docroot, with one file that no socket's buffers hold, and of what is built
MESSAGE_LINES = 20
COMPILER_SECONDS = 60.0


class NotBuilt(Exception):
    """The submission is no program. The first line says why, the others are the compiler's."""


class Sandbox:
    """box.take(folder); box.build(tools); then box.root is a --build. At last box.close()."""

    def __init__(self, lab: Lab, no_cell: str = "") -> None:
        """no_cell: why no cell is to be tried."""
        self.lab = lab
        self.calls: Filter | None = None
        self.root, self._claim = place.claim()
        try:
            if shutil.disk_usage(self.root).free < ROOM_MIB << 20:
                room = f"{self.root.parent} has less than {ROOM_MIB} MiB of room"
                raise CannotJudge(f"{room}; choose another place with TMPDIR=")
            for name in ("hand-in", "bin", "real", "tmp", "judge", "walls"):
                (self.root / name).mkdir(mode=0o755)
            self.confinement: Confinement = confinement(lab.limits, self.root, no_cell)
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
        """Ends what was started, and removes the folder."""
        end_descendants()
        place.remove(self.root)
        os.close(self._claim)

    def take(self, folder: Path) -> None:
        """Copies the files of the lab, and nothing else, from a folder."""
        there = {path.name for path in folder.iterdir()}
        missing = [name for name in self.lab.files if name not in there]
        if len(missing) == len(self.lab.files):
            raise LabError(f"{folder}: nothing to judge: there is no {', no '.join(missing)}")
        if missing:
            raise NotBuilt(f"there is no {', no '.join(missing)}")
        for name in self.lab.files:
            data = files.read_file(folder / name)
            if len(data) > files.FILE_BYTES:
                raise NotBuilt(f"{name} is longer than {files.FILE_BYTES >> 20} MiB")
            (self.root / "hand-in" / name).write_bytes(data)

    @property
    def has_ours(self) -> bool:
        """Whether our solution can be had here, and not only the starter."""
        can = self.lab.kind != "extend" or shutil.which("patch") is not None
        return self.lab.is_whole and can

    def take_ours(self) -> None:
        """Puts our solution in place of a submission; in a tree without it, the starter."""
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
        """Keeps the programs that were built, for swap_in()."""
        folder = self.root / "judge" / whose
        folder.mkdir(exist_ok=True)
        for program in self._sources():
            shutil.copyfile(self.root / "real" / program, folder / program)

    def swap_in(self, whose: str) -> None:
        """Has the programs in place again that put_aside() has kept."""
        for program in self._sources():
            path = self.root / "real" / program
            path.unlink(missing_ok=True)  # not written over: it may still run
            shutil.copyfile(self.root / "judge" / whose / program, path)
            path.chmod(0o755)

    def build(self, tools: Toolchain) -> str:
        """Makes the server, and the lab's programs; the compiler's warnings. NotBuilt if it fails.
        The compiler sees the headers of code/, but not its programs, which an #include could
        take."""
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
        for program in self._sources():  # ours, which an .incbin could take
            (self.root / "real" / program).unlink(missing_ok=True)
        text = ""
        for program, sources in self._sources().items():
            command = [*tools.compiler, *tools.flags, "-o", f"real/{program}", *sources, *objects]
            text += self._compile([*command, *tools.link])
            script = self.root / "bin" / program
            script.write_text(self.confinement.script(self.root / "real" / program))
            script.chmod(0o755)
        return text

    def _build_filter(self, tools: Toolchain) -> None:
        """Makes the filter of system calls, before any file of a submission is read."""
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
        self.calls = Filter.made_by(confine, self.lab.limits.io_uring)

    def _sources(self) -> dict[str, list[str]]:
        """Program -> its sources, beside the real objects."""
        programs = {Path(name).stem: [f"hand-in/{name}"] for name in self.lab.programs}
        server = [name for name in self.lab.files if name not in self.lab.programs]
        sources = [f"hand-in/{name}" for name in server if name.endswith(".c")]
        return {self.lab.slug: sources, **programs}

    def keep_programs(self, folder: Path) -> None:
        """Copies to try by hand. A copy of the last grading that runs is not disturbed."""
        for program in self._sources():
            part = folder / f"{program}.part"
            shutil.copy(self.root / "real" / program, part)
            part.replace(folder / program)

    def cell_plan(self) -> CellPlan:
        """How the plug-in of pytest makes the cell of what was built."""
        assert self.calls is not None  # build() has made it
        return CellPlan(
            root=str(self.root),
            user=self.confinement.user,
            limits=self.confinement.prlimit(self.lab.limits),
            programs=list(self._sources()),
            confine=str(self.calls.confine),
            filter=str(self.calls.data),
            options=list(self.calls.options),
        )

    def _compile(self, command: list[str]) -> str:
        limits = replace(self.lab.limits, cpu_seconds=60, memory_mib=2048, file_mib=32)
        log = self.root / "compiler.log"
        env = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TMPDIR": str(self.root / "tmp")}
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
    """The beginning of what the compiler has printed."""
    with log.open("rb") as file:
        lines = file.read(1 << 16).decode(errors="replace").replace("hand-in/", "").splitlines()
    more = ["..."] if len(lines) > MESSAGE_LINES else []
    return "\n".join([*(line[:200] for line in lines[:MESSAGE_LINES]), *more])


# ---- ending all that was started, also a process that has left its session and its parents


def descendants(pids: set[int], spared: set[int] | None = None) -> set[int]:
    """These processes and all below them, zombies too. With `spared` each of those below is stopped before its own
    children are looked for, but for these: a program that forks for ever would outrun a walk that stops none.
    """
    found, new = set(pids), set(pids)
    while new:
        new = {child for pid in new for child in proc.children(pid)} - found
        if spared is not None:
            send(new - spared, signal.SIGSTOP)
        found |= new
    return found


def send(pids: set[int], signum: int) -> None:
    """To those that are there and may be sent it."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def end_descendants(limit: float = 20.0) -> None:
    """Ends all processes below this one; after `limit` seconds it goes on as long as they become fewer. An orphan is
    our child (become_subreaper()). It also waits for those that have ended, and so is not to be called while another
    thread waits for a subprocess.
    """
    me = {os.getpid()}
    deadline, before = time.monotonic() + limit, sys.maxsize
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0] > 0:
                pass
        except ChildProcessError:  # none is left
            return
        there = {pid for pid in descendants(me, me) - me if proc.alive(pid)}
        if time.monotonic() > deadline and len(there) >= before:
            return
        before = len(there)
        send(there, signal.SIGKILL)
        time.sleep(0.01)
