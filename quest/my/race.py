"""`make race`: one's own server beside some of ours and nginx, in three laps: work, memory, waiting.

The laps are experiments (labs/my/race/), measured as all others are: a fresh server for each round, on a core of its
own, the load of hammer on another, all servers in each round, in random order. What is said of two of them rests on the
rounds that both have; where these do not agree, nothing is said.
"""

import contextlib
import hashlib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quest.ground import foreign, places
from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.learn.words import Wrong, chosen
from quest.measure import environment, peers, programs, records
from quest.measure.environment import Environment
from quest.measure.records import ResultSet
from quest.measure.session import Settings
from quest.measure.usable import NOISY_SHARE
from quest.my import drawn, finish, work
from quest.my.commands import build
from quest.my.finish import LAPS, MINE, Lap, Machine, Race, Racer, Values
from quest.my.judge import outcomes
from quest.my.stages import FOLDER
from quest.report import bench
from quest.spec import experiment_file
from quest.spec.model import Experiment, Variant
from quest.stats.table import NumberTable

Given = dict[str, str]
FAILED = 1
AGAINST = "09-epoll 15-slashdot nginx"
RACES = FOLDER / "race"
NO_SERVERS = ("00-client", "02-inetd")  #: a client, and what is started for each connection
#: As in benchmarks/experiments/peers-small.toml: one worker each; nginx believes what it knows of a file for a second.
ARGS = {"15-slashdot": ("-w", "1")}
SET = {"nginx": {"sendfile": "on", "tcp_nopush": "on", "open_file_cache": "max=1000", "listen": "backlog=1024"}}
#: Of the three laps: what is measured before and beside the idle clients, and added up.
KERNEL = ("slab", "stacks", "tables")
KIB = 1024.0


# ---- who races -----------------------------------------------------------------------------------


def ours() -> list[str]:
    """The servers of the series."""
    return sorted(path.name for path in Path("code").glob("[0-9]*-*") if path.name not in NO_SERVERS)


def rivals(words: str) -> list[Variant]:
    """AGAINST=: servers of ours, in any spelling that other goals know, and names of benchmarks/peers. Wrong for
    another word, and if none is of ours: the first of these is what ratios are to.
    """
    found: dict[str, Variant] = {}
    for word in words.replace(",", " ").split():
        if Path(peers.FOLDER, f"{word}.toml").is_file() and word not in ours():
            found[word] = Variant(word, title=peers.load(word).title, peer=word, values=SET.get(word, {}))
        else:
            name = chosen(word, ours(), "AGAINST", "server")
            found[name] = Variant(name, server=name, args=ARGS.get(name, ()))
    if not any(variant.server for variant in found.values()):
        raise Wrong(f"AGAINST={words}: one of our servers is needed, for the ratios; for example 09-epoll")
    return list(found.values())


def laps(others: Iterable[Variant], mine: Mapping[str, str]) -> list[Experiment]:
    """The experiments, with these servers beside one's own; `mine`: values of that one."""
    found = []
    for lap in LAPS:
        (definition,) = experiment_file.load(RACES / f"race-{lap.name}.toml")
        own = [replace(variant, values=mine) for variant in definition.variants]
        found.append(replace(definition, variants=(*own, *others)))
    return found


def racers(given: Given) -> int:
    """Prints the programs that have to be built, for make."""
    every = laps(rivals(given.get("AGAINST", AGAINST)), {})
    words = {word for lap in every for variant in lap.variants for word in programs.needed_programs(lap, variant)}
    print(*sorted(word for word in words if word.startswith(f"{places.BUILD}/")), sep="\n")
    return 0


def hash_of(folder: Path, programs: bool = False) -> str:
    """Of all that a learner has written, with its names; with `programs` also of what was made of it."""
    digest = hashlib.sha256()
    for path in sorted(map(Path, work.sources(folder, programs))):
        digest.update(f"{path.relative_to(folder)}\0".encode(errors="surrogateescape"))
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def copy_of_ours(folder: Path) -> str:
    """The hash of the first program in a learner's folder that is one of ours, to the last byte; "" if none is."""
    built = (places.build_folder("glibc") / name for name in ours())
    known = {programs.fingerprint(path) for path in built if path.is_file()}
    for path in sorted(Path(place, name) for place, _, names in os.walk(folder) for name in names):
        with contextlib.suppress(OSError):  # one that may not be read, as a core dump of root's, is no reason to stop
            if path.is_file() and work.is_program(path) and (found := programs.fingerprint(path)) in known:
                return found
    return ""


# ---- what was measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Part:
    """What one experiment says of one server."""

    table: NumberTable
    result: ResultSet
    server: str

    def rounds(self, metric: str) -> dict[int, float]:
        series = self.table.series.get(self.server, {}).get(metric)
        return dict(series.overall.rounds) if series and series.overall else {}

    def noisy(self, metric: str) -> tuple[int, ...]:
        """Rounds in which others took more than a tenth of the processors."""
        series = self.table.series.get(self.server, {}).get(metric)
        row = series.overall if series else None
        return tuple(sorted(row.unusable(NOISY_SHARE))) if row else ()

    def failed(self, lap: Lap) -> str:
        """Why the lap has no value; "" if it has one."""
        errors = [str(one["error"]) for one in self.result.failures if one["variant"] == self.server]
        lost = sum(self.rounds("failed").values())
        if lap.name == "slow" and lost:
            asked = sum(_scalars(self.result, self.server, "beside.requests"))
            return f"{lost:.0f} of {asked:.0f} quick clients had no good reply"
        if lost:
            kinds = _kinds(self.result, self.server)
            return f"{lost:.0f} requests had no good reply{f' ({kinds})' if kinds else ''}"
        return errors[-1] if errors else ""


def _scalars(result: ResultSet, server: str, name: str) -> list[float]:
    own = (one["scalars"] for one in result.repetitions if one["variant"] == server)
    return [float(scalars[name]) for scalars in own if name in scalars]


def _kinds(result: ResultSet, server: str) -> str:
    """How requests failed, the most frequent first."""
    mark = re.compile(r"\w+\.errors\.(\w+)")
    counts: dict[str, float] = {}
    for one in result.repetitions:
        for name, value in one["scalars"].items() if one["variant"] == server else ():
            if (found := mark.fullmatch(name)) and value:
                counts[found[1]] = counts.get(found[1], 0) + value
    return ", ".join(f"{kind} {counts[kind]:.0f}" for kind in sorted(counts, key=lambda kind: -counts[kind]))


def parts(part: _Part, lap: Lap) -> list[Values]:
    """The values of a server in a lap."""
    failed = part.failed(lap)
    if lap.name != "idle":
        rounds = {} if failed else part.rounds(lap.name)
        why = failed or ("" if rounds else "no number")
        return [_values(part, lap.name, rounds, () if failed else part.noisy(lap.name), why)]
    own, kernel = ({} if failed else _each(part, names) for names in (("own",), KERNEL))
    why = failed or ("" if own else "no number")
    return [_values(part, "own", own, (), why), _values(part, "kernel", kernel, (), why)]


def _values(part: _Part, name: str, rounds: Mapping[int, float], noisy: tuple[int, ...], why: str) -> Values:
    return Values(part.server, name, {str(n): value for n, value in sorted(rounds.items())}, noisy, foreign.line(why))


def _each(part: _Part, names: Sequence[str]) -> dict[int, float]:
    """Bytes for each idle client: what these books have more beside them than before."""
    held = part.rounds("held")
    found: dict[int, float] = {}
    for number, clients in held.items():
        grown = [
            part.rounds(f"{name}_during").get(number, 0.0) - part.rounds(f"{name}_before").get(number, 0.0)
            for name in names
        ]
        if clients > 0:
            found[number] = sum(grown) * KIB / clients
    return found


def race_of(name: str, profile: str, sets: Sequence[ResultSet], definitions: Sequence[Experiment], mine: str) -> Race:
    """All three laps as one. `mine`: the hash of one's own server. A server that is not here is left out."""
    from quest.stats.analysis import analyse  # with SciPy

    gone = {skip.get("variant") for result in sets for skip in result.skips}
    variants = [variant for variant in definitions[0].variants if variant.name not in gone]
    reference = next(variant.name for variant in definitions[0].variants if variant.server)
    if reference in gone:
        raise InputError(f"{reference}, the server for the ratios, cannot run here; name another with AGAINST=")
    found: list[Values] = []
    for lap, definition, result in zip(LAPS, definitions, sets, strict=True):
        table = analyse(definition, result, records.HERE)
        for variant in variants:
            found += parts(_Part(table, result, variant.name), lap)
    machine: Environment = sets[0].run["environment"]
    return Race(
        name=name, time=records.utc_now(), profile=profile,
        commit=str(machine.get("commit", "")) + ("-dirty" if machine.get("dirty") else ""),
        machine=Machine(
            environment.short_cpu(machine.get("cpu", "")), int(machine.get("cores") or 1),
            environment.short_kernel(machine.get("kernel", "")), max(1, int(machine.get("memory_kib") or 0) >> 10),
        ),
        reference=reference,
        servers=tuple(_racer(variant, sets[0], mine) for variant in variants), values=tuple(found),
    )  # fmt: skip


def _racer(variant: Variant, result: ResultSet, mine: str) -> Racer:
    if variant.name == MINE:
        return Racer(MINE, mine)
    hashes: Mapping[str, str] = result.run["programs"]
    versions: Mapping[str, str] = result.run["environment"].get("peers", {})
    key = f"bin/{variant.server}" if variant.server else peers.load(variant.peer).program
    return Racer(variant.name, hashes.get(key, "0" * 64), foreign.line(versions.get(variant.peer, "")))


# ---- the command ---------------------------------------------------------------------------------


def race(given: Given) -> int:
    """Status 0 if one's own server has a value in each lap, 1 if not. InputError for a setting that cannot be."""
    folder, name = Path(given.get("WORK", "work"), "my"), given.get("NAME", MINE)
    if not re.fullmatch(rf"[^\x00-\x1f\x7f]{{1,{finish.LONGEST_NAME}}}", name):
        raise InputError(f"NAME=: it may have at most {finish.LONGEST_NAME} characters, in one line")
    profile, others = given.get("PROFILE", "quick"), rivals(given.get("AGAINST", AGAINST))
    if not folder.is_dir():
        raise InputError(f"{folder} is not there yet: make my begins it")
    if problem := build(folder) or _does_not_serve(folder):
        print(foreign.plain(problem), file=sys.stderr)
        return FAILED
    mine = hash_of(folder)
    # A program may be made elsewhere, and copied here: then it alone is another.
    definitions = laps(others, {"my": str(folder.resolve()), "sources": hash_of(folder, programs=True)[:16]})
    settings = replace(Settings.from_environment({**os.environ, **given}), client="")
    place = Path(given.get("BUILD", "build"), "race")
    report = bench.measure_these(definitions, profile, place / "results", "AGAIN" in given, settings)
    for line in (*report.skips, *report.errors):
        print(foreign.plain(line), file=sys.stderr)
    sets = _whole([place / "results" / f"{one.id}.jsonl" for one in definitions])
    if not sets:
        return FAILED
    path = place / f"{_slug(name)}.json"
    found = finish.write(race_of(name, profile, sets, definitions, copy_of_ours(folder) or mine), path)
    page = path.with_suffix(".html")
    write_whole(page, drawn.race_page(found))
    print("\n".join(drawn.race_lines(found)))
    print(f"\ndrawn: {page}    to hand in, for make board: {path}")
    return FAILED if any(found.failed(MINE, lap) for lap in LAPS) else 0


def _does_not_serve(folder: Path) -> str:
    """Why it cannot race, in the sentence of the stage `files`; "" if it can."""
    try:
        (outcome,) = outcomes(folder, ["files"])
    except RuntimeError as error:
        raise InputError(f"the check itself failed: {error}") from None
    return "" if outcome.passed else f"race: your server has to pass the stage files first: {outcome.why}."


def _whole(paths: Iterable[Path]) -> list[ResultSet]:
    """The sets, if all are finished; none if not: what is missing was said before."""
    sets = [records.read_results(path) for path in paths if records.started(path)]
    return sets if len(sets) == len(LAPS) and all(one.end for one in sets) else []


def _slug(name: str) -> str:
    """As the file is called. Two names may have the same: the file holds the name itself."""
    return re.sub(r"[^\w-]+", "-", name).strip("-").lower() or MINE
