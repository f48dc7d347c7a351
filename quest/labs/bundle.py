"""A lab without its solution, and all that judges it: as an autograder for Gradescope (a zip), and
to hand out (a tarball).

Both are a tree like ours in which the starter stands in the place of the real source, and lab.toml
says nothing of how it was made. So the judge is the same, and has nothing to give away.
"""

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from quest.labs import closure, files, place, work
from quest.labs.cell import CONFINE
from quest.labs.errors import LabError
from quest.labs.judge import file_of_test
from quest.labs.lab import TREE, Lab
from quest.labs.settings import Settings, Toolchain

FILES = ("LICENSE", "tests/pytest.ini", "setup/packages.tsv")
#: what an autograder installs packages by
INSTALLER = ("setup/deps.sh", "setup/install.sh", "setup/fetch.py")
#: Of lab.toml: how the starter differs from the real source.
ANSWERS = re.compile(r'^\[(?:\[mistake\]\]|starter\."[^"\n]+"\])\n.*?(?=^\[|\Z)', re.M | re.S)

SETUP = """#!/bin/sh
# Installs what the judge needs, by the list that `make deps` has.
cd "$(dirname "$0")" && DEPS=yes exec sh setup/deps.sh build test
"""
RUN = """#!/bin/sh
# Judges /autograder/submission. Without a grade (a missing file, no compiler) the reason is told.
top=${{AUTOGRADER:-/autograder}}
results=$top/results/results.json
cd "$top/source" && rm -f "$results" || exit 1
for python in python3 /usr/bin/python3; do "$python" -E -s -c 'import pytest' 2> /dev/null && break; done
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
SETTINGS = $(foreach s,N ONLY PATIENCE SEED STAGE,$(if $($(s)),'$(s)=$($(s))'))
PYTHON ?= $(shell for p in python3 /usr/bin/python3; do \\
	$$p -E -s -c 'import pytest' 2> /dev/null && break; done; echo $$p)

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
    make check      builds them, tests them, counts the points; STAGE=now: some ten minutes' work; ONLY=name: one test
{hint}
Hand in: {hand_in}

Needed: Linux, and (Debian 12, Ubuntu 24.04, or newer)

    apt-get install {packages}
"""
HINT = "    make hint       a hint for what failed first\n"
PACKAGES = "gcc make python3 python3-pytest strace bubblewrap"


def _sources(tools: Toolchain, build: Path, lab: Lab) -> dict[Path, Path]:
    """Object that is linked -> its source, without those of the files that are handed in."""
    own = [lab.source(name).relative_to(TREE) for name in lab.files]
    sources = {}
    for path in tools.objects:
        inside = path.relative_to(build / "obj")
        source = Path(*inside.parts[1:]).with_suffix(".c")  # behind the name of the variant
        if source not in own:
            sources[path] = source
    return sources


def _judge_of(lab: Lab) -> Iterator[Path]:
    """The files that judge this lab: the judge, the lab, and the tests that it names, with all that
    these need."""
    tests = {file_of_test(lab, name) for test in lab.tests for name in test.tests}
    programs = [TREE / path for path in closure.programs()]
    modules = [*tests, *(path for path in programs if path.suffix == ".py")]
    yield from closure.files_of(closure.STARTED, modules)
    for path in (*programs, *lab.folder.iterdir(), CONFINE, *(TREE / name for name in FILES)):
        if path.is_file():
            yield path.relative_to(TREE)


@contextmanager
def tree_of(lab: Lab, more: Iterable[str] = ()) -> Iterator[Path]:
    """A folder with the lab, its starter in the place of the real source, what judges it, and
    `more` files of the tree."""
    with files.for_others(), place.temporary() as folder:
        top = folder / lab.slug
        headers = (path.relative_to(TREE) for path in TREE.glob("code/**/*.h"))
        for path in {*_judge_of(lab), *headers, *map(Path, more)}:
            _copy(path, top)
        for name, text in work.starters(lab).items():
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
    """lab.toml without what tells the starter from the real source."""
    cut = ANSWERS.sub("", text)
    wanted = {k: v for k, v in tomllib.loads(text).items() if k not in ("mistake", "starter")}
    if tomllib.loads(cut) != wanted:
        raise LabError("lab.toml: what it says of its solution cannot be cut out")
    return cut


def _packed(top: Path, kind: str, name: Path) -> str:
    """Packs a folder into an archive; its name and size, in words."""
    name.parent.mkdir(parents=True, exist_ok=True)
    where = top if kind == "zip" else top.parent
    part = shutil.make_archive(str(name) + ".part", kind, where, "." if kind == "zip" else top.name)
    made = name.with_name(name.name + (".zip" if kind == "zip" else ".tar.gz"))
    Path(part).replace(made)
    return f"{made} ({made.stat().st_size >> 10} KiB)"


def autograder(lab: Lab, settings: Settings) -> str:
    """Makes build/autograder/SLUG.zip, with objects and headers; its name and size. SANDBOX=no:
    there is to be a grade even where no sandbox can be had."""
    tools, build = settings.toolchain, settings.build
    with tree_of(lab, INSTALLER) as top:
        (top / "labs" / lab.slug / "hints.md").write_text("", encoding="utf-8")
        objects = {path: Path("build/obj", f"{n}.o") for n, path in enumerate(_sources(tools, build, lab))}
        for path, inside in objects.items():
            _copy(path, top, inside)
        words = tools.words | {"OBJECTS": " ".join(map(str, objects.values()))}
        run = RUN.format(
            environment=" ".join(f"LAB_{name}={shlex.quote(text)}" for name, text in words.items()),
            slug=lab.slug,
            settings="" if settings.sandbox_wanted else " SANDBOX=no",
        )
        for name, text in {"setup.sh": SETUP, "run_autograder": run}.items():
            (top / name).write_text(text, encoding="utf-8")
            (top / name).chmod(0o755)
        return _packed(top, "zip", build / "autograder" / lab.slug)


def handout(lab: Lab, settings: Settings) -> str:
    """Makes build/handout/SLUG.tar.gz, with sources, or SLUG-nohints.tar.gz; its name and size."""
    tools, build, hints = settings.toolchain, settings.build, settings.hints
    libraries = " ".join(tools.libraries)
    with tree_of(lab) as top:
        if not hints:
            (top / "labs" / lab.slug / "hints.md").write_text("", encoding="utf-8")
        sources = _sources(tools, build, lab).values()
        for source in sources:
            _copy(source, top)
        makefile = MAKEFILE.format(
            flags=" ".join(tools.flags),
            objects=" ".join(str(Path("build/obj", path.with_suffix(".o"))) for path in sources),
            libraries=libraries,
            slug=lab.slug,
            goals="lab check hint" if hints else "lab check",
        )
        (top / "Makefile").write_text(makefile, encoding="utf-8")
        readme = README.format(
            title=lab.title,
            slug=lab.slug,
            hint=HINT if hints else "",
            hand_in=", ".join(f"work/{lab.slug}/{name}" for name in lab.files),
            packages=PACKAGES + (" liburing-dev" if "-luring" in tools.libraries else ""),
        )
        (top / "README.md").write_text(readme, encoding="utf-8")
        return _packed(top, "gztar", build / "handout" / f"{lab.slug}{'' if hints else '-nohints'}")
