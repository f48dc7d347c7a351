"""Reads labs/NN-slug/: lab.toml, and the hints. A mistake in them is one line with its place."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.errors import LabError

TREE = Path(__file__).resolve().parents[2]
HINT = re.compile(r"^## ([a-z0-9-]+)\s*$", re.M)
LAB_KEYS = {"title", "kind", "minutes", "files", "starter", "limits", "test", "mistake"}
MISTAKE_KEYS = {"file", "test", "old", "new"}
TEST_KEYS = {"id", "title", "points", "tests", "needs", "afterwards", "seconds", "fail"}


@dataclass(frozen=True)
class Limits:
    """What a process that was handed in may use. A lab raises them in [limits]."""

    processes: int = 300  #: in all, beside those its user has already
    cpu_seconds: int = 20  #: each
    memory_mib: int = 256  #: of address space, each
    file_mib: int = 1  #: the longest file it may write; its stderr is one


@dataclass(frozen=True)
class Test:
    """So many points for tests that all have to pass."""

    id: str
    title: str
    points: int
    tests: tuple[str, ...]  #: pytest's names; a file is below tests/, or in the lab's folder
    fail: str  #: what a failure means, to the student
    needs: tuple[str, ...] = ()  #: not tried before these pass
    afterwards: bool = False  #: also what is left behind and how the server ends counts
    seconds: float = 60.0  #: for all of its tests, on an idle machine


@dataclass(frozen=True)
class Mistake:
    """An edit of the real source that makes one test of the lab fail, and no other."""

    file: str
    test: str
    old: str  #: there once
    new: str


@dataclass(frozen=True)
class Hint:
    test: str
    text: str


@dataclass(frozen=True)
class Lab:
    slug: str
    folder: Path
    title: str
    kind: str
    minutes: int
    files: tuple[str, ...]  #: what is handed in: for each there is a source()
    replacements: dict[str, dict[str, str]]  #: file -> solution -> what the starter has instead
    limits: Limits
    tests: tuple[Test, ...]
    mistakes: tuple[Mistake, ...] = field(default=())
    hints: tuple[Hint, ...] = field(default=())

    @property
    def points(self) -> int:
        return sum(test.points for test in self.tests)

    def only(self, ids: list[str]) -> Lab:
        """The lab with these tests alone; what they need is taken as given."""
        known = [test.id for test in self.tests]
        if unknown := [name for name in ids if name not in known]:
            raise LabError(
                f"ONLY={unknown[0]}: there is no such test. There are: {', '.join(known)}"
            )
        chosen = [test for test in self.tests if test.id in ids]
        needs = [tuple(name for name in test.needs if name in ids) for test in chosen]
        tests = [replace(test, needs=need) for test, need in zip(chosen, needs, strict=True)]
        return replace(self, tests=tuple(tests))

    @property
    def programs(self) -> tuple[str, ...]:
        """Files that are programs of their own, beside the server."""
        return tuple(name for name in self.files if self.source(name).parent == self.folder)

    def source(self, name: str) -> Path:
        """The real file: a program in the lab's folder, or one of the server: its chapter's, or the
        only one of that name in those before."""
        code = self.folder.parent.parent / "code"
        own = [path for path in (self.folder / name, code / self.slug / name) if path.exists()]
        others = own or sorted(code.glob(f"[0-9]*/{name}"))
        return others[0] if len(others) == 1 or own else code / self.slug / name


def slugs(tree: Path = TREE) -> list[str]:
    return sorted(path.parent.name for path in tree.glob("labs/*/lab.toml"))


def load(slug: str, tree: Path = TREE) -> Lab:
    """The lab of that name, or a LabError that says which there are."""
    path = tree / "labs" / slug / "lab.toml"
    if slug not in slugs(tree):
        raise LabError(f"CH={slug}: there is no such lab. There are: {', '.join(slugs(tree))}")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        return _lab(slug, path.parent, table)
    except (tomllib.TOMLDecodeError, TypeError, ValueError, KeyError) as error:
        raise LabError(f"labs/{slug}/lab.toml: {error}") from None


def _only(table: dict[str, object], keys: set[str], what: str) -> None:
    if unknown := set(table) - keys:
        raise ValueError(f"{what}: unknown: {', '.join(sorted(unknown))}")


def _lab(slug: str, folder: Path, table: dict[str, object]) -> Lab:
    _only(table, LAB_KEYS, "lab")
    files, starter, limits = table["files"], table.get("starter", {}), table.get("limits", {})
    title, kind, minutes = table["title"], table["kind"], table["minutes"]
    entries = table["test"]
    if not isinstance(files, list) or not isinstance(starter, dict):
        raise ValueError("files is a list, starter a table")
    if not isinstance(limits, dict) or not isinstance(entries, list):
        raise ValueError("limits is a table, test an array of tables")
    if not isinstance(title, str) or not isinstance(kind, str) or not isinstance(minutes, int):
        raise ValueError("title and kind are strings, minutes is a number")
    for name in files:
        if not isinstance(name, str) or not re.fullmatch(r"[\w-]+\.[ch]", name):
            raise ValueError(f"files: {name}: only C files without a folder")
    if set(starter) - set(files):
        raise ValueError("starter: a file that is not in files")
    tests = tuple(_test(entry, number) for number, entry in enumerate(entries, 1))
    _check_order(tests)
    mistakes = tuple(_mistake(entry, files, tests) for entry in _list(table, "mistake"))
    return Lab(
        slug=slug,
        folder=folder,
        title=title,
        kind=kind,
        minutes=minutes,
        files=tuple(files),
        replacements=starter,
        limits=Limits(**limits),
        tests=tests,
        mistakes=mistakes,
        hints=_hints(folder / "hints.md", {test.id for test in tests}),
    )


def _strings(entry: dict[str, object], key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{key} is a list of strings")
    return tuple(value)


def _test(entry: object, number: int) -> Test:
    if not isinstance(entry, dict):
        raise ValueError("test: an array of tables")
    _only(entry, TEST_KEYS, f"test {number}")
    points = entry["points"]
    if not isinstance(points, int) or points < 1:
        raise ValueError(f"test {number}: points is a number above 0")
    return Test(
        id=str(entry["id"]),
        title=str(entry["title"]),
        points=points,
        tests=_strings(entry, "tests"),
        fail=str(entry["fail"]),
        needs=_strings(entry, "needs"),
        afterwards=entry.get("afterwards") is True,
        seconds=float(entry.get("seconds", Test.seconds)),
    )


def _list(table: dict[str, object], key: str) -> list[object]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise ValueError(f"{key}: an array of tables")
    return found


def _mistake(entry: object, files: list[str], tests: tuple[Test, ...]) -> Mistake:
    if not isinstance(entry, dict) or set(entry) != MISTAKE_KEYS:
        raise ValueError(f"mistake: a table of {', '.join(sorted(MISTAKE_KEYS))}")
    found = Mistake(**{key: str(entry[key]) for key in MISTAKE_KEYS})
    if found.file not in files or found.test not in {test.id for test in tests}:
        raise ValueError(f"mistake: {found.file} or {found.test} is not of this lab")
    return found


def _check_order(tests: tuple[Test, ...]) -> None:
    seen: set[str] = set()
    for test in tests:
        if test.id in seen:
            raise ValueError(f"test {test.id} is there twice")
        if not test.tests:
            raise ValueError(f"test {test.id} names no tests")
        if missing := set(test.needs) - seen:
            raise ValueError(f"test {test.id} needs what does not come before it: {missing}")
        seen.add(test.id)


def _hints(path: Path, known: set[str]) -> tuple[Hint, ...]:
    """Each heading names the test it helps with; what stands before them is for authors."""
    parts = HINT.split(path.read_text(encoding="utf-8"))[1:]
    found = []
    for test, text in zip(parts[::2], parts[1::2], strict=True):
        if test not in known:
            raise ValueError(f"hints.md: there is no test {test}")
        found.append(Hint(test, text.strip()))
    return tuple(found)
