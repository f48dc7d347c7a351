"""The programs that were built have what the compiler and the linker can do against mistakes that
nobody has found yet; those that measure what it costs do without it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from conformance.programs import TREE

#: Their subject is what lazy binding costs a child: benchmarks/micro/module.mk.
BOUND_LAZILY = {
    "cow-pages", "fork-latency", "fork-mappings", "fork-memory", "fork-reap", "lazy-binding",
    "malloc-dirty", "spawn",
}  # fmt: skip
EMPTY = {"nothing"}  #: has no array that could overflow, and calls nothing
NOW = re.compile(r"\((?:BIND_NOW|FLAGS\).*\bBIND_NOW|FLAGS_1\).*\bNOW)\b")
STACK = re.compile(r"GNU_STACK .* (R?W?E?) +0x")
CHECKED = re.compile(r"\b__\w+_chk(?:@|$)", re.MULTILINE)


def missing(name: str, text: str) -> list[str]:
    """What a program lacks of what it should have, or has though it should not."""
    stack = STACK.search(text)
    holds = {
        "its tables of addresses become read-only (GNU_RELRO)": "GNU_RELRO" in text,
        "its names are bound at the start": (NOW.search(text) is None) == (name in BOUND_LAZILY),
        "its stack is not executable": stack is not None and "E" not in stack[1],
        "its stack is protected": name in EMPTY or "__stack_chk_fail" in text,
        "its buffers are checked": name in EMPTY or CHECKED.search(text) is not None,
    }
    return [f"{name}: not true that {what}" for what, true in holds.items() if not true]


def test_all_programs_are_hardened(pytestconfig: pytest.Config) -> None:
    if not sys.platform.startswith("linux") or shutil.which("readelf") is None:
        pytest.skip("needs Linux and readelf (apt-get install binutils)")
    folder = TREE / str(pytestconfig.getoption("--build")) / "bin"
    programs = sorted(p for p in folder.glob("*") if p.read_bytes()[:4] == b"\x7fELF")
    names = {program.name for program in programs}
    assert {"02-fork", *BOUND_LAZILY} <= names, f"not built: {folder}"
    for program in programs:
        command = ["readelf", "--wide", "--segments", "--dynamic", "--dyn-syms", str(program)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert missing(program.name, said) == []
