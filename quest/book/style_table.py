"""How many hits of each count (quest/book/style.py) a page may have: chapters/style.tsv, a table that only sinks.

`make lint-book` fails for a page above its row; a page without a row may have none. `make style` prints what there is.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from quest.book.outline import Outline, read_outlines
from quest.book.style import COUNTS, Hit, counts_of, quantity
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.ground.places import BUILD

TABLE = Path("chapters/style.tsv")
CHOSEN = Path("chapters/chosen.tsv")
NAMES = tuple(count.name for count in COUNTS)
Row = dict[str, int]  #: count -> how many
Rows = dict[str, Row]  #: page -> its row
NONE = dict.fromkeys(NAMES, 0)

HEAD = f"""\
# Hits of each habit of style that a page may have; a page without a row may have none. `make lint-book` holds it.
# `make style` prints what there is, `make style CH=09` the sentences; the columns: chapters/pandoc/README.md.
# `make style WRITE=sink` takes over what has become less; only WRITE=anew lets a number rise.
{chr(9).join(("page", *NAMES))}
"""


def read_table(path: Path = TABLE) -> Rows:
    """The file. InputError for a line that is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise InputError(f"{path}: not there; make style WRITE=anew writes it") from None
    rows: Rows = {}
    head: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        page, *cells = line.split("\t")
        if not head:
            if (page, *sorted(cells)) != ("page", *sorted(NAMES)):
                raise InputError(f"{path}:{number}: the columns are page, {', '.join(NAMES)}, with tabs between")
            head = cells
        elif len(cells) != len(head) or not all(cell.isdecimal() for cell in cells):
            raise InputError(f"{path}:{number}: a page and {len(head)} numbers, with tabs between")
        elif page in rows:
            raise InputError(f"{path}:{number}: {page} is there twice")
        else:
            rows[page] = dict(zip(head, map(int, cells), strict=True))
    return rows


def read_chosen(path: Path = CHOSEN) -> list[str]:
    """The quantities of the file, none if it is not there. InputError for a line without a reason, and for a quantity
    that is there twice.
    """
    found: list[str] = []
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        each, _, reason = line.partition("\t")
        if not reason or not each[:1].isdecimal():
            raise InputError(f"{path}:{number}: a number with its unit, a tab, and what sets it")
        if quantity(each) in map(quantity, found):
            raise InputError(f"{path}:{number}: {each} is there twice")
        found.append(each)
    return found


def text_of(rows: Rows) -> str:
    """The file with these rows, in their order; rows of nothing but 0 are left out."""
    lines = ("\t".join((page, *(str(row[name]) for name in NAMES))) for page, row in rows.items() if any(row.values()))
    return HEAD + "".join(f"{line}\n" for line in lines)


def rows_of(counts: Mapping[str, Mapping[str, list[Hit]]]) -> Rows:
    """How many hits there are."""
    return {page: {name: len(hits[name]) for name in NAMES} for page, hits in counts.items()}


def sunk(allowed: Rows, now: Rows) -> Rows:
    """Of each page the lower number; a page that has no row gets none above 0."""
    return {page: {name: min(row[name], allowed.get(page, NONE)[name]) for name in NAMES} for page, row in now.items()}


def raised(allowed: Rows, now: Rows) -> Iterator[tuple[str, str, int, int]]:
    """Page, count, how many there are, how many may be: where it is more."""
    for page, row in now.items():
        for name in NAMES:
            if row[name] > (most := allowed.get(page, NONE)[name]):
                yield page, name, row[name], most


def faults(outlines: list[Outline]) -> Iterator[str]:
    """A line for each count of a page that is above its row, and for each row without a page."""
    allowed, counts = read_table(), counts_of(outlines, read_chosen())
    help_of = {count.name: count.help for count in COUNTS}
    for page, name, have, most in raised(allowed, rows_of(counts)):
        file = page if "/" in page else f"chapters/{page}"
        lines = ", ".join(str(hit.line) for hit in counts[page][name])
        yield (
            f"{file}.md:{counts[page][name][-1].line}: style: {help_of[name]}: {have}, {most} at most "
            f"(lines {lines}; make style CH={Path(page).name} shows them)"
        )
    for page in allowed.keys() - counts.keys():
        yield f"{TABLE}:1: there is no page {page}"


class Column(NamedTuple):
    """Of the printed table."""

    name: str
    width: int


def printed(allowed: Rows, now: Rows) -> Iterator[str]:
    """The table in lines: what a page has, "/" what it may have where that differs; sums; what the columns are."""
    columns = [Column(name, max(len(name), 5) + 2) for name in NAMES]
    yield f"{'':20}" + "".join(f"{column.name:>{column.width}}" for column in columns)
    for page, row in now.items():
        cells = ""
        for name, width in columns:
            most = allowed.get(page, NONE)[name]
            cell = f"{row[name]}/{most}" if most != row[name] else str(row[name] or "-")
            cells += f"{cell:>{width}}"
        yield f"{page:20}{cells}"
    for what, is_of_slides in (("chapters", False), ("notes of slides", True)):
        rows = [row for page, row in now.items() if page.startswith("slides/") == is_of_slides]
        sums = "".join(f"{sum(row[column.name] for row in rows):>{column.width}}" for column in columns)
        yield f"{what:20}{sums}"
    yield ""
    yield from (f"{count.name:8} {count.help}" for count in COUNTS)


def sentences(counts: Mapping[str, Mapping[str, list[Hit]]]) -> Iterator[str]:
    """Each hit, `file:line: count: sentence`."""
    for page, hits in counts.items():
        file = page if "/" in page else f"chapters/{page}"
        for name in NAMES:
            yield from (f"{file}.md:{hit.line}: {name}: {hit.text}" for hit in hits[name])


def outlines_in(build: Path) -> list[Outline]:
    """Of all chapters and slides, as `make style` leaves them. InputError: some are older than their source."""
    sources = [path for path in [*Path("chapters").glob("*.md"), *Path("slides").glob("*.md")] if path.stem != "README"]
    names = []
    for source in sources:
        folder = "slides" if source.parts[0] == "slides" else ""
        outline = build / "weave" / folder / f"{source.stem}.outline"
        if not outline.exists() or outline.stat().st_mtime < source.stat().st_mtime:
            raise InputError(f"{source}: {outline} is not there, or older: make style makes it")
        names.append(str(outline))
    chapters, slides = read_outlines(names)
    return chapters + slides


def show(settings: dict[str, str]) -> int:
    """`make style`: takes CH, WRITE, BUILD. With CH the sentences of a chapter and of its slides."""
    counts = counts_of(outlines_in(Path(settings.get("BUILD", BUILD))), read_chosen())
    now = rows_of(counts)
    if chapter := settings.get("CH"):
        lines = sentences({page: hits for page, hits in counts.items() if Path(page).name == chapter})
        print("\n".join(lines) or f"  style: {chapter} has none of the habits that are counted")
        return 0
    allowed = read_table() if TABLE.exists() else {}
    if write := settings.get("WRITE"):
        for page, name, have, most in raised(allowed, now):
            print(f"  {page}: {name} {'rises' if write == 'anew' else 'stays'}: {have}, {most} were allowed")
        write_whole(TABLE, text_of(now if write == "anew" else sunk(allowed, now)))
        return 0
    print("\n".join(printed(allowed, now)))
    return 0
