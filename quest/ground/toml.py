"""TOML (or JSON) tables to frozen dataclasses: the one loader of every file that people write.

A dataclass is the form of a table. A field with a Doc is a key of the file; a field without one is
not, unless no field has one: then all are. The type of the field says what the key may hold:

    str, int, float, bool      a number is finite; true is no number; 2.0 is no whole number
    A | B, A | None            one of several
    tuple[A, ...], tuple[A, A] a list of any length, or of this one
    Mapping[str, A], dict      a table whose keys the file chooses
    object                     any value
    another such dataclass     a table, or with tuple[..., ...] a list of tables

Limits are in a Rule, where they hold: Annotated[int, Rule(least=1), Doc("how often")] for a field,
tuple[Annotated[str, Rule(pattern="[a-z]+")], ...] for each of a list. A dataclass may have a method
fault(), which says what is wrong with a whole table ("" if nothing is).

Every mistake is an InputError of one line, `file: place: fault`:

    benchmarks/experiments/x.toml: variant "diet": unknown key "comand"; did you mean "command"?
"""

import difflib
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin

from quest.ground.errors import InputError
from quest.ground.foreign import line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")


@dataclass(frozen=True)
class Doc:
    """That a field is a key of the file, and what it means.

    `key`: its name in the file, if it is not the field's. `example`: what stands behind the key in
    a printed table of fields. `accepts` and `convert`: the type in the file, and the function that
    makes the field's value of it, where the two differ.
    """

    text: str
    key: str = ""
    example: str = ""
    accepts: Any = None
    convert: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Rule:
    """Limits of a value. `must` replaces what is said where one of them is broken."""

    choices: tuple[str, ...] = ()
    pattern: str = ""  # of the whole text
    least: float | None = None
    above: float | None = None
    filled: bool = False  # not ""; a list or table that is not empty
    distinct: bool = False  # no element of the list twice
    count: tuple[int, ...] = ()  # how many elements the list may have
    single: bool = False  # one text may stand for a list of one
    needs: tuple[str, ...] = ()  # keys that the table must have
    must: str = ""


NO_RULE = Rule()
LARGEST = sys.float_info.max  #: of whole numbers, too: one beyond it can neither be computed with nor be shown


class _Fault(Exception):
    """What is wrong, from the table downwards that is being read."""


# ---- one reader for each type --------------------------------------------------------------------


class _Scalar:
    """A text, a number, true or false."""

    def __init__(self, kinds: frozenset[type], rule: Rule) -> None:
        self.kinds, self.rule = kinds, rule
        self.pattern = re.compile(rule.pattern) if rule.pattern else None
        self.limited = rule != NO_RULE
        numbers = (["a number"] if str in kinds else ["a finite number"]) if float in kinds else []
        numbers += ["a whole number"] if int in kinds and float not in kinds else []
        texts = ["a text"] if str in kinds else []
        self.what = " or ".join([*numbers, *texts, *(["true or false"] if bool in kinds else [])])
        self.to_float = float in kinds and int not in kinds

    def takes(self, value: Any) -> bool:
        kind = type(value)
        if kind is int and self.kinds & {int, float}:
            return bool(-LARGEST <= value <= LARGEST)
        return kind in self.kinds and (kind is not float or math.isfinite(value))

    def takes_all(self, values: Sequence[Any]) -> bool:
        """The same of many, in less time: result sets hold millions."""
        kinds = set(map(type, values))
        if not kinds <= self.kinds | ({int} if float in self.kinds else set()):
            return False
        if int in kinds:
            whole = values if kinds == {int} else [v for v in values if type(v) is int]
            if not -LARGEST <= min(whole) <= max(whole) <= LARGEST:
                return False
        return float not in kinds or all(math.isfinite(v) for v in values if type(v) is float)

    def problem(self, value: Any) -> str:
        """As "must be a text"; "" for a value that may stand here."""
        rule = self.rule
        if type(value) is int and abs(value) > LARGEST and self.kinds & {int, float}:
            return "is too large a number"
        if not self.takes(value):
            return f"must {rule.must or 'be ' + self.what}"
        if not self.limited:
            return ""
        problem = ""
        if rule.choices and value not in rule.choices:
            problem = f'be one of {", ".join(rule.choices)}, not "{value}"'
        elif rule.filled and value == "":
            problem = "not be empty"
        elif self.pattern and not self.pattern.fullmatch(value):
            problem = f"match {rule.pattern}"
        elif rule.least is not None and value < rule.least:
            problem = f"be at least {rule.least:g}, not {value:g}"
        elif rule.above is not None and value <= rule.above:
            problem = f"be above {rule.above:g}, not {value:g}"
        return f"must {rule.must or problem}" if problem else ""

    def read(self, value: Any, key: str) -> Any:
        if problem := self.problem(value):
            raise _Fault(f'"{key}" {problem}')
        return float(value) if self.to_float else value


class _Anything:
    """A value that is not looked at."""

    what = "anything"

    def takes(self, _: Any) -> bool:
        return True

    def read(self, value: Any, _: str) -> Any:
        return value


class _List:
    def __init__(self, inner: Any, rule: Rule) -> None:
        self.inner, self.rule = inner, rule
        # "a whole number" -> "whole numbers", "a list of texts" -> "lists of texts"
        plural = re.sub(r"\ba ((?:whole |finite )?\w+)", r"\1s", inner.what)
        self.what = f"a list of {plural}"

    def takes(self, value: Any) -> bool:
        return isinstance(value, list | tuple) or (self.rule.single and self.inner.takes(value))

    def read(self, value: Any, key: str) -> tuple[Any, ...]:
        rule = self.rule
        if not self.takes(value):
            raise _Fault(f'"{key}" must {rule.must or "be " + self.what}')
        if not isinstance(value, list | tuple):
            value = [value]
        if rule.filled and not value:
            raise _Fault(f'"{key}" must {rule.must or "not be empty"}')
        if rule.count and len(value) not in rule.count:
            wanted = f"have {' or '.join(map(str, rule.count))} elements, not {len(value)}"
            raise _Fault(f'"{key}" must {rule.must or wanted}')
        if isinstance(self.inner, _Record):
            name = key.removesuffix("s")
            return tuple(self.inner.read_one(each, name, n) for n, each in enumerate(value, 1))
        if isinstance(self.inner, _Scalar):
            return self._scalars(value, key)
        return tuple(self.inner.read(each, f"{key} {n}") for n, each in enumerate(value, 1))

    def _scalars(self, value: Any, key: str) -> tuple[Any, ...]:
        inner, must = self.inner, self.rule.must
        if not inner.takes_all(value):
            raise _Fault(f'"{key}" must {must or inner.rule.must or "be " + self.what}')
        if inner.limited and (problem := next(filter(None, map(inner.problem, value)), "")):
            raise _Fault(f'"{key}" must {must}' if must else f'"{key}": each {problem}')
        if self.rule.distinct and len({*map(repr, value)}) < len(value):
            raise _Fault(f'"{key}" must {self.rule.must or f"be {self.what}, each once"}')
        return tuple(map(float, value)) if inner.to_float else tuple(value)


class _Table:
    """Keys of the file's own choice."""

    what = "a table"

    def __init__(self, keys: _Scalar, inner: Any, rule: Rule) -> None:
        self.keys, self.inner, self.rule = keys, inner, rule

    def takes(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def read(self, value: Any, key: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _Fault(f'"{key}" must {self.rule.must or "be a table"}')
        if self.rule.filled and not value:
            raise _Fault(f'"{key}" must {self.rule.must or "not be empty"}')
        allowed = self.keys.rule.choices
        for name in value:
            if allowed and name not in allowed:
                raise _Fault(f'"{key}": {_unknown(name, allowed)}')
            if problem := self.keys.problem(name):
                raise _Fault(f'"{key}": "{name}" {problem}')
        for name in self.rule.needs:
            if name not in value:
                raise _Fault(f'"{key}": "{name}" is missing')
        if isinstance(self.inner, _Record):
            return {name: self.inner.read_named(each, key, name) for name, each in value.items()}
        try:
            return {name: self.inner.read(each, name) for name, each in value.items()}
        except _Fault as fault:
            raise _Fault(f'"{key}": {fault}') from None


class _Either:
    """The first of several types that takes the value. `must` also replaces what a text or a number of one of them says
    of its limits; a list or a table says better what is wrong inside it.
    """

    def __init__(self, members: list[Any], rule: Rule) -> None:
        self.members, self.rule = members, rule
        self.what = " or ".join(member.what for member in members)

    def takes(self, value: Any) -> bool:
        return any(member.takes(value) for member in self.members)

    def read(self, value: Any, key: str) -> Any:
        member = next((member for member in self.members if member.takes(value)), None)
        limited = self.rule.must and isinstance(member, _Scalar) and member.problem(value)
        if member is None or limited:
            raise _Fault(f'"{key}" must {self.rule.must or "be " + self.what}')
        return member.read(value, key)


class _Record:
    """A dataclass."""

    what = "a table"

    def __init__(self, cls: type[Any]) -> None:
        self.cls = cls
        self.keys = {key.name: key for key in keys_of(cls)}
        self.required = [key.name for key in self.keys.values() if key.required]
        self.named = any(each.name == "name" for each in fields(cls)) and not any(
            key.field == "name" for key in self.keys.values()
        )
        self.fault = getattr(cls, "fault", None)

    def takes(self, value: Any) -> bool:
        return isinstance(value, Mapping)

    def make(self, table: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """Of the keys of a table and what is given besides, which is taken as it is."""
        for name in table:
            if name not in self.keys:
                raise _Fault(_unknown(name, self.keys))
        for name in self.required:
            if name not in table and self.keys[name].field not in given:
                raise _Fault(f'"{name}" is missing')
        values = {}
        for name, value in table.items():
            key = self.keys[name]
            read = _reader(key.kind).read(value, name)
            values[key.field] = key.doc.convert(read) if key.doc.convert else read
        record = self.cls(**{**values, **given})
        if self.fault and (problem := self.fault(record)):
            raise _Fault(problem)
        return record

    def read(self, value: Any, key: str) -> Any:
        return self._at(f'"{key}"', value, {})

    def read_one(self, value: Any, key: str, number: int) -> Any:
        """One of a list of tables: called by its name, key or id, if it has one."""
        name = None
        if isinstance(value, Mapping):
            name = value.get("name", value.get("key", value.get("id")))
        shown = f'"{name}"' if isinstance(name, str) else name if type(name) is int else number
        return self._at(f"{key} {shown}", value, {})

    def read_named(self, value: Any, key: str, name: str) -> Any:
        """One of a table of tables."""
        return self._at(f'{key} "{name}"', value, {"name": name} if self.named else {})

    def _at(self, place: str, value: Any, given: Mapping[str, Any]) -> Any:
        if not isinstance(value, Mapping):
            raise _Fault(f"{place} must be a table")
        try:
            return self.make(value, given)
        except _Fault as fault:
            raise _Fault(f"{place}: {fault}") from None


def _unknown(name: object, known: Any) -> str:
    near = difflib.get_close_matches(str(name), map(str, known), n=1)
    return f'unknown key "{name}"' + (f'; did you mean "{near[0]}"?' if near else "")


@cache
def _reader(kind: Any) -> Any:
    return _reader_with(kind, NO_RULE)


def _reader_with(kind: Any, rule: Rule) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _reader_with(inner[0], next((a for a in inner[1:] if isinstance(a, Rule)), rule))
    if origin is tuple:
        if Ellipsis not in inner:
            rule = replace(rule, count=(len(inner),))
        return _List(_reader(inner[0]), rule)
    if origin in (Mapping, dict):
        return _Table(_reader(inner[0]), _reader(inner[1]), rule)
    if origin in (Union, UnionType):
        members = [member for member in inner if member is not NoneType]
        if len(members) == 1:
            return _reader_with(members[0], rule)
        plain = frozenset(member for member in members if isinstance(member, type))
        if plain <= {str, int, float, bool} and len(plain) == len(members):
            return _Scalar(plain, rule)
        return _Either([_reader_with(member, NO_RULE) for member in members], rule)
    if is_dataclass(kind) and isinstance(kind, type):
        return _Record(kind)
    if kind is object:
        return _Anything()
    if kind in (str, int, float, bool):
        return _Scalar(frozenset((kind,)), rule)
    raise TypeError(f"a file cannot hold a {kind}")


# ---- what a dataclass says of its keys -----------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key that a table may have. `default` is shown where it is not required; "" is none."""

    name: str
    field: str
    kind: Any
    doc: Doc
    required: bool
    default: Any = None

    @property
    def what(self) -> str:
        """Its type in words, as "a list of texts"."""
        return str(_reader(self.kind).what)

    @property
    def choices(self) -> tuple[str, ...]:
        """Of a text that must be one of several."""
        reader = _reader(self.kind)
        return reader.rule.choices if isinstance(reader, _Scalar) else ()

    @property
    def table(self) -> "type[DataclassInstance] | None":
        """The dataclass of the table, or tables, that it holds."""
        reader = _reader(self.kind)
        inner = reader if isinstance(reader, _Record) else getattr(reader, "inner", None)
        return inner.cls if isinstance(inner, _Record) else None

    @property
    def is_table_of_tables(self) -> bool:
        return isinstance(_reader(self.kind), _Table) and self.table is not None

    @property
    def is_list(self) -> bool:
        return isinstance(_reader(self.kind), _List)


def keys_of(cls: "type[DataclassInstance]") -> Iterator[Key]:
    """The keys of a table of that form, in the order of the fields."""
    docs = {each.name: _doc(each) for each in fields(cls) if each.init}
    if not any(docs.values()):
        docs = dict.fromkeys(docs, Doc(""))
    for each in fields(cls):
        if (doc := docs.get(each.name)) is not None:
            kind = each.type if doc.accepts is None else doc.accepts
            required = each.default is MISSING and each.default_factory is MISSING
            yield Key(doc.key or each.name, each.name, kind, doc, required, _default(each))


def _doc(one: Field[Any]) -> Doc | None:
    annotations = get_args(one.type) if get_origin(one.type) is Annotated else ()
    return next((each for each in annotations if isinstance(each, Doc)), None)


def _default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return None if one.default is MISSING else one.default


# ---- reading -------------------------------------------------------------------------------------


def read_toml(path: Path) -> dict[str, Any]:
    """A file as tables; the mark that some editors write before UTF-8 is left out. InputError if it cannot be read, or
    is not TOML.
    """
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not TOML: not UTF-8") from error
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and [[[[ without end
        raise InputError(f"{path}: not TOML: {error}") from error


def record_of(cls: type[Record], table: Mapping[str, Any], shown: str, **given: Any) -> Record:
    """A dataclass from a table. `shown`: the file's name, for InputError. `given`: fields that the
    file does not have.
    """
    try:
        made: Record = _reader(cls).make(table, given)
    except _Fault as fault:
        raise InputError(line(f"{shown}: {fault}")) from None
    return made


def load(cls: type[Record], path: Path, **given: Any) -> Record:
    """A dataclass from a whole file."""
    return record_of(cls, read_toml(path), str(path), **given)
