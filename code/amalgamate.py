"""Writes one self-contained C file from the sources of one server.

    python3 code/amalgamate.py 02-fork code/02-fork/server.c code/common/net.c ... > 02-fork.c

Every `#include "file.h"` is replaced by that file, once; markers (region, solution) are dropped.
The result compiles with `cc -std=c11 -D_GNU_SOURCE 02-fork.c`. It is a view: changes belong into
the sources.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FOLDERS = (Path("code/common"), Path("code/http"), Path("code"))
QUOTED = re.compile(r'\s*#include "([^"]+)"')
SYSTEM = re.compile(r"\s*#include <([^>]+)>")
MARKER = re.compile(r"\s*/\* (end)?(region|solution): .*\*/\s*$")


def find(name: str, by: Path) -> Path:
    """The header `name` as the compiler would find it for the file `by`."""
    for folder in (by.parent, *FOLDERS):
        if (folder / name).is_file():
            return folder / name
    raise SystemExit(f"amalgamate: {by}: no file for #include \"{name}\"")


def inlined(path: Path, seen: set[Path], system: set[str]) -> list[str]:
    """The lines of `path` with its own headers in place of their #include lines, each only once."""
    if path.resolve() in seen:
        return []
    seen.add(path.resolve())
    lines = [f"/* ==== {path} ==== */"]
    for line in path.read_text(encoding="utf-8").splitlines():
        if quoted := QUOTED.match(line):
            lines += inlined(find(quoted.group(1), path), seen, system)
            system.add(quoted.group(1))  # "sys/event.h" of ours is the system's <sys/event.h>
        elif header := SYSTEM.match(line):
            if header.group(1) not in system:
                system.add(header.group(1))
                lines.append(line)
        elif not MARKER.match(line):
            lines.append(line)
    return lines


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("usage: amalgamate.py NAME FILE.c ...", file=sys.stderr)
        return 2
    name, *sources = arguments
    seen: set[Path] = set()
    system: set[str] = set()
    print(f"/* {name}, generated from {', '.join(sources)}. Change those, not this. */")
    for source in sources[1:] + sources[:1]:  # the server's own file last, as main() is
        print("\n".join(inlined(Path(source), seen, system)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
