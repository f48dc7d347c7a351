"""Writes one self-contained C file from the sources of one server.

    python3 -m quest.book.amalgamate 02-fork code/02-fork/server.c code/common/net.c ... > 02-fork.c

Every `#include "file.h"` is replaced by that file, once; markers (region) are dropped.
Files may use the same name for something of their own (`static`); such a name gets that of its file
in front. The result compiles with `cc -std=c11 -D_GNU_SOURCE 02-fork.c` (where a long
has 32 bits with -D_FILE_OFFSET_BITS=64, too). It is a view: changes belong into the sources.
"""

import os
import re
import sys
from collections import Counter
from pathlib import Path

from quest.ground.entry import run_main
from quest.ground.errors import InputError

FOLDERS = (Path("code/common"), Path("code/http"), Path("code"))
QUOTED = re.compile(r'\s*#include "([^"]+)"')
SYSTEM = re.compile(r"\s*#include <([^>]+)>")
MARKER = re.compile(r"\s*/\* (end)?region: .*\*/\s*$")
# A name of a file's own: static char buffer[65536]; static int show(...; } in; of a static struct.
STATIC = re.compile(r"^static\b[^;={(]*?\b(\w+)(?:\[[^]]*\])*(?: =|[;(])|^\} (\w+);", re.M)
STRING = r'"(?:[^"\\]|\\.)*"'


def own_names(path: Path) -> set[str]:
    """The names that a source keeps to itself (static)."""
    text = path.read_text(encoding="utf-8")
    return {first or second for first, second in STATIC.findall(text)}


def renamed(line: str, names: set[str], path: Path) -> str:
    """The line with the file's name before each of `names`: not members, not types."""
    if not names:
        return line
    words = "|".join(sorted(names))
    prefix = re.sub(r"\W", "_", path.stem)
    return re.sub(
        rf"{STRING}|(?<![.\w])(?<!->)(?<!struct )\b({words})\b",
        lambda match: f"{prefix}_{match.group(1)}" if match.group(1) else match.group(),
        line,
    )


def find(name: str, by: Path) -> Path:
    """The header `name` as the compiler would find it for the file `by`. InputError: it is not
    there.
    """
    for folder in (by.parent, *FOLDERS):
        if (folder / name).is_file():
            return folder / name
    raise InputError(f'amalgamate: {by}: no file for #include "{name}"')


def inlined(path: Path, seen: set[Path], system: set[str], shared: set[str]) -> list[str]:
    """The lines of `path` with its own headers in place of their #include lines, each only once."""
    if path.resolve() in seen:
        return []
    seen.add(path.resolve())
    lines = [f"/* ==== {path} ==== */"]
    names = own_names(path) & shared
    for line in path.read_text(encoding="utf-8").splitlines():
        if quoted := QUOTED.match(line):
            lines += inlined(find(quoted.group(1), path), seen, system, shared)
            system.add(quoted.group(1))  # "sys/event.h" of ours is the system's <sys/event.h>
        elif header := SYSTEM.match(line):
            if header.group(1) not in system:
                system.add(header.group(1))
                lines.append(line)
        elif not MARKER.match(line):
            lines.append(renamed(line, names, path))
    return lines


def amalgamated(name: str, sources: list[str]) -> str:
    """One file of C. `sources` begins with the server's own file."""
    seen: set[Path] = set()
    system: set[str] = set()
    counts = Counter(word for source in set(sources) for word in own_names(Path(source)))
    shared = {word for word, count in counts.items() if count > 1}
    text = [f"/* {name}, generated from {', '.join(sources)}. Change those, not this. */"]
    for source in sources[1:] + sources[:1]:  # the server's own file last, as main() is
        text += inlined(Path(source), seen, system, shared)
    return "\n".join(text)


def main(arguments: list[str]) -> int:
    """NAME FILE.c..., the server's own file first; prints it."""
    if len(arguments) < 2:
        raise InputError("amalgamate: NAME FILE.c ...")
    name, *sources = arguments
    text = amalgamated(name, sources)
    try:
        print(text, flush=True)
    except OSError as error:
        print(f"amalgamate: {name}: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # of what is still to be written
        return 1
    return 0


if __name__ == "__main__":
    run_main(main)
