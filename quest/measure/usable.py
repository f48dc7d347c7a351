"""Which repetitions may be asked: what a mark spoils, and for which question.

A repetition is kept with its marks (benchmarks/README.md). Whether it may decide depends on what is
asked of it. What others took of the processors (`noisy`) makes times longer by about as much, so it
counts against a rule that asks for less than twice that; bytes, packets and faults are counted the
same however busy the machine is. A load generator at its limit (`client-bound`) makes rates and
waits its own, not the server's; work per CPU second is still the server's. Where N = X·R does not
hold (`little`) the mean wait R is wrong: the rate X is a count and a clock, and N was set. Of one
client who asks again when the last reply's connection has ended, what is missing lies between his
requests: connect and first byte, which are over before the reply is, are not touched by it.
"""

import math

from quest.measure.records import Record
from quest.spec.model import Metric

NOISY, CLIENT_BOUND, LITTLE = "noisy", "client-bound", "little"
LITTLE_TOLERANCE = 0.1
TIMES = ("ns", "us", "µs", "ms", "s")


def kind(metric: Metric) -> str:
    """ "work" (per CPU second), "wait", "rate" (also a share of the time) or "count"."""
    if "cpu" in metric.scalar or metric.scalar.endswith(("_s_per_gb", "_us_per_request")):
        return "work"
    if metric.unit in TIMES:
        return "wait"
    return "rate" if metric.unit.endswith(("/s", "%")) or metric.reduce == "jain" else "count"


def taken(metric: Metric, repetition: Record) -> float:
    """The share of the processors that others took from what this metric measures; 0 to 1."""
    if NOISY not in repetition["marks"] or kind(metric) == "count":
        return 0.0
    scalars = repetition["scalars"]
    return float(scalars.get("foreign_share", 1.0) + scalars.get("steal_share", 0.0))


def spoilt(metric: Metric, repetition: Record) -> str:
    """The mark that makes this metric of the repetition worthless for any question, or ""."""
    what = kind(metric)
    if what in ("rate", "wait") and _number("client_bound", metric, repetition) != 0:
        return CLIENT_BOUND
    missing = 1 - _number("little.ratio", metric, repetition)
    between = missing > 0 and _number("little.n", metric, repetition) == 1
    if what == "wait" and abs(missing) > LITTLE_TOLERANCE and not (between and _begins(metric)):
        return LITTLE
    return ""


def _begins(metric: Metric) -> bool:
    """A part of a request that is over before its reply is."""
    return not {"connect", "first_byte"}.isdisjoint(metric.scalar.split("."))


#: What the load says of itself, where it has found nothing wrong.
SOUND = {"client_bound": 0.0, "little.ratio": 1.0, "little.n": math.inf}


def _number(name: str, metric: Metric, repetition: Record) -> float:
    """Of the phase that the metric is of: a phase's scalars have its name before theirs."""
    scalars, end = repetition["scalars"], metric.scalar.rfind(".")
    while end >= 0:
        of_phase = f"{metric.scalar[:end]}.{name}"
        if of_phase in scalars:
            return float(scalars[of_phase])
        end = metric.scalar.rfind(".", 0, end)
    return float(scalars.get(name, SOUND[name]))
