"""The goals that keep the judge: what is registered before the data, and do frozen judges still say what they said?"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from quest.command.settings import Given
from quest.ground.errors import InputError
from quest.measure import environment
from quest.report import claims, frozen, judge, published, since
from quest.spec import experiment_file

RESULTS = experiment_file.FOLDER.parent / "results"


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def simulated_rates(each: int, alone: int) -> Mapping[str, float]:
    """The error rates of the committed ledger with so many sessions of each of two processors, or of one. What
    simulates the rules is beside their tests, and no part of this package; it takes half a minute.
    """
    command = [sys.executable, "-m", "tests.harness.simulated", "rates", str(each), str(alone)]
    path = os.pathsep.join(filter(None, (str(judge.OURS), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode:
        raise InputError(f"register: no error rates: {(done.stderr.strip() or 'no message').splitlines()[-1]}")
    rates: Mapping[str, float] = json.loads(done.stdout)
    return rates


def register(given: Given) -> int:
    """Writes benchmarks/registered.toml, and freezes the judge with its words on the committed results. With SINCE=yes
    that of the claims since 2003: its rules are those of the first ledger, and no error rates are simulated for it.
    """
    commit, dirty = environment.git_commit()
    if dirty is not False:
        raise InputError("register: a judge needs one commit: git status has to be clean, in a clone")
    if given.get("SINCE") == "yes":
        return _register_since(commit)
    ledger = claims.load(experiment_file.load_all())
    plan = judge.registered() or judge.Registration("", "", "", {})
    now = judge.current()
    plan = replace(
        plan, judge=now, date=today(), commit=commit, claims=claims.hashes(ledger), libraries=judge.libraries(),
        error_rates=simulated_rates(plan.sessions, plan.alone),
    )  # fmt: skip
    freeze(now, commit)
    judge.write_registration(plan)
    print(
        f"registered: judge {now[: judge.SHORT]}, {len(plan.claims)} claims; commit {judge.REGISTERED} and "
        f"{frozen.FOLDER}, and tag that in public before anything is measured: git tag -a {published.tag_of(now)}"
    )
    return 0


def _register_since(commit: str) -> int:
    path, first = judge.REGISTERED_SINCE, judge.registered()
    plan = judge.registered(path) or replace(first or judge.Registration("", "", "", {}), error_rates={})
    now = since.current()
    plan = replace(
        plan, judge=now, date=today(), commit=commit, claims=claims.hashes(since.ledger()), libraries=judge.libraries()
    )
    judge.write_registration(plan, path)
    print(
        f"registered: judge {now[: judge.SHORT]}, {len(plan.claims)} claims since 2003; commit {path}, and tag that in "
        f"public before anything is measured: git tag -a {published.tag_of(now)}"
    )
    return 0


def freeze(name: str, commit: str) -> None:
    """Keeps the judge that runs now, if it is not kept already, and what it says of the committed results."""
    frozen.FOLDER.mkdir(parents=True, exist_ok=True)
    path = frozen.FOLDER / f"{name}.zip"
    if not path.exists():
        path.write_bytes(frozen.packed(judge.OURS, Path()))
        frozen.write(frozen.FrozenJudge(name, today(), commit, ""))
    _say(path, write=True)


def kept(given: Given) -> int:
    """Runs each frozen judge on the committed results: 1 if one says another word than HASH.json has."""
    write = given.get("WRITE") == "yes"
    return max([_say(path, write) for path in sorted(frozen.FOLDER.glob("*.zip"))], default=0)


def retest(given: Given) -> int:
    """Two sessions, or all pairs of one processor, side by side; then the registered judge beside the judge of now."""
    from quest.report import retest as retesting

    reference = RESULTS / "reference"
    asked = [retesting.folder_of(given[name], reference) for name in ("A", "B") if name in given]
    if len(asked) == 1:
        raise InputError("retest: give both A= and B=, or neither for all pairs of committed sessions of one processor")
    pairs = [(asked[0], asked[1])] if asked else retesting.pairs_of(reference)
    if not pairs:
        print("no two sessions of one processor are committed; A= and B= name folders")
    for line in retesting.retest(pairs, reference):
        print(line)
    if plan := judge.registered():
        for line in retesting.against_the_frozen(reference, plan.judge):
            print(line)
    return 0


def _say(path: Path, write: bool) -> int:
    one, now = frozen.read(path.with_suffix(".json")), frozen.judged_now(path, RESULTS, today())
    name = f"judge {one.judge[: judge.SHORT]}, frozen {one.frozen}"
    before = frozen.on_same_data(one, now)
    if before:
        changed = frozen.differences(before, now)
        print(f"{name}: {len(now.verdicts)} verdicts, {len(changed)} of them changed", *changed, sep="\n  ")
        return 1 if changed else 0
    if write:
        frozen.write(replace(one, judged=(*one.judged, now)))
        print(f"{name}: {len(now.verdicts)} verdicts on {', '.join(now.sessions)}, now kept")
        return 0
    print(f"{name}: it has not judged these data yet: make frozen WRITE=yes")
    return 1
