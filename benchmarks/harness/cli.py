"""The command line: `python3 -m harness COMMAND`."""

import argparse
import contextlib
import fcntl
import sys
from collections.abc import Iterator
from pathlib import Path

from harness.errors import InputError, Stopped
from harness.spec.model import PROFILES

RESULTS = Path("build/results")
REFERENCE = Path("benchmarks/results/reference")
DATA = Path("build/data")
BAD_INPUT = 2


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="harness", description="Measures, exports, judges.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    bench = commands.add_parser("bench", help="measure what is not measured yet")
    bench.add_argument("--profile", choices=[p for p in PROFILES if p != "headline"],
                       default="quick")  # fmt: skip
    bench.add_argument("--only", default="", metavar="ID,ID", help="ids, or how they begin")
    bench.add_argument("--again", action="store_true", help="what is measured already, too")
    bench.add_argument("--headline", action="store_true", help="only what `make` measures")
    bench.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")

    export = commands.add_parser("export", help="write numbers and tables for figures and book")
    export.add_argument("--data", type=Path, default=DATA, metavar="DIR")
    export.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    export.add_argument("--reference", type=Path, default=REFERENCE, metavar="DIR")

    claims = commands.add_parser("claims", help="the claim ledger with its verdicts")
    claims.add_argument("--only", default="", metavar="N,ID", help="numbers, or experiments")
    claims.add_argument("--verdicts", action="store_true", help="one screen, as `make` ends")
    claims.add_argument("--data", type=Path, default=DATA, metavar="DIR")
    claims.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    claims.add_argument("--reference", type=Path, default=REFERENCE, metavar="DIR")

    tables = commands.add_parser("tables", help="the sources' tables, with what is measured here")
    tables.add_argument("only", nargs="*", default=[], metavar="ID", help="ids, or how they begin")
    tables.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    tables.add_argument("--reference", type=Path, default=REFERENCE, metavar="DIR")

    compare = commands.add_parser("compare", help="two result folders, old against new")
    compare.add_argument("old", type=Path, metavar="A")
    compare.add_argument("new", type=Path, metavar="B")
    compare.add_argument("--only", default="", metavar="ID,ID")

    check = commands.add_parser("check", help="experiments, results, claims and keys in order?")
    check.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    check.add_argument("--reference", type=Path, default=REFERENCE, metavar="DIR")

    seal = commands.add_parser("seal", help="check sums for finished sets of before there were any")
    seal.add_argument("folder", type=Path, metavar="DIR")

    commands.add_parser("list", help="the experiments")
    built = commands.add_parser("programs", help="what these experiments want built")
    built.add_argument("only", nargs="*", default=[], metavar="ID", help="ids, or how they begin")
    doctor = commands.add_parser("doctor", help="what runs here, and what does not")
    doctor.add_argument("--json", action="store_true", help="for programs")
    doctor.add_argument("--all", action="store_true", help="a line for each")
    return top


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        return _run(arguments)
    except InputError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"{error.filename or 'harness'}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    except Stopped as stopped:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 128 + stopped.signal_number
    except KeyboardInterrupt:
        return 130


def _run(arguments: argparse.Namespace) -> int:
    # Each command imports what it needs: `bench` with nothing to do must not wait for scipy.
    if arguments.command == "bench":
        return _bench(arguments)
    if arguments.command == "export":
        return _export(arguments)
    if arguments.command == "claims":
        from harness.report import verdicts

        found = verdicts.entries(arguments.results, arguments.reference, arguments.data)
        some = verdicts.select(found, words(arguments.only))
        return verdicts.show(some, arguments.results, arguments.verdicts)
    if arguments.command == "tables":
        from harness.report import then

        only = words(" ".join(arguments.only))
        return then.show(only, arguments.results, arguments.reference)
    if arguments.command == "compare":
        from harness.report import compare

        return compare.compare(arguments.old, arguments.new, words(arguments.only))
    if arguments.command == "check":
        from harness.report import check

        return check.check(arguments.results, arguments.reference)
    if arguments.command == "seal":
        return _seal(arguments.folder)
    if arguments.command == "programs":
        from harness.run import programs

        print(*programs.to_build(words(" ".join(arguments.only))), sep="\n")
        return 0
    if arguments.command == "list":
        from harness.run import bench

        return bench.show_list()
    return _doctor([f"--{name}" for name in ("json", "all") if getattr(arguments, name)])


def _seal(folder: Path) -> int:
    from harness.run import records

    sealed = [path for path in sorted(folder.glob("*.jsonl")) if records.seal(path)]
    print(f"sealed: {len(sealed)}")
    return 0


def words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _bench(arguments: argparse.Namespace) -> int:
    from harness.run import bench
    from harness.spec import experiment_file

    return bench.bench(
        experiment_file.load_all(),
        arguments.profile,
        words(arguments.only),
        arguments.headline,
        arguments.results,
        REFERENCE,
        arguments.again,
    )


def _export(arguments: argparse.Namespace) -> int:
    from harness.report import verdicts

    with _alone(arguments.data):
        if verdicts.fresh(arguments.results, arguments.reference, arguments.data):
            return 0
        from harness.report import export

        return export.export(arguments.results, arguments.reference, arguments.data)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of two exports to one folder the later waits, and then finds nothing left to do."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another export writes {folder}: waiting", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _doctor(rest: list[str]) -> int:
    try:
        from harness.report import doctor
    except ImportError as error:
        raise InputError(f"doctor: {error}") from error
    status: int = doctor.main(rest)
    return status
