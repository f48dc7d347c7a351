"""How many rounds are made, and what becomes of a variant that fails: with repetitions made up."""

import io
import math
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import RepetitionError, Stopped, Unsupported
from quest.measure import measure as measuring
from quest.measure.limits import Cap
from quest.measure.measure import Job, in_order, prepare
from quest.measure.progress import Progress
from quest.measure.records import Repetition, ResultSet, read_results
from quest.measure.session import Context, Session
from quest.spec.model import Experiment, Params, Variant
from tests.harness.made_up import Tree, parsed

ROUNDS = 9  # of the profile "full" of the sample
STEPS = 3  # of a round: a, a again, b
PROFILE = {name: {"rounds": ROUNDS, "set": {"n": 4}} for name in ("smoke", "quick", "full")}

#: The name of a variant and how many repetitions of it came before -> its repetition.
MakeUp = Callable[[str, int], Repetition]


@pytest.fixture
def measured(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ResultSet]:
    """Measures the sample in the profile "full", with these repetitions, in this process."""
    tree.program()
    monkeypatch.chdir(tree.root)

    def run(make_up: MakeUp, **changes: Any) -> ResultSet:
        counts: dict[str, int] = {}

        def once(_: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
            assert context.client is None and not context.own_network and params["n"] in (2, 4)
            counts[variant.name] = counts.get(variant.name, -1) + 1
            return make_up(variant.name, counts[variant.name])

        monkeypatch.setattr(measuring, "_runner", lambda _: once)
        session = Session()
        job, skips = prepare(parsed(profile=PROFILE, **changes), "full", Path("build/results"), session)
        assert job and not skips
        progress = Progress(False, io.StringIO())
        progress.experiment(1, 1, "sample", 1.0)
        result = measuring.measure(job, progress, 0.0, session)
        written = [{k: v for k, v in r.items() if k != "sum"} for r in read_results(job.path).repetitions]
        assert written == result.repetitions, "what is written is what is given"
        return result

    return run


def calm(_variant: str, _before: int) -> Repetition:
    return Repetition(scalars={"us": 1.0})


def rounds(result: ResultSet) -> int:
    """Their number; each is whole."""
    found = [repetition["round"] for repetition in result.repetitions]
    assert [repetition["order"] for repetition in result.repetitions] == list(range(len(found)))
    assert found == sorted(found) and len(found) == STEPS * len(set(found))
    return len(set(found))


def test_all_rounds_are_made(measured: Callable[..., ResultSet]) -> None:
    result = measured(calm)
    assert rounds(result) == ROUNDS
    assert result.end and (result.end["repetitions"], result.end["failures"]) == (ROUNDS * STEPS, 0)
    assert result.end["given_up"] == []


@pytest.mark.parametrize(
    ("noisy", "number"),
    [
        (0, ROUNDS),
        (3, ROUNDS),  # six are left alone, which is enough
        (4, ROUNDS + 1),
        (6, ROUNDS + 3),
        (ROUNDS, ROUNDS + 4),  # half as many again are the most
        (99, ROUNDS + 4),
    ],
)
def test_rounds_that_others_disturbed_are_made_up_for(
    measured: Callable[..., ResultSet], noisy: int, number: int
) -> None:
    def disturbed(variant: str, before: int) -> Repetition:
        return Repetition(marks=["noisy"] if variant == "b" and before < noisy else [])

    assert rounds(measured(disturbed)) == number


def test_a_variant_that_fails_is_given_up_after_three_in_a_row(
    measured: Callable[..., ResultSet],
) -> None:
    asked: list[int] = []

    def failing(variant: str, before: int) -> Repetition:
        if variant == "b":
            asked.append(before)
            if before != 2:  # two, then one that goes well, then three
                raise RepetitionError("it is broken")
        return calm(variant, before)

    result = measured(failing)
    assert asked == [0, 1, 2, 3, 4, 5]
    assert [failure["error"] for failure in result.failures] == ["it is broken"] * 5
    assert sum(repetition["variant"] == "b" for repetition in result.repetitions) == 1
    assert result.end and result.end["given_up"] == ["b"]
    assert result.end["failures"] == ROUNDS - 1, "of b's rounds; they are tried again next time"


def test_a_variant_that_cannot_run_here_is_skipped_at_once(
    measured: Callable[..., ResultSet],
) -> None:
    def unsupported(variant: str, before: int) -> Repetition:
        if variant == "b":
            raise Unsupported("no such call", "a newer kernel")
        return calm(variant, before)

    result = measured(unsupported)
    assert result.failures == []
    assert [(s["variant"], s["reason"], s["remedy"]) for s in result.skips] == [("b", "no such call", "a newer kernel")]
    assert result.end and (result.end["failures"], result.end["given_up"]) == (0, [])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_fails_its_repetition_alone(measured: Callable[..., ResultSet], value: float) -> None:
    result = measured(lambda variant, _: Repetition(scalars={"us": value if variant == "b" else 1.0}))
    expected = [f'"us" is {value}, which is no number'] * measuring.GIVE_UP_AFTER
    assert [failure["error"] for failure in result.failures] == expected
    assert result.end and result.end["given_up"] == ["b"]
    assert {repetition["variant"] for repetition in result.repetitions} == {"a", "a+aa"}


@pytest.mark.parametrize("last", [RepetitionError("umount: target is busy"), Unsupported("no control group")])
def test_a_signal_ends_it_though_cleaning_up_fails_afterwards(
    measured: Callable[..., ResultSet], last: Exception
) -> None:
    def stopped(_variant: str, _before: int) -> Repetition:
        try:
            raise Stopped(signal.SIGINT)
        finally:
            raise last

    with pytest.raises(Stopped):
        measured(stopped)
    assert b'"failure"' not in Path("build/results/sample.jsonl").read_bytes(), "what was stopped has not failed"


def test_a_users_disks_are_mounted_before_a_namespace_is_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = {"pools": ["files=1x1000"]}
    experiments = [parsed(id="one"), parsed(id="two", disk=disk), parsed(id="three"), parsed(id="four", disk=disk)]
    jobs = [Job(one, one.profiles["quick"], Path(), {}, {}, "") for one in experiments]
    for user, order in (
        (0, ["one", "two", "three", "four"]), (1000, ["two", "four", "one", "three"])
    ):  # fmt: skip
        monkeypatch.setattr("os.geteuid", lambda user=user: user)
        assert [job.experiment.id for job in in_order(jobs)] == order


def test_what_a_cap_reduced_is_marked(measured: Callable[..., ResultSet], monkeypatch: pytest.MonkeyPatch) -> None:
    """But not where as many as there are processors were asked for."""
    monkeypatch.setattr("quest.measure.limits.smallest", lambda _: Cap(2, "few"))
    for resource, marks in (("processes", {"reduced"}), ("processors", set())):
        result = measured(calm, caps={"n": [resource]})
        assert result.run["caps"]["n"] == {"most": 2, "wanted": 4, "why": "few"}
        assert {mark for repetition in result.repetitions for mark in repetition["marks"]} == marks
    monkeypatch.setattr("quest.measure.limits.smallest", lambda _: Cap(4, "enough"))
    result = measured(calm, caps={"n": ["processes"]})
    assert result.run["caps"] == {} and not any(repetition["marks"] for repetition in result.repetitions)


def test_what_is_told_of_each_step(measured: Callable[..., ResultSet], monkeypatch: pytest.MonkeyPatch) -> None:
    """How many are done, of how many; and of how many at most, once noise has made more of them."""
    told: list[tuple[int, int, str, int]] = []

    def step(_: Progress, done: int, total: int, what: str, _left_s: float, most: int = 0) -> None:
        told.append((done, total, what.partition(",")[0], most))

    monkeypatch.setattr(Progress, "step", step)
    measured(lambda variant, before: Repetition(marks=["noisy"] if variant == "b" and before < 4 else []))
    planned = ROUNDS * STEPS
    assert told == [
        *((done, planned, f"round {done // STEPS + 1}", 0) for done in range(planned)),
        *((done, planned + STEPS, "round 10", 13 * STEPS) for done in range(planned, planned + STEPS)),
    ]
