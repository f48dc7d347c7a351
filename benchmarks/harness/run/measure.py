"""Measuring one experiment: its steps, one by one, each recorded before the next begins."""

import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import RepetitionError, Unsupported
from harness.run import peers, remote
from harness.run.context import Context, Repetition, Runner, runner
from harness.run.jobs import Estimate, Job, Progress
from harness.run.records import Record, ResultSet, Writer, set_aside, step_key, utc_now
from harness.spec import plan
from harness.spec.model import LEAST, NO_LOAD
from harness.spec.plan import Step
from harness.statistics.usable import NOISY
from harness.system import cpus, environment, limits
from harness.system.cpus import Placement

GIVE_UP_AFTER = 3  # failures of a variant in a row
#: Rounds beyond the plan, as a share of it, where too few have stayed undisturbed.
EXTRA_ROUNDS = 0.5


@dataclass
class _Run:
    """A job while it is measured."""

    job: Job
    writer: Writer
    result: ResultSet
    names: list[str]  # of the variants that can be run
    steps: list[Step]
    caps: Mapping[str, Any]
    context: Context
    runner: Runner
    progress: Progress
    estimate: Estimate
    later: float
    in_a_row: dict[str, int] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)

    def append(self, record: Record) -> None:
        self.writer.append(record)
        self.result.add(record)


def measure(job: Job, progress: Progress, later: float) -> ResultSet:
    """Does all that is left of a job. `later`: what comes after it will take, in seconds."""
    experiment = job.experiment
    client = remote.current()
    # In a user's namespace fusermount3 is not root; and from any the other host cannot be reached.
    user_mounts = experiment.disk and os.geteuid() != 0
    if experiment.kind != "micro" and not user_mounts and not client:
        environment.enter_namespace()
    allowed = cpus.allowed()
    placement = cpus.place(experiment.pin, cpus.cores(allowed), allowed)
    others = {v.peer: peers.load(v.peer).program for v in experiment.variants if v.peer}
    if client and not experiment.disk:  # nothing of the load is on our processors, but a disk is
        placement = Placement(placement.measured, frozenset())
    if not client:
        tools = {v.load for v in experiment.variants if v.load not in ("hammer", NO_LOAD)}
        others |= {tool: tool for tool in tools}
    here = environment.collect(placement, others, experiment.kind)
    if client:
        here["client"] = client.environment()
    if job.old and (what := environment.differs(job.old.run["environment"], here)):
        progress.line(f"{experiment.id}: measured anew, because {what} is not what it was")
        job.old = None
    if job.old is None and job.path.exists():
        old = set_aside(job.path)
        progress.line(f"{experiment.id}: measured anew; the older results are kept in {old}")
    with Writer(job.path) as writer:
        context = Context(placement, job.profile.timeout, progress.tick)
        run = _open(job, writer, here, context, progress, later)
        _steps(run)
        _close(run)
    return run.result


def _open(
    job: Job,
    writer: Writer,
    here: dict[str, Any],
    context: Context,
    progress: Progress,
    later: float,
) -> _Run:
    header = job.old.run if job.old else _header(job, here)
    result = job.old or ResultSet(job.path, header)
    if job.old:
        writer.append({"type": "resume", "resumed": utc_now(), "load": list(os.getloadavg())})
    else:
        writer.append(header)
        for name, answer in job.missing.items():
            skip = _skip(name, answer.reason, answer.remedy)
            writer.append(skip)
            result.add(skip)
    caps = {key: cap["most"] for key, cap in header.get("caps", {}).items()}
    skipped = {skip.get("variant") for skip in result.skips}
    names = [v.name for v in job.experiment.variants if v.name not in skipped]
    steps = plan.steps(job.experiment, job.profile, header["seed"], names, caps)
    estimate = Estimate(job.profile.seconds / max(1, len(steps)))
    for repetition in result.repetitions:
        step = Step(repetition["variant"], repetition["params"], repetition["round"], 0)
        estimate.learn(step, repetition["wall_s"])
    return _Run(
        job, writer, result, names, steps, header.get("caps", {}), context,
        runner(job.experiment.kind), progress, estimate, later,
    )  # fmt: skip


def _header(job: Job, here: dict[str, Any]) -> Record:
    # Only the caps that bite: the plan must not depend on how many processes run today.
    caps = limits.biting(job.experiment, job.profile).items()
    return {
        "type": "run",
        "schema": 1,
        "experiment": job.experiment.id,
        "profile": job.profile.name,
        "rounds": job.profile.rounds,
        "seed": secrets.randbits(32),
        "plan": job.plan,
        "programs": dict(job.programs),
        "started": utc_now(),
        "caps": {k: {"most": c.most, "wanted": wanted, "why": c.why} for k, (c, wanted) in caps},
        "environment": here,
    }


def _pending(run: _Run) -> list[Step]:
    done = {step_key(record) for record in run.result.repetitions}
    return [step for step in run.steps if step.key() not in done]


def _steps(run: _Run) -> None:
    """All rounds; and more while fewer than an interval needs were left alone by others.

    How many more is decided by the marks alone, never by what was measured.
    """
    rounds, caps = run.job.profile.rounds, {key: cap["most"] for key, cap in run.caps.items()}
    _pass(run)
    for extra in range(1, int(rounds * EXTRA_ROUNDS) + 1 if rounds >= LEAST else 1):
        if _undisturbed(run) >= LEAST:
            break
        seed = run.result.run["seed"]
        run.steps = plan.steps(run.job.experiment, run.job.profile, seed, run.names, caps, extra)
        _pass(run)


def _undisturbed(run: _Run) -> int:
    """Rounds without a repetition that is marked as noisy."""
    rounds = {repetition["round"] for repetition in run.result.repetitions}
    noisy = {r["round"] for r in run.result.repetitions if NOISY in r["marks"]}
    return len(rounds - noisy)


def _pass(run: _Run) -> None:
    """What is left of the steps there are."""
    pending = _pending(run)
    for place, step in enumerate(pending):
        name = run.job.experiment.variant(step.variant).name
        if name in run.given_up:
            continue
        left = run.estimate.of(pending[place:]) + run.later
        done = len(run.steps) - len(pending) + place
        run.progress.step(done, len(run.steps), _describe(step), left)
        _step(run, step, name)


def _describe(step: Step) -> str:
    params = " ".join(f"{key}={value}" for key, value in step.params.items())
    return f"round {step.round + 1}, {step.variant}" + (f" ({params})" if params else "")


def _step(run: _Run, step: Step, name: str) -> None:
    experiment = run.job.experiment
    started = time.monotonic()
    identity = {"variant": step.variant, "params": step.params, "round": step.round,
                "order": step.order}  # fmt: skip
    try:
        found = run.runner(experiment, experiment.variant(name), step.params, run.context)
    except RepetitionError as error:
        run.append({"type": "failure", **identity, "error": str(error)})
        run.in_a_row[name] = run.in_a_row.get(name, 0) + 1
        if run.in_a_row[name] >= GIVE_UP_AFTER:
            run.given_up.add(name)
        return
    except Unsupported as error:
        run.append(_skip(name, error.reason, error.remedy))
        run.given_up.add(name)
        return
    run.in_a_row[name] = 0
    wall_s = time.monotonic() - started
    run.append(_repetition(run, identity, found, wall_s))
    run.estimate.learn(step, wall_s)


def _skip(variant: str, reason: str, remedy: str) -> Record:
    return {"type": "skip", "variant": variant, "reason": reason, "remedy": remedy}


def _repetition(run: _Run, identity: Record, found: Repetition, wall_s: float) -> Record:
    # A worker for each processor is what was asked for, however few there are.
    meant = [key for key, what in run.job.experiment.caps.items() if "processors" in what]
    caps = {key: cap["most"] for key, cap in run.caps.items() if key not in meant}
    if any(identity["params"].get(key) == most for key, most in caps.items()):
        found.mark("reduced")
    record: Record = {
        "type": "repetition", **identity, "wall_s": round(wall_s, 6),
        "samples": found.samples, "scalars": found.scalars, "marks": found.marks,
    }  # fmt: skip
    if found.histograms:
        record["histograms"] = found.histograms
    return record


def _close(run: _Run) -> None:
    unsupported = {skip.get("variant") for skip in run.result.skips}
    experiment = run.job.experiment
    left = [s for s in _pending(run) if experiment.variant(s.variant).name not in unsupported]
    run.append(
        {
            "type": "end",
            "finished": utc_now(),
            "repetitions": len(run.result.repetitions),
            "failures": len(left),
            "given_up": sorted(run.given_up - unsupported),
        }
    )
