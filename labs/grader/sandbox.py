"""A folder of its own for one grading: what was handed in, built, as the conformance tests look for
it. It goes with everything in it, however the grading ends."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from grader.confine import Confinement, confinement
from grader.errors import LabError
from grader.lab import TREE, Lab
from grader.processes import end_descendants

FILE_BYTES = 1 << 20  #: nobody writes a server that long
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

    @classmethod
    def of_make(cls) -> Self:
        words = [shlex.split(os.environ.get(f"LAB_{name}", "")) for name in ("CC", "FLAGS")]
        objects = tuple(Path(name) for name in os.environ.get("LAB_OBJECTS", "").split())
        if not all(words) or not objects:
            raise LabError("start it by make (make check CH=..., make grade CH=...)")
        return cls(tuple(words[0]), tuple(words[1]), objects)


def _remove(folder: Path) -> None:
    """Also the folders of the tests' docroot that nobody may enter: a test that was ended leaves
    them."""
    for path, names, _ in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o700)
    shutil.rmtree(folder)


class Sandbox:
    """with Sandbox(lab) as box: box.take(folder); box.build(tools); then box.root is a --build."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.root = Path(tempfile.mkdtemp(prefix="lab-"))
        try:
            self.root.chmod(0o755)  # the tests run some servers as nobody
            for name in ("hand-in", "bin", "real", "tmp"):
                (self.root / name).mkdir(mode=0o755)
            self.confinement: Confinement = confinement(lab.limits, self.root)
            for name in ("real", "tmp"):
                self.confinement.give(self.root / name)
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        end_descendants()
        _remove(self.root)

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    def take(self, folder: Path) -> None:
        """Copies what is handed in, and nothing else that lies beside it."""
        for name in self.lab.files:
            self._take(folder / name, name)

    def _take(self, path: Path, name: str) -> None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError as error:
            raise NotBuilt(f"{name} cannot be read: {error.strerror}") from None
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotBuilt(f"{name} is not a file")
            data = file.read(FILE_BYTES + 1)
        if len(data) > FILE_BYTES:
            raise NotBuilt(f"{name} is longer than {FILE_BYTES >> 20} MiB")
        (self.root / "hand-in" / name).write_bytes(data)

    def build(self, tools: Toolchain) -> str:
        """Makes the server, and the lab's programs; returns the compiler's warnings. The headers of
        code/ come along, its programs do not: what is handed in shall be what is judged."""
        code = self.root / "code"
        shutil.copytree(TREE / "code", code, ignore=shutil.ignore_patterns("*.c", "*.py", "*.o"))
        real = Path("code") / self.lab.slug
        given = tuple(str((real / name).with_suffix(".o")) for name in self.lab.files)
        objects = []
        for number, path in enumerate(tools.objects):
            if not str(path).endswith(given):
                objects.append(f"real/{number}.o")
                shutil.copyfile(TREE / path, self.root / objects[-1])
                (self.root / objects[-1]).chmod(0o644)
        text = ""
        for program, sources in self._sources().items():
            command = [*tools.compiler, *tools.flags, "-o", f"real/{program}", *sources, *objects]
            text += self._compile(command)
            script = self.root / "bin" / program
            script.write_text(self.confinement.script(self.root / "real" / program))
            script.chmod(0o755)
        return text

    def _sources(self) -> dict[str, list[str]]:
        """Program -> what it is made of, beside the real objects."""
        programs = {Path(name).stem: [f"hand-in/{name}"] for name in self.lab.programs}
        server = [name for name in self.lab.files if name not in self.lab.programs]
        sources = [f"hand-in/{name}" for name in server if name.endswith(".c")]
        return {self.lab.slug: sources, **programs}

    def keep_programs(self, folder: Path) -> None:
        """Copies to try by hand. Whoever runs the last one goes on running it."""
        for program in self._sources():
            part = folder / f"{program}.{os.getpid()}"
            shutil.copy(self.root / "real" / program, part)
            part.replace(folder / program)

    def _compile(self, command: list[str]) -> str:
        limits = replace(self.lab.limits, cpu_seconds=60, memory_mib=2048, file_mib=32)
        log = self.root / "compiler.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self.confinement.command(command, limits),
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, "LC_ALL": "C", "TMPDIR": str(self.temporary)},
                start_new_session=True,
            )
            try:
                status = process.wait(COMPILER_SECONDS)
            except subprocess.TimeoutExpired:
                end_descendants()
                process.wait()
                raise NotBuilt(f"the compiler took more than {COMPILER_SECONDS:.0f} s") from None
        text = _first_lines(log)
        if status != 0:
            raise NotBuilt("it does not build\n" + text)
        return text


def _first_lines(log: Path) -> str:
    """What the compiler says, to a length that can be read."""
    with log.open("rb") as file:
        lines = file.read(1 << 16).decode(errors="replace").replace("hand-in/", "").splitlines()
    more = ["..."] if len(lines) > MESSAGE_LINES else []
    return "\n".join([*(line[:200] for line in lines[:MESSAGE_LINES]), *more])
