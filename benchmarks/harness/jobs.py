"""What is asked for, and what of it is left to do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import plan, programs
from harness.errors import InputError
from harness.model import PROFILES, Experiment, Profile
from harness.needs import Answer, probe
from harness.record import ResultSet, first_and_last, read


@dataclass
class Job:
    """An experiment that has something left to measure."""

    experiment: Experiment
    profile: Profile
    path: Path
    programs: Mapping[str, str]
    missing: Mapping[str, Answer]
    plan: str
    old: ResultSet | None = None  # the set to go on with


def select(experiments: list[Experiment], only: Iterable[str], headline: bool) -> list[Experiment]:
    """Those asked for: by id, or by the words an id begins with (`disk` for disk-seek, ...)."""
    chosen = [e for e in experiments if e.headline or not headline]
    wanted = list(only)
    for word in wanted:
        if not any(_asked_for(e, [word]) for e in experiments):
            known = ", ".join(e.id for e in experiments)
            raise InputError(f'unknown experiment "{word}" (known: {known})')
    return [e for e in chosen if not wanted or _asked_for(e, wanted)]


def left_out(chosen: Iterable[Experiment], profile: str) -> list[Experiment]:
    """Those that this profile measures only if they are asked for by name."""
    return [e for e in chosen if e.profiles[profile].by_name]


def _asked_for(experiment: Experiment, words: Iterable[str]) -> bool:
    return any(experiment.id == word or experiment.id.startswith(f"{word}-") for word in words)


# ---- what is there already ----------------------------------------------------------------------


def prepare(experiment: Experiment, wanted: str, results: Path) -> tuple[Job | None, list[str]]:
    """The job, or None if nothing is left to do; and what cannot be run here, one line each.

    What only the profile needs, as somebody's consent, leaves older results as they are.
    """
    for need in experiment.profiles[wanted].needs:
        consent = probe(need)
        if not consent.ok:
            what = f"profile {wanted}"
            return None, [skip_text(experiment.id, what, consent.reason, consent.remedy)]
    missing = {
        v.name: answer for v in experiment.variants if (answer := programs.missing(experiment, v))
    }
    available = [v for v in experiment.variants if v.name not in missing]
    hashes = programs.fingerprints(experiment, available)
    skips = [skip_text(experiment.id, n, a.reason, a.remedy) for n, a in missing.items()]
    path = results / f"{experiment.id}.jsonl"

    def job(profile: str, old: ResultSet | None = None) -> Job:
        settings = experiment.profiles[profile]
        digest = plan.plan_hash(experiment, settings, hashes, missing)
        return Job(experiment, settings, path, hashes, missing, digest, old)

    if not path.exists():
        return job(wanted), skips
    ends = first_and_last(path)
    if ends and ends[1]["type"] == "end" and ends[1]["failures"] == 0:
        profile = ends[0]["profile"]
        enough = PROFILES.index(profile) >= PROFILES.index(wanted)
        if enough and profile in experiment.profiles and job(profile).plan == ends[0]["plan"]:
            return None, skips
        return job(wanted), skips
    if not path.read_bytes().count(b"\n"):
        path.unlink()  # killed in its first line
        return job(wanted), skips
    old = read(path)
    profile = old.run["profile"]
    goes_on = profile == wanted or (old.end and PROFILES.index(profile) > PROFILES.index(wanted))
    if goes_on and profile in experiment.profiles and job(profile).plan == old.run["plan"]:
        return job(profile, old), skips
    return job(wanted), skips


def skip_text(experiment: str, variant: str, reason: str, remedy: str) -> str:
    return f"{experiment} {variant}: {reason}" + (f" ({remedy})" if remedy else "")
