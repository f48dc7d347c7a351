"""The numbers and verdicts that the exporter left in build/data."""

import json
from dataclasses import dataclass
from pathlib import Path

from quest.book.pictures.svg import REFERENCE_MARK
from quest.ground.errors import InputError

REFERENCE = "reference"


class Missing(Exception):
    """A number that a picture needs was not measured. The text is the reason, in one line."""


@dataclass(frozen=True)
class Number:
    """One entry of numbers.json."""

    value: float  #: in the unit of its experiment
    text: str  #: rounded, with its unit: "980 ms"
    source: str  #: "here", or "reference"


@dataclass(frozen=True)
class Data:
    """What pictures are drawn from."""

    numbers: dict[str, Number]  #: by key, as chapters name them
    standings: tuple[str, ...]  #: of each claim, in their order
    all_reference: bool = False  #: everything shown is the reference run: no number needs a mark

    def number(self, key: str) -> Number:
        """Missing if it was not measured."""
        if key not in self.numbers:
            raise Missing(f"{key.partition('.')[0]} was not measured ({key})")
        return self.numbers[key]

    def is_there(self, key: str) -> bool:
        """Whether it was measured."""
        return key in self.numbers

    def value(self, key: str) -> float:
        """In the unit of its experiment. Missing if it was not measured."""
        return self.number(key).value

    def words(self, key: str) -> str:
        """As it is printed; a number of the reference run in a reader's deck is marked as on other slides."""
        one = self.number(key)
        return one.text + (REFERENCE_MARK if one.source == REFERENCE and not self.all_reference else "")


def read(folder: Path, all_reference: bool) -> Data:
    """What is in build/data. InputError if a file is not what the exporter writes; OSError if it cannot be read."""
    try:
        entries = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
        numbers = {
            key: Number(float(entry["value"]), str(entry["text"]), str(entry["source"]))
            for key, entry in entries.items()
            if entry.get("value") is not None
        }
        claims = json.loads((folder / "claims.json").read_text(encoding="utf-8"))
        standings = tuple(str(one["standing"]) for one in claims)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: numbers.json or claims.json is not what make export writes: {error!r}") from None
    return Data(numbers, standings, all_reference)
