"""`make cross`: it is offered, it says why it did nothing, and what it made are programs for the
systems whose names they bear. Nothing here can run them.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
ZIG = TREE / "build/zig/0.17.1/zig"
ELF_X86_64 = rb"\x7fELF\x02\x01.{12}\x3e\x00"  # 64 bits, little-endian, elf(5)
MACH_O_ARM64 = rb"\xcf\xfa\xed\xfe\x0c\x00\x00\x01.{4}\x02\x00\x00\x00"  # an executable
#: how a program begins, and who wrote its notes: by them a kernel knows its own
KINDS = {
    "x86_64-freebsd": (ELF_X86_64, b"\0FreeBSD\0"),
    "x86_64-netbsd": (ELF_X86_64, b"\0NetBSD\0"),
    "x86_64-openbsd": (ELF_X86_64, b"\0OpenBSD\0"),
    "aarch64-macos": (MACH_O_ARM64, b""),
}


def make(*words: str) -> str:
    command = ["make", "--no-print-directory", "BUILD=build", *words, "DEPS=skip"]
    done = subprocess.run(
        command, cwd=TREE, text=True, capture_output=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_offered_and_without_zig_it_says_so(tmp_path: Path) -> None:
    assert re.search(r"^  cross +\S", make("help"), re.MULTILINE)
    assert "SKIP cross: Zig 0.17.1 is not here" in make("cross", f"BUILD={tmp_path}")


@pytest.mark.parametrize("triple", KINDS)
def test_programs_are_of_their_system(triple: str) -> None:
    if not ZIG.exists():
        pytest.skip("Zig is not here (make cross DEPS=yes fetches it)")
    said = re.search(rf"^{triple}: (\d+) programs in (\S+): (.*)$", make(f"cross-{triple}"), re.M)
    assert said is not None
    names = said[3].split()
    assert int(said[1]) == len(names)
    assert {"00-client", "constant", "05b-nonblocking", "fork-latency"} <= set(names)
    begin, owner = KINDS[triple]
    for name in names:
        program = (TREE / said[2] / name).read_bytes()
        assert re.match(begin, program, re.DOTALL) and owner in program, name
