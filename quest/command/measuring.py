"""The goals that measure, judge and tell: each takes its settings and gives the status.

Each imports what it needs when it runs: `bench` with nothing to do must not wait for scipy.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quest.command.settings import Given
from quest.ground.files import locked
from quest.measure import records

if TYPE_CHECKING:
    from quest.measure.session import Settings

REFERENCE = Path("benchmarks/results/reference")


def build_of(given: Given) -> Path:
    """BUILD=, the folder of all that is made."""
    return Path(given.get("BUILD", "build"))


def results_of(given: Given) -> Path:
    """Where the reader's own results are."""
    return build_of(given) / "results"


def data_of(given: Given) -> Path:
    """Where the exported numbers are."""
    return build_of(given) / "data"


def reference_only(given: Given) -> bool:
    """Whether RESULTS= asks for the committed run alone. InputError for another word than it knows."""
    return records.wants_reference(given.get("RESULTS", ""))


def names(text: str) -> list[str]:
    """`a,b c` -> a, b and c."""
    return text.replace(",", " ").split()


def _asked(given: Given) -> "Settings":
    from quest.measure.session import Settings

    return Settings.from_environment({**os.environ, **given})


def programs(given: Given) -> int:
    """The paths of what these experiments start, one a line."""
    from quest.measure import programs as all_programs

    print(*all_programs.to_build(names(given.get("ONLY", ""))), sep="\n")
    return 0


def bench(given: Given) -> int:
    """With CH= the chapter's step is ticked if its experiment is finished now."""
    from quest.report import bench as run

    status = run.bench(
        given.get("PROFILE", "quick"), names(given.get("ONLY", "")), headline=False,
        results=results_of(given), reference=REFERENCE, again="AGAIN" in given, upto=given.get("CH", ""),
        settings=_asked(given),
    )  # fmt: skip
    if status == 0 and given.get("CH"):
        from quest.learn.path import note_measurement

        return note_measurement(given)
    return status


def reference(given: Given) -> int:
    """A session of it, into a folder of its own: what is committed stays what it is until the new one is whole."""
    from quest.report import bench as run

    only, verdicts, since = names(given.get("ONLY", "")), given.get("VERDICTS") == "yes", given.get("SINCE") == "yes"
    return run.reference_session(
        only, verdicts, since, given.get("SESSION", ""), build_of(given) / "reference", REFERENCE, _asked(given)
    )


def headline(given: Given) -> int:
    """What `make` measures."""
    from quest.report import bench as run

    only = names(given.get("ONLY", ""))
    return run.bench(given.get("PROFILE", "quick"), only, True, results_of(given), REFERENCE, settings=_asked(given))


def export(given: Given) -> int:
    """Of two exports to one folder the later waits, and then finds nothing left to do."""
    from quest.report import verdicts

    results, data = results_of(given), data_of(given)
    data.mkdir(parents=True, exist_ok=True)
    with locked(data / "lock", lambda: print(f"another export writes {data}: waiting", flush=True)):
        only = reference_only(given)
        if verdicts.fresh(results, REFERENCE, data, only):
            return 0
        from quest.report import export as exporting

        return exporting.export(results, REFERENCE, data, only)


def claims(given: Given) -> int:
    """The whole ledger; with SINCE=yes that of the claims since 2003."""
    return _since(given) if given.get("SINCE") == "yes" else _claims(given, short=False)


def _since(given: Given) -> int:
    from quest.measure import chosen
    from quest.report import since
    from quest.report.measured import Library

    every = chosen.everything()
    library = Library(results_of(given), REFERENCE, reference_only(given), definitions=every)
    return since.print_ledger(since.judge_all(library), names(given.get("ONLY", "")))


def verdict(given: Given) -> int:
    """What was judged, as `make` ends; 1 if a measurement of the reader's has failed."""
    return _claims(given, short=True)


def _claims(given: Given, short: bool) -> int:
    from quest.report import verdicts

    results, only = results_of(given), reference_only(given)
    judged = verdicts.judged_claims(results, REFERENCE, data_of(given), only)
    chosen = verdicts.select(judged, names(given.get("ONLY", "")))
    return verdicts.print_ledger(chosen, None if only else results, short)


def tables(given: Given) -> int:
    """The tables of the sources, beside today's values."""
    from quest.report import then
    from quest.report.measured import Library
    from quest.spec import experiment_file

    chosen = experiment_file.load_all(only=names(given.get("ONLY", "")))
    only = reference_only(given)
    return then.tables(chosen, Library(results_of(given), REFERENCE, only, definitions=chosen))


def compare(given: Given) -> int:
    """A= old, B= new. InputError if one is missing or is no folder."""
    from quest.ground.errors import InputError
    from quest.report import compare as comparing

    for name in ("A", "B"):
        if name not in given:
            raise InputError(f"compare needs {name}=, a folder of results or one of the words reference and here")
    words = {"reference": REFERENCE, "here": results_of(given)}
    old, new = (words.get(given[name], Path(given[name])) for name in ("A", "B"))
    return comparing.compare(old, new, names(given.get("ONLY", "")))


def share(given: Given) -> int:
    from quest.ground.foreign import plain
    from quest.measure import chosen
    from quest.report import share as sharing

    known = {definition.id: definition for definition in chosen.everything()}
    packed = sharing.pack(results_of(given), build_of(given) / "share", known)
    for line in packed.left_out:
        print(plain(f"left out: {line}"))
    print(f"{packed.path}: {len(packed.sets)} sets, {packed.path.stat().st_size / 1e6:.1f} MB")
    print("make merge draws it beside those of other machines; the page of machines shows it (benchmarks/README.md)")
    return 0


def check_data(given: Given) -> int:
    """0, or 1 with a line for each thing that is wrong."""
    from quest.report import check

    return check.check(results_of(given), REFERENCE)
