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

    def command(name: str, text: str, **folders: Path) -> argparse.ArgumentParser:
        """With an option for each of these folders."""
        made = commands.add_parser(name, help=text)
        for option, default in folders.items():
            made.add_argument(f"--{option}", type=Path, default=default, metavar="DIR")
        return made

    sets = {"results": RESULTS, "reference": REFERENCE}
    ids = "ids, or how they begin"

    bench = command("bench", "measure what is not measured yet", results=RESULTS)
    bench.add_argument("--profile", choices=[p for p in PROFILES if p != "headline"],
                       default="quick")  # fmt: skip
    bench.add_argument("--only", default="", metavar="ID,ID", help=ids)
    bench.add_argument("--again", action="store_true", help="what is measured already, too")
    bench.add_argument("--upto", default="", metavar="CHAPTER", help="nothing of later chapters")
    bench.add_argument("--headline", action="store_true", help="only what `make` measures")

    command("export", "write numbers and tables for figures and book", data=DATA, **sets)

    claims = command("claims", "the claim ledger with its verdicts", data=DATA, **sets)
    claims.add_argument("--only", default="", metavar="N,ID", help="numbers, or experiments")
    claims.add_argument("--verdicts", action="store_true", help="one screen, as `make` ends")

    tables = command("tables", "the sources' tables, with what is measured here", **sets)
    tables.add_argument("only", nargs="*", default=[], metavar="ID", help=ids)

    compare = command("compare", "two result folders, old against new")
    compare.add_argument("old", type=Path, metavar="A")
    compare.add_argument("new", type=Path, metavar="B")
    compare.add_argument("--only", default="", metavar="ID,ID")

    command("check", "experiments, results, claims and keys in order?", **sets)
    command("list", "the experiments")
    built = command("programs", "what these experiments want built")
    built.add_argument("only", nargs="*", default=[], metavar="ID", help=ids)
    doctor = command("doctor", "what runs here, and what does not")
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
        from harness.run import bench
        from harness.spec import experiment_file

        return bench.bench(
            experiment_file.load_all(), arguments.profile, words(arguments.only),
            arguments.headline, arguments.results, REFERENCE, arguments.again, arguments.upto,
        )  # fmt: skip
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
    if arguments.command == "programs":
        from harness.run import programs

        print(*programs.to_build(words(" ".join(arguments.only))), sep="\n")
        return 0
    if arguments.command == "list":
        from harness.run import bench

        return bench.show_list()
    from harness.report import doctor

    return doctor.show(arguments.json, arguments.all)


def words(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


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
