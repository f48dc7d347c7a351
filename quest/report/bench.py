"""`bench`: measures what is not measured yet, so that it can be stopped and started at any moment.

A set that is finished, and whose programs and settings are still the same, is left alone; one that
was stopped goes on; one that no longer fits is moved to old/ beside it and measured anew.
"""

import contextlib
import json
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from quest.ground import cpus, foreign, guard, processes
from quest.ground.errors import InputError, Unreachable
from quest.ground.files import Busy, locked
from quest.ground.places import sweep_scratch
from quest.measure import cgroups, environment, programs, records, remote
from quest.measure import chosen as experiments
from quest.measure.measure import Job, in_order, measure, prepare, skip_text
from quest.measure.progress import Progress, terminal_width
from quest.measure.records import Record, ResultSet, failure_texts
from quest.measure.session import Session, Settings
from quest.spec import experiment_file
from quest.spec.model import Experiment

if TYPE_CHECKING:
    from quest.report.claims import Claim

DESCRIPTORS = 65536
LOCK_PATIENCE = 5.0  # one that was killed a moment ago may still be ending what it has started
LOCK = Path("build/measuring.lock")


@dataclass
class Report:
    """What is said at the end."""

    measured: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def bench(
    profile: str,
    only: Iterable[str],
    headline: bool,
    results: Path,
    reference: Path,
    again: bool = False,
    upto: str = "",
    *,
    settings: Settings,
) -> int:
    """0: all is measured or skipped; 1: something failed."""
    named = list(only)
    chosen = experiments.load_all(named, headline)
    return _bench(chosen, named, profile, headline, results, reference, again, upto, Session(settings))


def _bench(
    chosen: list[Experiment],
    named: list[str],
    profile: str,
    headline: bool,
    results: Path,
    reference: Path,
    again: bool,
    upto: str,
    session: Session,
) -> int:
    report = Report()
    session.judged_by = _judged_by(session)
    for one in chosen if again else ():
        if (path := results / f"{one.id}.jsonl").exists():
            print(f"{one.id}: the older results are kept in {records.set_aside(path)}")
    if not headline and not named:
        chosen = _without_those_by_name(chosen, profile, report)
    with contextlib.ExitStack() as stack:
        # What `make` draws and judges is loaded over loopback, whatever CLIENT says.
        if not headline and (host := session.settings.client):
            remote.check_host(host)
            chosen, results = _of_client(chosen, report), results / remote.FOLDER
            if chosen:
                load = cpus.place("apart", cpus.cores(cpus.allowed())).load
                far = remote.connected(host, programs.hammer_to_copy(), load, session.settings.server_address)
                session.client = stack.enter_context(far)
        pairs = [(e, e.headline_profile(profile) if headline else profile) for e in chosen]
        jobs = _left_to_do(pairs, results, session, report)
        if jobs:
            _say_what_comes_later(jobs, upto)
            jobs = _measure_all(jobs, session, report)
        _print_report(report, nothing=bool(chosen) and not jobs)
    # All that is known of those named; else what the sources say of what was measured. `make` ends
    # with the verdicts instead.
    with_tables = [job.experiment for job in jobs if job.experiment.then_tables]
    if named and not headline:
        from quest.report.measured import Library
        from quest.report.result import print_results

        width = terminal_width(160)
        every = experiments.everything()
        library = Library(results, reference, session.settings.reference_only, definitions=every)
        print_results(chosen, library, width, upto)
    elif with_tables and not headline:
        from quest.report.measured import Library
        from quest.report.then import print_tables

        library = Library(results, reference, session.settings.reference_only, definitions=with_tables)
        print_tables(with_tables, library)
    return 1 if report.failures or report.errors else 0


def measure_these(chosen: list[Experiment], profile: str, results: Path, again: bool, settings: Settings) -> Report:
    """The same of experiments that no folder of benchmarks/ has: a race. What failed or is not here is in the report,
    and has not been printed.
    """
    report, session = Report(), Session(settings)
    for one in chosen if again else ():
        if (path := results / f"{one.id}.jsonl").exists():
            records.set_aside(path)
    if jobs := _left_to_do([(one, profile) for one in chosen], results, session, report):
        _measure_all(jobs, session, report)
    return report


def reference_session(
    only: Iterable[str], verdicts: bool, second: bool, wanted: str, place: Path, reference: Path, settings: Settings
) -> int:
    """A session of the reference, into a folder of its own below `place`: the full profile, with as many rounds as are
    registered; with `verdicts` only the experiments that a rule asks; with `second` those of the claims since 2003.
    InputError where the tree is not clean, its judge not the registered one, or that was not committed and tagged
    before.
    """
    from quest.report import claims, judge, published, sessions  # with SciPy: not without a need
    from quest.report import since as ledger_since

    named = list(only)
    some = experiments.since(named) if second else experiment_file.load_all(only=named)
    if environment.git_commit()[1] is not False:
        raise InputError("a reference run needs one commit: git status has to be clean, in a clone")
    path = judge.REGISTERED_SINCE if second else judge.REGISTERED
    plan = judge.registered(path)
    ledger: Sequence[claims.Claim]
    if second:
        ledger, now = ledger_since.ledger(), ledger_since.current()
    else:
        ledger = claims.load(experiment_file.load_all()) if experiment_file.LEDGER.exists() else []
        now = judge.current()
    if problem := judge.refusal(claims.hashes(ledger), plan, now, path):
        raise InputError(problem)
    assert plan is not None
    asked = {name for claim in ledger for name in claim.asks}
    chosen = [
        _with_rounds(one, plan.rounds, exactly=one.id in asked) for one in some if one.id in asked or not verdicts
    ]
    of_processor = place / sessions.slug(environment.cpu_model())
    kept = reference.parent / sessions.FOLDER / of_processor.name
    chosen = [_as_last_time(one, kept) for one in chosen]
    results = sessions.to_measure(of_processor, wanted, datetime.now(UTC))
    if problem := published.refusal(plan, results, path):
        raise InputError(problem)
    _one_run(results, settings)
    name = f"{of_processor.name}/{results.name}"
    minutes = sum(one.profiles["full"].seconds for one in chosen) / 60
    print(f"session {name}, {plan.rounds} rounds, some {minutes:.0f} minutes; SESSION={results.name} goes on with it")
    session = Session(settings, name=results.name)
    status = _bench(chosen, named, "full", False, results, reference, False, "", session)
    print(f"to keep it: mkdir -p {kept} && cp -r {results} {kept}/")
    return status


def _with_rounds(experiment: Experiment, rounds: int, exactly: bool) -> Experiment:
    """With so many rounds of the full profile; not `exactly`: with no more."""
    full = experiment.profiles["full"]
    count = rounds if exactly else min(rounds, full.rounds)
    again = replace(full, rounds=count, seconds=full.seconds * count / full.rounds)
    return replace(experiment, profiles={**experiment.profiles, "full": again})


def _as_last_time(experiment: Experiment, kept: Path) -> Experiment:
    """Its full profile is to take as long as in the shortest of the sessions that are kept there, those of one
    processor. What its file says leaves out the time to prepare a repetition, which may be as long again; a set that
    was stopped for a while took longer than it would.
    """
    took = []
    for path in sorted(kept.glob(f"*/{experiment.id}.jsonl")):
        first, last = records.first_and_last(path) or ({}, {})
        if "started" in first and "finished" in last and last.get("repetitions") and not last.get("given_up"):
            between = datetime.fromisoformat(last["finished"]) - datetime.fromisoformat(first["started"])
            took.append(between.total_seconds())
    if not (took := [seconds for seconds in took if seconds > 0]):
        return experiment
    full = replace(experiment.profiles["full"], seconds=min(took))
    return replace(experiment, profiles={**experiment.profiles, "full": full})


def _judged_by(session: Session) -> Callable[[str], Record]:
    """What the first line of a set says of its judge, by experiment: that of its own ledger. Nothing is read before a
    set is begun.
    """

    @cache
    def known() -> tuple[str, Sequence["Claim"]]:
        from quest.report import claims, judge  # with SciPy

        ledger = claims.load(experiment_file.load_all()) if experiment_file.LEDGER.exists() else []
        return judge.current(), ledger

    @cache
    def known_since() -> tuple[str, Sequence["Claim"]]:
        from quest.report import since  # with SciPy

        return since.current(), since.ledger()

    def of(experiment: str) -> Record:
        from quest.report import claims

        now, ledger = known_since() if experiments.of_since(experiment) else known()
        hashes = claims.hashes(claim for claim in ledger if experiment in claim.asks)
        return {"judge": now, "claims": hashes, **({"session": session.name} if session.name else {})}

    return of


def _one_run(results: Path, settings: Settings) -> None:
    """InputError where a session would not be of one commit and one machine."""
    here = environment.machine(settings.compiler_flags)
    for path in sorted(results.glob("*.jsonl")):
        line = records.complete_lines(path.read_bytes())[0][:1]
        there = json.loads(line[0])["environment"] if line else here
        for name in (name for name in environment.OF_THE_RUN if there.get(name) != here[name]):
            raise InputError(
                f"{path}: measured with another {name} ({there.get(name)}, now {here[name]}), and a session has "
                f"one only; move {results} away to begin anew"
            )


def _say_what_comes_later(jobs: Iterable[Job], upto: str) -> None:
    from quest.report.result import later_variants

    for job in jobs if upto else ():
        if later_variants(job.experiment, upto):
            count = len(job.experiment.variants)
            print(f"{job.experiment.id}: {count} variants are measured; those of later chapters are "
                  "shown there")  # fmt: skip


def _say_if_others_work(jobs: Iterable[Job], progress: Progress) -> None:
    """Before the minutes are spent, and not only after."""
    from quest.measure import noise

    allowed = cpus.allowed()
    used: set[int] = set()
    for job in jobs:
        placement = cpus.place(job.experiment.pin, cpus.cores(allowed), allowed)
        used |= (placement.measured | placement.load) or set(allowed)
    if share := noise.foreign_share(used) if used else 0.0:
        what = f"other programs use {share:.0%} of the processors".replace("%", " %")
        progress.line(f"{what}: numbers will be marked noisy")


def _without_those_by_name(chosen: list[Experiment], profile: str, report: Report) -> list[Experiment]:
    left = [e for e in chosen if e.profiles[profile].by_name]
    if left:
        minutes = sum(e.profiles[profile].seconds for e in left) / 60
        names = ", ".join(e.id for e in left)
        report.skips.append(f"{names}: measured only by name, {minutes:.0f} min for all (make bench ONLY=id,id)")
    return [e for e in chosen if e not in left]


def _of_client(chosen: list[Experiment], report: Report) -> list[Experiment]:
    """Those whose load can come from another host, at least that of one variant."""
    left: dict[str, list[Experiment]] = {}
    for experiment in chosen:
        left.setdefault(remote.why_no_load_from_afar(experiment), []).append(experiment)
    possible = left.pop("", [])
    report.skips += [f"{', '.join(e.id for e in some)}: {why}" for why, some in left.items()]
    return possible


def _left_to_do(pairs: Iterable[tuple[Experiment, str]], results: Path, session: Session, report: Report) -> list[Job]:
    jobs = []
    for experiment, profile in pairs:
        try:
            job, skips = prepare(experiment, profile, results, session)
        except InputError as error:
            report.errors.append(str(error))
            continue
        report.skips += skips
        if job:
            jobs.append(job)
    return jobs


def _measure_all(jobs: list[Job], session: Session, report: Report) -> list[Job]:
    """Those of which something was left to measure."""
    with _exclusive():
        # What another has measured meanwhile is neither measured again nor gone on with.
        pairs = [(job.experiment, job.profile.name) for job in jobs]
        again = Report()
        jobs = in_order(_left_to_do(pairs, jobs[0].path.parent, session, again))
        report.errors += again.errors
        _raise_descriptor_limit()
        processes.become_subreaper()
        guard.start()
        cgroups.remove_leftovers()
        sweep_scratch()
        progress = Progress(session.settings.escape_codes)
        _say_if_others_work(jobs, progress)
        with processes.signals_raise():
            if session.settings.started_by_make:
                processes.end_with_parent()
            try:
                for number, job in enumerate(jobs, 1):
                    title = f"{job.experiment.title} ({job.experiment.id})"
                    progress.experiment(number, len(jobs), title, job.profile.seconds)
                    try:
                        _measure(job, progress, jobs[number:], session, report)
                    except Unreachable as error:
                        report.errors.append(f"{error}; the same command goes on from here")
                        break
                    except InputError as error:
                        report.errors.append(str(error))
            finally:
                progress.finish()
    return jobs


def _measure(job: Job, progress: Progress, later: Iterable[Job], session: Session, report: Report) -> None:
    left = sum(job.profile.seconds for job in later)
    result = measure(job, progress, left, session)
    report.measured += 1
    # Those that were missing from the start have been reported already.
    report.skips += [
        skip_text(job.experiment.id, skip["variant"], skip["reason"], skip["remedy"])
        for skip in result.skips
        if skip["variant"] not in job.missing
    ]
    report.failures += failure_texts(result)
    report.errors += columns_not_there(job.experiment, result)


def columns_not_there(experiment: Experiment, result: ResultSet) -> list[str]:
    """A line for each column that x or a metric of a micro experiment asks for, and that no repetition has: a mistyped
    name. Without it the tables would be empty.
    """
    there = sorted({name for repetition in result.repetitions for name in repetition["samples"]})
    asked = [(f'metric "{metric.name}"', metric.column) for metric in experiment.metrics]
    asked += [('"x"', experiment.axis.column)] if experiment.axis else []
    if experiment.kind != "micro" or not there:
        return []
    return [
        f'{experiment.id}: {what}: the program prints no column "{column}"; it prints {", ".join(there)}'
        for what, column in asked
        if column and column not in there
    ]


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """Two measurements at once would measure each other."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(LOCK, patience_s=LOCK_PATIENCE):
            yield
    except Busy as holder:
        raise InputError(f"another measurement runs here (process {holder}): try again when it has ended") from None


def _raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _print_report(report: Report, nothing: bool) -> None:
    for skip in report.skips:
        print(foreign.line(f"skipped: {skip}"))
    for failure in report.failures:
        print(foreign.line(f"failed: {failure}"), file=sys.stderr)
    for error in report.errors:
        print(foreign.plain(str(error)), file=sys.stderr)
    if nothing and not report.errors:
        what = "all else" if report.skips else "everything"
        print(f"{what} is measured; `make distclean` removes the results")
    elif report.measured:
        noun = "experiment" if report.measured == 1 else "experiments"
        print(f"{report.measured} {noun} measured")
