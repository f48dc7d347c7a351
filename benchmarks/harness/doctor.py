"""`make doctor`: what runs on this machine and what is skipped, with the reason and the remedy.

Needs the standard library only, because it has to say what is missing. Always ends with 0: to lack
something is no error. `python3 -m harness.doctor --json` gives the same to programs.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from harness import checkup, experiment, limits, plan, programs
from harness.errors import InputError
from harness.model import Experiment
from harness.needs import Answer

TABLE = Path("benchmarks/harness/packages.tsv")
DEPS = "benchmarks/harness/deps.sh"
CODE = Path("code")
CHAPTERS = Path("chapters")
SLUG = "[0-9][0-9]*"
NOT_BUILT = "make variants"  # the remedy programs.missing() gives for what only has to be compiled

# Class of packages.tsv -> what installs it; "": apt-get, package by package. Without class fetch,
# whose packages are wanted only while reveal.js or Zig is missing.
CLASSES = {
    "base": "make deps",
    "build": "make deps",
    "measure": "make deps",
    "book": "make deps",
    "slides": "make deps",
    "test": "make deps",
    "browser": "",
    "lint": "",
    "cross": "make cross",
    "peers": "make peers",
}


@dataclass(frozen=True)
class Row:
    """A thing that runs or is skipped. `note` says more about what runs."""

    name: str
    ok: bool
    reason: str = ""
    remedy: str = ""
    note: str = ""
    parts: tuple["Row", ...] = field(default=())


def row(name: str, answer: Answer) -> Row:
    if answer.ok:
        return Row(name, True, note=", ".join(filter(None, (answer.reason, answer.remedy))))
    return Row(name, False, answer.reason, answer.remedy)


# ---- experiments ---------------------------------------------------------------------------------


def experiment_row(found: Experiment) -> Row:
    """Runs if one of its variants does; those that do not are its parts."""
    answers = {v.name: answer for v in found.variants if (answer := programs.missing(found, v))}
    skipped = {name: answer for name, answer in answers.items() if answer.remedy != NOT_BUILT}
    once_built = "once built: make variants" if len(skipped) < len(answers) else ""
    parts = tuple(row(name, answer) for name, answer in skipped.items())
    if len(skipped) < len(found.variants):
        note = "; ".join(filter(None, (once_built, reduced(found))))
        return Row(found.id, True, note=note, parts=parts)
    if len(set(skipped.values())) == 1:
        return row(found.id, next(iter(skipped.values())))
    return Row(found.id, False, "no variant runs", parts=parts)


def reduced(found: Experiment) -> str:
    """The parameters that this machine's limits make smaller than the quick profile asks."""
    texts = []
    for key, cap in limits.caps_for(found.caps).items():
        values = [
            value
            for variant in found.variants
            for params in plan.points(found, variant, found.profiles["quick"])
            if isinstance(value := params.get(key), int | float)
        ]
        if max(values, default=0) > cap.most:
            texts.append(f"{key} at most {cap.most} instead of {max(values)} ({cap.why})")
    return "; ".join(texts)


def experiments() -> tuple[list[Row], dict[str, list[str]]]:
    """A row an experiment file, and chapter -> the experiments that belong to it."""
    rows: list[Row] = []
    of_chapter: dict[str, list[str]] = {}
    for path in sorted(experiment.FOLDER.glob("*.toml")):
        try:
            found = experiment.load(path)
            rows.append(experiment_row(found))
        except InputError as error:
            reason = str(error).removeprefix(f"{path}: ")
            rows.append(Row(path.stem, False, reason, f"mend {path}"))
            continue
        for slug in found.chapters:
            of_chapter.setdefault(slug, []).append(found.id)
    return rows, of_chapter


# ---- chapters ------------------------------------------------------------------------------------


def slugs() -> list[str]:
    servers = {path.name for path in CODE.glob(SLUG) if path.is_dir()}
    return sorted(servers | {path.stem for path in CHAPTERS.glob(f"{SLUG}.md")})


def chapter_row(slug: str, measured: list[Row]) -> Row:
    """Its server, tried out; and how many of its experiments run."""
    here = row(slug, checkup.server(slug)) if (CODE / slug).is_dir() else Row(slug, True)
    skipped = [each for each in measured if not each.ok]
    count = f"{len(measured) - len(skipped)} of {len(measured)} experiments" if measured else ""
    parts = tuple(Row(each.name, False, each.reason, each.remedy) for each in skipped)
    if not here.ok:
        return Row(slug, False, here.reason, here.remedy, parts=parts)
    return Row(slug, True, note=", ".join(filter(None, (here.note, count))), parts=parts)


def chapters(rows: list[Row], of_chapter: dict[str, list[str]]) -> list[Row]:
    by_name = {each.name: each for each in rows}
    return [chapter_row(s, [by_name[name] for name in of_chapter.get(s, [])]) for s in slugs()]


# ---- tools ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Package:
    """A row of packages.tsv."""

    name: str
    classes: tuple[str, ...]
    generic: str
    needed_by: str


def packages(text: str) -> Iterator[Package]:
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, classes, _, generic, needed_by = line.split("\t")
            yield Package(name, tuple(classes.split(",")), generic, needed_by)


def status(classes: Iterable[str]) -> dict[str, bool]:
    """What deps.sh says is here. It is asked, not imitated: there is one way to find out."""
    command = ["sh", DEPS, "--status", *classes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    lines = (line.split("\t") for line in done.stdout.splitlines())
    return {words[0]: words[1] == "ok" for words in lines if len(words) == 2}


def tools() -> list[Row]:
    if not TABLE.is_file():
        raise InputError(f"{TABLE}: no such file; run from the root of the tree")
    here = status(CLASSES)
    return [
        tool_row(package, here.get(package.name, False))
        for package in packages(TABLE.read_text(encoding="utf-8"))
        if package.classes[0] in CLASSES
    ]


def tool_row(package: Package, here: bool) -> Row:
    if here:
        return Row(package.name, True, note=package.generic)
    remedy = CLASSES[package.classes[0]] or f"apt-get install {package.name}"
    return Row(package.name, False, f"not installed: {package.needed_by}", remedy)


# ---- printing ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    machine: dict[str, str]
    limits: list[Row]
    chapters: list[Row]
    experiments: list[Row]
    variants: list[Row]
    tools: list[Row]


def examine() -> Report:
    rows, of_chapter = experiments()
    return Report(
        machine=checkup.facts(),
        limits=[row(name, probe()) for name, probe in checkup.LIMITS.items()],
        chapters=chapters(rows, of_chapter),
        experiments=rows,
        variants=[row(name, checkup.variant(name)) for name in checkup.VARIANTS],
        tools=tools(),
    )


def line(each: Row, runs: str = "runs", skipped: str = "skipped") -> str:
    if each.ok:
        return f"{runs} ({each.note})" if each.note else runs
    return f"{skipped}: {each.reason}" + (f"; {each.remedy}" if each.remedy else "")


def show(rows: list[Row], runs: str = "runs", skipped: str = "skipped") -> None:
    width = max((len(each.name) for each in rows), default=0)
    for each in rows:
        print(f"  {each.name:{width}}  {line(each, runs, skipped)}")
        for part in each.parts:
            print(f"  {'':{width}}    {part.name} {line(part)}")


def show_limits(rows: list[Row]) -> None:
    width = max(len(each.name) for each in rows)
    for each in rows:
        found = each.note or "yes" if each.ok else f"no: {each.reason}"
        print(f"  {each.name:{width}}  {found}" + (f"; {each.remedy}" if each.remedy else ""))


def show_tools(rows: list[Row]) -> None:
    print(f"  here: {', '.join(each.name for each in rows if each.ok) or 'none'}")
    show([each for each in rows if not each.ok])


def show_all(report: Report) -> None:
    sections: list[tuple[str, Callable[[], None]]] = [
        ("limits", lambda: show_limits(report.limits)),
        ("chapters", lambda: show(report.chapters)),
        ("experiments", lambda: show(report.experiments)),
        ("libc variants", lambda: show(report.variants)),
        ("tools", lambda: show_tools(report.tools)),
    ]
    print("this machine")
    for name, fact in report.machine.items():
        print(f"  {name:9}  {fact}")
    for title, print_section in sections:
        print(f"\n{title}")
        print_section()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="doctor", description="What runs on this machine.")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args(words)
    report = examine()
    if options.json:
        print(json.dumps(asdict(report), indent=1, ensure_ascii=False))
    else:
        show_all(report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
