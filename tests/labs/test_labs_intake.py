"""What classes hand in: each submission is found, or has its line with the reason; and what is said
by whom is text, wherever it ends.
"""

import csv
import io
import json
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from quest.ground import foreign
from quest.labs import archive, class_table, intake
from quest.labs.class_table import Grade, Kind
from quest.labs.errors import LabError
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
        ({"code/02-fork/server.c": MINE}, b"", "there is no server.c"),
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
    from dataclasses import replace

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
    assert (tmp_path / "grades.csv.old1").read_text() == text, "no points are lost"
    table.write_text("name,score,of,state,failed,seconds\nada,20,20,graded,,1.0\n")
    assert again() == ["ada", "bob", "cyd"], "of a table from before there were hashes"


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
