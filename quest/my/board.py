"""`make board`: the races of a class, from a folder of the files that `make race` writes.

What two machines have measured is not comparable, but for ratios to a server that ran beside in the same race. So the
board has one table of ratios, for all that have the same reference server and profile; and the values of each machine
apart. A file that was changed, or says what cannot be, is left out and named.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.my import drawn, finish
from quest.my.finish import LAPS, MINE, Race

Given = dict[str, str]
FAILED = 1
MOST_FILES = 5000
NUMBERS = "numbers"  #: NAMES=: places in place of names


@dataclass(frozen=True)
class Entry:
    """A race on the board. `remarks`: what a teacher should look at."""

    race: Race
    path: Path
    remarks: tuple[str, ...]

    @property
    def score(self) -> float:
        """With nothing for a race that has a lap without value: it stands last."""
        return finish.score(self.race) or 0.0


def board(given: Given) -> int:
    """Status 0 if each file could be taken, 1 if one was left out. InputError if there is none."""
    folder = Path(given.get("DIR", ""))
    if "DIR" not in given or not folder.is_dir():
        raise InputError(f"DIR={given.get('DIR', '')}: give a folder with the files that make race has written")
    paths = sorted(path for path in folder.rglob("*.json") if path.is_file())
    if len(paths) > MOST_FILES:
        raise InputError(f"{folder}: more than {MOST_FILES} files")
    races, refused = taken(paths)
    for line in refused:
        print(foreign.line(f"left out: {line}"), file=sys.stderr)
    if not races:
        raise InputError(f"{folder}: it has no file of make race")
    entries = ranked(named(entries_of(races), given.get("NAMES", "")))
    print("\n".join(board_lines(entries)))
    page = Path(given.get("BUILD", "build"), "board/index.html")
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, board_page(entries))
    print(f"\n{page} has it, with the values of each machine")
    return FAILED if refused else 0


def taken(paths: Iterable[Path]) -> tuple[dict[Path, Race], list[str]]:
    """The races, and a line for each file that is left out."""
    races: dict[Path, Race] = {}
    refused = []
    for path in paths:
        try:
            races[path] = finish.read(path)
        except InputError as error:
            refused.append(str(error))
    return races, refused


def entries_of(races: Mapping[Path, Race]) -> list[Entry]:
    """Of races of one name and machine the last; two names with the same values are told of each other."""
    newest: dict[tuple[str, str, str], Path] = {}
    for path, race in races.items():
        key = (race.name, str(race.machine), race.profile)
        if key not in newest or races[newest[key]].time < race.time:
            newest[key] = path
    same: dict[str, list[Path]] = {}
    for path in newest.values():
        same.setdefault(finish.fingerprint(races[path]), []).append(path)
    found = []
    for path in sorted(newest.values()):
        race = races[path]
        twins = [races[other].name for other in same[finish.fingerprint(race)] if other != path]
        remarks = [*finish.remarks(race), *(f"the values are those of {name}" for name in twins)]
        found.append(Entry(race, path, tuple(remarks)))
    return found


def ranked(entries: Iterable[Entry]) -> list[Entry]:
    """The highest score first."""
    return sorted(entries, key=lambda entry: (-entry.score, entry.race.name, str(entry.path)))


def named(entries: Sequence[Entry], names: str) -> list[Entry]:
    """With the names that the teacher wants. `names`: "numbers", or a file with lines `name<TAB>name on the board`; ""
    leaves them. InputError for a line that is none.
    """
    if not names:
        return list(entries)
    if names == NUMBERS:
        known = sorted({entry.race.name for entry in entries})
        shown = {name: f"server {number}" for number, name in enumerate(known, 1)}
    else:
        shown = _table(Path(names))
    found = []
    for entry in entries:
        remarks = tuple(_renamed(remark, shown) for remark in entry.remarks)
        race = replace(entry.race, name=shown.get(entry.race.name, entry.race.name))
        found.append(replace(entry, race=race, remarks=remarks))
    return found


def _renamed(remark: str, shown: Mapping[str, str]) -> str:
    of = "the values are those of "
    name = remark.removeprefix(of)
    return of + shown[name] if name != remark and name in shown else remark


def _table(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"NAMES={path}: {getattr(error, 'strerror', '') or 'it is not UTF-8'}") from None
    shown = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, tab, other = line.partition("\t")
        if line.strip() and not (tab and name and other.strip()):
            raise InputError(f"{path}:{number}: a line needs a name, a tab, and the name on the board")
        if tab:
            shown[name] = other.strip()
    return shown


# ---- what is shown -------------------------------------------------------------------------------


def _groups(entries: Iterable[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Those whose ratios can be compared: to the same server, and measured as long."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.race.reference, entry.race.profile), []).append(entry)
    return groups


def _heading(reference: str, profile: str) -> str:
    return f"against {reference}, profile {profile}: how many times better"


def _ratios(entry: Entry) -> list[str]:
    gains = [finish.gain(entry.race, lap, MINE, entry.race.reference) for lap in LAPS]
    return [f"{entry.score:.0f}" if entry.score else "-", *(one.text if one else "-" for one in gains)]


def board_lines(entries: Sequence[Entry]) -> list[str]:
    """A table of ratios for each reference server and profile."""
    text: list[str] = []
    for (reference, profile), group in _groups(entries).items():
        rows = [[_heading(reference, profile), "score", *(lap.title for lap in LAPS)]]
        rows += [[_name(entry), *_ratios(entry)] for entry in group]
        text += [*([""] if text else []), *drawn.table(rows)]
        text += [f"  {note}" for note in _notes(group)]
    return text


def _notes(group: Iterable[Entry]) -> list[str]:
    """The remarks, with the names as they are shown: until here they are those of the files, for NAMES=."""
    return [f"{_name(entry)}: {foreign.line(remark)}" for entry in group for remark in entry.remarks]


def _name(entry: Entry) -> str:
    name = foreign.line(entry.race.name)
    return name if len(name) <= drawn.WIDEST else f"{name[: drawn.WIDEST - 1]}…"


def board_page(entries: Sequence[Entry]) -> str:
    """The ratios, then what each machine has measured."""
    parts = []
    for (reference, profile), group in _groups(entries).items():
        head = ["", "score", *(title for lap in LAPS for title in (lap.title, "better to the right"))]
        gains = {id(e): [finish.gain(e.race, lap, MINE, reference) for lap in LAPS] for e in group}
        axes = [drawn.ends(gains[id(e)][place] for e in group) for place in range(len(LAPS))]
        body = []
        for entry in group:
            ratios = _ratios(entry)
            cells = [escape(_name(entry)), ratios[0]]
            for place, one in enumerate(gains[id(entry)]):
                cells += [escape(ratios[place + 1]), drawn.track(one, axes[place])]
            body.append((True, cells))
        parts.append(f"<h2>{escape(_heading(reference, profile))}</h2>\n{drawn.rows(head, body)}")
        parts += [f"<p>{escape(note)}</p>" for note in _notes(group)]
    machines: dict[str, list[Entry]] = {}
    for entry in entries:
        machines.setdefault(str(entry.race.machine), []).append(entry)
    for machine, group in machines.items():
        head = ["", *(lap.title for lap in LAPS), "measured"]
        body = []
        for entry in group:
            for server in entry.race.servers:
                cells = [drawn.cell(entry.race, server.name, lap) for lap in LAPS]
                shown = drawn.title(entry.race, server.name) if server.name != MINE else _name(entry)
                beside = "" if server.name == MINE else f" (beside {_name(entry)})"
                body.append((server.name == MINE, [*map(escape, [shown + beside, *cells, entry.race.time[:10]])]))
        parts.append(f"<h2>{escape(foreign.line(machine))}</h2>\n{drawn.rows(head, body)}")
    parts.append(
        "<p>Ratios of different machines can be compared, values cannot."
        " A ratio is to the server of ours that ran beside, in the same rounds.</p>"
    )
    return drawn.page("The board", parts)
