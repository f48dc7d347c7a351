"""Join the label rows of all chapters into one database, refusing a label that stands twice.

    labels.py OUTPUT CHAPTER.labels...

The output is written only if it differs, so that a change of prose makes no other page again.
The fields of a row are explained in labels.lua.
"""

import os
import sys
from pathlib import Path


def doubled(rows: list[list[str]]) -> list[str]:
    """One line for each label that is not the first of its name."""
    first: dict[str, str] = {}
    problems = []
    for _kind, label, _number, slug, *_rest in rows:
        if label == "-":
            continue
        if label in first:
            problems.append(
                f"chapters/{slug}.md: label {label} is doubled, first in chapters/{first[label]}.md"
            )
        first.setdefault(label, slug)
    return problems


def main(arguments: list[str]) -> int:
    output, inputs = Path(arguments[0]), [Path(name) for name in arguments[1:]]
    rows = [
        line.split("\t")
        for path in inputs
        for line in path.read_text(encoding="utf-8").splitlines()
        if line
    ]
    problems = doubled(rows)
    if problems:
        print("\n".join(problems), file=sys.stderr)
        return 1
    text = "".join("\t".join(row) + "\n" for row in rows)
    if not output.exists() or output.read_text(encoding="utf-8") != text:
        part = output.with_suffix(f".{os.getpid()}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
