"""What the rules of the ledger promise, simulated: how often a word is wrong, and how often there is one.

    /usr/bin/python3 -m tests.harness.simulated              prints the tables of chapters/noise.md
    /usr/bin/python3 -m tests.harness.simulated rates 3 5    the error rates that `make register` writes, as JSON: three
                                                             sessions of each of two processors, or five of one

The rules are those of quest/report/rules.py; *before* are the ones that stood there until November 2026, of which this
file keeps what is needed. Sizes of noise and of session effects are those of the committed runs: the logarithm of a
paired ratio varies from round to round by 3.6 to 12.9 % (quartiles), 8 % of the values by five times as much.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING
from unittest import mock

import numpy
import scipy.stats

from quest.report import claims, rules
from quest.report.measured import Library
from quest.report.rules import Judgement, Measured
from quest.spec.model import CHANGED, HOLDS, REVERSED
from quest.stats.reach import Reach, order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[numpy.float64]

SEED = 20261126
ROUNDS = 7
SIGMA = 0.066  # of the logarithm of a paired ratio
TAIL, TAIL_SIGMAS = 0.08, 5.0
#: Session effects in sigmas: how many comparisons have the large one, which, and that of the others.
RATIOS, PESSIMISTIC, LEVELS = (0.03, 2.0, 0.05), (0.10, 2.0, 0.2), (0.45, 1.3, 0.2)
UNIFORM, WORST, NONE = (1.0, 1.0, 0.0), (1.0, 3.0, 0.0), (0.0, 0.0, 0.0)
Scenario = tuple[float, float, float]

# ---- made-up numbers -----------------------------------------------------------------------------


def noise(rng: numpy.random.Generator, shape: Sequence[int], sigma: float) -> "Array":
    """Normal, with tails."""
    scale = numpy.where(rng.random(shape) < TAIL, TAIL_SIGMAS, 1.0)
    return sigma * scale * rng.standard_normal(shape)


def session_effects(
    rng: numpy.random.Generator, count: int, sessions: int, sigma: float, scenario: Scenario
) -> "Array":
    """(count, sessions): what a session adds to all its rounds."""
    share, large, small = scenario
    tau = sigma * numpy.where(rng.random(count) < share, large, small)
    return tau[:, None] * rng.standard_normal((count, sessions))


def round_numbers(
    rng: numpy.random.Generator,
    count: int,
    sessions: int,
    truth: float = 0.0,
    sigma: float = SIGMA,
    scenario: Scenario = PESSIMISTIC,
    rounds: int = ROUNDS,
) -> "Array":
    """(count, sessions, rounds) logarithms of ratios."""
    effects = session_effects(rng, count, sessions, sigma, scenario)
    return truth + effects[:, :, None] + noise(rng, (count, sessions, rounds), sigma)


def reaches(numbers: "Array") -> "tuple[Array, Array, Array]":
    """Median, low and high of each data set, as quest/stats/reach.py has them (a test compares)."""
    medians = numpy.median(numbers, axis=2)
    every = numpy.sort(numbers.reshape(len(numbers), -1), axis=1)
    k = order(every.shape[1])
    low = numpy.minimum(every[:, k - 1], medians.min(axis=1))
    high = numpy.maximum(every[:, -k], medians.max(axis=1))
    return numpy.median(medians, axis=1), low, high


def operand(name: str, logarithms: "Array", twins: "Array | None" = None) -> list[Measured]:
    """Of one data set, (sessions, rounds): values of 100 times their exponential."""
    values = 100 * numpy.exp(logarithms)
    return [
        Measured(
            name,
            dict(enumerate(map(float, session))),
            better="lower",
            set="one",
            twins={} if twins is None else {"again": dict(enumerate(map(float, twins[i])))},
        )
        for i, session in enumerate(values)
    ]


def percent(found: Iterable[bool]) -> float:
    """Of how many in a hundred it is so."""
    return 100 * float(numpy.mean([*found]))


def two(rule: str, ratios: "Array", shared: "Array | None" = None, **numbers: float) -> list[Judgement]:
    """The rule on each data set, whose two operands have these logarithms of ratios b/a, and of each round share a
    disturbance.
    """
    both = numpy.zeros_like(ratios) if shared is None else shared
    pairs = zip(both, ratios, strict=True)
    return [
        rules.judge(rule, {"a": operand("a", own), "b": operand("b", own + ratio)}, numbers) for own, ratio in pairs
    ]


# ---- the rules before ----------------------------------------------------------------------------


def old_faster(a: "Array", b: "Array", least: float = 0.05) -> "NDArray[numpy.int_]":
    """Of logarithms (count, rounds): 1 a is faster, -1 b is, 0 no difference. By the rank test of all values, a
    bootstrap interval of the ratio of medians, and the median beyond the least effect.
    """
    p = scipy.stats.mannwhitneyu(a, b, axis=1).pvalue
    drawn = numpy.random.default_rng(SEED).integers(0, a.shape[1], (300, a.shape[1]))
    redrawn = numpy.median(b[:, drawn], axis=2) - numpy.median(a[:, drawn], axis=2)
    low, high = numpy.quantile(redrawn, [0.025, 0.975], axis=1)
    gain = numpy.median(b, axis=1) - numpy.median(a, axis=1)
    seen = (p < 0.05) & ((low > 0) | (high < 0)) & (numpy.abs(gain) >= numpy.log1p(least))
    return numpy.where(seen, numpy.sign(gain), 0).astype(int)


def old_equal(numbers: "Array", margin: float) -> "NDArray[numpy.bool_]":
    """The median of one session decides."""
    inside: NDArray[numpy.bool_] = numpy.abs(numpy.median(numbers[:, 0], axis=1)) <= numpy.log1p(margin)
    return inside


def old_flat(xs: "Array", ys: "Array", tolerance: float = 0.25) -> bool:
    """A straight line through the medians rises by no more than that, and no line with a knee fits far better."""

    def fit(regressor: "Array") -> "tuple[Array, float]":
        design = numpy.column_stack([numpy.ones_like(xs), regressor]) / ys[:, None]
        line = numpy.linalg.lstsq(design, numpy.ones_like(ys), rcond=None)[0]
        return line, float(numpy.mean((design @ line - 1) ** 2))

    line, error = fit(xs)
    knees = [fit(r) for at in xs[2:-2] for r in (numpy.maximum(0.0, xs - at), (xs > at).astype(float))]
    best = min((e for found, e in knees if found[1] > 0), default=1.0)
    largest = ys.max() / numpy.median(ys[: max(2, len(xs) // 4)])
    better = len(xs) * (numpy.log(max(error, 1e-12)) - numpy.log(max(best, 1e-12))) - numpy.log(len(xs))
    if better > 10 and largest > 1 + tolerance:
        return False
    start, end = line[0] + line[1] * xs[0], line[0] + line[1] * xs[-1]
    return bool(start > 0 and 1 / (1 + tolerance) <= end / start <= 1 + tolerance)


# ---- what is asked -------------------------------------------------------------------------------


def equal_holds(sigma: float, truth: float, sessions: int, count: int, margin: float = 0.25) -> tuple[float, float]:
    """How often `equal` says "holds" in per cent: before (one session), and now with so many."""
    numbers = round_numbers(numpy.random.default_rng(SEED), count, sessions, numpy.log1p(truth), sigma)
    now = percent(j.verdict == HOLDS for j in two("equal", numbers, margin=margin))
    return percent(old_equal(numbers, margin)), now


def faster_seen(
    truth: float, correlation: float, sessions: int, count: int, scenario: Scenario = RATIOS
) -> tuple[float, float, float]:
    """How often a difference is seen, in per cent: before and now; then how often the reverse of it is said now.
    `correlation`: of the values of two variants in one round.
    """
    rng = numpy.random.default_rng(SEED)
    own = SIGMA / numpy.sqrt(2)
    shared = noise(rng, (count, sessions, ROUNDS), own * numpy.sqrt(correlation / (1 - correlation)))
    a = shared + noise(rng, shared.shape, own)
    b = shared + noise(rng, shared.shape, own) + numpy.log1p(truth)
    b += session_effects(rng, count, sessions, SIGMA, scenario)[:, :, None]
    now = [j.verdict for j in two("faster", b - a, a)]
    before = percent(old_faster(a[:, 0], b[:, 0]) != 0)
    return before, percent(v in (HOLDS, REVERSED) for v in now), percent(v == REVERSED for v in now)


SHAPES: dict[str, Callable[["Array"], "Array"]] = {
    "flat": lambda at: 0 * at,
    "rise to 1.25, the line": lambda at: numpy.log1p(0.25 * at),
    "hump of 2 times": lambda at: numpy.log(2) * numpy.exp(-(((at - 0.5) / 0.2) ** 2)),
    "one point of 3 times": lambda at: numpy.where(numpy.abs(at - 0.5) < 0.01, numpy.log(3), 0.0),
}
POINTS = 9


def flat_words(shape: str, sigma: float, sessions: int, count: int) -> tuple[float, float, float]:
    """How often `flat` says "holds", in per cent: before, and now; then how often it says "changed" now. `sigma` is
    that of the ratio of two points.
    """
    rng = numpy.random.default_rng(SEED)
    sigma /= numpy.sqrt(2)
    at = numpy.linspace(0, 1, POINTS)
    xs = 1 + 999 * at
    truth = SHAPES[shape](at)
    before, now = [], []
    for _ in range(count):
        effects = session_effects(rng, POINTS, sessions, sigma, PESSIMISTIC)
        logs = truth[:, None, None] + effects[:, :, None] + noise(rng, (POINTS, sessions, ROUNDS), sigma)
        values = 100 * numpy.exp(logs)
        before.append(old_flat(xs, numpy.median(values[:, 0], axis=1)))
        measured = [
            Measured(
                "a",
                dict(enumerate(map(float, values[0, s]))),
                points={float(x): dict(enumerate(map(float, values[i, s]))) for i, x in enumerate(xs)},
            )
            for s in range(sessions)
        ]
        now.append(rules.judge("flat", {"a": measured}, {}).verdict)
    return percent(before), percent(v == HOLDS for v in now), percent(v == CHANGED for v in now)


def stopped(most: int, count: int) -> tuple[float, float, float, float]:
    """Of two that do not differ, how often a difference of any size is seen, in per cent: before, with a fixed number
    of rounds, and with more and more, from 6 to `most`, until it is seen; now with three sessions, and with sessions
    from three to five until it is seen.
    """
    rng = numpy.random.default_rng(SEED)
    own = SIGMA / numpy.sqrt(2)
    a, b = noise(rng, (count, most), own), noise(rng, (count, most), own)
    once = old_faster(a[:, :ROUNDS], b[:, :ROUNDS], 0.0) != 0
    seen = numpy.zeros(count, dtype=bool)
    for rounds in range(6, most + 1):
        seen |= old_faster(a[:, :rounds], b[:, :rounds], 0.0) != 0
    numbers = round_numbers(rng, count, 5)

    def sure(some: "Array") -> "NDArray[numpy.bool_]":
        _, low, high = reaches(some)
        decided: NDArray[numpy.bool_] = (low > 0) | (high < 0)
        return decided

    until = sure(numbers[:, :3]) | sure(numbers[:, :4]) | sure(numbers)
    return percent(once), percent(seen), percent(sure(numbers[:, :3])), percent(until)


def wrong_on_the_line(
    parts: int, sessions: int, processors: int, scenario: Scenario, count: int
) -> tuple[float, float]:
    """Wrong words expected in a ledger of so many parts if every truth lies on its line, so that each word is wrong:
    before (the median decides: one of two), and now.
    """
    rng = numpy.random.default_rng(SEED)
    said = []
    for _ in range(processors):
        _, low, high = reaches(round_numbers(rng, count, sessions, scenario=scenario))
        said.append(numpy.where(low > 0, 1, numpy.where(high < 0, -1, 0)))
    agreed = numpy.abs(numpy.sum(said, axis=0)) == processors
    return parts / 2, parts * float(agreed.mean())


@dataclass(frozen=True)
class Part:
    """A rule of a claim: where its number lies, how it varies from round to round, and between which lines it holds."""

    truth: float
    sigma: float
    low: float
    high: float


def expected_wrong(
    parts: Sequence[Part], sessions: int, processors: int, scenario: Scenario, count: int
) -> tuple[float, float, float]:
    """Of a ledger of these parts how many words are wrong, before and now, and how many are undecided now, on average.
    What was measured is taken as true.
    """
    rng = numpy.random.default_rng(SEED)
    before = wrong = undecided = 0.0
    for part in parts:
        truth = part.low <= part.truth <= part.high
        words = []
        for _ in range(processors):
            numbers = round_numbers(rng, count, sessions, part.truth, part.sigma, scenario)
            _, low, high = reaches(numbers)
            holds, fails = (low >= part.low) & (high <= part.high), (high < part.low) | (low > part.high)
            words.append(numpy.where(holds, 1, numpy.where(fails, -1, 0)))
        first = numpy.median(numbers[:, 0], axis=1)
        before += float((((first >= part.low) & (first <= part.high)) != truth).mean())
        total = numpy.sum(words, axis=0)
        wrong += float((total == (-processors if truth else processors)).mean())
        undecided += float((numpy.abs(total) != processors).mean())
    return before, wrong, undecided


def retest(scenario: Scenario, count: int) -> tuple[float, float, float]:
    """Of two sessions of the same thing, in per cent: how many reaches share no value; how many words of
    `ratio_at_least` agree, before (the median decides) and now of those that both decide. Truths lie within 30 % of
    the line.
    """
    rng = numpy.random.default_rng(SEED)
    truths = rng.uniform(-0.3, 0.3, count)
    numbers = truths[:, None, None] + round_numbers(rng, count, 2, scenario=scenario)
    (middle, low, high), (again, low2, high2) = (reaches(numbers[:, [s]]) for s in (0, 1))
    words = [numpy.where(b > 0, 1, numpy.where(t < 0, -1, 0)) for b, t in ((low, high), (low2, high2))]
    both = (words[0] != 0) & (words[1] != 0)
    alike = percent(words[0][both] == words[1][both])
    return percent((low > high2) | (high < low2)), percent((middle > 0) == (again > 0)), alike


def twins_asked(how: str, truth: float, sigma: float, sessions: int, scenario: Scenario, count: int) -> float:
    """How often `equal` holds within 25 %, in per cent, if of the A/A pair is asked: "nothing", that all of its reach
    is within the margin ("reach", the rule), or that its median is ("median").
    """
    rng = numpy.random.default_rng(SEED)
    numbers = round_numbers(rng, count, sessions, numpy.log1p(truth), sigma, scenario)
    twins = round_numbers(rng, count, sessions, 0.0, sigma, scenario)
    margin = numpy.log1p(0.25)
    _, low, high = reaches(numbers)
    middle, first, last = reaches(twins)
    asked = {
        "nothing": numpy.ones(count, dtype=bool),
        "reach": (first >= -margin) & (last <= margin),
        "median": numpy.abs(middle) <= margin,
    }[how]
    return percent((low >= -margin) & (high <= margin) & asked)


# ---- waiting for the processor -------------------------------------------------------------------

SLICE_S = 3e-3  # how long a program runs on average until another has its processor


def slowed(share: float, sample_s: float, total_s: float = 1.0, own: float = 0.05) -> tuple[float, float, float]:
    """A program takes samples of `sample_s` seconds, `total_s` in all, and waits for its processor for this share of
    its time. By which factor are longer: all of it, the mean sample, the median sample? `own`: the noise of a sample.
    """
    rng = numpy.random.default_rng(SEED)
    samples = sample_s * numpy.exp(own * rng.standard_normal(int(total_s / sample_s)))
    ends = numpy.cumsum(samples)
    turns = numpy.cumsum(rng.exponential(SLICE_S, int(2 * ends[-1] / SLICE_S) + 20))
    turns = turns[turns < ends[-1]]
    waits = rng.exponential(SLICE_S * share / (1 - share), len(turns)) if share else numpy.zeros(len(turns))
    # A wait falls into the sample that was under way.
    longer = samples + numpy.bincount(numpy.searchsorted(ends, turns), waits, minlength=len(samples))
    medians = float(numpy.median(longer)) / float(numpy.median(samples))
    return float(longer.sum() / ends[-1]), float(longer.mean() / samples.mean()), medians


def waiting_turns(effect: float, share: float, sample_s: float, count: int) -> float:
    """How often `faster` says in one session that one of two equal programs is faster, in per cent, if one of them
    waits for this share in each round.
    """
    rng = numpy.random.default_rng(SEED)
    factor = slowed(share, sample_s)[2]
    numbers = noise(rng, (count, 1, ROUNDS), 0.01) + numpy.log(factor)
    return percent(j.verdict in (HOLDS, REVERSED) for j in two("faster", numbers, min_effect=effect))


# ---- the tables ----------------------------------------------------------------------------------

MANY = 1500


Row = Sequence[str | float]


def print_table(head: Sequence[str], rows: Iterable[Row]) -> None:
    """As Markdown, numbers of per cents and of words with one decimal below ten."""

    def cell(value: str | float) -> str:
        return value if isinstance(value, str) else f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"

    print(f"| {' | '.join(head)} |\n|:--|{'--:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(map(cell, row))} |")
    print()


def width(count: int) -> float:
    """Of the interval of so many normal values, from the order-statistics it is made of, in sigmas (Blom 1958)."""
    return -2 * NormalDist().inv_cdf((order(count) - 0.375) / (count + 0.25))


def reference_parts() -> list[Part]:
    """Those of the committed ledger and reference run that compare with a line, and vary from round to round."""
    library = Library(Path("build/none"), Path("benchmarks/results/reference"), True)
    found: list[Part] = []

    def note(reached: Reach, low: float, high: float) -> None:
        sigma = (reached.high - reached.low) / width(ROUNDS * max(1, len(reached.sessions)))
        if math.isfinite(reached.median) and 0 < sigma < math.inf:
            found.append(Part(reached.median, sigma, low, high))

    beside, faster = rules._beside, rules.faster

    def noted(reached: Reach, low: float, high: float, fails: str = CHANGED) -> str:
        note(reached, low, high)
        return beside(reached, low, high, fails)

    def noted_too(a: rules.Sessions, b: rules.Sessions, min_effect: float = 0.05) -> Judgement:
        gain, _ = rules._compared(a, b, less_is_more=a[0].better != "higher")
        note(gain, math.log1p(min_effect), math.inf)
        return faster(a, b, min_effect)

    with mock.patch.object(rules, "_beside", noted), mock.patch.dict(rules.RULES, faster=noted_too):
        claims.judge_all(library)
    return found


def error_rates(each: int, alone: int) -> dict[str, float]:
    """How many words of the committed ledger are wrong or undecided, as registered.toml has it: with `each` sessions of
    each of two processors; with `alone` of one (..._on_one); in one session (..._in_one_session). Of the session
    effects P and U those that are worse. wrong_at_worst: if every truth lay on its line.
    """
    parts, rates = reference_parts(), dict[str, float]()
    for suffix, sessions, processors in (("", each, 2), ("_on_one", alone, 1), ("_in_one_session", 1, 1)):
        both = PESSIMISTIC, UNIFORM
        found = [expected_wrong(parts, sessions, processors, scenario, 400)[1:] for scenario in both]
        line = [wrong_on_the_line(len(parts), sessions, processors, scenario, 20000)[1] for scenario in both]
        worst = {"expected_wrong": max(f[0] for f in found), "undecided": max(f[1] for f in found)}
        worst["wrong_at_worst"] = max(line)
        rates |= {f"{name}{suffix}": float(f"{value:.2g}") for name, value in worst.items()}
    return rates


def main() -> None:
    """All tables."""
    print("`equal` within 25 %: how often it holds, %; session effects P\n")
    rows: list[Row] = []
    for sigma in (0.02, 0.07, 0.15, 0.4, 0.6):
        for truth in (0.25, 0.4, 0.0):
            before, one = equal_holds(sigma, truth, 1, MANY)
            more = [equal_holds(sigma, truth, s, MANY)[1] for s in (3, 5)]
            rows.append((f"noise {sigma:.0%}, true difference {truth:.0%}", before, one, *more))
    print_table(("", "before", "1 session", "3", "5"), rows)

    print("`faster`: a true difference is seen, %; session effects R\n")
    rows = []
    for truth in (0.0, 0.05, 0.1, 0.25):
        for correlation in (0.14, 0.92):
            before, one, _ = faster_seen(truth, correlation, 1, MANY)
            more = [faster_seen(truth, correlation, s, MANY)[1] for s in (3, 5)]
            rows.append((f"true {truth:.0%}, rounds correlate by {correlation}", before, one, *more))
    print_table(("", "before", "1 session", "3", "5"), rows)

    print("`flat` within 25 %, nine points: how often it holds (in parentheses: is said to have changed), %\n")
    rows = []
    for shape in SHAPES:
        for sigma in (0.03, 0.07, 0.12):
            cells = [flat_words(shape, sigma, s, 100) for s in (1, 3)]
            rows.append((f"{shape}, noise {sigma:.0%}", cells[0][0], *(f"{h:.0f} ({c:.0f})" for _, h, c in cells)))
    print_table(("", "before", "1 session", "3"), rows)

    print("Two that do not differ, said to differ, %\n")
    cases = [
        "before, seven rounds",
        "before, rounds from 6 to 15 until seen",
        "three sessions",
        "sessions from three to five until seen",
    ]
    print_table(("", "%"), zip(cases, stopped(15, MANY), strict=True))

    parts = reference_parts()
    print(
        f"{len(parts)} parts of the ledger, what was measured taken as true: wrong words, undecided; on their lines\n"
    )
    rows = []
    for name, sessions, processors in (("one session", 1, 1), ("3", 3, 1), ("5", 5, 1), ("3 on each of two", 3, 2)):
        for label, scenario in (("P", PESSIMISTIC), ("U", UNIFORM)):
            found = expected_wrong(parts, sessions, processors, scenario, 400)
            line = wrong_on_the_line(len(parts), sessions, processors, scenario, 20000)
            rows.append((f"{name}, {label}", *(f"{v:.2f}" for v in found), *(f"{v:.1f}" for v in line)))
    print_table(("", "before", "wrong", "undecided", "before, on the line", "wrong, on the line"), rows)

    print("Two sessions of the same, %\n")
    rows = [(n, *retest(s, 20000)) for n, s in (("R", RATIOS), ("P", PESSIMISTIC), ("L", LEVELS), ("U", UNIFORM))]
    print_table(("", "disjoint reaches", "words alike, before", "words alike, now"), rows)

    print("A program that waits for its processor: how much longer are all of it, mean and median sample\n")
    rows = []
    for sample_s, of in ((5e-6, "5 µs"), (1e-4, "100 µs"), (1e-3, "1 ms"), (1e-1, "0.1 s")):
        for share in (0.024, 0.1, 0.3, 0.5):
            total_s = 60.0 if sample_s > 0.01 else 3.0
            factors = (f"{factor:.3f}" for factor in slowed(share, sample_s, total_s))
            rows.append((f"samples of {of}, {share:.1%} waited", *factors))
    print_table(("", "all", "mean", "median"), rows)

    print("`equal`, and what is asked of its A/A pair: how often it holds, %\n")
    rows = []
    for label, scenario in (("P", PESSIMISTIC), ("W", WORST)):
        for sessions in (1, 3):
            for truth in (0.0, 0.25, 0.4):
                asked = [twins_asked(h, truth, 0.07, sessions, scenario, 20000) for h in ("nothing", "median", "reach")]
                rows.append((f"{label}, {sessions} session(s), true {truth:.0%}", *asked))
    print_table(("", "nothing", "median within", "reach within"), rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rates"]:
        print(json.dumps(error_rates(*map(int, sys.argv[2:4]))))
    else:
        main()
