"""Sessions: several runs of the reference, told apart by processor, and never pooled across processors.

    benchmarks/results/reference/*.jsonl                      the first session of its processor
    benchmarks/results/sessions/PROCESSOR/SESSION/*.jsonl     each further one, as `make reference` has made it

A session is a fresh boot, or begins three hours after the one before. A rule is given, for each processor, what it asks
in each of its sessions (claims.by_processor).
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from quest.ground.errors import InputError
from quest.measure.environment import short_cpu
from quest.measure.records import complete_lines, parsed_line

FOLDER = "sessions"  #: beside that of the first session
APART = timedelta(hours=3)
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
OWN = "within one session, your own"
Counts = Mapping[str, int]  # processor -> its sessions


# ---- where they are -----------------------------------------------------------------------------


def folders(reference: Path) -> list[Path]:
    """Those of all sessions that hold sets: the first, then the others by processor and name."""
    return [
        folder for folder in (reference, *sorted(reference.parent.glob(f"{FOLDER}/*/*"))) if any(folder.glob("*.jsonl"))
    ]


def name_of(folder: Path, reference: Path) -> str:
    """`reference`, or `PROCESSOR/SESSION`."""
    return reference.name if folder == reference else f"{folder.parent.name}/{folder.name}"


def slug(cpu: str) -> str:
    """A processor as the name of a folder: `Intel(R) Xeon(R) CPU @ 2.80GHz` -> `intel-xeon`."""
    return re.sub(r"[^a-z0-9]+", "-", short_cpu(cpu).lower()).strip("-") or "unknown"


def begun(folder: Path) -> datetime | None:
    """When the first set of a session was begun; None if there is none."""
    lines = (complete_lines(path.read_bytes())[0][:1] for path in sorted(folder.glob("*.jsonl")))
    times = [str(parsed_line(folder, 1, line[0]).get("started", "")) for line in lines if line]
    return min((datetime.fromisoformat(time) for time in times if time), default=None)


def to_measure(place: Path, wanted: str, now: datetime) -> Path:
    """The folder of the session that a run of now belongs to, below the processor's: the one that is wanted by name;
    else the newest, if it was begun less than three hours ago, so that the same command goes on; else a new one.
    InputError for a name that can be no folder's.
    """
    if wanted:
        if not NAME.fullmatch(wanted):
            raise InputError(f"SESSION={wanted}: small letters, digits and hyphens, as 2026-11-26-2140")
        return place / wanted
    dated = [(at, folder) for folder in sorted(place.glob("*/")) if (at := begun(folder))]
    at, newest = max(dated, default=(None, place))
    if at and now - at < APART:
        return newest
    return place / now.astimezone(UTC).strftime("%Y-%m-%d-%H%M")


# ---- are there enough? --------------------------------------------------------------------------


def that_count(sessions: Counts, each: int, alone: int) -> list[str]:
    """The processors that a word may rest on: with `each` sessions, if there are two such; else one with `alone`;
    none, if there are too few.
    """
    full = sorted(cpu for cpu, count in sessions.items() if count >= each)
    if len(full) < 2:
        full = [cpu for cpu in full if sessions[cpu] >= alone]
    return full


def in_words(sessions: Counts) -> str:
    """`AMD EPYC: 1 session, Intel Xeon: 3 sessions`."""
    return ", ".join(f"{cpu}: {n} session{'s' if n > 1 else ''}" for cpu, n in sorted(sessions.items()))


def lacking(sessions: Counts, each: int, alone: int) -> str:
    """What is missing for a word that holds for more than one session, or "": `within one session (AMD EPYC: 1
    session; 3 on each of two processors, or 5 on one, are needed)`.
    """
    if not sessions or that_count(sessions, each, alone):
        return ""
    total = sum(sessions.values())
    within = "within one session" if total == 1 else f"within {total} sessions"
    return f"{within} ({in_words(sessions)}; {each} on each of two processors, or {alone} on one, are needed)"
