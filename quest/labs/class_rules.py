"""What a teacher says of a class, in one file of TOML (CLASS=): rosters, deadlines, what a late day
costs, and what only a person can decide. And what follows from it for each line of the table.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from quest.ground import toml
from quest.ground.toml import Doc, Rule
from quest.labs import forges, roster
from quest.labs.class_table import BY_HAND, SETTLED, Row
from quest.labs.errors import LabError, say
from quest.labs.intake import LATE, Submission
from quest.labs.roster import Mask, Match, Person, Roster

UNKNOWN = "?"  #: days, where the forge says "late" and not since when
Days = Mapping[str, Mapping[str, Annotated[int, Rule(least=0)]]]
DAY = timedelta(days=1)
SEVERAL = "; "  #: between the ids of a group


@dataclass(frozen=True)
class Late:
    """What a late day costs."""

    grace_minutes: Annotated[int, Rule(least=0), Doc("after the deadline, at no cost")] = 0
    per_day: Annotated[
        float, Rule(least=0), Doc("for each day that has begun: so much of the lab's points, 0.1 a tenth")
    ] = 0.1
    most_days: Annotated[int, Rule(least=0), Doc("later than that there are no points; 0: no such limit")] = 0


@dataclass(frozen=True)
class Rules:
    """The file."""

    rosters: Annotated[
        tuple[str, ...],
        Doc("tables of the students, beside this file: a CSV with id, name, e-mail, or an export of a forge"),
    ] = ()
    key: Annotated[str, Doc("the file, beside this one, that anonymous ids are made with")] = "class.key"
    time_zone: Annotated[str, Doc("of times that name none, as Moodle's: Europe/Berlin")] = ""
    late: Annotated[Late, Doc("what a late day costs")] = Late()
    deadline: Annotated[
        Mapping[str, object], Doc("lab -> when it was due, with its offset: 2026-10-21T23:59:00+02:00")
    ] = field(default_factory=dict)
    extension: Annotated[Days, Doc("[extension.LAB]: student -> days that the deadline is later")] = field(
        default_factory=dict
    )
    days_late: Annotated[
        Days, Doc("[days_late.LAB]: student -> days that count, whatever the clock says; 0 forgives")
    ] = field(default_factory=dict)
    column: Annotated[Mapping[str, str], Doc("lab -> the column of Canvas's gradebook that is its own")] = field(
        default_factory=dict
    )
    who: Annotated[
        Mapping[str, str], Doc('submission, as the table names it -> id of its student; "": it does not count')
    ] = field(default_factory=dict)
    folder: Path = Path()
    given: bool = False  #: whether there is a file

    def fault(self) -> str:
        for lab, time in self.deadline.items():
            if not isinstance(time, datetime) or time.tzinfo is None:
                return f'deadline: "{lab}" must be a time with its offset: 2026-10-21T23:59:00+02:00'
        if self.late.per_day > 1:
            return 'late: "per_day" must be at most 1: all points'
        try:
            _ = self.zone
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return f'time_zone: there is no "{self.time_zone}"; Europe/Berlin is one'
        return ""

    @property
    def zone(self) -> tzinfo | None:
        """Of times that name none."""
        return ZoneInfo(self.time_zone) if self.time_zone else None

    def due(self, lab: str) -> datetime | None:
        """The deadline of a lab, if it has one."""
        time = self.deadline.get(lab)
        return time if isinstance(time, datetime) else None

    @property
    def mask(self) -> Mask:
        """Makes anonymous ids; its key is made with the first of them, beside the file."""
        if not self.given:
            raise LabError("anonymous ids need CLASS=: they are made with a key that is kept beside that file")
        return Mask.of_file(self.folder / self.key)


def load(path: Path | None) -> Rules:
    """The file; what holds without one, for None. InputError for a mistake in it."""
    return Rules() if path is None else toml.load(Rules, path, folder=path.parent, given=True)


def read_roster(rules: Rules, gradebook: Path | None = None) -> Roster:
    """Of all tables that the rules name, and of the forge's own for this work."""
    found = Roster()
    tables = [rules.folder / name for name in rules.rosters]
    if gradebook is not None:
        own = gradebook.absolute()
        tables = [*(path for path in tables if path.absolute() != own), gradebook]
    for path in tables:
        found.merge(forges.read_table(path), with_times=path is gradebook)
    return found


def points(number: float) -> str:
    """As a table shows it: 15, 14.5."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


class Known:
    """About (class_table.py): by the rules, the roster, and the forge's table of this work."""

    def __init__(self, rules: Rules, lab: str, gradebook: Path | None, folder: Path) -> None:
        """folder: of the submissions, where Gradescope's file may be."""
        self.rules, self.lab = rules, lab
        self.roster = read_roster(rules, gradebook)
        self.deliveries = forges.read_metadata(folder / forges.METADATA)
        self.matches: dict[str, Match] = {}
        self.seen: set[int] = set()  #: id() of each student who has handed in, even if not what counts
        self.is_late: set[str] = set()  #: by Canvas's word
        self.untimed: list[str] = []
        self.unmeasured: list[str] = []

    @property
    def has_roster(self) -> bool:
        """Without one nobody is missed."""
        return bool(self.roster.people)

    def look(self, submissions: Sequence[Submission]) -> None:
        """Finds out whose each is."""
        for one in submissions:
            delivery = self.deliveries.get(one.folder.name) if one.folder else None
            match = roster.of_submission(one, self.roster, self.rules.who, delivery)
            text = match.people[0].time if match.people else ""
            if match.time is None and text not in ("", "-"):
                time = forges.time_of(text, self.rules.zone)
                match = replace(match, time=time, untold=time is None)
            self.matches[one.name] = match
            if LATE in one.notes:
                self.is_late.add(one.name)
        self.seen = {id(person) for match in self.matches.values() for person in match.people}
        for name, why in roster.twice(self.matches).items():
            self.matches[name] = replace(self.matches[name], people=(), why=why)

    def named(self, student: str) -> set[str]:
        """By the name of a submission, or by what the roster says of a student."""
        if student in self.matches:
            return {student}
        people = self.roster.named(student)
        return {name for name, match in self.matches.items() if any(p is q for p in match.people for q in people)}

    def _days_of(self, table: Mapping[str, Mapping[str, int]], row: Row, people: Sequence[Person]) -> int | None:
        """What the teacher has decided for this student, or for this submission."""
        of_lab = {roster.normal(name): days for name, days in table.get(self.lab, {}).items()}
        names = [row.name, *(text for person in people for text in (*person.shown.values(), person.name))]
        return next((of_lab[name] for name in map(roster.normal, names) if name in of_lab), None)

    def _late(self, row: Row, match: Match) -> str:
        """Days, as the table shows them: "" where there is no deadline or no time."""
        decided = self._days_of(self.rules.days_late, row, match.people)
        due = self.rules.due(self.lab)
        if decided is not None:
            return str(decided)
        if due is not None and match.time is not None:
            try:
                due += DAY * (self._days_of(self.rules.extension, row, match.people) or 0)
                grace = timedelta(minutes=self.rules.late.grace_minutes)
            except OverflowError:  # longer than there are calendars: never late
                return "0"
            over = match.time - due
            return str(math.ceil(over / DAY)) if over > grace else "0"
        if due is None:
            return ""
        if row.name in self.is_late or match.untold:
            self.unmeasured.append(row.name)
            return UNKNOWN
        if row.work:
            self.untimed.append(row.name)
        return ""

    def _grade(self, row: Row, late: str) -> str:
        if row.state not in SETTLED or late == UNKNOWN:
            return ""
        try:
            score, of, days = float(row.score.replace(",", ".")), float(row.of or 0), int(late or 0)
        except ValueError:
            return row.score  # a teacher's own, such as "excused"
        rule = self.rules.late
        if row.state == BY_HAND or not days:
            return points(score)
        if rule.most_days and days > rule.most_days:
            return "0"
        return points(max(0.0, score - rule.per_day * days * of))

    def filled(self, row: Row) -> Row:
        """The line with its student, days and grade."""
        match = self.matches.get(row.name, Match(why="no longer in the folder"))
        late = "" if row.state == BY_HAND else self._late(row, match)
        return replace(
            row,
            id=SEVERAL.join(person.id for person in match.people),
            student=SEVERAL.join(person.name for person in match.people)
            or (f"({match.why})" if self.has_roster and match.why else ""),
            handed_in=f"{match.time:%Y-%m-%d %H:%M:%S%z}" if match.time else "",
            late=late,
            grade=self._grade(row, late),
        )

    def absent(self) -> list[Person]:
        """Those of the roster who have handed in nothing."""
        return [person for person in self.roster.people if id(person) not in self.seen]

    def undecided(self) -> list[str]:
        """A line for each submission that is nobody's yet."""
        if not self.has_roster:
            return []
        decided = self.rules.who
        return [f"{name}: {match.why}" for name, match in self.matches.items() if match.why and name not in decided]

    def unmatched(self) -> list[str]:
        """Names in the rules for this lab that are nobody's: what was meant for a student would not be done."""
        known = {roster.normal(text) for person in self.roster.people for text in (*person.shown.values(), person.name)}
        known |= {roster.normal(name) for name in self.matches}
        rules = {"extension": self.rules.extension, "days_late": self.rules.days_late}
        return [
            f"[{title}.{self.lab}] {name}"
            for title, of_labs in rules.items()
            for name in of_labs.get(self.lab, {})
            if roster.normal(name) not in known
        ]

    def tell(self) -> None:
        """What a teacher has to decide, or should know."""
        absent = [person.title for person in self.absent() if self.has_roster]
        unmeasured = "Late, but by an unknown time: no grade until [days_late] gives the days"
        for text in (
            *self.roster.notes,
            roster.listed("Problems of the roster", self.roster.doubts),
            roster.listed("Undecided: name the student of each under [who]", self.undecided()),
            roster.listed("Named in CLASS, but neither on the roster nor a submission", self.unmatched()),
            roster.listed(unmeasured, self.unmeasured),
            roster.listed("It is not known when these were handed in: they count as in time", self.untimed, 5),
            roster.listed("On the roster, but nothing was handed in", absent),
        ):
            if text:
                say(text)


def check_lab(rules: Rules, labs: Sequence[str]) -> None:
    """LabError for a lab in the rules that there is not: a deadline for "2-fork" would never come."""
    tables = {"deadline": rules.deadline, "extension": rules.extension, "days_late": rules.days_late,
              "column": rules.column}  # fmt: skip
    for table, named in tables.items():
        for lab in named:
            if lab not in labs:
                raise LabError(f'{table}: there is no lab "{lab}"; there are {", ".join(labs)}')
