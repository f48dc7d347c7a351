"""The chapters in their order, and what belongs to each: server, experiments, predictions, lab."""

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

CHAPTERS, CODE, LABS = Path("chapters"), Path("code"), Path("labs")
EXPERIMENTS = Path("benchmarks/experiments")
SLUG = re.compile(r"\d\d[a-z]?-")


@dataclass(frozen=True)
class Experiment:
    id: str
    title: str
    question: str
    seconds: float  # of its quick profile
    headline: bool
    chapters: tuple[str, ...]
    others: bool  # it wants programs of other people, or rights


@dataclass(frozen=True)
class Chapter:
    slug: str
    title: str
    server: bool  # there is a program of this name
    lab: bool
    predictions: int
    exercises: int
    experiments: tuple[Experiment, ...] = field(default=())

    @property
    def measures(self) -> Experiment | None:
        """The one experiment to begin with: a short one."""
        return min(
            self.experiments,
            key=lambda e: (e.others, e.chapters[0] != self.slug, not e.headline, e.seconds),
            default=None,
        )


def _title(text: str) -> str:
    found = re.search(r'^title: *"?(.*?)"?$', text, re.M)
    return found[1] if found else "?"


@cache
def experiments() -> dict[str, tuple[Experiment, ...]]:
    """Chapter -> what it measures; a file that cannot be read is left to `make bench`."""
    found: dict[str, list[Experiment]] = {}
    for path in sorted(EXPERIMENTS.glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            quick = data["profile"]["quick"]
            if data["kind"] == "trace" or quick.get("by_name"):
                continue
            one = Experiment(
                data["id"], data["title"], data["question"], float(quick.get("seconds", 30)),
                bool(data.get("headline")), tuple(data.get("chapters", ())),
                bool(data.get("needs")) or any("peer" in v for v in data["variant"]),
            )  # fmt: skip
        except (OSError, KeyError, ValueError):
            continue
        for slug in data.get("chapters", ()):
            found.setdefault(slug, []).append(one)
    return {slug: tuple(some) for slug, some in found.items()}


@cache
def chapters() -> tuple[Chapter, ...]:
    found = []
    for path in sorted(CHAPTERS.glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        slug = path.stem
        found.append(
            Chapter(
                slug,
                _title(text),
                server=(CODE / slug).is_dir(),
                lab=(LABS / slug / "lab.toml").is_file(),
                predictions=len(re.findall(r"^:+ *(?:predict\b|\{\.predict\b)", text, re.M)),
                exercises=len(re.findall(r"^:+ *\{?\.?exercise\b", text, re.M)),
                experiments=experiments().get(slug, ()),
            )
        )
    return tuple(found)


def slugs() -> list[str]:
    return [chapter.slug for chapter in chapters()]


def servers() -> list[str]:
    """Programs that `make run` starts; 00-client is one of them, and 02-inetd."""
    return sorted(path.name for path in CODE.glob("[0-9]*") if path.is_dir())


def chapter(slug: str) -> Chapter | None:
    return next((each for each in chapters() if each.slug == slug), None)
