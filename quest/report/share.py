"""A run in one file, to hand on: `make share` packs the finished sets of build/results, `make merge` and the page of
the machines (machines.py) take such files.

NAME.zip has the sets as they are read here, ID.jsonl, and SHA256SUMS, a line for each as sha256sum writes it. Texts in
it pass through foreign.anonymous(). A set in which that changes nothing keeps its bytes; in another all lines get check
sums anew. The same results give the same bytes and the same name.
"""

import contextlib
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import write_whole, zipped
from quest.measure.records import Sums, complete_lines, malformed_lines, read_results, started
from quest.report.measured import read_table
from quest.spec.model import Experiment
from quest.stats.table import NumberTable

SUMS = "SHA256SUMS"
SUM = re.compile(r"([0-9a-f]{64})  ([a-z0-9-]+\.jsonl)")
MOST_SETS = 1000
MOST_BYTES = 1 << 30  # unpacked; a whole run of the full profile has 40 MB
MOST_SUMS = 1 << 20  # of SHA256SUMS
PIECE = 1 << 20  # that is unpacked at once
WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of packing, that can be undone in pieces; pack() takes the second
SECONDS = 315532800  # 1980, the first date that a zip can name: when it was packed is not in it


@dataclass(frozen=True)
class Packed:
    """What was made: the file, the ids of the sets in it, and of each that is not why."""

    path: Path
    sets: tuple[str, ...]
    left_out: tuple[str, ...]


def pack(results: Path, into: Path, experiments: Mapping[str, Experiment]) -> Packed:
    """Packs the finished sets of `results` into the folder `into`; `experiments` by id.

    InputError for a damaged set, and where there is none that is finished: nothing is written then.
    """
    files, left_out = {}, []
    for path in sorted(results.glob("*.jsonl")):
        definition = experiments.get(path.stem)
        if definition is None or not started(path):
            left_out.append(f"{path}: " + ("empty" if definition else "no experiment of that name"))
        elif read_results(path).end is None:
            left_out.append(f"{path}: not finished (make bench ONLY={path.stem})")
        else:
            files[path.name] = without_names(path.read_bytes(), definition)
    if not files:
        raise InputError(f"{results}: nothing finished to share; measure first: make")
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()).encode()
    path = into / f"quest-run-{hashlib.sha256(sums).hexdigest()[:8]}.zip"
    into.mkdir(parents=True, exist_ok=True)
    write_whole(path, zipped([(SUMS, sums), *files.items()], SECONDS))
    return Packed(path, tuple(Path(name).stem for name in files), tuple(left_out))


def without_names(data: bytes, definition: Experiment) -> bytes:
    """The lines of a set without paths, host and user names of this machine. What the experiment's file says stays as
    it is, also where a host or a user is called like a server of ours.
    """
    lines, end = complete_lines(data)
    records = [json.loads(line) for line in lines]
    ours = frozenset(_texts(asdict(definition)))
    clean = [_clean(record, ours) for record in records]
    if clean == records:
        return data[:end]
    sums, whole = Sums(), b""
    for record in clean:
        del record["sum"]
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        whole += sums.added(text.encode())
    return whole


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value)


def _clean(data: Any, ours: Collection[str]) -> Any:
    if isinstance(data, str):
        return data if data in ours else _anonymous(data)
    if isinstance(data, list):
        return [_clean(value, ours) for value in data]
    if isinstance(data, dict):
        # The names of fields are this program's own, but for those that are files.
        return {_anonymous(key) if "/" in key else key: _clean(value, ours) for key, value in data.items()}
    return data


_anonymous = lru_cache(maxsize=4096)(foreign.anonymous)  # a trace has few texts, thousands of times


# ---- taken ---------------------------------------------------------------------------------------


def unpack(path: Path, into: Path, experiments: Collection[str]) -> list[str]:
    """Writes the sets of a file of pack() into the folder `into`, and gives their ids. `experiments`: those that are
    wanted; the others are not unpacked.

    InputError, in one line that names file and set, if anything in it is not as it was packed, or is no set.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sums = _sums(path, archive)
            wanted = {name: sums[name] for name in sums if Path(name).stem in experiments}
            for name, digest in wanted.items():
                (into / name).write_bytes(_member(path, archive, name, digest))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:  # a later version; no name in UTF-8
        raise InputError(f"{path}: it is no file of make share: {foreign.line(str(error))}") from error
    for name in wanted:
        _check(path, into / name)
    return [Path(name).stem for name in wanted]


def _sums(path: Path, archive: zipfile.ZipFile) -> dict[str, str]:
    """Name of each member -> its digest."""
    members = archive.infolist()
    if len(members) > MOST_SETS or sum(member.file_size for member in members) > MOST_BYTES:
        raise InputError(f"{path}: more than {MOST_SETS} sets or {MOST_BYTES >> 30} GiB, unpacked")
    for member in members:
        if member.compress_type not in WAYS or (member.filename == SUMS and member.file_size > MOST_SUMS):
            raise InputError(f"{path}: {foreign.name(member.filename)}: not as make share packs it")
    names = [member.filename for member in members]
    if SUMS not in names:
        raise InputError(f"{path}: it is no file of make share: {SUMS} is missing")
    lines = _member(path, archive, SUMS).decode(errors="replace").splitlines()
    found = [SUM.fullmatch(line) for line in lines]
    sums = {match[2]: match[1] for match in found if match}
    if len(sums) < len(lines):
        raise InputError(f"{path}: {SUMS}: a line is damaged or doubled")
    if odd := sorted({*names} ^ {SUMS, *sums}) or [name for name in names if names.count(name) > 1]:
        where = "is not in it" if odd[0] in sums else f"is not in its {SUMS}, or twice in the file"
        raise InputError(f"{path}: {foreign.name(odd[0])}: {where}")
    return sums


def _member(path: Path, archive: zipfile.ZipFile, name: str, digest: str = "") -> bytes:
    """In pieces: all at once may be unpacked to far more than the size that the archive tells."""
    try:
        with archive.open(name) as file:
            data = b"".join(iter(lambda: file.read(PIECE), b""))
    except (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError) as error:
        raise InputError(f"{path}: {name}: damaged: it cannot be unpacked") from error
    if digest and hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"{path}: {name}: damaged: its hash is not that of {SUMS}")
    return data


def _check(path: Path, file: Path) -> None:
    """InputError where an unpacked set is damaged, of another form, or of another experiment."""
    try:  # the form first: read_results() takes for granted that a line has its keys
        fault = next(malformed_lines(file), "")
        run = {} if fault else read_results(file).run
    except InputError as error:
        fault = str(error)
    except (RecursionError, TypeError):  # nested too deep; a "type" that is a list
        fault = " damaged: a line is none of a set"
    if not fault and run["experiment"] != file.stem:
        fault = f"1: holds the experiment {foreign.line(str(run['experiment']))}"
    if fault:
        said = fault.replace(f"{file}:", "").removesuffix("; move the file away to measure again")
        raise InputError(f"{path}: {file.name}:{said}")


@contextlib.contextmanager
def as_foreign(shown: str, experiment: str) -> Iterator[None]:
    """InputError where the lines of a set fit neither each other nor the experiment: what a parameter or the
    environment is, their form leaves open. `shown`: how the set is called.
    """
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{shown}: damaged: no run of {experiment} has such lines") from error


def table_of(definition: Experiment, path: Path, origin: str, shown: str) -> NumberTable:
    """The table of a set that others have measured. InputError where it is none."""
    if not path.is_file() or path.stat().st_size > MOST_BYTES:  # a link to /dev/zero, or a FIFO, has no end
        raise InputError(f"{shown}: it is no file, or of more than {MOST_BYTES >> 30} GiB")
    with as_foreign(shown, definition.id):
        return read_table(definition, path, origin)
