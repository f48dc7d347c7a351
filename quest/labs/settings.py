"""What a command of the labs is told: the settings of make, as the command line has read them."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from quest.labs.errors import LabError


@dataclass(frozen=True)
class Toolchain:
    """How the real server is built, as make does it (labs/module.mk)."""

    compiler: tuple[str, ...]
    flags: tuple[str, ...]
    objects: tuple[Path, ...]  #: of the real server, from below the tree's root
    libraries: tuple[str, ...] = ()  #: that it is linked with: -luring

    @classmethod
    def of_words(cls, compiler: str, flags: str, objects: str, libraries: str) -> "Toolchain":
        """The first two are words as of a shell, the others have blanks between them. A LabError if
        there is no compiler or no object: only make knows them."""
        try:
            words = tuple(shlex.split(compiler)), tuple(shlex.split(flags))
        except ValueError as error:
            raise LabError(f"CC and CFLAGS are words as of a shell: {error}") from None
        if not all(words) or not objects.split():
            raise LabError("start it by make (make check CH=..., make grade CH=...)")
        return cls(*words, tuple(map(Path, objects.split())), tuple(libraries.split()))

    @property
    def link(self) -> tuple[str, ...]:
        """What a program is linked with. A library is copied into it: where the program runs there
        is the C library, and no other."""
        return ("-Wl,-Bstatic", *self.libraries, "-Wl,-Bdynamic") if self.libraries else ()

    @property
    def words(self) -> dict[str, str]:
        """What of_words() takes."""
        return {
            "CC": shlex.join(self.compiler),
            "FLAGS": shlex.join(self.flags),
            "OBJECTS": " ".join(map(str, self.objects)),
            "LIBS": " ".join(self.libraries),
        }


@dataclass(frozen=True)
class Settings:
    """The name in make is behind each; None or "" where it was not given."""

    lab: str = ""  #: CH
    work: Path = Path("work")  #: WORK
    build: Path = Path("build")  #: BUILD
    hand_in: Path | None = None  #: DIR
    results: Path | None = None  #: JSON
    table: Path | None = None  #: CSV
    logs: Path | None = None  #: LOGS
    class_file: Path | None = None  #: CLASS: what a teacher says of a class (class_rules.py)
    gradebook: Path | None = None  #: GRADEBOOK: a forge's own table of this work
    student: str = ""  #: STUDENT: the only one of a class that is graded, again
    names: bool = True  #: NAMES=no: anonymous ids in their place
    runs: tuple[Path, ...] = ()  #: RUNS: results of several machines
    only: tuple[str, ...] = ()  #: ONLY: ids of tests
    stage: str = ""  #: STAGE: the number of a stage of the lab, or `now`
    patience: float | None = None  #: PATIENCE: time-outs are so many times those of an idle machine
    processes: int | None = None  #: PROCESSES: of a submission
    seed: int | None = None  #: SEED: of what is served, and of the order of tests
    hint: int | None = None  #: N: the number of a hint
    jobs: int = 2  #: JOBS: submissions of a class that are graded at once
    sure: bool = False  #: SURE
    hints: bool = True  #: HINTS=no
    sandbox_wanted: bool = True  #: SANDBOX=no: there is a grade without a sandbox, too
    no_cell: str = ""  #: why no sandbox is to be tried
    tools: Toolchain | None = None  #: how make builds the lab's server

    @property
    def toolchain(self) -> Toolchain:
        """A LabError where nothing can be built."""
        return self.tools or Toolchain.of_words("", "", "", "")

    @property
    def judging(self) -> list[str]:
        """The words of those that decide about a grade, for the grading of one of a class."""
        given = {
            "ONLY": ",".join(self.only),
            "PATIENCE": self.patience,
            "PROCESSES": self.processes,
            "SANDBOX": "" if self.sandbox_wanted else "no",
            "SEED": self.seed,
        }
        return [f"{name}={value}" for name, value in given.items() if value]
