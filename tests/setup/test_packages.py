"""packages.tsv: one form, and the same names as the harness uses."""

from __future__ import annotations

import re

from setup.made_up_machine import HARNESS, TREE


def test_the_table_is_in_order() -> None:
    classes = re.compile(
        r"(base|build|measure|book|slides|fetch|test|lint|browser|cross|peers)(,|$)"
    )
    kind = re.compile(r"(command|header|python|font|file|daemon|reveal|zig|perl):[^|]+")
    seen = set()
    for line in (TREE / HARNESS / "packages.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        package, found, provides, name, needed_by = line.split("\t")
        assert classes.sub("", found) == "", line
        assert all(kind.fullmatch(alternative) for alternative in provides.split("|")), line
        assert name, line
        assert needed_by, line
        assert package not in seen, line
        seen.add(package)


def test_harness_and_table_name_the_same_packages() -> None:
    """needs.py tells a user what to install; so does deps.sh."""
    from harness import needs

    table: dict[str, str] = {}
    for line in (TREE / HARNESS / "packages.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            package, _, provides, _, _ = line.split("\t")
            for alternative in provides.split("|"):
                table.setdefault(alternative.partition(":")[2], package)
    for program, packages in needs.PACKAGES.items():
        if program in table:
            assert table[program] in packages.split(), program
