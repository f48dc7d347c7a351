"""The chapters in the order of the book, and what belongs to each: server, experiments, predictions, lab."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from quest.book.contents import read_contents

CODE, LABS = Path("code"), Path("labs")
EXPERIMENTS = Path("benchmarks/experiments")


@dataclass(frozen=True)
class Experiment:
    """What `make next` says of a file in benchmarks/experiments."""

    id: str
    question: str
    seconds: float  # of its quick profile


@dataclass(frozen=True)
class Chapter:
    """A chapter, and what the tree has for it."""

    slug: str
    part: str  # the title of its part of the book
    title: str
    summary: str
    server: bool  # there is a program of this name
    lab: bool
    predictions: int
    exercises: int
    programs: tuple[str, ...]  # of build/bin, that its reader starts by hand
    experiments: tuple[Experiment, ...]
    measuring: bool  # the lab begins with a prediction, before anything is measured
    measure: str  # id of the experiment that decides what the chapter asks; "" if there is none

    @property
    def deciding_experiment(self) -> Experiment | None:
        """None also where its file cannot be read."""
        return next((each for each in self.experiments if each.id == self.measure), None)


def experiments() -> dict[str, tuple[Experiment, ...]]:
    """Slug of a chapter -> what it measures; a file that cannot be read is left to `make bench`."""
    return _experiments_of(Path.cwd())


# What is read once is kept for the tree that it was read in: tests work in several.
@cache
def _experiments_of(_tree: Path) -> dict[str, tuple[Experiment, ...]]:
    by_chapter: dict[str, list[Experiment]] = {}
    for path in sorted(EXPERIMENTS.glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            quick = data["profile"]["quick"]
            if data["kind"] == "trace":
                continue
            one = Experiment(data["id"], data["question"], float(quick.get("seconds", 30)))
            for slug in data.get("chapters", ()):
                by_chapter.setdefault(slug, []).append(one)
        except (OSError, KeyError, ValueError, TypeError, AttributeError):
            continue
    return {slug: tuple(some) for slug, some in by_chapter.items()}


def chapters() -> tuple[Chapter, ...]:
    """In the order of the book. InputError: chapters/contents.json is broken."""
    return _chapters_of(Path.cwd())


@cache
def _chapters_of(_tree: Path) -> tuple[Chapter, ...]:
    return tuple(
        Chapter(
            slug=entry.slug,
            part=entry.part,
            title=entry.title,
            summary=entry.summary,
            server=(CODE / entry.slug).is_dir(),
            lab=any((LABS / entry.slug / name).is_file() for name in ("lab.toml", "measure.toml")),
            predictions=entry.predictions,
            exercises=entry.exercises,
            programs=tuple(entry.programs),
            experiments=experiments().get(entry.slug, ()),
            measuring=(LABS / entry.slug / "measure.toml").is_file(),
            measure=entry.measure,
        )
        for entry in read_contents()
    )


def slugs() -> list[str]:
    """Of the chapters, in the order of the book."""
    return [chapter.slug for chapter in chapters()]


def servers() -> list[str]:
    """Programs that `make run` starts; 00-client is one of them, and 02-inetd."""
    return sorted(path.name for path in CODE.glob("[0-9]*") if path.is_dir())


def chapter(slug: str) -> Chapter | None:
    """None if there is none of this slug."""
    return next((each for each in chapters() if each.slug == slug), None)
