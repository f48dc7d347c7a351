"""The order of the tests, and what each worker of pytest-xdist gets: each test once, the ones that wait early."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("xdist")

from tests.scheduling import SHARING, TOGETHER, AsTheyCome, spread


class Config:
    """Of a run with so many workers."""

    def __init__(self, workers: int) -> None:
        self.specs = ["popen"] * workers

    def getoption(self, name: str) -> list[str] | None:
        return {"tx": self.specs, "maxschedchunk": None}[name]

    getvalue = getoption  # of pytest-xdist before 3.6


class Worker:
    """Runs a test once it knows the next, or that there is none."""

    def __init__(self) -> None:
        self.shutting_down, self.has, self.most = False, list[int](), 0
        self.gateway = SimpleNamespace(id="w")

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down
        self.has += indices
        self.most = max(self.most, len(self.has))

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def may_run(self) -> bool:
        return len(self.has) > (0 if self.shutting_down else 1)


def begun(tests: list[str], count: int) -> tuple[Any, list[Worker]]:
    scheduler: Any = AsTheyCome(Config(count))
    workers = [Worker() for _ in range(count)]
    for worker in workers:
        scheduler.add_node(worker)
    for worker in workers:
        scheduler.add_node_collection(worker, tests)
    assert scheduler.collection_is_completed
    scheduler.schedule()
    return scheduler, workers


def run_all(scheduler: Any, workers: list[Worker]) -> list[int]:
    """The tests in the order in which they end, one of each worker in turn."""
    ended = []
    while ready := [worker for worker in workers if worker.may_run]:
        for worker in ready:
            ended.append(worker.has.pop(0))
            scheduler.mark_test_complete(worker, ended[-1])
    return ended


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 100])
@pytest.mark.parametrize("workers", [1, 2, 7])
def test_each_test_is_run_once_and_each_worker_told_to_end(count: int, workers: int) -> None:
    names = [f"file_{n // 20}.py::test_{n}" for n in range(count)]
    scheduler, nodes = begun(names, workers)
    assert sorted(run_all(scheduler, nodes)) == list(range(count))
    assert scheduler.tests_finished and all(node.shutting_down for node in nodes)
    assert max(node.most for node in nodes) <= 1 + TOGETHER


def test_others_do_the_rest_while_one_waits() -> None:
    names = [f"file_{n // 3}.py::test_{n}" for n in range(60)]
    scheduler, (waiting, *others) = begun(names, 3)
    behind = len(waiting.has)
    assert behind <= 3 + 1, "no more than what is of one file"
    assert len(run_all(scheduler, others)) == 60 - behind


def test_what_a_lost_worker_had_is_run_by_others() -> None:
    names = [f"file.py::test_{n}" for n in range(40)]
    scheduler, (lost, *others) = begun(names, 3)
    crashed = lost.has[0]
    assert scheduler.remove_node(lost) == names[crashed]
    assert sorted(run_all(scheduler, others)) == sorted(set(range(40)) - {crashed})


def test_the_tests_of_a_file_come_together_and_none_of_another() -> None:
    names = [*(f"a.py::test_{n}" for n in range(TOGETHER + 2)), "b.py::test", "a.py::test_last"]
    _, (worker, _) = begun(names, 2)
    assert worker.has == list(range(TOGETHER))


def test_those_that_wait_are_among_the_first_and_apart() -> None:
    items = [*range(900), *range(-1, -31, -1)]  # thirty that wait, the last ten longest
    ordered = spread(items, lambda item: 0 if item >= 0 else 2 if item < -20 else 1)
    assert [item for item in ordered if item >= 0] == list(range(900))
    assert [item for item in ordered if item < 0] == [*range(-21, -31, -1), *range(-1, -21, -1)]
    places = [place for place, item in enumerate(ordered) if item < 0]
    assert places == [21 * number for number in range(30)]


def test_tests_that_share_stay_with_one_worker() -> None:
    """What waits comes before or behind a file of theirs, also where that is the whole of a run."""
    some = [f"tests/book/test_a.py::test_{n}" for n in range(SHARING["book"])]
    for names in (some, ["tests/unit/test_b.py::test", *some, "tests/unit/test_c.py::test"]):
        waiting = [f"tests/labs/test_w.py::wait{n}" for n in range(9)]
        ordered = spread([*names, *waiting], lambda name: int("wait" in name))
        assert sorted(ordered) == sorted([*names, *waiting])
        first = ordered.index(some[0])
        assert ordered[first : first + len(some)] == some
        scheduler, workers = begun(ordered[first:], 2)
        assert workers[0].has[: len(some)] == list(range(len(some)))
        assert len(run_all(scheduler, workers)) == len(ordered) - first


@pytest.mark.parametrize("items", [[], [1], [-1], [-1, -2], [1, 2]])
def test_nothing_is_lost_where_there_is_little(items: list[int]) -> None:
    assert sorted(spread(items, lambda item: int(item < 0))) == sorted(items)
