"""Which repetitions may be used: what a mark spoils, and for which metric.

A repetition is kept with its marks (benchmarks/README.md). Whether it may decide depends on the
metric. What other programs took of the processors (`noisy`) makes times longer by about as much, so
it counts against a rule that asks for less than twice that; bytes, packets and faults are counted
the same however busy the machine is. A load generator at its limit (`client-bound`) makes rates and
waits its own, not the server's; work per CPU second is still the server's. Where N = X·R does not
hold (`little`) the mean wait R is wrong: the rate X is a count and a clock, and N was set. Of one
client that asks again when the last reply's connection has ended, what is missing lies between its
requests: connect and first byte, which are over before the reply is, are not touched by it.

What others took is known in one of two ways (noise.py). A program of one thread has a `wait_share`:
how much of its time it waited in the run queue. All of it counts, however little, as it makes a time
longer by 1/(1-share); but the median of short samples stays what it is while most of them meet no
wait. All else has the account of the processors. Records that are older than `wait_share` have that
account alone, and are judged as they were.
"""

import math
from collections.abc import Sequence
from typing import Literal

from quest.measure.records import Record
from quest.spec.model import Metric

NOISY, CLIENT_BOUND, LITTLE = "noisy", "client-bound", "little"
WAIT_SHARE, WAITING_UNKNOWN = "wait_share", "waiting-unknown"
NOISY_SHARE = 0.10
NOISY_SECONDS = 0.05  # below it the clock ticks of the account of the processors decide
#: The median of so many samples, each so short, may have this share of waiting: tests/harness/simulated.py.
SHORT_S, SHORT_COUNT, SHORT_MAY_WAIT = 100e-6, 5, 0.30
LITTLE_TOLERANCE = 0.1
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
TIMES = tuple(SECONDS)


def kind(metric: Metric) -> Literal["work", "wait", "rate", "count"]:
    """Work is per CPU second, a rate also a share of the time."""
    if "cpu" in metric.scalar or metric.scalar.endswith(("_s_per_gb", "_us_per_request")):
        return "work"
    if metric.unit in TIMES:
        return "wait"
    return "rate" if metric.unit.endswith(("/s", "%")) or metric.reduce == "jain" else "count"


def disturbance(metric: Metric, repetition: Record, samples: Sequence[float] = (), together: float = 0.0) -> float:
    """The share of the processors that other programs took from what this metric measures; 0 to 1,
    and 0 for a count, or where it changes nothing.

    `samples`: those that the metric is made of, in its unit; `together`: what shares_together() says of the repetition.
    """
    scalars, noisy = repetition["scalars"], NOISY in repetition["marks"]
    if kind(metric) == "count":
        return 0.0
    steal = float(scalars.get("steal_share", 0.0))
    if WAIT_SHARE in scalars:
        waited = float(scalars[WAIT_SHARE])
        waited = 0.0 if waited <= SHORT_MAY_WAIT and _median_of_short(metric, samples) else waited
        return min(1.0, waited + (steal if noisy else 0.0))
    if noisy:
        return float(scalars.get("foreign_share", 1.0) + steal)
    return together


def _median_of_short(metric: Metric, samples: Sequence[float]) -> bool:
    if metric.reduce != "median" or not metric.column or metric.unit not in SECONDS or len(samples) < SHORT_COUNT:
        return False
    return sorted(samples)[len(samples) // 2] * SECONDS[metric.unit] <= SHORT_S


def shares_together(repetitions: Sequence[Record]) -> list[float]:
    """For each repetition of a series the share that others took of all rounds of its step together, where it is too
    short for a mark of its own: 0 where that is little, or the records are older than the account.
    """
    sums: dict[str, list[float]] = {}
    steps = [str(sorted(r["params"].items())) if _too_short(r["scalars"]) else "" for r in repetitions]
    for step, repetition in zip(steps, repetitions, strict=True):
        of_step = sums.setdefault(step, [0.0, 0.0])
        for i, name in enumerate(("foreign_s", "available_s")):
            of_step[i] += repetition["scalars"].get(name, 0.0) if step else 0.0
    shares = {
        step: min(1.0, foreign / available) if foreign > max(NOISY_SECONDS, NOISY_SHARE * available) else 0.0
        for step, (foreign, available) in sums.items()
    }
    return [shares[step] for step in steps]


def _too_short(scalars: Record) -> bool:
    """A tenth of it is less than the ticks of the clock can tell."""
    return WAIT_SHARE not in scalars and 0 < NOISY_SHARE * scalars.get("available_s", 0.0) <= NOISY_SECONDS


def spoiling_mark(metric: Metric, repetition: Record) -> str:
    """The mark that makes this metric of the repetition worthless for any rule, or ""."""
    of_kind = kind(metric)
    if of_kind in ("rate", "wait") and _number("client_bound", metric, repetition) != 0:
        return CLIENT_BOUND
    missing = 1 - _number("little.ratio", metric, repetition)
    between_requests = missing > 0 and _number("little.n", metric, repetition) == 1
    untouched = between_requests and _over_before_the_reply(metric)
    if of_kind == "wait" and abs(missing) > LITTLE_TOLERANCE and not untouched:
        return LITTLE
    return ""


def _over_before_the_reply(metric: Metric) -> bool:
    """A wait that is over before the reply is."""
    return not {"connect", "first_byte"}.isdisjoint(metric.scalar.split("."))


#: What the load reports of itself, where nothing is wrong.
SOUND = {"client_bound": 0.0, "little.ratio": 1.0, "little.n": math.inf}


def _number(name: str, metric: Metric, repetition: Record) -> float:
    """The scalar of that name, of the metric's phase: a phase's scalars begin with its name."""
    scalars, end = repetition["scalars"], metric.scalar.rfind(".")
    while end >= 0:
        of_phase = f"{metric.scalar[:end]}.{name}"
        if of_phase in scalars:
            return float(scalars[of_phase])
        end = metric.scalar.rfind(".", 0, end)
    return float(scalars.get(name, SOUND[name]))
