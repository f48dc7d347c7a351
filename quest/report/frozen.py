"""Judges that were kept: benchmarks/judges/HASH.zip is one with its experiments and ledger, HASH.json has its words.

A zip is unpacked into an empty folder and run by a Python that looks at nothing else of ours. Its file JUDGE has a line
`hash  path` for each file that judges: `sha256sum -c JUDGE` checks them, and the SHA-256 of JUDGE is the judge's name.
"""

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.ground.toml import record_of
from quest.measure.records import first_and_last
from quest.report import judge
from quest.report.judge import Hash
from quest.stats.table import NumberTable

FOLDER = Path("benchmarks/judges")
#: All that a judge needs to run.
PARTS = ("ground", "spec", "measure", "stats", "report")
CODE = ("quest/__init__.py", *(f"quest/{part}/*.py" for part in PARTS), "setup/packages.tsv")
DATA = (judge.EXPERIMENTS, "benchmarks/claims.toml")
LIST, MAIN = "JUDGE", "__main__.py"
DATE = (1980, 1, 1, 0, 0, 0)  #: of all files of a zip: the first that it can say
PATIENCE_S = 300

ENTRY = '''\
"""The words of this judge: python3 -I __main__.py RESULTS, where RESULTS is benchmarks/results of any tree."""

import json
import os
import sys
from pathlib import Path

here = os.path.dirname(os.path.abspath(__file__))
reference = Path(sys.argv[1]).resolve() / "reference"
os.chdir(here)
sys.path.insert(0, here)

from quest.report.claims import judge_all
from quest.report.measured import Library

try:
    from quest.report import sessions

    names = [sessions.name_of(folder, reference) for folder in sessions.folders(reference)]
except ImportError:  # a judge of the time when there was one session
    names = ["reference"]
judged = judge_all(Library(reference, reference, True))
words = {str(one["id"]): {"verdict": one["verdict"], "near": one["near"]} for one in judged if one["rule"]}
json.dump({"sessions": names, "verdicts": words}, sys.stdout)
'''


@dataclass(frozen=True)
class Word:
    """Of one claim."""

    verdict: str
    near: bool


@dataclass(frozen=True)
class Judged:
    """What a judge said of some data. `data`: experiment -> the last check sum of its set in each session, which is one
    of the whole set.
    """

    on: str
    libraries: Mapping[str, str]
    sessions: tuple[str, ...]
    data: Mapping[str, tuple[str, ...]]
    verdicts: Mapping[str, Word]


@dataclass(frozen=True)
class FrozenJudge:
    """HASH.json. `judged`: what it said, the newest last."""

    judge: Hash
    frozen: str
    commit: str
    note: str
    judged: tuple[Judged, ...] = ()


# ---- the zip ------------------------------------------------------------------------------------


def packed(code: Path, tree: Path) -> bytes:
    """The programs of one tree with experiments and ledger of one (the same, but in tests) as a zip: the same bytes
    whenever it is made of the same files.
    """
    places = [(code, CODE), (tree, DATA)]
    paths = [(root, path) for root, globs in places for glob in globs for path in root.glob(glob)]
    files = {path.relative_to(root).as_posix(): path.read_bytes() for root, path in paths}
    files |= {LIST: judge.text(code, tree).encode(), MAIN: ENTRY.encode()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, DATE)
            info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(info, files[name])
    return out.getvalue()


def _unpack(path: Path, folder: Path) -> None:
    """InputError where the zip is not the judge that its name says."""
    try:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
        listed = (folder / LIST).read_text(encoding="ascii")
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path}: {error}") from None
    if hashlib.sha256(listed.encode()).hexdigest() != path.stem or judge.text(folder, folder) != listed:
        raise InputError(f"{path}: its files are not those of the judge {path.stem[: judge.SHORT]}")


def pronounce(path: Path, results: Path) -> tuple[tuple[str, ...], dict[str, Word]]:
    """The sessions that the judge of a zip looked at in benchmarks/results, and its words. InputError if it fails."""
    with tempfile.TemporaryDirectory(prefix="quest-judge-") as folder:
        _unpack(path, Path(folder))
        command = [sys.executable, "-I", "-B", MAIN, str(results.resolve())]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise InputError(f"{path}: no verdicts after {PATIENCE_S} s") from None
        if done.returncode:
            why = (done.stderr.strip() or "no message").splitlines()[-1]
            raise InputError(f"{path}: {why}")
    spoken = json.loads(done.stdout)
    return tuple(spoken["sessions"]), {key: Word(**word) for key, word in spoken["verdicts"].items()}


# ---- its words ----------------------------------------------------------------------------------


def sums(results: Path, sessions: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Experiment -> the last check sum of its set in each of these sessions, `reference` or `PROCESSOR/SESSION`."""
    by_experiment: dict[str, list[str]] = {}
    for name in sessions:
        folder = results / name if "/" not in name else results / "sessions" / name
        for path in sorted(folder.glob("*.jsonl")):
            if ends := first_and_last(path):
                by_experiment.setdefault(path.stem, []).append(ends[1]["sum"])
    return {name: tuple(each) for name, each in sorted(by_experiment.items())}


def read(path: Path) -> FrozenJudge:
    """HASH.json. InputError for one that is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return record_of(FrozenJudge, data, str(path))


def all_judged(folder: Path = FOLDER) -> list[FrozenJudge]:
    """All that are kept, the oldest first."""
    return sorted(map(read, folder.glob("*.json")), key=lambda one: (one.frozen, one.judge))


def write(one: FrozenJudge, folder: Path = FOLDER) -> None:
    """HASH.json, in lines, so that `git diff` shows which words are new."""
    lines = json.dumps(asdict(one), ensure_ascii=False, indent=1)
    write_whole(folder / f"{one.judge}.json", f"{lines}\n".encode())


def judged_now(path: Path, results: Path, today: str) -> Judged:
    """What the judge of this zip says of benchmarks/results today."""
    names, words = pronounce(path, results)
    return Judged(today, judge.libraries(), names, sums(results, names), words)


def on_same_data(one: FrozenJudge, now: Judged) -> Judged | None:
    """What it said of the same data before."""
    return next((before for before in reversed(one.judged) if before.data == now.data), None)


def differences(before: Judged, now: Judged) -> list[str]:
    """`claim 9: holds, was changed`."""
    numbers = sorted(before.verdicts.keys() | now.verdicts.keys(), key=int)
    words = {n: [w.verdicts[n].verdict if n in w.verdicts else "no word" for w in (before, now)] for n in numbers}
    return [f"claim {n}: {new}, was {old}" for n, (old, new) in words.items() if old != new]


def word_of(claim: int, asked: Mapping[str, NumberTable], kept: Iterable[FrozenJudge]) -> str:
    """The word of a claim by the judge that was frozen for these tables: the one that they name; of old ones, which
    name none, the oldest that has judged them. "" if there is none.
    """
    named = {table.run.judge for table in asked.values()} - {""}
    for one in kept:
        if not named or one.judge in named:
            for judged in reversed(one.judged):
                if all(table.run.digest in judged.data.get(name, ()) for name, table in asked.items()):
                    word = judged.verdicts.get(str(claim))
                    return word.verdict if word else ""
    return ""
