"""The judge: which files decide about a word of the ledger, their hash, and what was registered before the data.

The hash is that of `sha256sum FILES | LC_ALL=C sort`, so that anybody can compute it without us. Each claim has a hash
of its own, of its rules alone: its prose may be mended. Both stand in the `run` line of every set that is measured.
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.files import write_whole
from quest.ground.toml import Doc, Rule
from quest.spec.experiment_file import FOLDER
from quest.stats.reach import SESSIONS_ON_EACH, SESSIONS_ON_ONE

#: What decides about a word: rules, ledger code, statistics, form of an experiment, reader of records.
CODE = (
    "quest/report/rules.py", "quest/report/claims.py", "quest/report/measured.py", "quest/report/sessions.py",
    "quest/report/tested.py",
    "quest/stats/*.py", "quest/spec/*.py", "quest/measure/records.py", "quest/measure/usable.py",
)  # fmt: skip
EXPERIMENTS = str(FOLDER / "*.toml")
REGISTERED = Path("benchmarks/registered.toml")
REGISTERED_SINCE = Path("benchmarks/registered-since.toml")  #: of the claims since 2003
OURS = Path(__file__).parents[2]  #: the tree that this code is in
SHORT = 12  #: digits of a hash in a sentence
LIBRARIES = ("numpy", "scipy")

Hash = Annotated[str, Rule(pattern="[0-9a-f]{64}", must="be a SHA-256 sum")]


# ---- hashes -------------------------------------------------------------------------------------


def lines(
    code: Path, tree: Path, of_code: Sequence[str] = CODE, experiments: Sequence[str] = (EXPERIMENTS,)
) -> list[str]:
    """`hash  path` of each file that judges, as sha256sum prints it, sorted. `code`: the tree that the programs are in;
    `tree`: that of the experiments; `of_code`, `experiments`: which files these are, those of the first ledger without.
    """
    files = [(code, path) for pattern in of_code for path in code.glob(pattern)]
    files += [(tree, path) for pattern in experiments for path in tree.glob(pattern)]
    return sorted(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root).as_posix()}" for root, path in files
    )


def text(code: Path, tree: Path, of_code: Sequence[str] = CODE, experiments: Sequence[str] = (EXPERIMENTS,)) -> str:
    return "".join(f"{line}\n" for line in lines(code, tree, of_code, experiments))


def hash_of(code: Path, tree: Path, of_code: Sequence[str] = CODE, experiments: Sequence[str] = (EXPERIMENTS,)) -> str:
    """Of the judge of these trees, 64 hexadecimal digits."""
    return hashlib.sha256(text(code, tree, of_code, experiments).encode()).hexdigest()


def current() -> str:
    """The hash of the judge that runs now, on the experiments of the working directory's tree."""
    return hash_of(OURS, Path())


# ---- benchmarks/registered.toml -----------------------------------------------------------------


@dataclass(frozen=True)
class Registration:
    """registered.toml: what was fixed before the data. `make register` writes judge, date, commit, claims, libraries
    and error_rates; the others are edited by hand before.
    """

    judge: Annotated[Hash, Doc("its hash: benchmarks/judges/HASH.zip is that judge, to be run")]
    date: Annotated[str, Rule(pattern="[0-9]{4}-[0-9]{2}-[0-9]{2}"), Doc("when this was written (UTC)")]
    commit: Annotated[str, Doc("of the tree that the judge was taken from")]
    claims: Annotated[Mapping[str, Hash], Doc("number of a claim -> the hash of its rules")]
    sessions: Annotated[int, Rule(least=1), Doc("of each of two processors")] = SESSIONS_ON_EACH
    alone: Annotated[int, Rule(least=1), Doc("sessions, where there is one processor only")] = SESSIONS_ON_ONE
    rounds: Annotated[int, Rule(least=6), Doc("of each session")] = 7
    exclusions: Annotated[tuple[str, ...], Doc("which repetitions and claims are left out, and why")] = ()
    error_rates: Annotated[
        Mapping[str, float],
        Doc(
            "how many words are expected_wrong, undecided, wrong_at_worst (every truth on its line), by simulation; "
            "..._on_one: of one processor, ..._in_one_session: of one run"
        ),
    ] = field(default_factory=dict)
    libraries: Annotated[Mapping[str, str], Doc("with which the words of HASH.json were found")] = field(
        default_factory=dict
    )


def registered(path: Path = REGISTERED) -> Registration | None:
    """What is registered; None if nothing is. InputError for a file that is wrong."""
    return toml.load(Registration, path) if path.exists() else None


def libraries() -> dict[str, str]:
    """Versions of what the words depend on; "" for what is not installed."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = ""
    return versions


def refusal(claims: Mapping[str, str], plan: Registration | None, now: str = "", path: Path = REGISTERED) -> str:
    """Why this tree, whose claims have these hashes, may not measure the reference, in a line; "" if its judge is the
    registered one. `now`: the hash of the judge of this ledger, that of the first without; `path`: where it is
    registered.
    """
    now, how = now or current(), "make register" if path == REGISTERED else "make register SINCE=yes"
    if plan is None:
        return f"no judge is registered ({path}): {how}, then commit and tag it"
    if now != plan.judge:
        return (
            f"the judge of this tree ({now[:SHORT]}) is not the registered one ({plan.judge[:SHORT]}): "
            f"{how}, commit and tag it, and measure with that commit"
        )
    numbers = sorted(claims.keys() | plan.claims.keys(), key=int)
    other = [number for number in numbers if claims.get(number) != plan.claims.get(number)]
    if other:
        return f"claims whose rules are not the registered ones: {', '.join(other)}; {how}, commit and tag it"
    return ""


def to_toml(plan: Registration) -> str:
    """The file. `sessions` to `exclusions` are the maintainers' own, and kept."""

    def table(name: str, entries: Mapping[str, object]) -> str:
        return f"\n[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entries.items())

    excluded = "".join(f"    {json.dumps(one, ensure_ascii=False)},\n" for one in plan.exclusions)
    return (
        "# What was fixed before the data (benchmarks/README.md). `make register` writes the hashes, the date, the\n"
        "# versions and the simulated error rates; sessions, alone, rounds and exclusions are edited by hand before.\n"
        f'judge = "{plan.judge}"\ndate = "{plan.date}"\ncommit = "{plan.commit}"\n'
        f"sessions = {plan.sessions}\nalone = {plan.alone}\nrounds = {plan.rounds}\n"
        f"exclusions = [\n{excluded}]\n"
        + table("error_rates", plan.error_rates)
        + table("libraries", plan.libraries)
        + table("claims", plan.claims)
    )


def write_registration(plan: Registration, path: Path = REGISTERED) -> None:
    write_whole(path, to_toml(plan).encode())
