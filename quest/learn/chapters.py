"""The chapters in their order, and what belongs to each: server, experiments, predictions, lab."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHAPTERS, CODE, LABS = Path("chapters"), Path("code"), Path("labs")
EXPERIMENTS = Path("benchmarks/experiments")
SLUG = re.compile(r"\d\d[a-z]?-")


@dataclass(frozen=True)
class Experiment:
    id: str
    question: str
    seconds: float  # of its quick profile


@dataclass(frozen=True)
class Chapter:
    slug: str
    title: str
    summary: str
    server: bool  # there is a program of this name
    lab: bool
    predictions: int
    exercises: int
    experiments: tuple[Experiment, ...]
    measuring: bool  # the lab begins with a prediction, before anything is measured
    measure: str  # the experiment that decides what the chapter asks

    @property
    def measures(self) -> Experiment | None:
        return next((each for each in self.experiments if each.id == self.measure), None)


def _said(text: str, name: str) -> str:
    """Of the chapter's head: `title: ...`."""
    found = re.search(rf'^{name}: *"?(.*?)"?$', text.partition("\n---\n")[0], re.M)
    return found[1] if found else ""


@cache
def experiments() -> dict[str, tuple[Experiment, ...]]:
    """Chapter -> what it measures; a file that cannot be read is left to `make bench`."""
    found: dict[str, list[Experiment]] = {}
    for path in sorted(EXPERIMENTS.glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
            quick = data["profile"]["quick"]
            if data["kind"] == "trace":
                continue
            one = Experiment(data["id"], data["question"], float(quick.get("seconds", 30)))
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
                _said(text, "title"),
                _said(text, "summary"),
                server=(CODE / slug).is_dir(),
                lab=any((LABS / slug / name).is_file() for name in ("lab.toml", "measure.toml")),
                predictions=len(re.findall(r"^:+ *(?:predict\b|\{\.predict\b)", text, re.M)),
                exercises=len(re.findall(r"^:+ *\{?\.?exercise\b", text, re.M)),
                experiments=experiments().get(slug, ()),
                measuring=(LABS / slug / "measure.toml").is_file(),
                measure=_said(text, "measure"),
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
