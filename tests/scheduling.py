"""Which test comes when, and on which worker of pytest-xdist. Most of a run is waiting. It is short if the tests that
wait are begun early, and if none of them stands behind another while some worker has nothing to do.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xdist.scheduler import LoadScheduling

Item = TypeVar("Item")
TOGETHER = 8  #: tests of one file that a worker gets at once
#: and of a file in one of these folders, whose tests share what takes seconds of processor time: a browser, an export
SHARING = {"book": 64, "figures": 64}
EARLY = 2 / 3  #: of the tests: among these lie those that wait


def shared(name: str) -> int:
    """How many tests of the file of that test a worker may have at once."""
    return SHARING.get(name.partition("::")[0].rpartition("/")[0].rpartition("/")[2], TOGETHER)


def spread(items: Sequence[Item], waits: Callable[[Item], int], name: Callable[[Item], str] = str) -> list[Item]:
    """Those that wait, the most patient first, at equal distances among the first EARLY of the others, which keep their
    order. So some worker is always waiting, never all of them, and none at the end. A file whose tests share is not
    divided.

    waits: 0 for a test that does not wait, else a number that is greater for one that waits longer.
    """

    def inside(place: int) -> bool:
        before, behind = (name(others[n]) for n in (place - 1, place))
        return shared(behind) > TOGETHER and before.partition("::")[0] == behind.partition("::")[0]

    waiting = sorted(filter(waits, items), key=waits, reverse=True)  # equal ones keep their order
    others = [item for item in items if not waits(item)]
    early = int(len(others) * EARLY) if waiting else 0
    ordered, begin = list[Item](), 0
    for number, item in enumerate(waiting, 1):
        end = max(begin, early * number // len(waiting))
        while 0 < end < len(others) and inside(end):
            end += 1
        ordered += [item, *others[begin:end]]
        begin = end
    return ordered + others[begin:]


class AsTheyCome(LoadScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Each worker gets its next tests when it has begun the last that it has. The scheduler of pytest-xdist gives each
    worker hundreds at the start, and if these wait the other workers end long before it.
    """

    collection: list[str] | None

    def schedule(self) -> None:
        """When all workers have said what there is; and again after the loss of one."""
        if self.collection is None:
            if not self._check_nodes_have_same_collection():
                return
            self.collection = next(iter(self.node2collection.values()))
            self.pending[:] = range(len(self.collection))
        for node in self.nodes:
            self.check_schedule(node)

    def check_schedule(self, node: Any, duration: float = 0) -> None:
        """A worker runs a test when it knows the one behind it, or that there is none: so it has two."""
        if node.shutting_down:
            return
        while self.pending and len(self.node2pending[node]) < 2:
            self._send_tests(node, self._of_one_file())
        if not self.pending:
            node.shutdown()

    def _of_one_file(self) -> int:
        """How many tests, from the next on, are of its file: as many as a worker may have at once."""
        names = self.collection or []
        most = shared(names[self.pending[0]])
        files = [names[index].partition("::")[0] for index in self.pending[:most]]
        return next((n for n, file in enumerate(files) if file != files[0]), len(files))
