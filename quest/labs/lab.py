"""A lab with a program to write: labs/NN-slug/lab.toml, and its hints. A mistake in them is one
InputError, with its place.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Self

from quest.ground import toml
from quest.ground.toml import Doc, Rule
from quest.labs.errors import LabError

TREE = Path(__file__).resolve().parents[2]
HINT = re.compile(r"^## ([a-z0-9-]+)\s*$", re.M)
MECHANISM = "mechanism"
CFile = Annotated[str, Rule(pattern=r"[\w-]+\.[ch]", must="be a C file without a folder")]
Texts = tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """What a process of a submission may use. A lab raises them."""

    processes: Annotated[int, Rule(least=1), Doc("in all, beside those that its user has already")] = 300
    cpu_seconds: Annotated[int, Rule(least=1), Doc("CPU time of each process")] = 20
    memory_mib: Annotated[int, Rule(least=1), Doc("address space of each process")] = 256
    file_mib: Annotated[int, Rule(least=1), Doc("the longest file it may write; its stderr is one")] = 1
    io_uring: Annotated[bool, Doc("whether it may use io_uring")] = False


@dataclass(frozen=True)
class Test:
    """One line of the report: its points are given if all of its pytest tests pass."""

    id: Annotated[str, Rule(filled=True), Doc("its name")]
    title: Annotated[str, Doc("what it tests, for the report")]
    points: Annotated[int, Rule(least=1), Doc("all of them, or none")]
    tests: Annotated[Texts, Rule(filled=True), Doc("pytest's names, below tests/ or in the lab's folder")]
    fail: Annotated[str, Doc("what a failure means, in one sentence to a student")]
    needs: Annotated[Texts, Doc("ids of tests without which this one is not tried")] = ()
    says: Annotated[
        Mapping[str, str], Doc("a pytest test's own sentence, by name of its function: said in place of `fail`")
    ] = field(default_factory=dict)
    afterwards: Annotated[bool, Doc("whether what the server leaves behind, and how it ends, counts too")] = False
    seconds: Annotated[int, Rule(least=1), Doc("for all of its pytest tests, on an idle machine")] = 60
    stage: str = ""  #: the title of the one that it belongs to

    def fault(self) -> str:
        strange = set(self.says) - {name.rpartition("::")[2] for name in self.tests}
        return f"says: {min(strange)} is none of its tests" if strange else ""


@dataclass(frozen=True)
class Stage:
    """What one does in ten minutes, or some more: a step of the task, and the tests that show it."""

    title: Annotated[str, Rule(filled=True), Doc("what is to be done, in a few words")]
    minutes: Annotated[int, Rule(least=1), Doc("an estimate")]
    tests: Annotated[Texts, Rule(filled=True), Doc("ids, in the order of the tests; each test is in one stage")]
    points: int = 0


@dataclass(frozen=True)
class Mechanism:
    """How the server has to work, whatever it serves, by a trace of its system calls. It has no
    points of its own, but each test that needs another needs it, too."""

    title: Annotated[str, Doc("what is asked, for the report")]
    tests: Annotated[Texts, Rule(filled=True), Doc("functions of quest/labs/mechanism.py")]
    fail: Annotated[str, Doc("which way of working the lab asks for, to a student")]

    def test(self, first: Test) -> Test:
        """As a test of the lab, tried after the lab's first."""
        return Test(MECHANISM, self.title, 0, self.tests, self.fail, needs=(first.id,), stage=first.stage)


@dataclass(frozen=True)
class Mistake:
    """An edit of the real source that makes one test of the lab fail, and no other."""

    file: Annotated[str, Doc("the real file")]
    test: Annotated[str, Doc("the id of the test that it fails")]
    old: Annotated[str, Rule(filled=True), Doc("a text that is in the file once")]
    new: Annotated[str, Doc("what takes its place")]


@dataclass(frozen=True)
class Hint:
    """A section of hints.md."""

    test: str
    text: str


@dataclass(frozen=True)
class Lab:
    """What lab.toml says, and where it lies."""

    title: Annotated[str, Doc("what it is called")]
    kind: Annotated[
        str,
        Rule(choices=("build", "debug", "extend")),
        Doc("whether the starter has gaps, or mistakes, or is the real server"),
    ]
    minutes: Annotated[int, Rule(least=1), Doc("an estimate")]
    files: Annotated[tuple[CFile, ...], Rule(filled=True), Doc("what is handed in")]
    stages: Annotated[tuple[Stage, ...], Rule(filled=True), Doc("what one does after the other", key="stage")]
    tests: Annotated[tuple[Test, ...], Rule(filled=True), Doc("what is judged, in the order of the stages", key="test")]
    starter: Annotated[
        Mapping[str, Mapping[str, str]],
        Doc("for each file and function what the starter has instead"),
    ] = field(default_factory=dict)
    limits: Annotated[Limits, Doc("where the server needs more than others")] = Limits()
    mechanism: Annotated[Mechanism | None, Doc("how the server has to work")] = None
    mistakes: Annotated[tuple[Mistake, ...], Doc("of a debug lab: what is wrong in the starter", key="mistake")] = ()
    slug: str = ""
    folder: Path = Path()
    #: what our own server has to pass on a machine before a submission is judged there
    trial: tuple[Test, ...] = ()
    hints: tuple[Hint, ...] = ()

    def fault(self) -> str:
        """What is wrong with the whole of the file."""
        if set(self.starter) - set(self.files):
            return "starter: a file that is not in files"
        known = {MECHANISM}
        for test in self.tests:
            if test.id in known:
                return f"test {test.id} is there twice"
            if missing := set(test.needs) - known:
                return f"test {test.id} needs what does not come before it: {', '.join(missing)}"
            known.add(test.id)
        for mistake in self.mistakes:
            if mistake.file not in self.files or mistake.test not in known:
                return f"mistake: {mistake.file} or {mistake.test} is not of this lab"
        strange = [hint.test for hint in self.hints if hint.test not in known]
        if strange:
            return f"hints.md: there is no test {strange[0]}"
        if [name for stage in self.stages for name in stage.tests] != [test.id for test in self.tests]:
            return "stage: the tests of all stages must be the tests of the lab, each once and in their order"
        if sum(stage.minutes for stage in self.stages) > self.minutes:
            return "stage: all stages take more minutes than the lab"
        return ""

    @property
    def points(self) -> int:
        return sum(test.points for test in self.tests)

    def only(self, ids: list[str]) -> Self:
        """The lab with these tests alone, as if the other tests that they need had passed."""
        known = [test.id for test in self.tests]
        for name in ids:
            if name not in known:
                listed = ", ".join(known)
                raise LabError(f"ONLY={name}: there is no such test. There are: {listed}")
        tests = []
        for test in self.tests:
            if test.id in ids:
                tests.append(replace(test, needs=tuple(n for n in test.needs if n in ids)))
        return replace(self, tests=tuple(tests))

    @property
    def programs(self) -> tuple[str, ...]:
        """Those of `files` that are programs of their own, beside the server."""
        return tuple(name for name in self.files if self.source(name).parent == self.folder)

    @property
    def is_whole(self) -> bool:
        """Whether our solution is here: a handout and an autograder have none."""
        return bool(self.starter or self.mistakes) or self.patch.exists()

    @property
    def patch(self) -> Path:
        """Our solution of a lab that extends a server: kept with the tests, and in no bundle."""
        return self.folder.parent.parent / "tests/labs" / f"{self.slug}.patch"

    def source(self, name: str) -> Path:
        """The real file of this name: a program in the lab's folder, or a file of the chapter's
        server, or the only one of that name in any chapter."""
        code = self.folder.parent.parent / "code"
        own = [path for path in (self.folder / name, code / self.slug / name) if path.exists()]
        others = own or sorted(code.glob(f"[0-9]*/{name}"))
        return others[0] if len(others) == 1 or own else code / self.slug / name


def slugs(tree: Path = TREE) -> list[str]:
    """The names of the labs with a program."""
    return sorted(path.parent.name for path in tree.glob("labs/*/lab.toml"))


def load(slug: str, tree: Path = TREE) -> Lab:
    """The lab of a name that slugs() has."""
    folder = tree / "labs" / slug
    hints = _hints((folder / "hints.md").read_text(encoding="utf-8"))
    table = toml.read_toml(folder / "lab.toml")
    shown = f"labs/{slug}/lab.toml"
    lab = toml.record_of(Lab, table, shown, slug=slug, folder=folder, hints=hints)
    points = {test.id: test.points for test in lab.tests}
    counted = [replace(stage, points=sum(points[name] for name in stage.tests)) for stage in lab.stages]
    titles = {name: stage.title for stage in lab.stages for name in stage.tests}
    tests = [replace(test, stage=titles[test.id]) for test in lab.tests]
    lab = replace(lab, stages=tuple(counted), tests=tuple(tests))
    if lab.mechanism is None:
        return replace(lab, trial=lab.tests[:1])
    first, *others = lab.tests
    mechanism = lab.mechanism.test(first)
    # A test that needs no other is about a program beside the server, and so not about the
    # server's mechanism.
    behind = [replace(t, needs=(*t.needs, MECHANISM)) if t.needs else t for t in others]
    return replace(lab, tests=(first, mechanism, *behind), trial=(first, mechanism))


def _hints(text: str) -> tuple[Hint, ...]:
    """Each heading names the test it helps with; what stands before them is for authors."""
    parts = HINT.split(text)[1:]
    return tuple(Hint(*pair) for pair in zip(parts[::2], map(str.strip, parts[1::2]), strict=True))
