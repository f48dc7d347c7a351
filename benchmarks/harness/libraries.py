"""Libraries that some programs are built with, and whether their headers are here.

Which program needs which header stands in the module.mk that builds it (`x_NEEDS := liburing.h`),
which package brings it, and into which folder on which system, in packages.tsv.
"""

import re
import subprocess
from functools import cache
from pathlib import Path

from harness.needs import Answer

NEEDS = re.compile(r"^(\S+)_NEEDS *:= *(.+?) *(?:#.*)?$", re.M)
TABLE = Path("benchmarks/harness/packages.tsv")


@cache
def needed(tree: Path) -> dict[str, tuple[str, ...]]:
    """Program -> the headers it needs."""
    found: dict[str, tuple[str, ...]] = {}
    for path in (*tree.glob("*/module.mk"), *tree.glob("*/*/module.mk")):
        for program, headers in NEEDS.findall(path.read_text(encoding="utf-8")):
            found[program] = tuple(headers.split())
    return found


@cache
def header_is_here(header: str) -> bool:
    command = ["cc", "-E", "-x", "c", "-include", header, "/dev/null"]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def brought_by(header: str, table: str) -> tuple[str, list[str]]:
    """By the text of packages.tsv: the package that brings a header, and where one system or
    another has it. Of a header that is not in the table: its own name for both.
    """
    for line in table.splitlines():
        words = line.split("\t")
        if len(words) == 5 and f"header:{header}" in (places := words[2].split("|")):
            return words[0], [place.removeprefix("header:") for place in places]
    return header, [header]


def missing(program: str, tree: Path = Path()) -> Answer | None:
    """Why this program cannot be built here, or None."""
    for header in needed(tree).get(program, ()):
        package, places = brought_by(header, (tree / TABLE).read_text(encoding="utf-8"))
        if not any(map(header_is_here, places)):
            return Answer(False, f"{package} is not installed", f"apt-get install {package}")
    return None
