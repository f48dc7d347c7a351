"""What classes hand in: each submission is found, or has its line with the reason; and what is said
by whom is text, wherever it ends.
"""

import csv
import errno
import io
import json
import os
import re
import stat
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from quest.ground import foreign
from quest.labs import archive, class_table, intake, kept
from quest.labs import lab as labs
from quest.labs.class_table import Grade, Kind
from quest.labs.errors import CannotJudge, LabError
from quest.labs.settings import Settings, Toolchain
from tests.labs.grading import Place, write

SLUG, WANTED = "02-fork", ("server.c",)
MINE, OURS = b"mine", b"ours"
TREE = {
    "code/Makefile": b"", "code/02-fork/server.c": OURS, "labs/02-fork/lab.toml": b"",
    "README.md": b"", "work/02-fork/server.c": MINE,
}  # fmt: skip


def handed(top: Path, one: intake.Submission) -> tuple[bytes, str]:
    """What counts, or why nothing does; and the notes."""
    place = top / f"place-{len(list(top.iterdir()))}"
    place.mkdir()
    try:
        found = intake.stage(one, WANTED, SLUG, place)
    except LabError as error:
        return b"", str(error)
    if found is None:
        return b"", "nothing"
    return (found.folder / "server.c").read_bytes(), "; ".join(found.notes)


def files_in(folder: Path, texts: dict[str, bytes]) -> None:
    for name, data in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def zipped(path: Path, texts: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in texts.items():
            made.writestr(name, data)


def tarred(path: Path, texts: dict[str, bytes], *more: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w:gz") as made:
        for name, data in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            made.addfile(info, io.BytesIO(data))
        for info in more:
            made.addfile(info)


@pytest.mark.parametrize(
    ("there", "counts", "said"),
    [
        ({"server.c": MINE}, MINE, ""),
        ({"old/server.c": MINE}, MINE, ""),
        ({f"02-fork/{name}": data for name, data in TREE.items()}, MINE, ""),
        (TREE, MINE, ""),
        (TREE | {"server.c": OURS}, MINE, "work/02-fork/server.c counts; there is also "),
        (TREE | {"work/02-fork.old1/server.c": OURS}, MINE, "old1/server.c"),
        ({"code/02-fork/server.c": MINE}, b"", "there is no server.c; not looked into: "),
        ({"03-prefork/server.c": OURS, "02-fork/server.c": MINE}, MINE, "03-prefork/server.c"),
        (
            {"a/server.c": MINE, "b/server.c": OURS},
            b"",
            "which one counts? There are ",
        ),
        ({"a/server.c": MINE, "b/server.c": MINE}, MINE, ""),
        ({"server (1).c": MINE}, MINE, ""),
        ({"server (1).c": OURS, "server.c": MINE}, MINE, "server (1).c"),
        ({"server (1).c": OURS, "server (2).c": MINE}, b"", "which one counts?"),
        ({"Server.C": MINE}, MINE, ""),
        ({"/".join("abcdefghij") + "/server.c": MINE}, b"", "there is no server.c"),
        ({"notes.txt": b""}, b"", "there is no server.c"),
        ({"__MACOSX/server.c": OURS, "x/server.c": MINE}, MINE, ""),
        ({"._server.c": OURS, "__MACOSX/._server.c": OURS, "server.c": MINE}, MINE, ""),
        ({"server.c.txt": MINE}, MINE, ""),
        ({"server - Copy.c": OURS, "server.c": MINE}, MINE, "there is also "),
        ({"server copy 2.c": MINE}, MINE, ""),
        ({"server.c/server.c": MINE}, MINE, ""),
        ({"work/03-prefork/server.c": MINE}, b"", "work/03-prefork/server.c is in the folder of another lab"),
        ({"x/03-prefork/src/server.c": OURS, "x/mine/server.c": MINE}, MINE, "there is also "),
        ({"x/mine.zip": OURS}, b"", "there is no server.c; not looked into: "),
        ({"mine.rar": MINE}, b"", "mine.rar"),
        ({"work\\02-fork\\server.c": MINE, "code\\02-fork\\server.c": OURS, "x\\server.c": OURS}, MINE, "x/server.c"),
    ],
)
def test_where_a_student_has_put_the_files(
    tmp_path: Path, there: dict[str, bytes], counts: bytes, said: str
) -> None:
    """In a folder, and the same in both kinds of archive."""
    place, data = tmp_path / "place", tmp_path / "class"
    place.mkdir()
    files_in(data / "ada", there)
    zipped(data / "bob.zip", there)
    tarred(data / "cyd.tar.gz", there)
    (data / "dan").mkdir()
    zipped(data / "dan/mine.zip", there)
    tarred(data / "eve_17_23_mine.tgz", there)
    everybody, left = intake.students(data)
    assert ([one.name for one in everybody], left) == (["ada", "bob", "cyd", "dan", "eve_17"], [])
    for one in everybody:
        found, told = handed(place, one)
        assert (found, said in told) == (counts, True), (one.name, told)


def test_of_two_members_with_one_name_the_last_counts(tmp_path: Path) -> None:
    """As it does for whoever unpacks it, and for a program that looks for copies."""
    place, data = tmp_path / "place", tmp_path / "class"
    for folder in (place, data):
        folder.mkdir()
    with zipfile.ZipFile(data / "ada.zip", "w") as made, pytest.warns(UserWarning, match="Duplicate"):
        for text in (OURS, OURS, MINE):
            made.writestr("server.c", text)
    with tarfile.open(data / "bob.tar.gz", "w:gz") as tar:
        for name, text in (("x/server.c", OURS), ("x/Server.c", OURS), ("./x//server.c", MINE)):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    found = {one.name: handed(place, one) for one in intake.students(data)[0]}
    assert found["ada"] == (MINE, "ada.zip: server.c is in it 3 times, and the last counts")
    assert found["bob"][0] == MINE and "x/server.c is in it 2 times, and the last counts" in found["bob"][1]


def test_a_tar_that_ends_with_a_zip_is_a_tar(tmp_path: Path) -> None:
    """Not packed, it ends as a zip does: the student's backup was judged in place of the work."""
    place, data = tmp_path / "place", tmp_path / "class"
    for folder in (place, data):
        folder.mkdir()
    zipped(tmp_path / "old.zip", {"server.c": OURS})
    with tarfile.open(data / "ada.tar", "w") as made:
        for name, text in (("server.c", MINE), ("old.zip", (tmp_path / "old.zip").read_bytes())):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            made.addfile(info, io.BytesIO(text))
    (one,) = intake.students(data)[0]
    assert handed(place, one) == (MINE, "")


def test_a_folder_with_one_file_too_many_is_not_looked_at_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, data = tmp_path / "place", tmp_path / "class"
    place.mkdir()
    files_in(data / "ada", dict.fromkeys(("a", "b", "server.c"), MINE))
    files_in(data / "bob", dict.fromkeys(("a", "b", "c", "server.c"), MINE))
    monkeypatch.setattr(intake, "MOST_MEMBERS", 3)
    found = {one.name: handed(place, one) for one in intake.students(data)[0]}
    assert found == {"ada": (MINE, ""), "bob": (b"", "it has more than 3 files")}


def test_what_is_no_file_counts_only_where_no_file_is(tmp_path: Path) -> None:
    """Windows makes a folder server.c of server.c.zip; a link shows to where the judge may read and the student not."""
    place, data = tmp_path / "place", tmp_path / "class"
    place.mkdir()
    files_in(data / "ada", {"server.c/server.c": MINE})
    files_in(data / "bob", {"old/server.c": MINE})
    (data / "bob/server.c").symlink_to(__file__)
    (data / "cyd").mkdir()
    (data / "cyd/server.c").symlink_to(__file__)
    found = {one.name: handed(place, one) for one in intake.students(data)[0]}
    assert found["ada"] == found["bob"] == (MINE, "no file, and left out: server.c")
    assert found["cyd"][0] == b"" and "server.c is not a file" in found["cyd"][1]


def test_every_kind_of_archive_has_a_line(tmp_path: Path) -> None:
    """Also one that cannot be read here; what nobody would look for is named; a folder that was unpacked beside its
    archive is the same submission."""
    place, data = tmp_path / "place", tmp_path / "class"
    place.mkdir()
    files_in(data, {".kim/server.c": MINE, "._ada.zip": b"", "doejane_12_345_mine/server.c": MINE, "ada.7z": b"7z"})
    zipped(data / "doejane_12_345_mine.zip", {"server.c": MINE})
    for ending, how in ((".tar.xz", "w:xz"), (".tbz2", "w:bz2")):
        with tarfile.open(data / f"bob{ending}", how) as made:  # type: ignore[call-overload]
            info = tarfile.TarInfo("server.c")
            info.size = len(MINE)
            made.addfile(info, io.BytesIO(MINE))
        (data / f"bob{ending}").rename(data / f"{ending[1:4]}{ending}")
    everybody, left = intake.students(data)
    found = {one.name: handed(place, one) for one in everybody}
    assert left == [".kim"]
    assert found == {
        "ada": (b"", "nothing to judge: there is no server.c; not looked into: ada.7z"),
        "doejane_12": (MINE, "mine.zip is not looked into"),
        "tar": (MINE, ""), "tbz": (MINE, ""),
    }  # fmt: skip


def test_the_exports_of_canvas_and_moodle(tmp_path: Path) -> None:
    place, data = tmp_path / "place", tmp_path / "class"
    place.mkdir()
    files_in(data, {
        "doejane_1234_5678_server.c": MINE,
        "roejohn_LATE_77_5001_server.c": OURS, "roejohn_LATE_77_5099_server-1.c": MINE,
        "Ada Doe_12345_assignsubmission_file_/server.c": MINE,
        "Ada Doe_12345_assignsubmission_onlinetext_/onlinetext.html": b"",
        "Bob Roe_678_assignsubmission_file_server.c": MINE,
        "grades.txt": b"", ".DS_Store": b"", "__MACOSX/x": b"", "kim/server.c": MINE,
    })  # fmt: skip
    zipped(data / "kim.zip", {"server.c": OURS})
    zipped(data / "lea.zip", {"server.c": OURS})
    tarred(data / "lea.tgz", {"server.c": MINE})
    everybody, left = intake.students(data)
    found = {one.name: handed(place, one) for one in everybody}
    late = "late; handed in before, too: roejohn_LATE_77_5001_server.c"
    assert found == {
        "Ada Doe_12345": (MINE, ""), "Bob Roe_678": (MINE, ""),
        "doejane_1234": (MINE, ""), "roejohn_77": (MINE, late),
        "kim": (MINE, "kim.zip is not looked into"),
        "lea": (b"", "which one counts? There are lea.tgz: server.c, lea.zip: server.c"),
    }  # fmt: skip
    assert left == ["Ada Doe_12345_assignsubmission_onlinetext_", "grades.txt"]


def test_a_file_that_is_called_like_another_students_is_its_own_students(tmp_path: Path) -> None:
    """What Moodle writes stands at the beginning, and a student's name for the file behind it."""
    mine = "Bob Roe_678_assignsubmission_file_Ada Doe_12345_assignsubmission_file_server.c"
    files_in(tmp_path, {mine: MINE})
    (one,) = intake.students(tmp_path)[0]
    assert (one.name, one.keys) == ("Bob Roe_678", [("moodle", "678"), ("name", "Bob Roe")])


def test_names_in_any_bytes(tmp_path: Path) -> None:
    """And none becomes another's."""
    names = [
        b"J\xfcrgen",
        "Jürgen".encode(),
        b"J\\xfcrgen",
        b"=1+cmd",
        b"'=1+cmd",
        b"a\nb",
        b"\x1b[1m",
    ]
    for name in names:
        folder = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(folder)
    everybody, _ = intake.students(tmp_path)
    found = {one.name for one in everybody}
    assert len({foreign.cell(name) for name in found}) == len(names)
    assert {foreign.from_cell(foreign.cell(name)) for name in found} == found
    assert {"J\\xfcrgen", "Jürgen", "J\\\\xfcrgen", "a\\nb", "\\x1b[1m"} < found
    assert all(name.isprintable() for name in found)


def special(name: str, kind: bytes, to: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


@pytest.mark.slow
def test_an_archive_that_harms_is_refused_with_a_line(tmp_path: Path) -> None:
    """A link that is not asked for harms nothing: a clone of the tree has some."""
    place, data = tmp_path / "place", tmp_path / "class"
    for folder in (place, data):
        folder.mkdir()
    good = {"server.c": MINE}
    zipped(data / "outside.zip", good | {"../server.c": OURS})
    zipped(data / "absolute.zip", good | {"/etc/server.c": OURS})
    zipped(data / "windows.zip", good | {"C:\\x\\server.c": OURS})
    zipped(data / "many.zip", {f"f{n}": b"" for n in range(archive.MOST_MEMBERS + 1)})
    zipped(data / "same.zip", {f"d{n}/server.c": b"" for n in range(archive.MOST_NAMED + 1)})
    tarred(data / "up.tar.gz", good | {"a/../../server.c": OURS})
    tarred(data / "link.tar.gz", {}, special("server.c", tarfile.SYMTYPE, "/etc/passwd"))
    tarred(data / "hard.tar.gz", {}, special("server.c", tarfile.LNKTYPE, "/etc/passwd"))
    tarred(data / "device.tar.gz", {}, special("server.c", tarfile.CHRTYPE))
    tarred(data / "beside.tar.gz", good, special("x", tarfile.SYMTYPE, "/etc/passwd"))
    huge = special("huge", tarfile.REGTYPE)
    huge.size = archive.MOST_UNPACKED + 1
    (data / "bomb.tar").write_bytes(huge.tobuf())
    with zipfile.ZipFile(data / "linked.zip", "w") as zip_file:
        link = zipfile.ZipInfo("server.c")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        zip_file.writestr(link, "/etc/passwd")
    (data / "nonsense.zip").write_bytes(b"PK\3\4" + bytes(range(256)))
    (data / "cut.tar.gz").write_bytes((data / "beside.tar.gz").read_bytes()[:40])
    long = {"server.c": b"x" * (1 << 24)}
    zipped(data / "long.zip", long)
    said = {one.name: handed(place, one) for one in intake.students(data)[0]}
    assert said.pop("beside") == (MINE, "")
    assert len(said.pop("long")[0]) == (1 << 20) + 1, "the grader says that it is too long"
    assert {data for data, _ in said.values()} == {b""}
    expected = {
        "outside": "a member outside of itself", "up": "a member outside of itself",
        "absolute": "an absolute path", "windows": "an absolute path",
        "many": "more than 50000 members", "same": "more than 200 of server.c",
        "link": "server.c is not a file", "hard": "server.c is not a file",
        "device": "server.c is not a file", "linked": "server.c is not a file",
        "bomb": "more than 2 GiB", "nonsense": "cannot be unpacked", "cut": "cannot be unpacked",
    }  # fmt: skip
    assert {name for name, text in expected.items() if text not in said[name][1]} == set(), said
    assert all(text.isprintable() for _, text in said.values())


def test_a_full_disk_is_no_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor are too many processes a submission that cannot be read: the grading ends, and can go on."""
    place, data = tmp_path / "place", tmp_path / "class"
    for folder in (place, data):
        folder.mkdir()
    zipped(data / "ada.zip", {"server.c": MINE})

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert archive.main([str(data / "ada.zip"), str(place), "100", "server.c"]) == 3
    assert capsys.readouterr().err == f"{errno.ENOSPC}\n"
    unpacker = write(tmp_path, {"full.py": f"import sys\nprint({errno.ENOSPC}, file=sys.stderr)\nsys.exit(3)\n"})
    monkeypatch.setattr(intake, "UNPACKER", unpacker / "full.py")
    with pytest.raises(OSError, match="No space left"):
        class_table.grade_all(data, tmp_path / "grades.csv", grade([]))

    def no_process(_one: intake.Submission, _folder: Path) -> Grade:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    write(data / "bob", {"server.c": "x"})
    (data / "ada.zip").unlink()
    with pytest.raises(OSError, match="temporarily"):
        class_table.grade_all(data, tmp_path / "grades.csv", replace(grade([]), grade=no_process))


@pytest.mark.parametrize("name", ["EDQUOT", "EROFS", "EMFILE", "ENFILE", "ENOMEM"])
def test_an_error_of_the_machine_is_no_submissions_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """Else everybody whose turn it is then has a line that says that the work cannot be read."""
    number: int = getattr(errno, name)
    data, place = tmp_path / "class", tmp_path / "place"
    place.mkdir()
    write(data / "ada", {"server.c": "x"})

    def fails(*_: object) -> Grade:
        raise OSError(number, os.strerror(number))

    with pytest.raises(OSError, match=re.escape(os.strerror(number))):
        class_table.grade_all(data, tmp_path / "grades.csv", replace(grade([]), grade=fails))
    if name in ("EDQUOT", "EROFS"):
        zipped(tmp_path / "bob.zip", {"server.c": MINE})
        monkeypatch.setattr(Path, "write_bytes", fails)
        assert archive.main([str(tmp_path / "bob.zip"), str(place), "100", "server.c"]) == 3
        assert capsys.readouterr().err == f"{number}\n"


@pytest.mark.parametrize(
    ("limit", "fits"), [("MOST_MEMBERS", 2), ("MOST_NAMED", 2), ("MOST_UNPACKED", 10), ("LONGEST_NAME", 10)]
)
def test_how_much_an_archive_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, fits: int) -> None:
    """That much is unpacked, and one more is refused."""
    zipped(tmp_path / "ada.zip", {"a/server.c": b"12345", "b/server.c": b"67890"})
    for most, status in ((fits, 0), (fits - 1, 2)):
        monkeypatch.setattr(archive, limit, most)
        assert archive.main([str(tmp_path / "ada.zip"), str(tmp_path), "100", "server.c"]) == status


def test_archives_of_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its separator leads outside, too; a folder has no kind but the end of its name; a password is said."""
    words = [str(tmp_path / "ada.zip"), str(tmp_path), "100", "server.c"]
    zipped(tmp_path / "ada.zip", {"..\\server.c": MINE})
    assert archive.main(words) == 2 and "outside of itself" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "ada.zip", "w") as made:
        folder = zipfile.ZipInfo("server.c/")
        folder.external_attr = 0x10
        made.writestr(folder, b"")
        made.writestr("server.c/server.c", MINE)
    assert archive.main(words) == 0
    assert json.loads(capsys.readouterr().out)["members"] == [["server.c", False, 1], ["server.c/server.c", True, 1]]
    zipped(tmp_path / "ada.zip", {"server.c": MINE})
    closed = bytearray((tmp_path / "ada.zip").read_bytes())
    closed[6] |= 1
    closed[closed.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "ada.zip").write_bytes(closed)
    assert archive.main(words) == 2 and "password" in capsys.readouterr().err


def test_not_every_archive_of_hundreds_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may be made to take a minute, and the class waits. Beside the file itself there may be any number."""
    place, data = tmp_path / "place", tmp_path / "class"
    for folder in (place, data / "ada", data / "bob", data / "cyd"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(intake, "MOST_ARCHIVES", 2)
    for name, count in (("ada", 2), ("bob", 3), ("cyd", 3)):
        for number in range(count):
            zipped(data / name / f"{number}.zip", {"server.c": MINE})
    files_in(data / "cyd", {"server.c": OURS})
    found = {one.name: handed(place, one) for one in intake.students(data)[0]}
    assert (found["ada"], found["cyd"][0]) == ((MINE, ""), OURS)
    assert found["bob"] == (b"", "it has more than 2 archives, and none of them is looked into")


def grade(count: list[str]) -> Kind:
    """One that costs nothing: it notes the submissions that it was asked for."""

    def one(student: intake.Submission, folder: Path) -> Grade:
        text = (folder / "server.c").read_text()
        count.append(student.name)
        if text == "fails":
            raise ValueError("a defect\x1b[1m")
        return Grade(class_table.GRADED, len(text))

    return Kind(WANTED, SLUG, 20, ["serves"], "judge", "tests", one)


def rows(table: Path) -> dict[str, dict[str, str]]:
    with table.open(newline="", encoding="utf-8") as file:
        return {foreign.from_cell(row["name"]): row for row in csv.DictReader(file)}


def test_a_line_is_settled_for_the_same_work_judge_and_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    for name in ("ada", "bob", "cyd"):
        write(data / name, {"server.c": "x" * 5})
    asked: list[str] = []
    kind = grade(asked)

    def again(kind: Kind = kind) -> list[str]:
        asked.clear()
        class_table.grade_all(data, table, kind)
        return sorted(asked)

    assert again() == ["ada", "bob", "cyd"]
    assert again() == []
    (data / "bob/server.c").write_text("y" * 9)
    assert again() == ["bob"]
    row = rows(table)["bob"]
    assert (row["score"], row["note"]) == ("9", "handed in anew; before: 5")
    assert again() == []
    text = table.read_text().replace("cyd,5,20,graded", "cyd,17,20,by hand")
    table.write_text(text)
    for other in (replace(kind, judge="another"), replace(kind, tested="others")):
        assert again(other) == ["ada", "bob"]
        assert "graded anew. Before: " in capsys.readouterr().out
        assert rows(table)["cyd"]["score"] == "17"
        assert rows(table)["ada"]["note"] == "", "it is nothing that the student has done"
    assert (tmp_path / "grades.csv.old1").read_text() == text, "no points are lost"
    table.write_text("name,score,of,state,failed,seconds\nada,20,20,graded,,1.0\n")
    assert again() == ["ada", "bob", "cyd"], "of a table from before there were hashes"


def test_a_line_by_hand_stays_where_all_are_graded_each_time(tmp_path: Path) -> None:
    """It is looked at all the same, beside those of others; and somebody else's table is not written over."""
    data, table, asked = tmp_path / "class", tmp_path / "grades.csv", list[str]()
    for name in ("ada", "bob"):
        write(data / name, {"server.c": "x" * 5})
    kind = replace(grade(asked), anew=True)
    class_table.grade_all(data, table, kind)
    by_hand = table.read_text().replace("ada,5,20,graded,", "ada,17,20,by hand,")
    table.write_text(by_hand)
    asked.clear()
    class_table.grade_all(data, table, kind)
    found = rows(table)
    assert (found["ada"]["score"], found["ada"]["state"]) == ("17", class_table.BY_HAND)
    assert (found["bob"]["score"], sorted(asked)) == ("5", ["ada", "bob"])
    table.write_text("student,points\nada,5\n")
    with pytest.raises(LabError, match="not a table of ours"):
        class_table.grade_all(data, table, kind)
    assert table.read_text() == "student,points\nada,5\n"


def test_former_points_are_in_the_note_whatever_comes_after(tmp_path: Path) -> None:
    """Of a download that broke off, and of an archive that cannot be read; until there is work again."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    work = write(data / "ada", {"server.c": "x" * 5}) / "server.c"

    def ada() -> tuple[str, str, str]:
        class_table.grade_all(data, table, grade([]))
        row = rows(table)["ada"]
        return row["score"], row["state"], row["note"]

    assert ada() == ("5", class_table.GRADED, "")
    work.unlink()
    for _ in range(2):
        assert ada() == ("0", class_table.NOTHING, "before: 5")
    (data / "ada/mine.zip").write_bytes(b"PK\3\4")
    assert ada() == ("", class_table.NOT_GRADED, "before: 5")
    (data / "ada/mine.zip").unlink()
    work.write_text("x" * 7)
    assert ada() == ("7", class_table.GRADED, "handed in anew; before: 5")
    work.write_text("x" * 8)
    assert ada() == ("8", class_table.GRADED, "handed in anew; before: 7")


def test_a_line_stays_until_there_is_another(tmp_path: Path) -> None:
    """A run that is ended, or a machine that cannot judge, loses no former points: they are in no other place."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    work = write(data / "ada", {"server.c": "x" * 5}) / "server.c"
    class_table.grade_all(data, table, grade([]))
    work.unlink()
    class_table.grade_all(data, table, grade([]))
    work.write_text("x" * 7)

    def full(_one: intake.Submission, _folder: Path) -> Grade:
        raise OSError(errno.ENOSPC, "No space left on device")

    def nowhere(_one: intake.Submission, _folder: Path) -> Grade:
        return Grade(class_table.NOT_HERE, None, f"lab: {CannotJudge.SAYS}no tracing")

    for how, error in ((full, OSError), (nowhere, CannotJudge)):
        with pytest.raises(error):
            class_table.grade_all(data, table, replace(grade([]), grade=how))
        assert rows(table)["ada"]["note"] == "before: 5"
    class_table.grade_all(data, table, grade([]))
    assert (rows(table)["ada"]["score"], rows(table)["ada"]["note"]) == ("7", "handed in anew; before: 5")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_a_table_that_a_spreadsheet_has_saved(tmp_path: Path, separator: str, encoding: str) -> None:
    """In its country's way: other separators, another encoding, a capital at the beginning of a cell."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    for name in ("Jürgen", "zoé; z"):
        write(data / name, {"server.c": "x" * 5})
    asked: list[str] = []
    class_table.grade_all(data, table, grade(asked))
    lines = [*csv.reader(io.StringIO(table.read_text("utf-8")))]
    lines[1] = [lines[1][0], "4,5", "20", "By  hand", *lines[1][4:]]
    saved = io.StringIO(newline="")
    csv.writer(saved, delimiter=separator).writerows(lines)
    table.write_bytes(saved.getvalue().encode(encoding))
    asked.clear()
    class_table.grade_all(data, table, grade(asked))
    assert asked == []
    found = rows(table)
    assert {name: (row["score"], row["state"]) for name, row in found.items()} == {
        "Jürgen": ("4,5", class_table.BY_HAND), "zoé; z": ("5", class_table.GRADED),
    }  # fmt: skip


def test_a_student_number_that_a_spreadsheet_has_shortened(tmp_path: Path) -> None:
    """0042 comes back as 42: it is the same student's line, unless there are two such."""
    data, table, asked = tmp_path / "class", tmp_path / "grades.csv", list[str]()
    for name in ("0042", "007", "7"):
        write(data / name, {"server.c": "x" * 5})
    class_table.grade_all(data, table, grade(asked))
    table.write_text(table.read_text().replace("\n0042,5,20,graded,", "\n42,17,20,by hand,"))
    asked.clear()
    class_table.grade_all(data, table, grade(asked))
    assert {name: row["score"] for name, row in rows(table).items()} == {"0042": "17", "007": "5", "7": "5"}
    assert asked == []


def test_the_old_table_is_kept_to_the_byte(tmp_path: Path) -> None:
    """A spreadsheet has saved it in its own encoding: the names in it are not lost."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    write(data / "Jürgen", {"server.c": "x" * 5})
    write(data / "ada", {"server.c": "x" * 5})
    class_table.grade_all(data, table, grade([]))
    by_hand = table.read_text("utf-8").replace("ada,5,20,graded,", "ada,17,20,by hand,")
    saved = by_hand.replace("\n", "\r\n").encode("cp1252")
    table.write_bytes(saved)
    class_table.grade_all(data, table, replace(grade([]), judge="another"))
    assert (tmp_path / "grades.csv.old1").read_bytes() == saved


def test_a_state_of_a_teachers_own_is_not_replaced(tmp_path: Path) -> None:
    """Nor is a line without one lost where only its last character was cut off."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    write(data / "ada", {"server.c": "x"})
    for line in ("ada,17,20,excused,,\n", "ada,17,20,excused,,1.0\n"):
        text = ",".join(class_table.FIELDS[:6]) + "\n" + line
        table.write_text(text)
        with pytest.raises(LabError, match='ada has the unknown state "excused"; for a score of yours write by hand'):
            class_table.grade_all(data, table, grade([]))
        assert table.read_text() == text
    table.write_bytes(",".join(class_table.FIELDS[:6]).encode() + "\nzoé,17,20,by hand,,\né".encode()[:-1])
    class_table.grade_all(data, table, grade([]))
    assert {name: row["score"] for name, row in rows(table).items()} == {"ada": "1", "zoé": "17"}


def test_what_decides_about_a_grade_is_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers that a submission includes, and what tests preload; objects wherever BUILD= has them."""
    hashed: list[list[str]] = []
    hash_of = class_table.hash_of

    def noted(patterns: Iterable[str], *more: str, files_beside: Iterable[Path] = ()) -> str:
        hashed.append(list(patterns))
        return hash_of(hashed[-1], *more, files_beside=files_beside)

    monkeypatch.setattr(class_table, "hash_of", noted)
    built = tmp_path / "[b]uild/a.o"
    built.parent.mkdir()
    settings = Settings(tools=Toolchain(("cc",), ("-O2",), (built,)))
    found = []
    for text in ("1", "2", "2"):
        built.write_text(text)
        found.append(class_table.kind_of(labs.load(SLUG), settings, lambda _: tmp_path).judge)
    assert found[0] != found[1] == found[2]
    judge, tests = hashed[:2]
    assert "code/**/*.h" in judge and "quest/labs/*.c" in judge
    assert "tests/conformance/preload.c" in tests and "labs/02-fork/lab.toml" in tests
    text = (labs.TREE / "tests/conformance/tracing.py").read_text("utf-8")
    assert {f"tests/conformance/{name}" for name in re.findall(r'with_name\("(\w+\.c)"\)', text)} <= set(tests)


def test_what_is_kept_beside_the_table_cannot_be_written(tmp_path: Path) -> None:
    """As where another user has graded before: known at once, and no submission's fault."""
    data, table, asked = tmp_path / "class", tmp_path / "grades.csv", list[str]()
    write(data / "ada", {"server.c": "x"})
    kept.folder_of(table).write_text("")
    with pytest.raises(NotADirectoryError):
        class_table.grade_all(data, table, grade(asked))
    assert asked == [] and not table.exists()


@pytest.mark.parametrize("letter", ["a", "é", "語", "\U0001f98a"])
def test_a_name_fits_every_file_system(letter: str) -> None:
    """As long as a folder's may be, in bytes; and no two become one."""
    longest = letter * (255 // len(letter.encode()))
    found = {kept.safe_name(longest), kept.safe_name(longest[:-1])}
    assert len(found) == 2 and all(len(f"{name}.json".encode()) < 255 for name in found)
    assert kept.safe_name("語" * 33) == "語" * 33


def test_one_bad_submission_does_not_end_the_class(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And no name or message of it reaches a terminal, a spreadsheet or JSON as more than
    text."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    names = [b"ada", b"J\xfcrgen", b"=1+cmd|' /C calc'!A0", b"+x", b"-x", b"@x", b"\tx",
             b"\x1b]0;t\x07",
             b"x;=1+1", b"\xef\xbc\x9d1", b"a\x00b"[:1] + b"\r\n", b"\xed\xa0\x80"]  # fmt: skip
    for name in names:
        folder = os.fsencode(data) + b"/" + name
        os.makedirs(folder)
        Path(os.fsdecode(folder), "server.c").write_text("fails" if name == b"+x" else "x")
    zipped(data / "zoe.zip", {"../x": b""})
    listed, asked = tmp_path / "grades.json", list[str]()
    all_graded = class_table.grade_all(data, table, grade(asked), jobs=3, results=listed)
    out = capsys.readouterr().out
    assert not all_graded
    found = rows(table)
    assert len(found) == len(names) + 1
    assert found["+x"]["failed"].startswith("the grader failed: ValueError(")
    assert "outside of itself" in found["zoe"]["failed"]
    assert all(line.isprintable() for line in out.splitlines())
    cells = [cell for row in csv.reader(io.StringIO(table.read_text())) for cell in row]
    assert [cell for cell in cells if cell[:1] in "=+-@\t\r＝" and cell] == []
    assert ";=" not in table.read_text()
    in_json = json.loads(listed.read_text().encode("ascii"))
    told = {(foreign.cell(row["name"]), row["score"]) for row in in_json}
    assert told == {(row["name"], row["score"]) for row in found.values()}
    asked.clear()
    class_table.grade_all(data, table, grade(asked), jobs=3)
    assert asked == ["+x"], "the others are settled, whatever their names"
    assert len(rows(table)) == len(found)


def test_names_without_an_end_spoil_no_table(tmp_path: Path) -> None:
    """They would be in a reason or a note, and Python reads no CSV with such a cell: nobody could be graded again."""
    data, table = tmp_path / "class", tmp_path / "grades.csv"
    files_in(data / "ada", {f"{n}{'x' * 240}.zip": b"" for n in range(600)} | {"server.c": MINE})
    zipped(data / "bob.zip", {f"{n}{'y' * 60000}/server.c": b"%d" % n for n in range(3)})
    zipped(data / "cyd.zip", {f"/{chr(1) * 60000}": b""})
    for _ in range(2):
        class_table.grade_all(data, table, grade([]))
        found = rows(table)
        assert {name: row["score"] for name, row in found.items()} == {"ada": "4", "bob": "", "cyd": ""}
        assert max(len(text) for row in found.values() for text in row.values()) < 3000
        assert "is not looked into" in found["ada"]["note"] and "60010 characters" in found["bob"]["failed"]


@pytest.mark.slow
def test_text_of_others_is_named_and_not_obeyed(place: Place) -> None:
    """From the compiler and the server, to what make says, and the logs."""
    warning = "\x1b]0;lab_was_here\x07 \x9b"
    hostile = (Path(__file__).with_name("hostile.c")).read_text(encoding="utf-8")
    told = '#define WHAT codes_of_a_terminal\n#define TREE ""\n#define PORT 1\n#define PATH "/x"\n'
    folder = write(
        place.top / "hand\x1b[31min", {"server.c": f"#warning {warning}\n{told}{hostile}"}
    )
    done = place.grade("02-fork", folder, "ONLY=serves", "PATIENCE=0.4")
    said = done.out + done.err + (place.logs / "serves.log").read_text()
    assert "lab_was_here" in done.out
    assert "\\x1b]0;lab_was_here" in said
    assert [char for char in said if not (char.isprintable() or char in "\n\t")] == []
    texts = [done.results["output"], *done.outputs.values()]
    assert all(char.isprintable() or char in "\n\t" for text in texts for char in text)
