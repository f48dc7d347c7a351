"""`make share`: what is packed, what is taken out of it, and what is refused."""

import hashlib
import json
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import zipped
from quest.measure.records import Record, Sums, read_results
from quest.report import share
from tests.harness.made_up import (
    Tree,
    end_record,
    lines,
    parsed,
    repetition,
    result_set,
    run_record,
    write,
    write_lines,
)

HOST, USER, PATH = "wombat-host.example.org", "millicent", "/srv/secret-place/quest"
DATA = {"a": [4e4, 5e4], "a+aa": [4e4, 5e4], "b": [8e4, 9e4]}
KNOWN = {"sample": parsed(), "other": parsed(id="other")}


@pytest.fixture(autouse=True)
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    share._anonymous.cache_clear()
    monkeypatch.setattr("socket.gethostname", lambda: HOST)
    monkeypatch.setenv("USER", USER)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for definition in KNOWN.values():
        write(result_set(definition, DATA), tmp_path / f"results/{definition.id}.jsonl")
    return tmp_path / "results"


def planted() -> list[Record]:
    """A line of each type, with path, host and user wherever a text of another program may stand."""
    text = f"{PATH}/build/bin/x on {HOST} ({HOST.split('.')[0]}) by {USER} in /home/{USER} and /home/{USER}/x"
    return [
        run_record(KNOWN["sample"], environment={"cpu": text, "peers": {"nginx": [text]}}, programs={f"{PATH}/x": "0"}),
        {"type": "skip", "variant": "b", "reason": text, "remedy": text},
        repetition("a", 0, samples={"ns": [4e4], "error": [text]}, marks=[text]),
        {"type": "failure", "variant": "b", "params": {"n": 3}, "round": 0, "order": 1, "error": text},
        {"type": "resume", "resumed": "2026-11-21T12:00:00Z", "load": [0.5]},
        end_record(1) | {"failures": 1, "given_up": ["b"]},
    ]


def test_no_line_that_is_packed_has_a_path_or_a_name(results: Path, tmp_path: Path) -> None:
    records = planted()
    write_lines(map(json.dumps, records), results / "sample.jsonl")
    packed = share.pack(results, tmp_path, KNOWN)
    share.unpack(packed.path, tmp_path, KNOWN)
    kept = (tmp_path / "sample.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(kept) == len(records)
    for line in kept:
        assert not [word for word in ("wombat", USER, "secret-place", "/srv", "/home") if word in line], line
    assert read_results(tmp_path / "sample.jsonl").failures[0]["error"].startswith("x on ")
    original = (results / "other.jsonl").read_bytes()
    assert (tmp_path / "other.jsonl").read_bytes() == original, "nothing to take out: not a byte changes"


def test_a_host_that_is_called_like_a_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    share._anonymous.cache_clear()
    definition = parsed(variant=[{"name": "nginx", "command": ["x"]}])
    monkeypatch.setattr("socket.gethostname", lambda: "nginx")
    assert foreign.anonymous("nginx") == ""
    data = b'{"type":"skip","variant":"nginx","reason":"on nginx","sum":""}\n'
    kept = json.loads(share.without_names(data, definition))
    assert (kept["variant"], kept["reason"]) == ("nginx", "on ")


def test_the_same_results_give_the_same_file(results: Path, tmp_path: Path) -> None:
    first = share.pack(results, tmp_path / "one", KNOWN)
    shutil.copytree(results, tmp_path / "again")
    second = share.pack(tmp_path / "again", tmp_path / "two", KNOWN)
    assert first.path.name == second.path.name
    assert first.path.read_bytes() == second.path.read_bytes()
    write(result_set(KNOWN["other"], DATA | {"b": [1.0]}), results / "other.jsonl")
    assert share.pack(results, tmp_path, KNOWN).path.name != first.path.name


def test_what_is_packed_and_what_is_not(tree: Tree, said: Callable[..., str], results: Path) -> None:
    tree.experiment()
    tree.experiment("other")
    folder = tree.root / "build/results"
    assert said("share", status=2) == "build/results: nothing finished to share; measure first: make\n"
    shutil.copytree(results, folder)
    write_lines(map(json.dumps, lines(result_set(KNOWN["other"], DATA))[:-1]), folder / "other.jsonl")
    (folder / "strange.jsonl").write_text("x\n", encoding="utf-8")
    first, second, third, _ = said("share").splitlines()
    assert first == "left out: build/results/other.jsonl: not finished (make bench ONLY=other)"
    assert second == "left out: build/results/strange.jsonl: no experiment of that name"
    assert third.startswith("build/share/quest-run-")
    assert third.endswith(".zip: 1 sets, 0.0 MB")
    made = (folder / "sample.jsonl").read_text(encoding="utf-8").replace('"n":3', '"n":4', 1)
    made = made.replace('"n": 3', '"n": 4', 1)
    (folder / "sample.jsonl").write_text(made, encoding="utf-8")
    assert said("share", status=2).startswith("build/results/sample.jsonl:2: damaged: ")


def _repacked(path: Path, change: Callable[[dict[str, bytes]], Any]) -> Path:
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    path.write_bytes(zipped(files.items(), share.SECONDS))
    return path


def _with_sums(files: dict[str, bytes]) -> None:
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items() if name != share.SUMS]
    files[share.SUMS] = "".join(sums).encode()


def _cut(files: dict[str, bytes]) -> None:
    files["sample.jsonl"] = files["sample.jsonl"].replace(b"90000", b"10000", 1)


def _forged(files: dict[str, bytes]) -> None:
    _cut(files)
    _with_sums(files)


def _swapped(files: dict[str, bytes]) -> None:
    files["sample.jsonl"] = files["other.jsonl"]
    _with_sums(files)


def _outside(files: dict[str, bytes]) -> None:
    files["../sample.jsonl"] = files.pop("sample.jsonl")
    _with_sums(files)


def _of(*texts: str) -> Callable[[dict[str, bytes]], None]:
    """A set of these lines, with all sums as they should be."""

    def change(files: dict[str, bytes]) -> None:
        sums = Sums()
        files["sample.jsonl"] = b"".join(sums.added(text.encode()) for text in texts)
        _with_sums(files)

    return change


RUN, FAILURE = json.dumps(run_record(KNOWN["sample"])), '{"type": "failure"}'
HUGE = json.dumps(repetition("a", 0, samples={"ns": [10**400]}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_cut, "sample.jsonl: damaged: its hash"),
        (_forged, "sample.jsonl:7: damaged: its check sum is wrong"),
        (_swapped, "sample.jsonl:1: holds the experiment other"),
        (_outside, "SHA256SUMS: a line is damaged"),
        (lambda files: files.pop("sample.jsonl"), "sample.jsonl: is not in it"),
        (lambda files: files.update({"new.jsonl": b""}), "new.jsonl: is not in its SHA256SUMS"),
        (lambda files: files.pop(share.SUMS), "it is no file of make share: SHA256SUMS is missing"),
        (_of('{"type": "run", "schema": 1}'), 'sample.jsonl:1: "experiment" is missing'),
        (_of(RUN, FAILURE, FAILURE), 'sample.jsonl:2: "variant" is missing'),
        (_of('{"type": []}'), "sample.jsonl: damaged: "),
        (_of(f'{{"type": {"[" * 100_000}}}'), "sample.jsonl: damaged: "),
        (_of(RUN, HUGE), 'sample.jsonl:2: "samples": "ns" must be'),
    ],
)
def test_what_is_damaged_is_refused(results: Path, tmp_path: Path, change: Any, why: str) -> None:
    path = _repacked(share.pack(results, tmp_path, KNOWN).path, change)
    with pytest.raises(InputError) as error:
        share.unpack(path, tmp_path, KNOWN)
    said = str(error.value)
    assert said.startswith(f"{path}: {why}"), said
    assert "\n" not in said


def test_bytes_that_are_no_archive(results: Path, tmp_path: Path) -> None:
    path = share.pack(results, tmp_path, KNOWN).path
    whole = path.read_bytes()
    for data in (b"", b"x\n", whole[: len(whole) // 2], whole.replace(b"sample", b"simple", 1)):
        path.write_bytes(data)
        with pytest.raises(InputError, match=str(path)):
            share.unpack(path, tmp_path, KNOWN)
    into, original = tmp_path / "into", (results / "sample.jsonl").read_bytes()
    into.mkdir()
    refused = 0
    for place in range(0, len(whole), 7):  # a byte anywhere
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            share.unpack(path, into, KNOWN)
        except InputError as error:
            refused += 1
            assert "\n" not in str(error)
        else:  # a date, say, of which nothing is read
            assert (into / "sample.jsonl").read_bytes() == original
    assert refused > len(whole) / 7 / 2


@pytest.mark.parametrize(
    ("place", "new", "names"),
    [(6, 99, 0), (9, 8, 2), (9, 8, 1)],
    ids=["a later version", "a name that is no UTF-8", "the same in front of the data alone"],
)
def test_what_python_does_not_take_in_an_archive(
    results: Path, tmp_path: Path, place: int, new: int, names: int
) -> None:
    """`place`: in the head of the first file, in the directory at the end; `names`: in how many heads it is changed."""
    path = share.pack(results, tmp_path, KNOWN).path
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\1\2") + place] = new
    path.write_bytes(whole.replace(b"SHA256SUMS", b"SHA256SUM\xff", names))
    with pytest.raises(InputError, match=str(path)):
        share.unpack(path, tmp_path, KNOWN)


def test_what_unpacks_to_more_than_it_says_takes_no_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "bomb.zip", (48 << 20) + 4711
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(share.SUMS, f"{'0' * 64}  sample.jsonl\n")
        archive.writestr("sample.jsonl", bytes(size))
    whole = path.read_bytes()
    assert whole.count(size.to_bytes(4, "little")) == 2
    path.write_bytes(whole.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little")))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="sample.jsonl: damaged"):
            share.unpack(path, tmp_path, KNOWN)
        assert tracemalloc.get_traced_memory()[1] < size / 4
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "how"), [("sample.jsonl", zipfile.ZIP_BZIP2), (share.SUMS, zipfile.ZIP_DEFLATED)])
def test_what_make_share_does_not_pack_is_not_unpacked(results: Path, tmp_path: Path, name: str, how: int) -> None:
    """64 KiB of bzip2 may be a gigabyte; and a list of sums of a thousand sets is no megabyte."""
    path = share.pack(results, tmp_path, KNOWN).path
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[share.SUMS] += b"\n" * share.MOST_SUMS if name == share.SUMS else b""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, data in files.items():
            archive.writestr(each, data, how if each == name else None)
    with pytest.raises(InputError, match=f"{name}: not as make share packs it"):
        share.unpack(path, tmp_path, KNOWN)


@pytest.mark.parametrize("limit", ["MOST_SETS", "MOST_BYTES"])
def test_a_file_of_too_much_is_not_unpacked(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    path = share.pack(results, tmp_path, KNOWN).path
    monkeypatch.setattr(share, limit, 2)
    with pytest.raises(InputError, match="unpacked$"):
        share.unpack(path, tmp_path, KNOWN)


def test_a_set_that_has_no_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that was handed in may have links, FIFOs, and files with holes."""
    read: list[Path] = []
    monkeypatch.setattr(share, "read_table", lambda _, path, __: read.append(path))
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(share.MOST_BYTES + 1)
    for path in tmp_path.iterdir():
        with pytest.raises(InputError, match=f"{path}: it is no file"):
            share.table_of(KNOWN["sample"], path, "here", str(path))
    assert not read
