"""What a rule is given and what it says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness import statistics, units
from harness.statistics import LEAST, Rounds

HOLDS = "holds"
CHANGED = "changed"
REVERSED = "reversed"
NO_DIFFERENCE = "no difference seen"
NOT_MEASURED = "not measured here"
VERDICTS = (HOLDS, CHANGED, REVERSED, NO_DIFFERENCE, NOT_MEASURED)
# Of several rules of one claim the worst verdict counts.
WORST_FIRST = (NOT_MEASURED, REVERSED, CHANGED, NO_DIFFERENCE, HOLDS)


@dataclass(frozen=True)
class Judgement:
    verdict: str
    why: str
    numbers: str = ""
    near: bool = False


@dataclass(frozen=True)
class Measured:
    """A metric of a variant: one value a round, and the same for each x where x is a number."""

    name: str
    values: Rounds
    unit: str = ""
    better: str = ""
    points: Mapping[float, Rounds] = field(default_factory=dict)
    floor: float | None = None
    set: str = ""  # values of one set were taken in the same rounds and are compared in pairs
    number: tuple[float, float | None, float | None] | None = None  # a derived one, with interval

    def text(self) -> str:
        value, low, high = self.median()
        return units.text(value, self.unit, low, high)

    def median(self) -> tuple[float, float | None, float | None]:
        if self.number:
            return self.number
        values = list(self.values.values())
        low, high = statistics.median_interval(values) or (None, None)
        return statistics.median(values), low, high


def combine(judgements: list[Judgement]) -> Judgement:
    """All rules of a claim must hold."""
    verdict = min((j.verdict for j in judgements), key=WORST_FIRST.index)
    return Judgement(
        verdict,
        _joined(j.why for j in judgements),
        _joined(j.numbers for j in judgements),
        any(j.near for j in judgements),
    )


def _joined(texts: Iterable[str]) -> str:
    """Each once."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def not_measured(why: str) -> Judgement:
    return Judgement(NOT_MEASURED, why)


def too_few(*counts: int) -> Judgement | None:
    """The judgement where no statement can be made, else None."""
    if not statistics.AVAILABLE:
        return not_measured("SciPy is not installed")
    count = min(counts)
    if count < LEAST:
        return not_measured(f"too few repetitions: {count}, and {LEAST} are needed")
    return None
