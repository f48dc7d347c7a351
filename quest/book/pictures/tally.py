"""How the claims stand: one dot for each, in the colour of its word."""

from collections import Counter
from dataclasses import dataclass

from quest.book.pictures.data import Data
from quest.book.pictures.svg import picture, step, text
from quest.spec import model


@dataclass(frozen=True)
class Family:
    """Words that are told together."""

    name: str
    words: tuple[str, ...]
    names: str  #: the class of its dots


#: In the order of the slide. Each word of the ledger is in one of them.
FAMILIES = (
    Family("hold", (model.HOLDS,), "good"),
    Family("hold, faster now", (model.FASTER_NOW,), "good ringed"),
    Family("hold in model or test", (model.IN_MODEL, model.BY_TEST), "good pale"),
    Family("have changed", (model.CHANGED,), "full"),
    Family("are reversed", (model.REVERSED,), "bad"),
    Family("were never so", (model.NEVER_SO,), "bad ringed"),
    Family("fail in model or test", (model.NOT_IN_MODEL, model.NOT_BY_TEST), "bad pale"),
    Family("are not decided here", (
        model.NO_DIFFERENCE, model.NOT_DECIDED, model.NEAR, model.DEPENDS, *model.UNDECIDED,
    ), "open"),
    Family("cannot be judged", (*model.WITHOUT_RULE.values(), model.NO_RULE), "open faint"),
)  # fmt: skip
#: The families that appear together, by how many of the list.
STEPS = (3, 1, 3, 2)
DOTS = 570  #: where the dots begin
ROW = 47  #: from one family to the next
PITCH = 25  #: from one dot to the next
IN_A_ROW = 23


def dots(family: Family, count: int, y: float) -> str:
    """How many, their name, and a dot for each, in as many rows as they need; the first stands on the line `y`."""
    found = []
    for place in range(count):
        row, column = divmod(place, IN_A_ROW)
        found.append(f'<circle cx="{DOTS + PITCH * column:g}" cy="{y - 10 + (PITCH - 2) * row:g}" r="9"/>')
    return (
        text(84, y, f"{count}", 34, "b end") + text(104, y, family.name, 28)
        + f'<g class="dots {family.names}">{"".join(found)}</g>'
    )  # fmt: skip


def tally(data: Data) -> str:
    """Families without a claim are left out."""
    counts = Counter(data.standings)
    parts, y, first = [], 34.0, 0
    for size in STEPS:
        drawn = []
        for family in FAMILIES[first : first + size]:
            if count := sum(counts[word] for word in family.words):
                drawn.append(dots(family, count, y))
                y += ROW + (PITCH - 2) * ((count - 1) // IN_A_ROW)
        parts.append(step(*drawn))
        first += size
    judged = len(data.standings) - sum(counts[word] for word in FAMILIES[-1].words)
    total = f"{len(data.standings)} claims, {judged} of them can be judged"
    return picture([*parts, text(104, 520, total, 28, "soft")])
