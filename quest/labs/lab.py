"""A lab with a program to write: labs/NN-slug/lab.toml, and its hints. A mistake in them is one
line with its place.
"""

import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

from quest.labs.errors import LabError

TREE = Path(__file__).resolve().parents[2]
HINT = re.compile(r"^## ([a-z0-9-]+)\s*$", re.M)
Record = TypeVar("Record")
MECHANISM = "mechanism"
KINDS = {
    str: "a text", int: "a whole number", float: "a number", bool: "true or false",
    tuple: "a list of texts", dict: "a table of tables of texts",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a process of a submission may use. A lab raises them in [limits]."""

    processes: int = 300  #: in all, beside those that its user has already
    cpu_seconds: int = 20  #: each
    memory_mib: int = 256  #: of address space, each
    file_mib: int = 1  #: the longest file it may write; its stderr is one
    io_uring: bool = False  #: whether it may ask for that


@dataclass(frozen=True)
class Test:
    """One line of the report: its points are given if all of its pytest tests pass."""

    id: str
    title: str
    points: int
    tests: tuple[str, ...]  #: pytest's names; a file is below tests/, or in the lab's folder
    fail: str  #: what a failure means, said to the student
    needs: tuple[str, ...] = ()  #: ids of tests without which this one is not tried
    afterwards: bool = False  #: what the server leaves behind, and how it ends, counts too
    seconds: int = 60  #: for all of its pytest tests, on an idle machine


@dataclass(frozen=True)
class Mechanism:
    """How the server has to work, whatever it serves, by a trace of its system calls. It has no
    points of its own, but each test that needs another needs it, too."""

    title: str
    tests: tuple[str, ...]
    fail: str  #: which way of working the lab asks for

    def test(self, first: Test) -> Test:
        """As a test of the lab, tried after the lab's first."""
        return Test(MECHANISM, self.title, 0, self.tests, self.fail, needs=(first.id,))


@dataclass(frozen=True)
class Mistake:
    """An edit of the real source that makes one test of the lab fail, and no other."""

    file: str
    test: str
    old: str  #: is in the file once
    new: str


@dataclass(frozen=True)
class Hint:
    test: str
    text: str


@dataclass(frozen=True)
class About:
    """The keys at the top of lab.toml."""

    title: str
    kind: str
    minutes: int
    files: tuple[str, ...]  #: what is handed in; source() has the real one of each
    #: file -> function -> what the starter has instead
    starter: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Lab(About):
    slug: str = ""
    folder: Path = Path()
    limits: Limits = field(default_factory=Limits)
    tests: tuple[Test, ...] = ()
    #: what our own server has to pass on a machine before a submission is judged there
    trial: tuple[Test, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    hints: tuple[Hint, ...] = ()

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
    """The lab of a name that slugs() has; a LabError for a mistake in its files."""
    path = tree / "labs" / slug / "lab.toml"
    try:
        return _lab(slug, path.parent, tomllib.loads(path.read_text(encoding="utf-8")))
    except (AttributeError, TypeError, ValueError) as error:
        raise LabError(f"labs/{slug}/lab.toml: {error}") from None


def record_of(kind: type[Record], table: dict[str, Any], what: str) -> Record:
    """A table of a lab's TOML as a dataclass; a ValueError, which begins with `what`, for a key
    that is unknown or missing, or a value of the wrong type."""
    known = get_type_hints(kind)
    for key, value in table.items():
        if key not in known:
            raise ValueError(f"{what}: unknown: {key}")
        if not _fits(value, known[key]):
            wanted = KINDS[get_origin(known[key]) or known[key]]
            raise ValueError(f"{what}: {key}: {wanted} is wanted")
    for each in fields(kind):  # type: ignore[arg-type]
        required = each.default is MISSING and each.default_factory is MISSING
        if required and each.name not in table:
            raise ValueError(f"{what}: {each.name} is missing")
    return kind(**{key: tuple(v) if isinstance(v, list) else v for key, v in table.items()})


def _fits(value: object, annotation: Any) -> bool:
    """Whether TOML's value, with all that is in it, is of the annotated type."""
    wanted, members = get_origin(annotation) or annotation, get_args(annotation)
    if wanted is dict:
        return isinstance(value, dict) and all(_fits(each, members[1]) for each in value.values())
    if wanted is tuple:
        if not isinstance(value, list) or not (Ellipsis in members or len(value) == len(members)):
            return False
        return all(_fits(each, members[0]) for each in value)
    return type(value) is wanted or (wanted is float and type(value) is int)


def _lab(slug: str, folder: Path, table: dict[str, Any]) -> Lab:
    limits = record_of(Limits, table.pop("limits", {}), "limits")
    entries, edits = table.pop("test", []), table.pop("mistake", [])
    wanted = table.pop("mechanism", None)
    about = record_of(About, table, "lab")
    tests = tuple(record_of(Test, entry, f"test {n}") for n, entry in enumerate(entries, 1))
    mistakes = tuple(record_of(Mistake, entry, f"mistake {n}") for n, entry in enumerate(edits, 1))
    _check(about, tests, mistakes)
    if wanted is not None:
        tests = _behind(record_of(Mechanism, wanted, MECHANISM).test(tests[0]), tests)
    trial = tuple(test for n, test in enumerate(tests) if n == 0 or test.id == MECHANISM)
    hints = _hints(folder / "hints.md", {test.id for test in tests})
    return Lab(
        **vars(about), slug=slug, folder=folder, limits=limits, tests=tests, trial=trial,
        mistakes=mistakes, hints=hints,
    )  # fmt: skip


def _behind(mechanism: Test, tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """The tests with the mechanism behind the first. A test that needs no other is about a program
    beside the server, and so not about the server's mechanism."""
    after = [replace(t, needs=(*t.needs, MECHANISM)) if t.needs else t for t in tests[1:]]
    return (tests[0], mechanism, *after)


def _check(about: About, tests: tuple[Test, ...], mistakes: tuple[Mistake, ...]) -> None:
    for name in about.files:
        if not re.fullmatch(r"[\w-]+\.[ch]", name):
            raise ValueError(f"files: {name}: only C files without a folder")
    if set(about.starter) - set(about.files):
        raise ValueError("starter: a file that is not in files")
    if not tests:
        raise ValueError("there is no test")
    seen: set[str] = {MECHANISM}
    for test in tests:
        if test.points < 1:
            raise ValueError(f"test {test.id}: points is a number above 0")
        if test.id in seen:
            raise ValueError(f"test {test.id} is there twice")
        if not test.tests:
            raise ValueError(f"test {test.id} names no tests")
        if missing := set(test.needs) - seen:
            raise ValueError(f"test {test.id} needs what does not come before it: {missing}")
        seen.add(test.id)
    for mistake in mistakes:
        if mistake.file not in about.files or mistake.test not in seen:
            raise ValueError(f"mistake: {mistake.file} or {mistake.test} is not of this lab")


def _hints(path: Path, known: set[str]) -> tuple[Hint, ...]:
    """Each heading names the test it helps with; what stands before them is for authors."""
    parts = HINT.split(path.read_text(encoding="utf-8"))[1:]
    hints = []
    for test, text in zip(parts[::2], parts[1::2], strict=True):
        if test not in known:
            raise ValueError(f"hints.md: there is no test {test}")
        hints.append(Hint(test, text.strip()))
    return tuple(hints)
