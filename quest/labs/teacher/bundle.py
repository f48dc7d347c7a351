"""A lab without its solution, and all that judges it: as an autograder for Gradescope (a zip), and
to hand out (a tarball).

Both are a tree like ours in which the starter stands in the place of the real source, and lab.toml
says nothing of how it was made. So the grader is the same, and has nothing to tell.
"""

import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quest.labs import place, work
from quest.labs.errors import LabError, say
from quest.labs.lab import TREE, Lab
from quest.labs.sandbox import Toolchain
from quest.labs.teacher.variant import Variant

PARTS = ("ground", "measure", "spec", "labs")
JUDGE = (*(f"quest/{name}" for name in PARTS), "tests/conformance", "setup")
FILES = (
    "quest/__init__.py", "LICENSE",
    "tests/__init__.py", "tests/conftest.py", "tests/unsteady.py", "tests/place.py",
    "tests/pytest.ini",
)  # fmt: skip
#: Of lab.toml: how the starter differs from the real source.
ANSWERS = re.compile(r'^\[(?:\[mistake\]\]|starter\."[^"\n]+"\])\n.*?(?=^\[|\Z)', re.M | re.S)
NOT_OURS = shutil.ignore_patterns("__pycache__", "*.pyc")

SETUP = """#!/bin/sh
# Installs what the judge needs, by the list that `make deps` has.
cd "$(dirname "$0")" && DEPS=yes exec sh setup/deps.sh build test
"""
RUN = """#!/bin/sh
# Judges /autograder/submission. Without a grade (a missing file, no compiler) the reason is told.
top=${{AUTOGRADER:-/autograder}}
results=$top/results/results.json
for python in python3 /usr/bin/python3; do "$python" -c 'import pytest' 2> /dev/null && break; done
cd "$top/source" && rm -f "$results" || exit 1
{environment} \\
    "$python" -E -s -m quest.labs grade CH={slug} DIR="$top/submission"{settings} \\
    JSON="$results" LOGS="$top/logs" 2> "$top/said" || true
cat "$top/said" >&2
[ -f "$results" ] || python3 -c 'import json, sys
said = "Not graded. " + sys.stdin.buffer.read().decode(errors="replace")
print(json.dumps({{"output": said}}))' < "$top/said" > "$results"
"""
MAKEFILE = """# A lab to hand out: README.md.
FLAGS := {flags}
OBJECTS := {objects}
SETTINGS = $(foreach s,N ONLY PATIENCE SEED,$(if $($(s)),'$(s)=$($(s))'))
SEED ?= {seed}
PYTHON ?= $(shell for p in python3 /usr/bin/python3; do \\
	$$p -c 'import pytest' 2> /dev/null && break; done; echo $$p)

.PHONY: {goals}
{goals}: $(OBJECTS)
	@LAB_CC='$(CC)' LAB_FLAGS='$(FLAGS)' LAB_OBJECTS='$(OBJECTS)' LAB_LIBS='{libraries}' \\
		$(PYTHON) -E -s -m quest.labs $@ CH={slug} $(SETTINGS)
build/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC       $@"
	@$(CC) $(FLAGS) -c -o $@ $<
"""
README = """# {title}

The task is in `labs/{slug}/task.md`; what it calls *the real server* is not in here.

    make lab        your files, in work/{slug}
    make check      builds them, tests them, counts the points; ONLY=name: one test
{hint}
Hand in: {hand_in}

Needed: Linux, and (Debian 12, Ubuntu 24.04, or newer)

    apt-get install {packages}
"""
HINT = "    make hint       a hint for what failed first\n"
PACKAGES = "gcc make python3 python3-pytest strace bubblewrap"


def _names(tools: Toolchain, build: Path, lab: Lab) -> dict[Path, Path]:
    """Object that is linked -> its source, without those of the files that are handed in."""
    own = [lab.source(name).relative_to(TREE) for name in lab.files]
    found = {}
    for path in tools.objects:
        inside = path.relative_to(build / "obj")
        source = Path(*inside.parts[1:]).with_suffix(".c")  # behind the name of the variant
        if source not in own:
            found[path] = source
    return found


@contextmanager
def _tree(lab: Lab, starters: dict[str, str]) -> Iterator[Path]:
    with place.temporary() as folder:
        top = folder / lab.slug
        for part in (*JUDGE, f"labs/{lab.slug}"):
            shutil.copytree(TREE / part, top / part, ignore=NOT_OURS)
        for header in (*TREE.glob("code/**/*.h"), *(TREE / name for name in FILES)):
            _copy(header.relative_to(TREE), top)
        for name, text in starters.items():
            path = top / lab.source(name).relative_to(TREE)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        described = top / "labs" / lab.slug / "lab.toml"
        described.write_text(_without_answers(described.read_text(encoding="utf-8")), "utf-8")
        yield top


def _copy(path: Path, top: Path, into: Path | None = None) -> None:
    to = top / (into or path)
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(TREE / path, to)


def _without_answers(text: str) -> str:
    found = ANSWERS.sub("", text)
    wanted = {k: v for k, v in tomllib.loads(text).items() if k not in ("mistake", "starter")}
    if tomllib.loads(found) != wanted:
        raise LabError("lab.toml: what it says of its solution cannot be cut out")
    return found


def _packed(top: Path, kind: str, name: Path) -> int:
    name.parent.mkdir(parents=True, exist_ok=True)
    where = top if kind == "zip" else top.parent
    part = shutil.make_archive(str(name) + ".part", kind, where, "." if kind == "zip" else top.name)
    made = name.with_name(name.name + (".zip" if kind == "zip" else ".tar.gz"))
    Path(part).replace(made)
    say(f"{made} ({made.stat().st_size >> 10} KiB)")
    return 0


def autograder(lab: Lab, build: Path, sandbox: str) -> int:
    """Objects, headers and tests: the compiler's, the sandbox's and the judge's part. sandbox: "no"
    if there is to be a grade even where no sandbox can be had."""
    tools = Toolchain.of_make()
    with _tree(lab, work.starters(lab)) as top:
        (top / "labs" / lab.slug / "hints.md").write_text("", encoding="utf-8")
        objects = {
            path: Path("build/obj", f"{n}.o") for n, path in enumerate(_names(tools, build, lab))
        }
        for path, inside in objects.items():
            _copy(path, top, inside)
        told = {
            "CC": shlex.join(tools.compiler),
            "FLAGS": shlex.join(tools.flags),
            "OBJECTS": " ".join(map(str, objects.values())),
            "LIBS": os.environ.get("LAB_LIBS", ""),
        }
        words = " ".join(f"LAB_{name}={shlex.quote(text)}" for name, text in told.items())
        settings = f" SANDBOX={sandbox}" if sandbox else ""
        run = RUN.format(environment=words, slug=lab.slug, settings=settings)
        texts = {"setup.sh": SETUP, "run_autograder": run}
        for name, text in texts.items():
            (top / name).write_text(text, encoding="utf-8")
            (top / name).chmod(0o755)
        return _packed(top, "zip", build / "autograder" / lab.slug)


def handout(lab: Lab, build: Path, hints: bool, seed: int) -> int:
    """With `seed` the variant of one class."""
    tools, variant = Toolchain.of_make(), Variant(lab, seed)
    libraries = os.environ.get("LAB_LIBS", "")
    with _tree(lab, variant.starters()) as top:
        folder = top / "labs" / lab.slug
        for name in ("hints.md", "task.md"):
            text = variant.told((folder / name).read_text(encoding="utf-8"))
            if name == "task.md" and len(variant.mistakes) < len(lab.mistakes):
                few = f"\n**Of the mistakes it speaks of, yours has {len(variant.mistakes)}.**\n"
                text = text.replace("\n", f"\n{few}", 1)
            told = text if hints or name == "task.md" else ""
            (folder / name).write_text(told, encoding="utf-8")
        sources = _names(tools, build, lab).values()
        for source in sources:
            _copy(source, top)
        made = MAKEFILE.format(
            flags=" ".join(tools.flags),
            objects=" ".join(str(Path("build/obj", path.with_suffix(".o"))) for path in sources),
            libraries=libraries,
            seed=seed or "",
            slug=lab.slug,
            goals="lab check hint" if hints else "lab check",
        )
        (top / "Makefile").write_text(made, encoding="utf-8")
        text = README.format(
            title=lab.title,
            slug=lab.slug,
            hint=HINT if hints else "",
            hand_in=", ".join(f"work/{lab.slug}/{name}" for name in lab.files),
            packages=PACKAGES + (" liburing-dev" if "-luring" in libraries else ""),
        )
        (top / "README.md").write_text(text, encoding="utf-8")
        which = (f"-{seed}" if seed else "") + ("" if hints else "-nohints")
        return _packed(top, "gztar", build / "handout" / f"{lab.slug}{which}")
