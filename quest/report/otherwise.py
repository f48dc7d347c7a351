"""What two runs of one experiment were set to, where they differ: the quick profile takes fewer
requests, fewer points and sometimes another load than the full one of the reference run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quest.spec.model import Value
from quest.stats.table import Run

#: Parameters that say how often and how long, not what.
REPEATS = {
    "batches", "calm", "choices", "fetches", "many", "requests", "samples", "seconds", "turns",
    "visits", "warm", "warm_up", "whole_seconds",
}  # fmt: skip
Values = tuple[Value, ...]


@dataclass(frozen=True)
class Otherwise:
    """Parameter -> its values in the other run and in this one."""

    load: Mapping[str, tuple[Values, Values]]  # another question
    effort: Mapping[str, tuple[Values, Values]]  # the same, asked less often or at fewer points

    def words(self, what: str, here: str = "here") -> str:
        """`drip=50 (here 20), names=10, 1000 (here 10)`; "" if all is alike. `what`: "load" or
        "effort"; `here`: how this run is called.
        """
        some = self.load if what == "load" else self.effort
        return ", ".join(
            f"{name}={_listed(there)} ({here} {_listed(own)})" for name, (there, own) in sorted(some.items())
        )


def _listed(values: Values) -> str:
    return ", ".join(map(str, values)) or "not set"


def otherwise(runs: Sequence[Run]) -> Otherwise:
    """Of this run and the other; nothing, if there is no other."""
    load: dict[str, tuple[Values, Values]] = {}
    effort: dict[str, tuple[Values, Values]] = {}
    if len(runs) == 2 and all(run.repetitions for run in runs):
        here, there = (run.settings for run in runs)
        for name in here.keys() | there.keys():
            pair = there.get(name, ()), here.get(name, ())
            if pair[0] != pair[1]:
                shared = set(pair[0]) & set(pair[1])
                (effort if name in REPEATS or shared else load)[name] = pair
    return Otherwise(load, effort)
