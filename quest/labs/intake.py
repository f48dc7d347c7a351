"""What a class hands in, as it really comes: folders, archives, and the exports of Canvas and
Moodle, with names in any bytes. For each submission the files of the lab are found and copied,
under their own names, to a folder where they are judged.

Nothing else is unpacked, and nothing below code/ is one of these files: there is the real server,
or the starter.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath

from quest.ground import foreign
from quest.labs import catalogue, files
from quest.labs.archive import MOST_MEMBERS, SUFFIXES, UNREAD
from quest.labs.cell import path_of
from quest.labs.errors import LabError

DEPTH = 8  #: folders between that of a student and the files
SHOWN = 5  #: names in a list of them
MOST_ARCHIVES = 20  #: of one submission: each may take a minute
UNPACKER = Path(__file__).with_name("archive.py")
UNPACKER_BYTES, UNPACKER_CPU_SECONDS = 1 << 30, 60
#: Folders that our tree has beside work/, and that systems add.
NOT_THEIRS = frozenset(("code", ".git", "build", "__MACOSX", "__pycache__"))
OF_THE_TREE = frozenset(("labs", "tests", "benchmarks", "chapters", "slides", "figures"))
COPY = re.compile(r"(?P<stem>.+?)(?: ?\(\d+\)|-\d+)?(?P<end>\.\w+)")  # of a browser: server (1).c
#: And of a desktop: "server - Copy.c", "server copy 2.c"; and of an editor that hides the end: server.c.txt.
RENAMED = re.compile(r"(?P<stem>.+?)(?: - copy| copy)?(?: ?\(\d+\)| \d+|-\d+)?(?P<end>\.\w+)(?:\.txt)?", re.I)
CANVAS = re.compile(r"(?P<who>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<upload>\d+)_(?P<file>.+)", re.S)
MOODLE = re.compile(r"(?P<who>.+?_\d+)_assignsubmission_(?P<kind>[a-z]+)_?(?P<file>.*)", re.S)
OF_SYSTEMS = ("._", ".DS_Store", ".git", ".Trash", "__MACOSX")  #: beginnings of names that nobody has chosen
LATE = "late"  #: a note: Canvas says so, and not by how much


def meant(name: str, wanted: Collection[str]) -> str | None:
    """Which of the wanted files has this name, or a copy's name, such as "server (1).c"."""
    copy = RENAMED.fullmatch(name)
    plain = f"{copy['stem']}{copy['end']}" if copy is not None else name
    fitting = (file for file in wanted for n in (name, plain) if n.lower() == file.lower())
    return next(fitting, None)


@dataclass(frozen=True)
class Candidate:
    """A member of a submission that has the name of a file of the lab."""

    file: str  #: of the lab
    inside: PurePosixPath  #: its path, from the top of the submission
    archive: str  #: the name of the archive it is in; "" if in none
    path: Path
    is_file: bool

    @property
    def where(self) -> str:
        """Its place in the submission, for a person."""
        shown = foreign.name(str(self.inside))
        return f"{foreign.name(self.archive)}: {shown}" if self.archive else shown

    def content(self, most: int) -> bytes:
        """The content, cut after `most` + 1 bytes."""
        if not self.is_file:
            raise LabError(f"{self.where} is not a file: put the text itself there")
        return files.read_file(self.path, most)


@dataclass
class Submission:
    """What one student has handed in."""

    name: str  #: of the student: printable, and unique in a class
    folder: Path | None = None
    loose: list[tuple[str, Path]] = field(default_factory=list)  #: the name it had, and the file
    notes: list[str] = field(default_factory=list)
    refused: str = ""  #: why it is not looked at
    #: what says whose it is: kind (roster.py) and text, as it was in the file's name
    keys: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Handed:
    """The files of one submission, copied to a folder of our own."""

    folder: Path
    digest: str
    notes: list[str]


# ---- the submissions of a class


def students(folder: Path) -> tuple[list[Submission], list[str]]:
    """The submissions in a folder, in the order of their names; and the names of what is none."""
    submissions: dict[str, Submission] = {}
    left: list[str] = []
    for path in sorted(folder.iterdir() if folder.is_dir() else (), key=os.fsencode):
        if path.name.startswith((".", "__MACOSX")):
            if not path.name.startswith(OF_SYSTEMS) and (path.is_dir() or path.name.lower().endswith(SUFFIXES)):
                left.append(foreign.name(path.name))
            continue
        new = _submission(path)
        if new is None:
            left.append(foreign.name(path.name))
        elif (old := submissions.get(new.name)) is None:
            submissions[new.name] = new
        elif old.refused or new.refused or (old.folder and new.folder):
            old.refused = f"handed in twice, and it is not clear which counts: {path.name} is one"
        else:  # several files of one, or an archive beside what was unpacked from it
            old.folder = old.folder or new.folder
            old.loose += new.loose
            old.notes = list(dict.fromkeys(old.notes + new.notes))
    if not submissions:
        raise LabError(f"{folder}: no folder is in it, and no archive; DIR= has one for each submission")
    for each in submissions.values():
        each.loose = _newest(each)
    return list(submissions.values()), left


def _submission(path: Path) -> Submission | None:
    name = path.name
    moodle, canvas = MOODLE.fullmatch(name), CANVAS.fullmatch(name)
    student = foreign.name(moodle["who"] if moodle is not None else name)
    keys = [("any", name)]
    if moodle is not None:
        full_name, _, number = moodle["who"].rpartition("_")
        keys = [("moodle", number), ("name", full_name)]
    if path.is_symlink():
        refused = f"{path} is a link: hand in the folder itself"
        return Submission(student, refused=refused, keys=keys) if path.is_dir() else None
    # A folder may have such a name by chance; not so if it was unpacked from an archive beside it.
    unpacked = any(os.path.isfile(f"{path}{end}") for end in SUFFIXES)
    if moodle is None and canvas is not None and (unpacked or not path.is_dir()):
        student = foreign.name(f"{canvas['who']}_{canvas['id']}")
        keys = [("canvas", canvas["id"]), ("canvas name", canvas["who"])]
    if path.is_dir():
        is_text = moodle is not None and moodle["kind"] != "file"
        return None if is_text else Submission(student, path, keys=keys)
    if not path.is_file():
        return None
    if moodle is not None and moodle["file"]:
        return Submission(student, loose=[(moodle["file"], path)], keys=keys)
    if canvas is not None:
        notes = [LATE] if canvas["late"] else []
        return Submission(student, loose=[(canvas["file"], path)], notes=notes, keys=keys)
    ending = next((end for end in (*SUFFIXES, *UNREAD) if name.lower().endswith(end)), "")
    stem = name.removesuffix(name[len(name) - len(ending) :]) if ending else ""
    return Submission(foreign.name(stem), loose=[(name, path)], keys=[("any", stem)]) if stem.strip(".") else None


def _newest(one: Submission) -> list[tuple[str, Path]]:
    """The loose files of a submission, of each the last that was uploaded, under the name that it
    had at first: Canvas calls a second one server-1.c."""
    last: dict[str, tuple[int, str, Path]] = {}
    for name, path in one.loose:
        canvas, copy = CANVAS.fullmatch(path.name), COPY.fullmatch(name)
        if canvas is None:
            last[name] = (0, name, path)
            continue
        plain = f"{copy['stem']}{copy['end']}" if copy is not None else name
        new = (int(canvas["upload"]), plain, path)
        if plain in last:
            older = min(last[plain], new)
            one.notes.append(f"handed in before, too: {foreign.name(older[2].name)}")
        last[plain] = max(last.get(plain, new), new)
    return [(name, path) for _, name, path in last.values()]


def single(path: Path) -> Submission:
    """The submission that DIR= names, a folder or an archive."""
    if path.is_symlink():  # to a folder that the judge may read and the student may not
        raise LabError(f"{path} is a link; DIR= names the folder itself")
    if path.is_file() and path.name.lower().endswith((*SUFFIXES, *UNREAD)):
        return Submission(foreign.name(str(path)), loose=[(path.name, path)])
    if not path.is_dir():
        raise LabError(f"{path}: there is no such folder; DIR= names what was handed in")
    return Submission(foreign.name(str(path)), path)


# ---- the files of one


def _entries(folder: Path) -> Iterator[tuple[PurePosixPath, os.DirEntry[str], bool]]:
    """All entries of a folder and of those below it, without following links, not too deep, and not
    in folders of our tree: the path inside, the entry, and whether it is a folder that is
    entered."""
    todo = [(folder, PurePosixPath())]
    while todo:
        place, inside = todo.pop()
        with os.scandir(place) as scan:
            entries = sorted(islice(scan, MOST_MEMBERS + 1), key=lambda entry: entry.name)
        names = {entry.name for entry in entries}
        theirs = NOT_THEIRS | (OF_THE_TREE if "code" in names else set())
        for entry in entries:
            below = entry.is_dir(follow_symlinks=False) and entry.name not in theirs
            below = below and len(inside.parts) < DEPTH
            yield inside / entry.name, entry, below
            if below:
                todo.append((Path(entry.path), inside / entry.name))


@dataclass
class _Found:
    """What is in a folder, or in an archive."""

    candidates: list[Candidate] = field(default_factory=list)
    archives: list[Path] = field(default_factory=list)  #: at the top
    closed: list[str] = field(default_factory=list)  #: names of what is not looked into
    any_file: bool = False


def _is_of_the_tree(at: PurePosixPath, trees: Collection[tuple[str, ...]]) -> bool:
    """Whether a path is of our tree, or of a system, and so no student's. trees: folders with a folder code/."""
    return not NOT_THEIRS.isdisjoint(at.parts[:-1]) or any(
        at.parts[: len(tree)] == tree and not OF_THE_TREE.isdisjoint(at.parts[len(tree) : len(tree) + 1])
        for tree in trees
    )


def _in_folder(folder: Path, wanted: Collection[str]) -> _Found:
    found = _Found()
    for number, (inside, entry, below) in enumerate(_entries(folder), 1):
        if number > MOST_MEMBERS:
            raise LabError(f"it has more than {MOST_MEMBERS} files")
        is_file = entry.is_file(follow_symlinks=False)
        found.any_file |= not below
        # Where Python unpacks what Windows has packed, a folder is a part of the file's name.
        at = PurePosixPath(str(inside).replace("\\", "/"))
        if (file := meant(at.name, wanted)) is not None and not _is_of_the_tree(at, ()):
            found.any_file = True
            found.candidates.append(Candidate(file, at, "", Path(entry.path), is_file))
        elif is_file and entry.name.lower().endswith((*SUFFIXES, *UNREAD)):
            if len(inside.parts) == 1 and not entry.name.lower().endswith(UNREAD):
                found.archives.append(Path(entry.path))
            else:
                found.closed.append(str(inside))
        elif entry.name == "code" and entry.is_dir(follow_symlinks=False):
            found.closed.append(str(inside))
    return found


def _in_archive(name: str, path: Path, wanted: Collection[str], most: int, into: Path, notes: list[str]) -> _Found:
    """The candidates in an archive, copied below `into` by a process of its own: if the archive
    makes a reader fail, or take all memory, it is that one."""
    into.mkdir()
    limits = [f"--as={UNPACKER_BYTES}", f"--cpu={UNPACKER_CPU_SECONDS}", "--core=0", "--"]
    command = [path_of("prlimit"), *limits, sys.executable, "-I", str(UNPACKER)]
    done = subprocess.run(
        [*command, path, into, str(most), *wanted],
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    shown = foreign.name(name)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        if done.returncode == 3:  # there is no room to copy it to, say
            raise OSError(int(lines[-1]), os.strerror(int(lines[-1])), str(into))
        known = done.returncode == 2 and lines
        raise LabError(f"{shown}: {lines[-1] if known else 'it is damaged, or far too large'}")
    there = json.loads(done.stdout)
    found = _Found(closed=[f"{name}: {inside}" for inside in there["archives"]])
    listed = [(PurePosixPath(inside), is_file, times) for inside, is_file, times in there["members"]]
    trees = {at.parts[: at.parts.index("code")] for at, *_ in listed if "code" in at.parts[:-1]}
    for number, (at, is_file, times) in enumerate(listed):
        if (file := meant(at.name, wanted)) is None or len(at.parts) > DEPTH + 1:
            continue
        if not _is_of_the_tree(at, trees):
            found.candidates.append(Candidate(file, at, name, into / str(number), is_file))
            if times > 1:
                notes.append(f"{found.candidates[-1].where} is in it {times} times, and the last counts")
        elif "code" in at.parts:
            found.closed.append(f"{name}: {at}")
    return found


def _candidates(one: Submission, wanted: Collection[str], most: int, aside: Path, notes: list[str]) -> _Found:
    """What was handed in. Something else in place of a file counts only where no such file is."""
    found = _Found()
    archives: list[tuple[str, Path]] = []
    if one.folder is not None:
        found = _in_folder(one.folder, wanted)
        archives = [(path.name, path) for path in found.archives]
    found.any_file |= bool(one.loose)
    for name, path in one.loose:
        if (file := meant(name, wanted)) is not None:
            found.candidates.append(Candidate(file, PurePosixPath(name), "", path, True))
        elif name.lower().endswith(SUFFIXES):
            archives.append((name, path))
        elif name.lower().endswith(UNREAD):
            found.closed.append(name)
    if any(each.is_file for each in found.candidates):  # an archive beside them is the one that they were unpacked from
        notes += [f"{foreign.name(name)} is not looked into" for name, _ in archives]
    elif len(archives) > MOST_ARCHIVES:
        raise LabError(f"it has more than {MOST_ARCHIVES} archives, and none of them is looked into")
    else:
        for number, (name, path) in enumerate(archives):
            inside = _in_archive(name, path, wanted, most, aside / str(number), notes)
            found.candidates += inside.candidates
            found.closed += inside.closed
    files_there = {each.file for each in found.candidates if each.is_file}
    others = [each for each in found.candidates if not each.is_file and each.file in files_there]
    if others:
        notes.append(f"no file, and left out: {_listed(others)}")
        found.candidates = [each for each in found.candidates if each not in others]
    return found


@functools.cache
def _labs() -> frozenset[str]:
    return frozenset(catalogue.slugs())


OF_ANOTHER_LAB = 4  #: a rank


def _rank(slug: str, folder: PurePosixPath) -> int:
    """The lowest counts."""
    if folder.parts[-2:] == ("work", slug):
        return 0
    if not folder.parts:
        return 1
    if folder.name == slug:
        return 2
    return OF_ANOTHER_LAB if _labs().intersection(folder.parts) and slug not in folder.parts else 3


def _first(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _listed(some: Iterable[Candidate]) -> str:
    shown = [each.where for each in some]
    return _first(shown)


def _one_of(some: list[Candidate], most: int, notes: list[str]) -> Candidate:
    """Of several in one folder the one with the exact name; else a LabError, unless all have the
    same content."""
    exact = [each for each in some if each.inside.name == each.file]
    chosen = (exact or some)[0]
    if len({each.content(most) for each in some}) > 1:
        if not exact:
            raise LabError(f"which one counts? There are {_listed(some)}")
        notes.append(f"{chosen.where} counts; there is also "
                     f"{_listed(each for each in some if each is not chosen)}")  # fmt: skip
    return chosen


def _chosen(candidates: list[Candidate], slug: str, most: int, notes: list[str]) -> dict[str, Candidate]:
    """File -> candidate, all of one folder: work/SLUG, the top, SLUG, or the only one. A LabError
    if several folders of the same rank differ."""
    places: dict[tuple[str, PurePosixPath], dict[str, list[Candidate]]] = {}
    for each in sorted(candidates, key=lambda each: (each.archive, str(each.inside))):
        there = places.setdefault((each.archive, each.inside.parent), {})
        there.setdefault(each.file, []).append(each)
    best = min(_rank(slug, folder) for _, folder in places)
    first = [key for key in places if _rank(slug, key[1]) == best]
    if best == OF_ANOTHER_LAB:
        all_there = _listed(each for key in first for some in places[key].values() for each in some)
        raise LabError(f"nothing to judge: {all_there} is in the folder of another lab")
    chosen = [{file: _one_of(some, most, notes) for file, some in places[key].items()} for key in first]
    texts = [{file: each.content(most) for file, each in one.items()} for one in chosen]
    if any(text != texts[0] for text in texts):
        several = _listed(each for one in chosen for each in one.values())
        raise LabError(f"which one counts? There are {several}")
    if others := [each for each in candidates if (each.archive, each.inside.parent) not in first]:
        notes.append(f"{_listed(chosen[0].values())} counts; there is also {_listed(others)}")
    return chosen[0]


def staged(one: Submission, wanted: Collection[str], slug: str, top: Path, most: int = files.FILE_BYTES) -> Handed:
    """As stage(), for one submission: that nothing was handed in is an error, too."""
    try:
        handed = stage(one, wanted, slug, top, most)
        if handed is None:
            raise LabError(f"nothing to judge: there is no {', no '.join(wanted)}")
    except LabError as error:
        raise LabError(f"{one.name}: {error}") from None
    return handed


def stage(
    one: Submission, wanted: Collection[str], slug: str, top: Path, most: int = files.FILE_BYTES
) -> Handed | None:
    """Copies the files of a submission to a folder below `top`; None if nothing was handed in. A
    LabError says why it cannot be judged."""
    if one.refused:
        raise LabError(one.refused)
    for name in ("files", "archives"):
        (top / name).mkdir()
    notes = list(one.notes)
    found = _candidates(one, wanted, most, top / "archives", notes)
    if not found.any_file:
        return None
    if not found.candidates:
        closed = f"; not looked into: {_first([*map(foreign.name, found.closed)])}" if found.closed else ""
        raise LabError(f"nothing to judge: there is no {', no '.join(wanted)}{closed}")
    digest = sha256()
    for file, candidate in sorted(_chosen(found.candidates, slug, most, notes).items()):
        data = candidate.content(most)
        digest.update(f"{file}\0{len(data)}\0".encode() + data)
        (top / "files" / file).write_bytes(data)
    return Handed(top / "files", digest.hexdigest()[:16], notes)
