"""Checks what no compiler does: servers stay small, and neighbours differ by their lesson only.

    python3 code/lint.py          prints one line for each fault; status 1 if there is one

The limits are the design's: a server.c of at most 250 lines (15-slashdot 350), no function above 60
lines unless its name ends in _loop, about 1600 lines in code/common, and between neighbours half
the changed lines of `diff` at most 65.
"""

import difflib
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

CODE = Path("code")
SERVER_LINES, SLASHDOT_LINES, FUNCTION_LINES, COMMON_LINES, COLUMNS = 250, 350, 60, 1600, 100
DIFF_LINES = 65
# Where the model changes, the diff is not the lesson.
MODEL_CHANGES = {"01-iterative", "06-select", "12-aio", "13-uring", "14-owfat", "15-slashdot"}
# Made from another server than the one before it (DECISIONS.md, 3).
MADE_FROM = {
    "04-threads": "02-fork",
    "09-epoll": "07-poll",
    "10-kqueue": "09-epoll",
    "11-sendfile": "09-epoll",
}
MARKER = re.compile(r"^\s*/\* (end)?region: ")
FUNCTION = re.compile(r"^(?:static |_Noreturn )*\w[\w *]*?\b(\w+)\([^;]*$")


def source_lines(path: Path) -> list[str]:
    """The file without markers, which are the book's and not the program's."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not MARKER.match(line)]


def changed_lines(old: list[str], new: list[str]) -> int:
    """Half the lines that `diff` would mark."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    same = sum(block.size for block in matcher.get_matching_blocks())
    return (len(old) + len(new) - 2 * same) // 2


def check_servers(servers: list[Path]) -> Iterator[str]:
    for path in servers:
        limit = SLASHDOT_LINES if path.parent.name == "15-slashdot" else SERVER_LINES
        count = len(source_lines(path))
        if count > limit:
            yield f"{path}: {count} lines, {limit} are allowed"
    for before, new in itertools.pairwise(servers):
        if new.parent.name in MODEL_CHANGES:
            continue
        origin = MADE_FROM.get(new.parent.name, before.parent.name)
        old = before.parent.with_name(origin) / before.name
        changed = changed_lines(source_lines(old), source_lines(new))
        if changed > DIFF_LINES:
            yield f"{new}: differs from {old} by {changed} lines, {DIFF_LINES} are allowed"


def check_files(files: list[Path]) -> Iterator[str]:
    """Head and closing brace of a function stand in column 0."""
    for path in files:
        name, start = "", 0
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if len(line) > COLUMNS:
                yield f"{path}:{number}: {len(line)} columns, {COLUMNS} are allowed"
            if head := FUNCTION.match(line):
                name, start = head.group(1), number
            elif line == "}" and name:
                length = number - start + 1
                if length > FUNCTION_LINES and not name.endswith("_loop"):
                    what = f"{name}() has {length} lines, {FUNCTION_LINES} are allowed"
                    yield f"{path}:{start}: {what}"
                name = ""
    common = sum(len(source_lines(path)) for path in files if path.is_relative_to("code/common"))
    if common > COMMON_LINES:
        yield f"code/common: {common} lines, {COMMON_LINES} are allowed: is a lesson in there?"


def main() -> int:
    # The chain of neighbours is the numbered servers; a variant (02-inetd) hangs beside.
    numbered = sorted(CODE.glob("[0-9][0-9]*-*/server.c"))
    servers = [path for path in numbered if not path.parent.name.endswith("-inetd")]
    tops = (CODE, Path("benchmarks"), Path("labs"))
    files = sorted(path for top in tops for path in top.rglob("*.[ch]"))
    faults = [*check_servers(servers), *check_files(files)]
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
