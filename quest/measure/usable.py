"""Which repetitions may be used: what a mark spoils, and for which metric.

A repetition is kept with its marks (benchmarks/README.md). Whether it may decide depends on the
metric. What other programs took of the processors (`noisy`) makes times longer by about as much, so
it counts against a rule that asks for less than twice that; bytes, packets and faults are counted
the same however busy the machine is. A load generator at its limit (`client-bound`) makes rates and
waits its own, not the server's; work per CPU second is still the server's. Where N = X·R does not
hold (`little`) the mean wait R is wrong: the rate X is a count and a clock, and N was set. Of one
client that asks again when the last reply's connection has ended, what is missing lies between its
requests: connect and first byte, which are over before the reply is, are not touched by it.
"""

import math
from typing import Literal

from quest.measure.records import Record
from quest.spec.model import Metric

NOISY, CLIENT_BOUND, LITTLE = "noisy", "client-bound", "little"
LITTLE_TOLERANCE = 0.1
TIMES = ("ns", "us", "µs", "ms", "s")


def kind(metric: Metric) -> Literal["work", "wait", "rate", "count"]:
    """Work is per CPU second, a rate also a share of the time."""
    if "cpu" in metric.scalar or metric.scalar.endswith(("_s_per_gb", "_us_per_request")):
        return "work"
    if metric.unit in TIMES:
        return "wait"
    return "rate" if metric.unit.endswith(("/s", "%")) or metric.reduce == "jain" else "count"


def disturbance(metric: Metric, repetition: Record) -> float:
    """The share of the processors that other programs took from what this metric measures; 0 to 1,
    and 0 for a count, or a repetition that is not noisy.
    """
    if NOISY not in repetition["marks"] or kind(metric) == "count":
        return 0.0
    scalars = repetition["scalars"]
    return float(scalars.get("foreign_share", 1.0) + scalars.get("steal_share", 0.0))


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
