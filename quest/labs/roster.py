"""The students of a class: a roster merged of several tables (forges.py), and whose each submission
is. Only what agrees to the letter counts: what is unknown, or may be of two, is listed for a person.
"""

import hmac
import os
import secrets
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from hashlib import sha256
from pathlib import Path

from quest.ground import foreign
from quest.labs import files, forges
from quest.labs.errors import LabError
from quest.labs.forges import STRONG, Delivery, Table
from quest.labs.intake import Submission

Key = tuple[str, str]
#: what the name of a folder, or an identifier of GitHub Classroom, may be
ANY = (*STRONG, "name")
#: what the id of a student is taken from: the first that is known
OF_ID = tuple(dict.fromkeys(("id", "e-mail", "login", "github", *STRONG)))
#: of which a student has one: another one is another student's
SINGLE = ("id", "canvas", "moodle")
ID_CHARACTERS = 10  #: of an anonymous id
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  #: without those that are taken for another


def normal(text: str) -> str:
    """A text by which two are compared: spaces, capitals and the ways to write an accent count for
    nothing."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def person_name(text: str) -> str:
    """The same of a person: "Doe, Jane" is Jane Doe."""
    last, comma, first = text.partition(",")
    return normal(f"{first} {last}" if comma and "," not in first else text)


def readable(text: str) -> str:
    """The name of a file whose bytes are not UTF-8 as Latin-1."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return os.fsencode(text).decode("latin-1")
    return text


def _key(kind: str, text: str) -> Key:
    if kind == "login" and "@" in text:  # many sites log in by address
        kind = "e-mail"
    return kind, person_name(text) if kind == "name" else normal(text)


@dataclass
class Person:
    """A student of the roster."""

    name: str = ""
    keys: set[Key] = field(default_factory=set)
    shown: dict[str, str] = field(default_factory=dict)  #: kind -> the text as it was
    lines: dict[str, int] = field(default_factory=dict)  #: file -> the line it was first in
    time: str = ""  #: when the work was handed in, as the forge writes it
    doubtful: bool = False  #: two lines with one id are of different students

    @property
    def id(self) -> str:
        """By which a teacher names the student: the university's id, else another."""
        texts = (self.shown.get(kind, "") for kind in OF_ID)
        return next(filter(None, texts), self.name)

    @property
    def title(self) -> str:
        """For a person."""
        return f"{self.name} ({self.id})" if self.name and self.name != self.id else self.id

    def is_other(self, keys: Iterable[Key]) -> bool:
        """Whether an id among the keys says that they are another student's."""
        mine = {kind: normal(text) for kind, text in self.shown.items() if kind in SINGLE}
        return any(mine.get(kind, normal(text)) != normal(text) for kind, text in keys)

    def add(self, keys: Iterable[Key], name: str, table: Table, line: int) -> None:
        """What another line says of the same student."""
        for kind, text in keys:
            self.keys.add(_key(kind, text))
            self.shown.setdefault(kind, text)
        if name:
            self.keys.add(_key("name", name))
            self.name = self.name or name
        self.lines.setdefault(str(table.path), line)


@dataclass
class Roster:
    """All students, and what a teacher has to decide about them."""

    people: list[Person] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def by(self, keys: Iterable[Key]) -> list[Person]:
        """Those that have one of the keys."""
        wanted = set(keys)
        return [person for person in self.people if person.keys & wanted]

    def has(self, kind: str) -> bool:
        """Whether it knows keys of that kind at all."""
        return any(kind in person.shown for person in self.people)

    def of_line(self, table: Table, row: list[str]) -> Person | None:
        """Whose a line is of a table that was merged; None where that was in doubt."""
        keys = table.keys(row)
        found = self.by(_key(*key) for key in keys if key[0] in STRONG)
        for text in (text for kind, text in keys if kind == "any"):
            found = found or self.named(text)
        if not found and (name := table.name(row)):
            found = self.by([_key("name", name)])
        return found[0] if len(found) == 1 and not found[0].doubtful else None

    def named(self, text: str) -> list[Person]:
        """Those whom a text may mean: an id, an address, a name."""
        return self.by(_key(kind, text) for kind in ANY)

    def of_id(self, text: str) -> Person | None:
        """The student whose Person.id was that, maybe before another table was merged."""
        for kind in (*OF_ID, "name"):
            if found := self.by([_key(kind, text)]):
                return found[0] if len(found) == 1 else None
        return None

    def merge(self, table: Table, with_times: bool = False) -> None:
        """Adds a table. A line is of a student that is there if a key of it is; else if the name is
        there once, and once in the table. with_times: it says when this work was handed in."""
        self.notes += table.notes
        names = Counter(person_name(table.name(row)) for _, row in table.students())
        first = not self.people
        unknown = 0
        for line, row in table.students():
            keys, name = table.keys(row), table.name(row)
            place = f"{table.path}, line {line}"
            if not keys and not name:
                continue
            certain = [key for key in keys if key[0] != "any"]
            found = self.by(_key(*key) for key in certain if key[0] in STRONG)
            if not found and (any_key := next((text for kind, text in keys if kind == "any"), "")):
                found = self.named(any_key)
                if not found:
                    certain.append(("e-mail" if "@" in any_key else "id", any_key))
            if not found and name and not first:
                alike = [
                    p for p in self.by([_key("name", name)])
                    if str(table.path) not in p.lines and not p.is_other(certain)
                ]  # fmt: skip
                if len(alike) > 1 or (alike and names[person_name(name)] > 1):
                    self.doubts.append(f"{place}: {name} may be {_either(alike)}")
                    continue
                found = alike
            if len(found) > 1:
                self.doubts.append(f"{place}: {name or keys[0][1]} may be {_either(found)}")
                continue
            if found and str(table.path) in found[0].lines:
                self._twice(found[0], certain, name, table, place)
                continue
            if found and found[0].is_other(certain):
                self.doubts.append(f"{place}: {name or keys[0][1]} has an id that is not that of {found[0].title}")
                continue
            unknown += not found
            person = found[0] if found else Person()
            if not found:
                self.people.append(person)
            person.add(certain, name, table, line)
            if with_times and table.layout.time:
                person.time = table.cell(row, table.layout.time)
        if unknown and not first:
            self.notes.append(f"{unknown} of {table.path} were not on the roster before")

    def _twice(self, person: Person, keys: Sequence[Key], name: str, table: Table, place: str) -> None:
        """A second line about one student: no news, or a mistake in the table."""
        said = {_key(*key) for key in keys} | ({_key("name", name)} if name else set())
        first = person.lines[str(table.path)]
        if said <= person.keys:
            self.notes.append(f"{place}: {person.title} was in line {first}, too")
        else:
            person.doubtful = True
            self.doubts.append(f"{place}: line {first} has the same id, and another student ({person.title})")


def _either(people: Sequence[Person]) -> str:
    return " or ".join(person.title for person in people)


# ---- whose a submission is


@dataclass(frozen=True)
class Match:
    """What is known of a submission."""

    people: tuple[Person, ...] = ()  #: several if the forge says that a group has handed it in
    why: str = ""  #: there is none
    time: datetime | None = None
    untold: bool = False  #: the forge had a time, and it was not understood


def of_submission(one: Submission, roster: Roster, teacher: Mapping[str, str], delivery: Delivery | None) -> Match:
    """Whose a submission is. teacher: its name -> an id, as the teacher has decided; "" for nobody.
    delivery: what Gradescope says of its folder."""
    if one.name in teacher:
        if not teacher[one.name]:
            return Match(why="not to be counted")
        found = roster.named(teacher[one.name])
        if len(found) != 1:
            raise LabError(f'who: "{one.name}" = "{teacher[one.name]}": {len(found)} of the roster are called so')
        return Match(tuple(found))
    if delivery is not None:
        each = [_certain(keys, roster) for keys in delivery.submitters]
        if any(len(people) != 1 or people[0].doubtful for people in each):
            names = ", ".join(dict(keys).get("name", "?") for keys in delivery.submitters)
            return Match(why=f"{names}: not on the roster, or more than once", time=delivery.time)
        return Match(tuple(people[0] for people in each), time=delivery.time)
    found = _certain(one.keys, roster)
    if len(found) > 1:
        return Match(why=f"may be {_either(found)}")
    if found and found[0].doubtful:
        return Match(why=f"{found[0].title} is twice on the roster")
    return Match(tuple(found), "" if found else "not on the roster")


def _certain(keys: Sequence[Key], roster: Roster) -> list[Person]:
    """Those who have the first of the keys whose kind the roster knows. A folder may be called by
    any; so may a repository, behind the name of the assignment."""
    for kind, text in keys:
        text = readable(text)
        if kind == "any":
            found = roster.named(text)
            return found or [
                p for p in roster.people
                if (user := p.shown.get("github")) and normal(text).endswith(f"-{normal(user)}")
            ]  # fmt: skip
        if kind == "name":
            return roster.by([_key("name", text)])
        if kind == "canvas name":  # Doe, Jane is doejane
            return [p for p in roster.people if text.casefold() in _canvas_names(p)]
        if roster.has(kind):
            return roster.by([_key(kind, text)])
    return []


def _canvas_names(person: Person) -> set[str]:
    """Of a name in which the last one is told from the others."""
    last, comma, first = person.name.partition(",")
    return {"".join(char for char in f"{last}{first}".casefold() if char.isalnum())} if comma else set()


def twice(matches: Mapping[str, Match]) -> dict[str, str]:
    """Name of a submission -> why it does not count: its student has handed in another."""
    by_person: dict[int, tuple[Person, list[str]]] = {}
    for name, match in matches.items():
        for person in match.people:
            by_person.setdefault(id(person), (person, []))[1].append(name)
    return {
        name: f"{person.title} has handed in twice: {', '.join(other for other in names if other != name)}, too"
        for person, names in by_person.values()
        if len(names) > 1
        for name in names
    }


def time_of(person: Person, zone: tzinfo | None) -> datetime | None:
    """When a student has handed in, by the forge's own table."""
    return forges.time_of(person.time, zone)


# ---- anonymous ids


class Mask:
    """Ids that say nothing of a student. With the key, which only the teacher has, and the roster
    they are computed again; without it they are not undone."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.given: dict[str, str] = {}

    @classmethod
    def of_file(cls, path: Path) -> "Mask":
        """With the key of a file, which is made if it is not there, for its owner alone."""
        if not path.exists():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(secrets.token_hex(32) + "\n")
        text = files.read_file(path).decode(errors="replace").strip()
        try:
            key = bytes.fromhex(text)
        except ValueError:
            key = b""
        if len(key) < 16:
            raise LabError(f"{path}: not a key, which has at least 32 hexadecimal digits")
        return cls(key)

    def id(self, who: str) -> str:
        """Of a student's id. LabError where two would have the same."""
        return self._of(normal(who))

    def of_submission(self, name: str) -> str:
        """Of one that is nobody's: by its name to the letter, and never that of a student's id."""
        return self._of(f"\0{name}")

    def _of(self, who: str) -> str:
        number = int.from_bytes(hmac.digest(self.key, who.encode("utf-8", "surrogateescape"), sha256))
        text = ""
        for _ in range(ID_CHARACTERS):
            number, place = divmod(number, len(ALPHABET))
            text += ALPHABET[place]
        if self.given.setdefault(text, who) != who:
            raise LabError("two students would get the same anonymous id: make another key")
        return text


def listed(title: str, lines: Sequence[str], most: int = 20) -> str:
    """For a person: how many, and each in a line of its own."""
    if not lines:
        return ""
    shown = [f"  {foreign.line(line)}" for line in lines[:most]]
    more = [f"  and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join([f"{title} ({len(lines)}):", *shown, *more])
