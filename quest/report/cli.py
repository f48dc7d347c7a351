"""The command line: `python3 -m quest.report COMMAND`."""

import argparse
import fcntl
import os
import sys
from pathlib import Path

from quest.ground import foreign
from quest.ground.entry import ended
from quest.ground.errors import InputError, Stopped
from quest.spec.model import PROFILES

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
    bench.add_argument("--whole", action="store_true", help="as one run of one commit, each round "
                       "beyond the sixth only where something is open")  # fmt: skip
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
    built = command("programs", "what these experiments want built")
    built.add_argument("only", nargs="*", default=[], metavar="ID", help=ids)
    doctor = command("doctor", "what runs here, and what does not")
    doctor.add_argument("--all", action="store_true", help="a line for each")
    return top


def main(argv: list[str]) -> int:
    arguments = parser().parse_args(argv)
    try:
        return ended(lambda: _run(arguments), wrong=BAD_INPUT)
    except InputError as error:
        print(foreign.plain(str(error)), file=sys.stderr)
        return BAD_INPUT
    except Stopped as stopped:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 128 + stopped.signal_number
    except KeyboardInterrupt:
        return 130


def _run(arguments: argparse.Namespace) -> int:
    # Each command imports what it needs: `bench` with nothing to do must not wait for scipy.
    results, reference = (getattr(arguments, name, Path()) for name in ("results", "reference"))
    match arguments.command:
        case "bench":
            from quest.measure.session import Settings
            from quest.report import bench

            return bench.bench(
                arguments.profile, words(arguments.only), arguments.headline, results, REFERENCE,
                arguments.again, arguments.upto, arguments.whole,
                settings=Settings.from_environment(os.environ),
            )  # fmt: skip
        case "export":
            return _export(results, reference, arguments.data)
        case "claims":
            from quest.report import verdicts

            found = verdicts.entries(results, reference, arguments.data)
            some = verdicts.select(found, words(arguments.only))
            return verdicts.show(some, results, arguments.verdicts)
        case "tables":
            from quest.report import then

            return then.show(words(*arguments.only), results, reference)
        case "compare":
            from quest.report import compare

            return compare.compare(arguments.old, arguments.new, words(arguments.only))
        case "check":
            from quest.report import check

            return check.check(results, reference)
        case "programs":
            from quest.measure import programs

            print(*programs.to_build(words(*arguments.only)), sep="\n")
            return 0
        case _:
            from quest.report import doctor

            return doctor.show(arguments.all)


def words(*texts: str) -> list[str]:
    return " ".join(texts).replace(",", " ").split()


def _export(results: Path, reference: Path, data: Path) -> int:
    """Of two exports to one folder the later waits, and then finds nothing left to do."""
    from quest.report import verdicts

    data.mkdir(parents=True, exist_ok=True)
    with (data / "lock").open("w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another export writes {data}: waiting", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if verdicts.fresh(results, reference, data):
            return 0
        from quest.report import export

        return export.export(results, reference, data)
