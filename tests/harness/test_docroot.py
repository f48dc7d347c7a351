"""The files a load experiment asks for."""

import os
from pathlib import Path

import pytest

from quest.ground import places
from quest.measure import docroot
from quest.spec.model import Docroot


def test_names_of_files_are_expanded() -> None:
    names = docroot.file_names(Docroot({"a/{08..10}/{0..1}.html": 5, "x.html": 1}))
    assert names == [*(f"a/{a}/{b}.html" for a in ("08", "09", "10") for b in "01"), "x.html"]
    assert len(docroot.file_content("a", 12345)) == 12345
    assert docroot.file_content("a", 100) != docroot.file_content("b", 100)


def test_the_folder_is_made_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "BUILD", tmp_path)
    monkeypatch.setattr(docroot, "CONTENT_BYTES", 5000)
    files = Docroot({"a/{0..2}.html": 1000, "b.bin": 9000})
    folder = docroot.prepare(files)
    sizes = {p.relative_to(folder).as_posix(): p.stat().st_size for p in folder.rglob("*.*")}
    assert sizes == {"a/0.html": 1000, "a/1.html": 1000, "a/2.html": 1000, "b.bin": 9000}
    content = (folder / "b.bin").read_bytes()
    assert content == docroot.file_content("b.bin", 5000) + bytes(4000), "a hole behind"
    assert folder.stat().st_mode & 0o777 == 0o755, "another user serves it"
    (folder / "mark").touch()
    assert docroot.prepare(Docroot(dict(reversed(list(files.files.items()))))) == folder
    assert (folder / "mark").exists(), "it was not made again"
    assert docroot.prepare(Docroot({"b.bin": 9001})) != folder
    assert len(list(folder.parent.iterdir())) == 2
    assert list((tmp_path / "scratch").iterdir()) == []


def test_of_two_that_make_it_at_once_the_quicker_has_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "BUILD", tmp_path)
    files, write_file = Docroot({"a.html": 10}), docroot.write_file

    def after_another(path: Path, name: str, size: int) -> None:
        with monkeypatch.context() as other:
            other.setattr(docroot, "write_file", write_file)
            docroot.prepare(files)
        write_file(path, name, size)

    monkeypatch.setattr(docroot, "write_file", after_another)
    folder = docroot.prepare(files)
    assert [path.name for path in folder.iterdir()] == ["a.html"]


def test_what_another_process_still_uses_is_not_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor what has no number of a process in front: it is not ours."""
    monkeypatch.setattr(places, "BUILD", tmp_path)
    scratch = places.scratch_parent()
    for owner in (os.getpid(), 4999999, "db"):  # 4194304 is the highest
        (scratch / f"{owner}-x/inside").mkdir(parents=True)
    places.sweep_scratch()
    assert {path.name for path in scratch.iterdir()} == {f"{os.getpid()}-x", "db-x"}


def test_what_fails_leaves_no_half_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is killed: it is made in a folder that the next run sweeps."""
    made: list[Path] = []

    def full(path: Path, *_: object) -> None:
        made.append(path)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(places, "BUILD", tmp_path)
    monkeypatch.setattr(docroot, "write_file", full)
    with pytest.raises(OSError, match="No space") as caught:
        docroot.prepare(Docroot({"a.html": 10}))
    assert Path(str(caught.value.filename)).parent == tmp_path / "docroot", "it is said what was to be written"
    assert list((tmp_path / "docroot").iterdir()) == list((tmp_path / "scratch").iterdir()) == []
    assert made[0].relative_to(tmp_path / "scratch").parts[0].startswith(f"{os.getpid()}-")
