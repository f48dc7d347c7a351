"""The faults that are made, on made-up lines; the tests that they are given to."""

import pytest

from tests.mutants.faults import chosen, faults
from tests.mutants.mutants import PYTHON, ROOT, suites


@pytest.mark.parametrize(
    ("line", "kind", "after"),
    [
        ("    if (n < 0)", "comparison", "    if (n <= 0)"),
        ("    if (n < 0)", "negated", "    if (!(n < 0))"),
        ("    if (n < 0 && errno == EINTR)", "errno", "    if (n < 0)"),
        ("    close(fd);", "not given back", "    (void)0;"),
        ("    x->sent += n;", "left out", "    (void)0;"),
        ("    send(fd, p, n, MSG_MORE | MSG_NOSIGNAL);", "flag", "    send(fd, p, n, MSG_MORE);"),
        ("    len = strlen(s) + 1;", "off by one", "    len = strlen(s);"),
        ("    return a && b;", "logic", "    return a || b;"),
        ("    return true;", "answer", "    return false;"),
    ],
)
def test_a_fault_of_each_kind(line: str, kind: str, after: str) -> None:
    made = [
        fault for fault in faults("x.c", f"int f(void)\n{{\n{line}\n}}\n") if fault.kind == kind
    ]
    assert after in [fault.after for fault in made]
    assert {fault.number for fault in made} == {3}


@pytest.mark.parametrize(
    "line",
    [
        "    /* if (a < b) */",
        '    puts_("a < b && c") ;',
        "int a = 1 < 2;",
        "    int a = b;",
        "#if A < B",
    ],
)
def test_no_fault_in_comments_strings_and_declarations(line: str) -> None:
    assert faults("x.c", line) == []


def test_python_has_faults_too() -> None:
    text = 'def f():\n    """if a < b"""\n    return a < b and c\n'
    assert {fault.after.strip() for fault in faults("x.py", text)} == {
        "return a <= b and c",
        "return a < b or c",
    }


def test_the_choice_is_that_of_the_seed_and_grows_at_its_end() -> None:
    candidates = {f"{n}.c": faults(f"{n}.c", "    if (a < b && c)\n" * 5) for n in range(4)}
    few, many = chosen(candidates, 5, 1), chosen(candidates, 20, 1)
    assert many[:5] == few
    assert len({fault.name for fault in many}) == 20
    assert {fault.path for fault in few} == set(candidates)
    assert chosen(candidates, 5, 2) != few


@pytest.mark.parametrize("folder", PYTHON)
def test_of_python_its_own_tests(folder: str) -> None:
    named, about, all_of_them = suites(f"{folder}/words.py", [])
    assert named == [*all_of_them, "-k", "words"]
    *files, _, _ = about
    assert all((ROOT / path).exists() for path in (folder, *files, all_of_them[0]))
