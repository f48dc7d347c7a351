"""The loader of TOML files: each type, each rule, each field of each of our files."""

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest

from quest.ground import toml
from quest.ground.errors import InputError
from quest.ground.toml import Doc, Key, Rule, keys_of, record_of
from quest.measure.peers import Peer
from quest.measure.records import LINES
from quest.report import fields
from quest.report.claims import Ledger
from quest.spec.model import Experiment


@dataclass(frozen=True)
class Leaf:
    """A leaf."""

    name: Annotated[str, Doc("of it")]
    size: Annotated[int, Rule(least=1), Doc("in mm")] = 1


@dataclass(frozen=True)
class Tree:
    """A tree."""

    title: Annotated[str, Rule(filled=True), Doc("of it")]
    height: Annotated[float, Rule(above=0), Doc("in m")] = 1.0
    kind: Annotated[str, Rule(choices=("oak", "elm")), Doc("of tree")] = "oak"
    code: Annotated[str, Rule(pattern="[a-z]{2}"), Doc("of the place")] = "aa"
    old: Annotated[bool, Doc("or not")] = False
    names: Annotated[tuple[str, ...], Rule(distinct=True), Doc("others")] = ()
    pair: Annotated[tuple[float, ...], Rule(count=(2,)), Doc("two")] = ()
    some: Annotated[tuple[str, ...], Rule(single=True, filled=True), Doc("one or more")] = ()
    mixed: Annotated[int | float | str | None, Doc("a number or a text")] = None
    values: Annotated[Mapping[str, int], Doc("by name")] = field(default_factory=dict)
    leaves: Annotated[tuple[Leaf, ...], Doc("that it has", key="leaf")] = ()
    best: Annotated[Leaf | None, Doc("of its leaves")] = None
    by_month: Annotated[
        Mapping[Annotated[str, Rule(choices=("may", "june"))], Leaf],
        Rule(needs=("may",)),
        Doc("of a month"),
    ] = field(default_factory=dict)
    either: Annotated[bool | tuple[str, ...], Doc("true, or which")] = False
    mib: Annotated[str, Doc("as text", accepts=int, convert=str)] = ""
    ours: str = "not in the file"

    def fault(self) -> str:
        return '"old" goes with "height"' if self.old and self.height == 1 else ""


WHOLE: dict[str, Any] = {
    "title": "Oak", "height": 3, "kind": "elm", "code": "xy", "old": True, "names": ["a", "b"],
    "pair": [1, 2.5], "some": "one", "mixed": 4, "values": {"x": 1}, "leaf": [{"name": "l"}],
    "best": {"name": "b", "size": 2}, "by_month": {"may": {"name": "m"}}, "either": ["x"], "mib": 5,
}  # fmt: skip


def test_a_whole_table_becomes_a_record() -> None:
    tree = record_of(Tree, WHOLE, "x.toml", ours="given")
    assert tree == Tree(
        title="Oak", height=3.0, kind="elm", code="xy", old=True, names=("a", "b"),
        pair=(1.0, 2.5), some=("one",), mixed=4, values={"x": 1}, leaves=(Leaf("l"),),
        best=Leaf("b", 2), by_month={"may": Leaf("m")}, either=("x",), mib="5", ours="given",
    )  # fmt: skip
    assert type(tree.height) is float and type(tree.mixed) is int
    assert [type(each) for each in tree.pair] == [float, float]
    assert record_of(Tree, {"title": "x"}, "x.toml") == Tree("x")


#: A change, and what the line must name besides the file: places and what is wrong there.
FAULTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"titel": "x"}, ['unknown key "titel"', 'did you mean "title"']),
    ({"ours": "x"}, ['unknown key "ours"']),
    ({"title": None}, ['"title" is missing']),
    ({"title": ""}, ['"title"', "empty"]),
    ({"height": 0}, ['"height"', "above 0"]),
    ({"height": float("nan")}, ['"height"', "finite"]),
    ({"height": 10**309}, ['"height" is too large a number']),
    ({"pair": [1, -(10**309)]}, ['"pair"', "finite"]),
    ({"kind": "ash"}, ['"kind"', "oak, elm", '"ash"']),
    ({"code": "abc"}, ['"code"', "[a-z]{2}"]),
    ({"old": 1}, ['"old"', "true or false"]),
    ({"old": True, "height": 1}, ['"old"', '"height"']),
    ({"names": ["a", "a"]}, ['"names"', "once"]),
    ({"names": ["a", 1]}, ['"names"', "list of texts"]),
    ({"pair": [1]}, ['"pair"', "2"]),
    ({"pair": [1, float("inf")]}, ['"pair"', "finite"]),
    ({"pair": [1, 10**309]}, ['"pair"', "finite"]),
    ({"some": []}, ['"some"', "empty"]),
    ({"mixed": True}, ['"mixed"', "number or a text"]),
    ({"values": {"x": 1.0}}, ['"values": "x"', "whole number"]),
    ({"values": {"x": -(10**309)}}, ['"values": "x" is too large a number']),
    ({"values": []}, ['"values"', "table"]),
    ({"leaf": {}}, ['"leaf"', "list"]),
    ({"leaf": [1]}, ["leaf 1", "table"]),
    ({"leaf": [{"name": "a"}, {}]}, ['leaf 2: "name" is missing']),
    ({"leaf": [{"name": "a", "size": 0}]}, ['leaf "a": "size"', "at least 1"]),
    ({"leaf": [{"name": "a", "size": -(10**309)}]}, ['leaf "a": "size" is too large a number']),
    ({"best": {"name": "a", "sise": 0}}, ['"best": unknown key "sise"']),
    ({"by_month": {"may": {"name": 3}}}, ['by_month "may": "name"', "text"]),
    ({"by_month": {"june": {"name": "x"}}}, ['"by_month": "may" is missing']),
    ({"by_month": {"july": {"name": "x"}}}, ['"by_month"', 'unknown key "july"']),
    ({"either": "x"}, ['"either"', "true or false or a list of texts"]),
    ({"mib": "5"}, ['"mib"', "whole number"]),
    ({"leaf": [{"name": "a\nb\x1b", "size": 0}]}, ["a\\nb\\x1b"]),
    ({"a\nb": 1}, ["a\\nb"]),
]


@pytest.mark.parametrize(("change", "named"), FAULTS, ids=[str(change)[:60] for change, _ in FAULTS])
def test_a_fault_is_one_line_with_file_place_and_fault(change: dict[str, Any], named: list[str]) -> None:
    table = {key: value for key, value in (WHOLE | change).items() if value is not None}
    with pytest.raises(InputError) as error:
        record_of(Tree, table, "x.toml")
    line = str(error.value)
    assert line.startswith("x.toml: ") and "\n" not in line
    assert [name for name in named if name not in line] == []


def test_where_no_field_has_a_doc_all_are_keys() -> None:
    @dataclass(frozen=True)
    class Plain:
        pair: tuple[str, str]
        edits: dict[str, dict[str, str]] = field(default_factory=dict)

    table: dict[str, Any] = {"pair": ["a", "b"], "edits": {"x.c": {"f": "g"}}}
    assert record_of(Plain, table, "x.toml") == Plain(("a", "b"), {"x.c": {"f": "g"}})
    faults: list[dict[str, Any]] = [
        {"pair": ["a"]}, {"edits": {"x.c": {"f": 1}}}, {"pairs": []},
    ]  # fmt: skip
    for wrong in faults:
        with pytest.raises(InputError, match=r"x\.toml: .*(pair|edits)"):
            record_of(Plain, table | wrong, "x.toml")


@pytest.mark.parametrize(
    "content",
    [
        b"id = ",
        b"\xff",
        None,
        pytest.param(b"x = 1" + b"0" * 5000, id="digits"),
        pytest.param(b"x = " + b"[" * 5000, id="deep"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"^\S*x\.toml: [^\n]+$"):
        toml.load(Tree, path)


def test_a_file_of_another_editor(tmp_path: Path) -> None:
    """Some write a mark before UTF-8, and two characters at the end of a line."""
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbftitle = 'x'\r\nheight = 3\r\n")
    assert toml.load(Tree, path) == Tree("x", 3.0)


def test_what_a_file_cannot_hold_is_refused_at_once() -> None:
    @dataclass(frozen=True)
    class Wrong:
        moment: Annotated[datetime.date, Doc("that TOML has and we do not")]

    with pytest.raises(TypeError, match="date"):
        record_of(Wrong, {"moment": 1}, "x.toml")


# ---- each field of each of our files -------------------------------------------------------------

FORMS = [Experiment, Peer, Ledger, *LINES.values(), Tree]
VALUES: dict[str, Any] = {
    "text": "x", "whole": 1, "number": 1.5, "bool": True, "list": [], "table": {},
    "date": datetime.date(2026, 11, 23), "list of dates": [datetime.date(2026, 11, 23)],
}  # fmt: skip


def taken(kind: Any, single: bool = False) -> set[str]:
    """The VALUES that the type takes, whatever its rules say."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return taken(inner[0], any(isinstance(a, Rule) and a.single for a in inner[1:]))
    if origin in (Union, UnionType):
        return {name for each in inner if each is not NoneType for name in taken(each)}
    if origin is tuple:
        return {"list", *(taken(inner[0]) if single else ())}
    if origin is Mapping or is_dataclass(kind):
        return {"table"}
    return {
        str: {"text"}, int: {"whole"}, float: {"whole", "number"}, bool: {"bool"},
    }[kind]  # fmt: skip


def all_keys(form: Any) -> Iterator[tuple[Any, Key]]:
    for key in keys_of(form):
        yield form, key
        if key.table is not None:
            yield from all_keys(key.table)


UNIQUE = {(form, key.name): (form, key) for one in FORMS for form, key in all_keys(one)}
KEYS = list(UNIQUE.values())


@pytest.mark.parametrize(("form", "key"), KEYS, ids=[f"{form.__name__}.{key.name}" for form, key in KEYS])
def test_each_field_refuses_what_is_not_of_its_type(form: Any, key: Key) -> None:
    """Alone in its table: then only what is missing could be told as well, and is told first."""
    others = {each.name: each.field for each in keys_of(form) if each.required}
    others.pop(key.name, None)
    given = dict.fromkeys(others.values())
    refused = [name for name in VALUES if name not in taken(key.kind)]
    assert len(refused) >= 4
    for name in refused:
        with pytest.raises(InputError) as error:
            record_of(form, {key.name: VALUES[name]}, "x.toml", **given)
        line = str(error.value)
        place = rf'("{key.name}"|"?{key.name.removesuffix("s")} 1"?)'
        assert re.match(rf"x\.toml: {place} .*must", line), name


@pytest.mark.parametrize("form", FORMS, ids=[form.__name__ for form in FORMS])
def test_each_form_says_what_its_keys_mean(form: Any) -> None:
    for one, key in all_keys(form):
        assert one.__doc__ and key.doc.text, key.name


def test_the_readme_has_the_keys_of_the_files() -> None:
    text = fields.README.read_text(encoding="utf-8")
    assert fields.with_fields(text) == text, "python3 -m quest.report.fields writes them"
    for _, key in all_keys(Experiment):
        assert key.table or f"\n    {key.name}" in text
    for wrong in (text.replace("<!--fields peer-->", ""), text.replace("fields peer", "fields x")):
        with pytest.raises(InputError, match="benchmarks/README"):
            fields.with_fields(wrong)
    assert fields.with_fields(text.replace("children = 200", "children = 2")) == text
