"""quest/book/code_lint.py: a name is defined in one place, and what a reader opens is counted."""

from pathlib import Path
from types import ModuleType

import pytest

from quest.book import code_lint

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="lint")
def fixture_lint(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.chdir(ROOT)
    return code_lint


FIRST = """\
#ifndef FIRST_H
#define FIRST_H
struct one {
    int a;
};
int exported(int a)
{
    return a;
}
"""


@pytest.mark.parametrize(
    ("suffix", "second", "fault"),
    [
        (".h", "#ifndef FIRST_H\n#define FIRST_H\n", "include guard FIRST_H"),
        (".h", "static struct one {\n    int b;\n} all[3];\n", "struct one"),
        (".c", "struct two *exported(const char *a,\n        int b)\n{\n}\n", "function exported"),
        (".c", "static int exported(int a)\n{\n}\nstruct one a = {\n    1,\n};\n", ""),
        (".c", "int exported(int a);\nstruct one;\nenum one {\n};\n", ""),
    ],
)
def test_a_name_that_is_there_twice(lint: ModuleType, tmp_path: Path, suffix: str, second: str, fault: str) -> None:
    files = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    for path, text in zip(files, (FIRST, second), strict=True):
        path.write_text(text)
    found = list(lint.check_names(files))
    assert len(found) == (1 if fault else 0), found
    assert all(fault in line for line in found)


def test_names_of_static_functions_are_counted(
    lint: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / name for name in ("a.c", "b.c")]
    for path in files:
        path.write_text("static void begin(int a,\n                  int b)\n{\n}\n")
    for allowed in (0, 1):
        monkeypatch.setattr(lint, "DOUBLED_STATIC", allowed)
        found = list(lint.check_names(files))
        assert len(found) == 1 - allowed
        assert all(line.endswith(": begin") for line in found)


def test_what_a_reader_opens(lint: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """Sources and headers, but those that every server has, and no appendix."""
    sources = [Path(f"code/{name}") for name in ("09-epoll/server.c", "06-select/clients.c")]
    expected = ["05b-nonblocking/conn.h", "06-select/clients.c", "06-select/clients.h"]
    assert lint.files_of(sources) == [Path("code") / n for n in (*expected, "09-epoll/server.c")]
    lint.print_table()
    title, *rows = capsys.readouterr().out.splitlines()
    assert "files  lines" in title
    assert [row.split()[2] for row in rows] == list(lint.READ_WHOLE)


@pytest.mark.parametrize(
    ("name", "length", "columns", "fault"),
    [
        ("f", 60, 100, ""),
        ("f", 61, 100, "f() has 61 lines, 60"),
        ("f_loop", 99, 100, ""),
        ("f", 60, 101, "101 columns"),
    ],
)
def test_functions_and_lines_have_a_limit(
    lint: ModuleType, tmp_path: Path, name: str, length: int, columns: int, fault: str
) -> None:
    path = tmp_path / "a.c"
    body = ["    " + "x" * (columns - 4), *["    x;"] * (length - 4)]
    path.write_text("\n".join([f"static int {name}(void)", "{", *body, "}", ""]))
    found = list(lint.check_files([path]))
    assert len(found) == bool(fault) and all(fault in line for line in found)


def test_a_server_is_small_and_near_the_one_before_it(lint: ModuleType, tmp_path: Path) -> None:
    def server(slug: str, *lines: str) -> Path:
        path = tmp_path / slug / "server.c"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["/* region: x */", *lines, "/* endregion: x */", ""]))
        return path

    same = [f"int a{n};" for n in range(100)]
    for changed in (65, 66):
        new = server("03-prefork", *(f"int b{n};" for n in range(changed)), *same[changed:])
        found = list(lint.check_servers([server("02-fork", *same), new]))
        assert len(found) == (changed > 65) and all("by 66 lines, 65 are allowed" in line for line in found)
    for slug, most in (("05-pool", 250), ("15-slashdot", 350)):
        assert list(lint.check_servers([server(slug, *["x;"] * most)])) == []
        (fault,) = lint.check_servers([server(slug, *["x;"] * (most + 1))])
        assert f"{most + 1} lines, {most} are allowed" in fault
