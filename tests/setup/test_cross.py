"""`make cross`: it is offered, it says why it did nothing, and what it made are programs for the
systems whose names they bear. Nothing here can run them.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
ZIG = TREE / "build/zig/0.17.1/zig"

ELF_X86_64 = b"\x7fELF\x02\x01"  # 64 bits, little-endian
MACHINE_X86_64 = 62
SEGMENT_NOTE = 4
MACH_O_ARM64 = struct.pack("<II", 0xFEEDFACF, 0x0100000C)
MACH_O_EXECUTABLE = 2


def make(*words: str) -> str:
    done = subprocess.run(
        ["make", "--no-print-directory", "BUILD=build", *words, "DEPS=skip"], cwd=TREE, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def names_of_notes(program: bytes) -> Iterator[bytes]:
    """Who wrote the notes of an ELF file, elf(5): by them a kernel knows its own programs."""
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    for entry in range(table, table + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", program, entry)
        end = offset + length
        while kind == SEGMENT_NOTE and offset < end:
            name, text, _ = struct.unpack_from("<III", program, offset)
            yield program[offset + 12 : offset + 12 + name].rstrip(b"\0")
            offset += 12 + (name + 3) // 4 * 4 + (text + 3) // 4 * 4


def is_elf_of(system: bytes, program: bytes) -> bool:
    (machine,) = struct.unpack_from("<H", program, 18)
    is_elf = program.startswith(ELF_X86_64) and machine == MACHINE_X86_64
    return is_elf and system in set(names_of_notes(program))


def is_mach_o(program: bytes) -> bool:
    (kind,) = struct.unpack_from("<I", program, 12)
    return program.startswith(MACH_O_ARM64) and kind == MACH_O_EXECUTABLE


KINDS = {
    "x86_64-freebsd": lambda program: is_elf_of(b"FreeBSD", program),
    "x86_64-netbsd": lambda program: is_elf_of(b"NetBSD", program),
    "x86_64-openbsd": lambda program: is_elf_of(b"OpenBSD", program),
    "aarch64-macos": is_mach_o,
}


def test_it_is_offered() -> None:
    assert re.search(r"^  cross +\S", make("help"), re.MULTILINE)


def test_without_zig_it_says_so(tmp_path: Path) -> None:
    assert "SKIP cross: Zig 0.17.1 is not here" in make("cross", f"BUILD={tmp_path}")


@pytest.mark.parametrize("triple", KINDS)
def test_programs_are_of_their_system(triple: str) -> None:
    if not ZIG.exists():
        pytest.skip("Zig is not here (make cross DEPS=yes fetches it)")
    said = re.search(rf"^{triple}: (\d+) programs in (\S+): (.*)$", make(f"cross-{triple}"), re.M)
    assert said is not None
    count, folder, names = said[1], TREE / said[2], said[3].split()
    assert int(count) == len(names)
    assert {"00-client", "constant", "05b-nonblocking", "fork-latency"} <= set(names)
    for name in names:
        assert KINDS[triple]((folder / name).read_bytes()), name
