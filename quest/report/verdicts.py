"""The claim ledger on the screen."""

import hashlib
import json
import re
import sys
import textwrap
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from quest.ground import foreign
from quest.ground.errors import InputError
from quest.ground.files import dated
from quest.measure.chosen import LEDGER_SINCE, SINCE
from quest.measure.progress import terminal_width
from quest.measure.records import failure_texts, first_and_last, read_results
from quest.report import tested
from quest.report.judge import REGISTERED, REGISTERED_SINCE, registered
from quest.spec import experiment_file
from quest.spec.model import FAILED, NEAR, NOT_DECIDED, NOT_MEASURED, STANDINGS

if TYPE_CHECKING:
    from quest.report.claims import JudgedClaim  # with SciPy; no part of printing
    from quest.report.judge import Registration

WITHOUT_SCIPY = "no verdicts: SciPy is not installed (make deps)"
WRITTEN = {"book": "build/book/index.html", "deck": "build/slides/deck.html"}


def judged_claims(results: Path, reference: Path, data: Path, reference_only: bool) -> list["JudgedClaim"]:
    """From claims.json if that is up to date; else judged now."""
    path = data / "claims.json"
    if path.is_file() and fresh(results, reference, data, reference_only):
        judged: list[JudgedClaim] = json.loads(path.read_text(encoding="utf-8"))
        return judged

    from quest.report import claims
    from quest.report.measured import Library

    return claims.judge_all(Library(results, reference, reference_only))


def select(entries: list["JudgedClaim"], only: list[str]) -> list["JudgedClaim"]:
    """Those with these numbers, or of these experiments; InputError if a word names none."""
    selected = []
    for word in only:
        some = [e for e in entries if word in (str(e["id"]), e["experiment"])]
        if not some:
            last = max(entry["id"] for entry in entries)
            raise InputError(f"ONLY={word}: neither a claim (1 to {last}) nor an experiment of one")
        selected += [entry for entry in some if entry not in selected]
    return selected if only else entries


def print_ledger(entries: list["JudgedClaim"], failed_in: Path | None, verdicts: bool) -> int:
    """Prints the ledger. With `verdicts`, as `make` ends, only what was judged; then where book and
    deck are, and what failed in the results of the folder `failed_in`: then 1.
    """
    width = terminal_width(120)
    for entry in entries:
        if entry["rule"] or not verdicts:
            print(line(entry, width, long=not verdicts))
    if text := judges(entries):
        print(text)
    print(counts(entries))
    if not verdicts:
        return 0
    for name, written in WRITTEN.items():
        if Path(written).is_file():
            print(f"{name}: {written}")
    failures = []
    for path in sorted(failed_in.glob("*.jsonl")) if failed_in else ():
        ends = first_and_last(path)
        if ends and ends[1].get("failures"):
            failures += failure_texts(read_results(path))
    for text in failures:
        print(foreign.line(f"failed: {text}"), file=sys.stderr)
    return 1 if failures else 0


def line(entry: "JudgedClaim", width: int, long: bool) -> str:
    """One claim: number, verdict, what was said; if `long` also what was seen or why not."""
    shown = entry["standing"] + (" (reference)" if entry["source_run"] == "reference" else "")
    if own := entry["own"]:  # the reader has measured it, and wants to know of that
        shown = f"yours: {re.split('[:;(]', own)[0].strip()}"
    shown += "?" if entry["near"] and entry["verdict"] not in (NEAR, NOT_DECIDED, FAILED, NOT_MEASURED) else ""
    head = f"{entry['id']:>4}  {shown:<30}  "
    head += textwrap.shorten(entry["text"], max(20, width - len(head)), placeholder=" ...")
    if not long:
        return head
    on_reference = f"reference: {entry['verdict']}" if own else ""
    before = by_whom(entry)
    count = entry["repetitions"]
    asked = f"{entry['usable']} of {count} repetitions" if count else ""
    whose = own or (entry["why"] if entry["source_run"] == "here" else "")
    failed = "" if entry["verdict"] == FAILED else "; ".join(entry["failed"])
    parts = (
        own, on_reference, entry["numbers"], failed, asked, entry["why"], before, entry["lacking"].partition(" (")[0],
    )  # fmt: skip
    seen = "; ".join(filter(None, (*parts, remedy(whose, entry["experiment"]))))
    texts = [seen, *entry["each_session"]]
    return "\n".join([head, *(f"      {part}" for text in texts for part in textwrap.wrap(text, width - 12))])


def by_whom(entry: "JudgedClaim") -> str:
    """`registered`, `judged anew`, and the word of the frozen judge where that is another."""
    other = entry["frozen"] not in ("", entry["verdict"])
    return f"{entry['judged']} (the frozen judge: {entry['frozen']})" if other else entry["judged"]


def judges(entries: list["JudgedClaim"]) -> str:
    """How many verdicts were registered, where the frozen judge says another word, and how many rest on too few
    sessions, in lines; "" where nothing was judged.
    """
    judged = [entry for entry in entries if entry["judged"]]
    if not judged:
        return ""
    whose = Counter(entry["judged"] for entry in judged)
    lines = [f"{len(judged)} verdicts: {', '.join(f'{number} {how}' for how, number in sorted(whose.items()))}"]
    kept = [entry for entry in judged if entry["frozen"]]
    if kept:
        other = [entry for entry in kept if entry["frozen"] != entry["verdict"]]
        words = (f"{e['id']}: {e['verdict']} (frozen: {e['frozen']})" for e in other)
        lines[0] += f"; the frozen judge gives the same verdict on {len(kept) - len(other)} of {len(kept)}"
        lines += ["another verdict: " + "; ".join(words)] if other else []
    lines += expected_wrong(judged, registered(REGISTERED))
    for text, number in sorted(Counter(entry["lacking"] for entry in judged if entry["lacking"]).items()):
        lines.append(f"{number} {text}")
    return "\n".join(lines)


def expected_wrong(judged: list["JudgedClaim"], plan: "Registration | None") -> list[str]:
    """How many verdicts rest on sessions enough, and how many words of the whole ledger are expected to be wrong: with
    the sessions that are in, and with those that are planned. In lines.
    """
    decided = [entry for entry in judged if not entry["lacking"]]
    on_one = bool(decided) and all(len(entry["sessions"]) == 1 for entry in decided)
    lines = [f"{len(decided)} on enough sessions"] if decided else []
    if plan is None:
        return lines
    planned = f"{plan.alone} sessions on one" if on_one else f"{plan.sessions} sessions on each of two processors"
    found = []
    for how, suffix in (("one session", "_in_one_session"), (planned, "_on_one" if on_one else "")):
        expected, worst = (plan.error_rates.get(f"{name}{suffix}") for name in ("expected_wrong", "wrong_at_worst"))
        if expected is not None and worst is not None and (suffix != "_in_one_session" or len(decided) < len(judged)):
            found.append(f"with {how} {expected:g}, and {worst:g} if every true value lies on its limit")
    return [*lines, *([f"expected to be wrong, of all verdicts of the ledger: {'; '.join(found)}"] if found else [])]


def remedy(why: str, experiment: str) -> str:
    """Of a reason not to judge one's own data."""
    again = f"close what else runs, then make bench ONLY={experiment} AGAIN=1"
    return again if "noisy (" in why else ""


def counts(entries: list["JudgedClaim"]) -> str:
    """How many claims stand how, in one line."""
    standings = Counter(entry["standing"] for entry in entries)
    called = {"another system": "for other systems", "no rule": "without a rule"}
    parts = [f"{standings[word]} {called.get(word, word)}" for word in STANDINGS if standings[word]]
    near = " (? = near the line)" if any(entry["near"] and entry["rule"] for entry in entries) else ""
    noun = "claim" if len(entries) == 1 else "claims"
    text = f"{len(entries)} {noun}: {', '.join(parts)}{near}"
    if by_reference := sum(bool(entry["own"]) for entry in entries):
        text += f"; {by_reference} of them on the reference run, as yours decides nothing"
    return text if find_spec("scipy") else text + "\nno verdicts: SciPy is not installed"


# ---- is build/data still what it was made from? --------------------------------------------------

STAMP = "stamp"
JUDGES = Path("benchmarks/judges")
PACKAGE = Path(__file__).parents[1]
DECIDE = ("ground", "spec", "measure", "stats", "report")  #: packages of ours


def stamp_of(results: Path, reference: Path, reference_only: bool) -> str:
    """A digest of the dates and sizes of all that decides about the export."""
    digest = hashlib.sha256(f"{reference_only} {bool(find_spec('scipy'))}".encode())
    places = [
        *experiment_file.FOLDER.glob("*.toml"),
        *SINCE.glob("*.toml"),
        *(path for part in DECIDE for path in (PACKAGE / part).glob("*.py")),
        experiment_file.LEDGER,
        LEDGER_SINCE,
        *results.glob("*.jsonl"),
        *reference.glob("*.jsonl"),
        experiment_file.RATIOS,
        *experiment_file.MACHINES.glob("*.zip"),
        *reference.parent.glob("sessions/*/*/*.jsonl"),
        *(folder / tested.FILE for folder in (results, reference)),
        REGISTERED,
        REGISTERED_SINCE,
        Path("chapters/guards.toml"),
        *JUDGES.glob("*.json"),
    ]
    for path in filter(Path.exists, sorted(places)):
        digest.update(f"{dated(path)}\0".encode())
    return digest.hexdigest()


def fresh(results: Path, reference: Path, data: Path, reference_only: bool) -> bool:
    """Whether `data` was exported from what these folders hold now."""
    stamp = data / STAMP
    wanted = stamp_of(results, reference, reference_only)
    return stamp.is_file() and stamp.read_text("ascii") == wanted
