"""What of an experiment is left to measure, and measuring it: step by step, each recorded before
the next begins.
"""

import contextlib
import math
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quest.ground import cpus
from quest.ground.cpus import Placement
from quest.ground.errors import InputError, RepetitionError, Stopped, Unsupported
from quest.ground.places import Answer
from quest.measure import environment, limits, peers, programs, records
from quest.measure.environment import Environment
from quest.measure.needs import probe
from quest.measure.progress import Estimate, Progress
from quest.measure.records import Record, Repetition, ResultSet, Writer, started, step_key
from quest.measure.session import Context, Session
from quest.measure.usable import NOISY
from quest.spec import plan
from quest.spec.model import LEAST, NO_LOAD, PROFILES, Experiment, Params, Profile, Variant
from quest.spec.plan import Step

GIVE_UP_AFTER = 3  # failures of a variant in a row
#: Rounds beyond the plan, as a share of it, where too few have stayed undisturbed.
EXTRA_ROUNDS = 0.5


@dataclass
class Job:
    """An experiment that has something left to measure."""

    experiment: Experiment
    profile: Profile
    path: Path  # of its results
    programs: Mapping[str, str]  # program -> hash
    missing: Mapping[str, Answer]  # variant -> why it cannot run here
    plan_hash: str
    old: ResultSet | None = None  # the set to go on with


# ---- what is there already ----------------------------------------------------------------------


def prepare(experiment: Experiment, wanted: str, results: Path, session: Session) -> tuple[Job | None, list[str]]:
    """The job in the profile `wanted`, or None if the results there are answer for it; and what
    cannot be run here, one line each. InputError for results that are damaged.

    What only the profile needs, as consent, leaves older results as they are.
    """
    for need in experiment.profiles[wanted].needs:
        met = probe(need, session.settings.many)
        if not met.ok:
            skip = skip_text(experiment.id, f"profile {wanted}", met.reason, met.remedy)
            return None, [skip]
    client, many = session.client, session.settings.many
    answers = {v.name: programs.missing(experiment, v, client, many) for v in experiment.variants}
    missing = {name: answer for name, answer in answers.items() if answer}
    available = [v for v in experiment.variants if v.name not in missing]
    hashes = programs.fingerprints(experiment, available, client)
    skips = [skip_text(experiment.id, n, a.reason, a.remedy) for n, a in missing.items()]
    path = results / f"{experiment.id}.jsonl"

    def job(profile: str, old: ResultSet | None = None) -> Job:
        settings = experiment.profiles[profile]
        digest = plan.plan_hash(experiment, settings, hashes, missing)
        return Job(experiment, settings, path, hashes, missing, digest, old)

    if not started(path):
        return job(wanted), skips
    ends = records.first_and_last(path)  # the whole is read only where something is left to do
    old = None
    if ends and ends[1]["type"] == "end" and ends[1]["failures"] == 0:
        run = ends[0]
    else:
        old = records.read_results(path)
        run = old.run
    profile = run["profile"]
    fits = profile == wanted
    if not old or old.end:
        fits = PROFILES.index(profile) >= PROFILES.index(wanted)
    if fits and profile in experiment.profiles and job(profile).plan_hash == run["plan"]:
        return (job(profile, old) if old else None), skips
    return job(wanted), skips


def skip_text(experiment: str, variant: str, reason: str, remedy: str) -> str:
    """One line that says what is not measured, and why."""
    return f"{experiment} {variant}: {reason}" + (f" ({remedy})" if remedy else "")


def _user_mounts(experiment: Experiment) -> bool:
    """Whether fusermount3 has to mount a disk. In a user's namespace it is not root, and cannot."""
    return experiment.disk is not None and os.geteuid() != 0


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """A process that has entered a namespace cannot leave it, and there a user may mount no disk. So those of a user
    that need one come first; the order of the others stays.
    """
    return sorted(jobs, key=lambda job: not _user_mounts(job.experiment))


# ---- measuring -----------------------------------------------------------------------------------


#: What makes one repetition of a variant, with these parameters.
Runner = Callable[[Experiment, Variant, Params, Context], Repetition]


def _runner(kind: str) -> Runner:
    """Imported when needed: `bench` with nothing to do loads none of these modules."""
    if kind == "micro":
        from quest.measure import micro

        return micro.run
    if kind == "load":
        from quest.measure import load

        return load.run
    from quest.measure import trace

    return trace.run


def measure(
    job: Job,
    progress: Progress,
    later_s: float,
    session: Session,
) -> ResultSet:
    """Does all that is left of a job. What comes after it will take `later_s` seconds."""
    name = job.experiment.id
    placement, machine = _surroundings(job, session)
    if job.old and (difference := environment.first_difference(job.old.run["environment"], machine)):
        progress.line(f"{name}: measured anew, because {difference} has changed")
        job.old = None
    if job.old is None and started(job.path):
        progress.line(f"{name}: measured anew; the older results are kept in {records.set_aside(job.path)}")
    with _first_error(), Writer(job.path) as writer:
        context = Context(placement, job.profile.timeout, progress.tick, session.client, session.network.entered)
        judged_by = session.judged_by(name)
        run = _Run(job, writer, machine, context, progress, later_s, judged_by)
        run.all_rounds()
        run.end()
    return run.result


@contextlib.contextmanager
def _first_error() -> Iterator[None]:
    """What could not be written, as on a full disk, is tried once more where the file is closed, and that error has no
    name: the first one counts.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error.__context__, InputError):
            raise error.__context__ from None
        raise


def _surroundings(job: Job, session: Session) -> tuple[Placement, Environment]:
    """Where the programs run, and what the results say of the machine."""
    experiment, client = job.experiment, session.client
    # From any namespace the other host cannot be reached.
    if experiment.kind != "micro" and not _user_mounts(experiment) and not client:
        session.network.enter()
    allowed = cpus.allowed()
    placement = cpus.place(experiment.pin, cpus.cores(allowed), allowed)
    versions = {v.peer: peers.load(v.peer).program for v in experiment.variants if v.peer}
    if client and not experiment.disk:  # nothing of the load is on our processors, but a disk is
        placement = Placement(placement.measured, frozenset())
    if not client:
        tools = {v.load for v in experiment.variants} - {"hammer", NO_LOAD}
        versions |= {tool: tool for tool in tools}
    network = None if experiment.kind == "micro" else session.network
    flags = session.settings.compiler_flags
    machine = environment.collect(placement, versions, network, flags)
    if client:
        machine["client"] = client.environment()
    return placement, machine


def _header(job: Job, machine: Environment, judged_by: Mapping[str, Any]) -> Record:
    # Only the caps that reduce something: the plan must not depend on how many processes run today.
    caps = limits.reducing(job.experiment, job.profile).items()
    return {
        "type": "run",
        "schema": 1,
        "experiment": job.experiment.id,
        "profile": job.profile.name,
        "rounds": job.profile.rounds,
        "seed": secrets.randbits(32),
        "plan": job.plan_hash,
        "programs": dict(job.programs),
        "started": records.utc_now(),
        "caps": {k: {"most": c.most, "wanted": wanted, "why": c.why} for k, (c, wanted) in caps},
        "environment": machine,
        **judged_by,
    }


def _raise_a_signal_before(error: BaseException) -> None:
    """Where a signal has ended a repetition, and then cleaning up has failed too, the signal counts: the measurement
    is over. `error` is then only what came last.
    """
    before = error.__context__
    while before is not None:
        if isinstance(before, Stopped | KeyboardInterrupt):
            raise before
        before = before.__context__


class _Run:
    """A job while it is measured."""

    def __init__(
        self,
        job: Job,
        writer: Writer,
        machine: Environment,
        context: Context,
        progress: Progress,
        later_s: float,
        judged_by: Mapping[str, Any],
    ) -> None:
        self.job, self.writer, self.context = job, writer, context
        self.progress, self.later_s = progress, later_s
        self.run_once = _runner(job.experiment.kind)
        self.result = job.old or ResultSet(job.path, _header(job, machine, judged_by))
        if job.old:
            writer.append({"type": "resume", "resumed": records.utc_now(), "load": list(os.getloadavg())})
        else:
            writer.append(self.result.run)
            for name, answer in job.missing.items():
                self._skip(name, answer.reason, answer.remedy)
        self.caps = {key: cap["most"] for key, cap in self.result.run.get("caps", {}).items()}
        skipped = {skip.get("variant") for skip in self.result.skips}
        self.names = [v.name for v in job.experiment.variants if v.name not in skipped]
        self.plan = self._planned()
        self.most = 0  # steps, once noise has made more of them than were planned
        self.estimate = Estimate(job.profile.seconds / max(1, len(self.plan)))
        for done in self.result.repetitions:
            step = Step(done["variant"], done["params"], done["round"], done["order"])
            self.estimate.learn(step, done["wall_s"])
        self.failures_in_a_row: dict[str, int] = {}  # by variant
        self.given_up: set[str] = set()  # variants

    def _planned(self, extra: int = 0) -> list[Step]:
        job, seed = self.job, self.result.run["seed"]
        return plan.steps(job.experiment, job.profile, seed, self.names, self.caps, extra)

    def _name(self, step: Step) -> str:
        return self.job.experiment.variant(step.variant).name

    def _append(self, record: Record) -> None:
        self.writer.append(record)
        self.result.add(record)

    def _skip(self, variant: str, reason: str, remedy: str) -> None:
        self._append({"type": "skip", "variant": variant, "reason": reason, "remedy": remedy})

    def _pending(self) -> list[Step]:
        done = {step_key(record) for record in self.result.repetitions}
        return [step for step in self.plan if step.key() not in done]

    def all_rounds(self) -> None:
        """And more while fewer than an interval needs were left undisturbed.

        How many more is decided by the marks alone, never by what was measured.
        """
        rounds = self.job.profile.rounds
        self._do_pending()
        for extra in range(1, int(rounds * EXTRA_ROUNDS) + 1 if rounds >= LEAST else 1):
            if self._undisturbed() >= LEAST:
                break
            self.plan = self._planned(extra)
            self.most = len(self._planned(int(rounds * EXTRA_ROUNDS)))
            self._do_pending()

    def _undisturbed(self) -> int:
        """The number of rounds without a noisy repetition."""
        rounds = {repetition["round"] for repetition in self.result.repetitions}
        return len(rounds - {r["round"] for r in self.result.repetitions if NOISY in r["marks"]})

    def _do_pending(self) -> None:
        """What is left of the steps of the plan."""
        pending = self._pending()
        for index, step in enumerate(pending):
            if self._name(step) not in self.given_up:
                self._report_progress(step, pending[index:])
                self._step(step, self._name(step))

    def _report_progress(self, step: Step, pending: Sequence[Step]) -> None:
        params = " ".join(f"{key}={value}" for key, value in step.params.items())
        what = f"round {step.round + 1}, {step.variant}" + (f" ({params})" if params else "")
        count = len(self.plan)
        left = self.estimate.seconds_for(pending) + self.later_s
        self.progress.step(count - len(pending), count, what, left, self.most)

    def _step(self, step: Step, name: str) -> None:
        experiment = self.job.experiment
        identity = {
            "variant": step.variant, "params": step.params, "round": step.round,
            "order": step.order,
        }  # fmt: skip
        started = time.monotonic()
        try:
            repetition = self.run_once(experiment, experiment.variant(name), step.params, self.context)
            wall_s = time.monotonic() - started
            record = self._record(identity, repetition, wall_s)
        except RepetitionError as error:
            _raise_a_signal_before(error)
            self._append({"type": "failure", **identity, "error": str(error)})
            self.failures_in_a_row[name] = self.failures_in_a_row.get(name, 0) + 1
            if self.failures_in_a_row[name] >= GIVE_UP_AFTER:
                self.given_up.add(name)
            return
        except Unsupported as error:
            _raise_a_signal_before(error)
            self._skip(name, error.reason, error.remedy)
            self.given_up.add(name)
            return
        self.failures_in_a_row[name] = 0
        self._append(record)
        self.estimate.learn(step, wall_s)

    def _record(self, identity: Record, repetition: Repetition, wall_s: float) -> Record:
        """RepetitionError for a number that JSON does not have."""
        for key in (key for key, value in repetition.scalars.items() if not math.isfinite(value)):
            raise RepetitionError(f'"{key}" is {repetition.scalars[key]}, which is no number')
        # A worker for each processor is what was asked for, however few there are.
        as_asked = [key for key, what in self.job.experiment.caps.items() if "processors" in what]
        params = identity["params"]
        if any(params.get(k) == most for k, most in self.caps.items() if k not in as_asked):
            repetition.mark("reduced")
        histograms = {"histograms": repetition.histograms} if repetition.histograms else {}
        return {
            "type": "repetition", **identity, "wall_s": round(wall_s, 6),
            "samples": repetition.samples, "scalars": repetition.scalars,
            "marks": repetition.marks, **histograms,
        }  # fmt: skip

    def end(self) -> None:
        """Nothing more is measured: the set is finished."""
        unsupported = {skip.get("variant") for skip in self.result.skips}
        self._append(
            {
                "type": "end",
                "finished": records.utc_now(),
                "repetitions": len(self.result.repetitions),
                "failures": sum(self._name(s) not in unsupported for s in self._pending()),
                "given_up": sorted(self.given_up - unsupported),
            }
        )
