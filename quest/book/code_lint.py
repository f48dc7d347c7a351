"""Checks what no compiler does: servers stay small, and neighbours differ by their lesson only.

    python3 -m quest.book.code_lint    prints one line for each fault; status 1 if there is one

The limits are the design's: a server.c of at most 250 lines (15-slashdot 350), no function above 60
lines unless its name ends in _loop, about 1650 lines in code/common, and between neighbours half
the changed lines of `diff` at most 65. Names: a tag, an include guard and an exported function are
defined in one file of code/. Then a table on stdout: the files and lines that make some servers,
without code/common, code/http and appendices.
"""

import difflib
import itertools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from quest.ground.entry import run_main

CODE = Path("code")
SERVER_LINES, SLASHDOT_LINES, FUNCTION_LINES, COMMON_LINES, COLUMNS = 250, 350, 60, 1650, 100
DIFF_LINES = 65
# Where the model changes, the diff is not the lesson.
MODEL_CHANGES = {"01-iterative", "06-select", "12-aio", "13-uring", "14-owfat", "15-slashdot"}
# Made from another server than the one before it (DECISIONS.md, 3).
MADE_FROM = {
    "04-threads": "02-fork",
    "09-epoll": "07-poll",
    "10-kqueue": "09-epoll",
    "11-sendfile": "09-epoll",
    "16-coroutines": "09-epoll",
}
# Function names that static functions of several files share: fewer are better, more is a fault.
# Most are the steps that every loop has under the same name, for `make diff`: begin, handle, enter.
DOUBLED_STATIC = 25
# Defined for each program, or once for each system or processor and chosen in module.mk.
BY_SYSTEM = {"open_below", "cork", "main", "switch_prepare"}
READ_WHOLE = ("05b-nonblocking", "09-epoll", "11-sendfile", "12-aio", "13-uring", "15-slashdot", "16-coroutines")
MARKER = re.compile(r"^\s*/\* (end)?region: ")
FUNCTION = re.compile(r"^(?:static |_Noreturn )*\w[\w *]*?\b(\w+)\([^;]*$")


TAG = re.compile(r"^(?:static |const |typedef )*((?:struct|enum|union) \w+)(?: \{)?$", re.M)
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.M)
STATIC = re.compile(r"^static (?!inline)[^;={]*?\b(\w+)\([^;{]*\)\n\{", re.M)
EXPORTED = re.compile(r"^(?!static\b)[a-z_][^;={#\n]*?\b(\w+)\([^;{]*\)\n\{", re.M)
INCLUDED = re.compile(r'^#include "([^"]+)"', re.M)


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
    """Their lines, and the lines by which each differs from the server that it was made from."""
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
        yield f"code/common: {common} lines, {COMMON_LINES} are allowed: what teaches belongs to a server"


def defined(files: Iterable[Path], pattern: re.Pattern[str]) -> dict[str, list[Path]]:
    """The names that the pattern finds at the beginning of a line, each with its files."""
    files_by_name: dict[str, list[Path]] = defaultdict(list)
    for path in files:
        for name in sorted(set(pattern.findall(path.read_text(encoding="utf-8")))):
            files_by_name[name].append(path)
    return files_by_name


def check_names(files: list[Path]) -> Iterator[str]:
    """So that grep, a debugger and a backtrace lead to one place."""
    headers = [path for path in files if path.suffix == ".h"]
    sources = [path for path in files if path.suffix == ".c"]
    exported = defined(sources, EXPORTED)
    once = {
        "": defined(files, TAG),
        "include guard ": defined(headers, GUARD),
        "function ": {name: exported[name] for name in exported if name not in BY_SYSTEM},
    }
    for kind, names in once.items():
        for name, paths in names.items():
            if len(paths) > 1:
                others = ", ".join(map(str, paths[1:]))
                yield f"{paths[0]}: {kind}{name} is defined in {others}, too"
    doubled = [name for name, paths in defined(sources, STATIC).items() if len(paths) > 1]
    if len(doubled) > DOUBLED_STATIC:
        what = f"{len(doubled)} names of static functions are used in several files"
        yield f"code: {what}, {DOUBLED_STATIC} are allowed: {', '.join(sorted(doubled))}"


def files_of(sources: Iterable[Path]) -> list[Path]:
    """The sources of a server and their headers, as far as they are its lesson's."""
    to_read, files = list(sources), set[Path]()
    while to_read:
        path = to_read.pop()
        parts = set(path.parts)
        if path in files or {"common", "http", "appendix", "linux"} & parts or not path.is_file():
            continue
        files.add(path)
        to_read += [CODE / name for name in INCLUDED.findall(path.read_text(encoding="utf-8"))]
    return sorted(files)


def print_table() -> None:
    """Of READ_WHOLE: files and lines. CalledProcessError if make cannot name the sources."""
    lines = ";".join(f"echo $(filter-out $({s}_APPENDIX),$({s}_SRC))" for s in READ_WHOLE)
    make = ["make", "-s", "--no-print-directory", f"--eval=.sources: ; @{lines}", ".sources"]
    sources = subprocess.run(make, capture_output=True, text=True, check=True).stdout.splitlines()
    print("           files  lines   to read for a server, beside common/, http/ and its appendix")
    for server, names in zip(READ_WHOLE, sources, strict=True):
        files = files_of(Path(name) for name in names.split())
        print(f"{len(files):16d}{sum(len(source_lines(path)) for path in files):7d}   {server}")


def main(_: list[str]) -> int:
    """In the root of the tree; no arguments."""
    # The chain of neighbours is the numbered servers; a variant (02-inetd) hangs beside.
    numbered = sorted(CODE.glob("[0-9][0-9]*-*/server.c"))
    servers = [path for path in numbered if not path.parent.name.endswith("-inetd")]
    tops = (CODE, Path("benchmarks"), Path("labs"))
    files = sorted(path for top in tops for path in top.rglob("*.[ch]"))
    own = [path for path in files if path.is_relative_to(CODE)]
    faults = [*check_servers(servers), *check_files(files), *check_names(own)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print_table()
    return 1 if faults else 0


if __name__ == "__main__":
    run_main(main)
