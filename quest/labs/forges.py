"""The tables of Canvas, Moodle, Gradescope and GitHub Classroom, and a roster of one's own: which
columns say who a student is, when the work was handed in, and where a grade goes. And Gradescope's
submission_metadata.yml.

A table is written again as it was read: separator, byte order mark, line ends, columns and the
order of the lines, since the forge compares some of them.
"""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from quest.ground import foreign
from quest.labs import files
from quest.labs.errors import LabError

MOST_BYTES = 16 << 20
BOM = "\ufeff"
METADATA = "submission_metadata.yml"

#: A key says who a student is: its kind, and a text. These are a forge's own, or the university's.
STRONG = ("id", "e-mail", "login", "canvas", "moodle", "github", "repository")
#: Of a roster of one's own: column -> kind of key. The first that is there gives the kind.
PLAIN = {
    "id": "id", "student id": "id", "student number": "id", "id number": "id", "sid": "id", "number": "id",
    "matriculation number": "id", "sis user id": "id",
    "e-mail": "e-mail", "email": "e-mail", "mail": "e-mail", "email address": "e-mail", "e-mail address": "e-mail",
    "login": "login", "username": "login", "user": "login", "user name": "login", "sis login id": "login",
    "github": "github", "github username": "github", "github_username": "github",
}  # fmt: skip
NAMES = (("name",), ("full name",), ("student",), ("student name",), ("first name", "last name"),
         ("firstname", "lastname"), ("first name", "surname"), ("given name", "family name"))  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """What the columns of a table are, by their names in small letters."""

    name: str
    needs: tuple[str, ...]  #: the columns by which it is known
    keys: Mapping[str, str]  #: column -> kind of key
    names: tuple[tuple[str, ...], ...] = NAMES  #: which together are a name; the first that is there
    time: str = ""  #: when the work was handed in
    grade: str = ""
    most: str = ""  #: points that are possible
    remark: str = ""  #: for the student
    locked: str = ""  #: "No" in it: the forge takes no grade

    @property
    def short(self) -> str:
        """In the name of a file."""
        return self.name.split()[0].removesuffix("'s").lower()


CANVAS = Layout(
    "Canvas", ("id", "sis login id", "section"),
    {"id": "canvas", "sis user id": "id", "sis login id": "login"},
    (("student",), ("firstname", "lastname")),
)  # fmt: skip
LAYOUTS = (
    CANVAS,
    Layout(
        "Moodle's grading worksheet", ("identifier", "grade", "last modified (grade)"),
        {"identifier": "moodle", "id number": "id", "email address": "e-mail", "username": "login"},
        time="last modified (submission)", grade="grade", most="maximum grade", remark="feedback comments",
        locked="grade can be changed",
    ),
    Layout(
        "Gradescope's grades", ("sid", "email", "total score", "max points"),
        {"sid": "id", "email": "e-mail"},
        time="submission time", grade="total score", most="max points",
    ),
    Layout(
        "GitHub Classroom's grades", ("github_username", "roster_identifier", "points_awarded", "points_available"),
        {"github_username": "github", "roster_identifier": "any", "student_repository_name": "repository"},
        time="submission_timestamp", grade="points_awarded", most="points_available",
    ),
    Layout(
        "GitHub Classroom's roster", ("identifier", "github_username"),
        {"identifier": "any", "github_username": "github"},
    ),
)  # fmt: skip


@dataclass
class Table:
    """A file as it was read. `rows` are of the length of `header`; `numbers`: of the line in which each ends."""

    path: Path
    layout: Layout
    header: list[str]
    rows: list[list[str]]
    numbers: list[int]
    separator: str = ","
    before: str = ""  #: a byte order mark
    line_end: str = "\n"
    notes: list[str] = field(default_factory=list)  #: what a teacher should know of it

    def __post_init__(self) -> None:
        self.columns = {name.strip().casefold(): number for number, name in reversed([*enumerate(self.header)])}

    def cell(self, row: list[str], column: str) -> str:
        """Of a column in small letters; "" where there is none."""
        number = self.columns.get(column)
        return "" if number is None else row[number].strip()

    def put(self, row: list[str], column: str, text: str) -> None:
        """Replaces a cell, where there is such a column."""
        if (number := self.columns.get(column)) is not None:
            row[number] = text

    def students(self) -> Iterator[tuple[int, list[str]]]:
        """The number, as an editor shows it, and the cells of each line that is of a student."""
        for number, row in zip(self.numbers, self.rows, strict=True):
            about_columns = "points possible" in row[0].casefold()
            texts = [text for text in row if text.strip() and not text.strip().startswith("Manual Posting")]
            if texts and not about_columns and not all(text.strip() == "Muted" for text in texts):
                yield number, row

    def keys(self, row: list[str]) -> list[tuple[str, str]]:
        """What says who the student of a line is, but for the name."""
        found = []
        for column, kind in self.layout.keys.items():
            text = self.cell(row, column)
            if kind == "moodle":  # "Participant 123", in the language of the site
                text = text[len(text.rstrip("0123456789")) :]
            if text:
                found.append((kind, text))
        return found

    def name(self, row: list[str]) -> str:
        """Of the student of a line; "" where the table has no names."""
        for columns in self.layout.names:
            if all(column in self.columns for column in columns):
                text = " ".join(filter(None, (self.cell(row, column) for column in columns)))
                formula = re.fullmatch(r'="(.*)"', text, re.S)  # as Canvas writes a name that begins with "="
                return formula[1] if formula else text
        return ""

    def text(self) -> str:
        """As it is written. A name or a remark that a spreadsheet would compute gets a ' in front; what
        the forge knows a student by stays as it is."""
        kept = {self.columns[column] for column in self.layout.keys if column in self.columns}
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=self.separator, lineterminator=self.line_end)
        writer.writerow(self.header)
        for row in self.rows:
            writer.writerow(text if number in kept else _shown(text) for number, text in enumerate(row))
        return self.before + out.getvalue()


def _shown(text: str) -> str:
    harmless = re.fullmatch(r"[-+]?[\d.,]*%?", text.strip())
    return "'" + text if not harmless and re.match(rf"\s*[{foreign.FORMULA}]", text) else text


# ---- reading


def separator_of(first: str) -> str:
    """Of a table whose first line is this: a spreadsheet takes that of its country."""
    return max(",;\t", key=first.count)


def read_table(path: Path) -> Table:
    """A table of one of the layouts. LabError for what is none."""
    try:
        data = files.read_file(path, MOST_BYTES)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise LabError(f"{path} is longer than {MOST_BYTES >> 20} MiB")
    notes = []
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
        notes.append(f"{path} is not UTF-8: read as Windows-1252")
    before = BOM if text.startswith(BOM) else ""
    first = (text := text.removeprefix(BOM)).partition("\n")[0]
    separator = separator_of(first)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise LabError(f"{path}: not CSV: {error}") from None
    if not lines:
        raise LabError(f"{path}: it is empty")
    (_, header), *numbered = lines
    for number, row in numbered:
        if len(row) > len(header):
            raise LabError(f"{path}: line {number} has {len(row)} cells, and the first line {len(header)}")
        row += [""] * (len(header) - len(row))
    line_end = "\r\n" if first.endswith("\r") else "\n"
    layout = _layout({name.strip().casefold() for name in header})
    if layout is None:
        raise LabError(f"{path}: none of its columns says who a student is: {', '.join(header[:8])}")
    numbers, rows = [number for number, _ in numbered], [row for _, row in numbered]
    return Table(path, layout, header, rows, numbers, separator, before, line_end, notes)


def _layout(columns: set[str]) -> Layout | None:
    for layout in LAYOUTS:
        if columns.issuperset(layout.needs):
            return layout
    keys = {column: kind for column, kind in PLAIN.items() if column in columns}
    named = any(columns.issuperset(names) for names in NAMES)
    return Layout("a roster", (), keys) if keys or named else None


# ---- times

ISO = re.compile(r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?)(\.\d+)? ?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?")
#: And Moodle's, in English: Wednesday, 10 June 2026, 2:14 PM; June 10, 2026; 14:14
LOCAL_FORMS = (
    "%Y-%m-%d %H:%M:%S", "%d %B %Y, %I:%M %p", "%d %B %Y, %H:%M", "%B %d, %Y, %I:%M %p", "%B %d, %Y, %H:%M",
)  # fmt: skip


def time_of(text: str, zone: tzinfo | None) -> datetime | None:
    """When something was handed in; None if the text is not understood. zone: of a text that names none;
    without it such a text is not understood either."""
    text = text.strip()
    if iso := ISO.fullmatch(text):
        text = iso["time"].replace("T", " ") + (":00" if iso["time"].count(":") == 1 else "")
        if iso["zone"]:
            named = iso["zone"].replace("UTC", "+0000").replace("Z", "+0000").replace(":", "")
            return _parsed(f"{text} {named}", "%Y-%m-%d %H:%M:%S %z")
    text = re.sub(r"^[A-Za-z]+, ", "", text)
    found = next(filter(None, (_parsed(text, form) for form in LOCAL_FORMS)), None)
    return None if found is None or zone is None else found.replace(tzinfo=zone)


def _parsed(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form)
    except ValueError:
        return None


# ---- Gradescope's submission_metadata.yml


@dataclass(frozen=True)
class Delivery:
    """One submission of Gradescope's: of several students, if it is of a group."""

    submitters: tuple[tuple[tuple[str, str], ...], ...]  #: the keys of each
    time: datetime | None


def read_metadata(path: Path) -> dict[str, Delivery]:
    """Folder -> who has handed it in, and when; {} where there is no such file. Of YAML only what
    Gradescope writes is understood: a table of tables, and in it a list of tables."""
    if not path.is_file():
        return {}
    text = files.read_file(path, MOST_BYTES).decode(errors="replace")
    found: dict[str, Delivery] = {}
    for block in re.split(r"^(?=\S)", text.replace("\r\n", "\n"), flags=re.M):
        folder, _, rest = block.partition(":\n")
        submitters = re.search(r"^  :submitters:\n((?:  (?:- |  ).*\n?)+)", rest, re.M)
        if submitters is None:
            continue
        each = [dict(_pairs(one)) for one in re.split(r"^  - ", submitters[1], flags=re.M) if one.strip()]
        kinds = (("sid", "id"), ("email", "e-mail"), ("name", "name"))
        keys = tuple(tuple((kind, one[name]) for name, kind in kinds if one.get(name)) for one in each)
        time = dict(_pairs(re.sub(r"^ {3,}.*\n?", "", rest, flags=re.M))).get("created_at", "")
        found[_scalar(folder)] = Delivery(keys, time_of(time, UTC))
    if not found:
        raise LabError(f"{path}: it names no submission: not Gradescope's file")
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(r"^ *(?:- )?:(\w+): *(.*?) *$", text, re.M):
        yield match[1], _scalar(match[2])


def _scalar(text: str) -> str:
    """A text of YAML's, as it is without quotes, or in quotes of either kind."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        json_like = re.sub(r"\\x([0-9A-Fa-f]{2})", r"\\u00\1", text)
        try:
            return str(json.loads(json_like))
        except ValueError:
            return text[1:-1]
    return "" if text in ("~", "null") else text
