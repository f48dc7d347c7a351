"""What `make` makes: programs hardened against mistakes that nobody has found yet; whole, though
another make works in the same build/; and by `make cross` for other systems.
"""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.process import wait_until
from tests.place import without_outer_make

TREE = Path(__file__).resolve().parents[2]


def make(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["make", "--no-print-directory", *words], cwd=TREE, env=without_outer_make(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def made(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=500)
    assert process.returncode == 0, said
    return said


# ---- the tests of one server


@pytest.mark.slow
@pytest.mark.parametrize("word", ["9", "epoll"])
def test_the_tests_of_a_server_by_its_name(word: str) -> None:
    """`make test CH=`: its own tests and those of what all share, and no other server's."""
    told = made(make("-n", "test", f"CH={word}", "DEPS=skip"))
    (command,) = [line for line in told.splitlines() if "-m pytest" in line]
    assert "--about=09-epoll" in command
    words = [sys.executable, *shlex.split(command)[1:]]
    done = subprocess.run([*words, "--collect-only"], cwd=TREE, capture_output=True, text=True, check=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line]
    foreign = [t for t in tests if "09-epoll" not in t and "test_unit.py" not in t]
    assert len(tests) > 100 and not foreign
    assert not any("another_chapters_program" in test for test in tests), "slow: less than a minute in all"
    for part in ("test_requests", "test_stopping", "test_mechanism", "amalgamate", "labs_lab"):
        assert any(part in test for test in tests), part


# ---- hardened

#: Their subject is what lazy binding costs a child: benchmarks/micro/module.mk.
BOUND_LAZILY = {
    "as-lmbench", "cow-pages", "fork-latency", "fork-mappings", "fork-memory", "fork-reap",
    "lazy-binding", "malloc-dirty", "spawn",
}  # fmt: skip
EMPTY = {"nothing"}  #: has no array that could overflow, and calls nothing
NOW = re.compile(r"\((?:BIND_NOW|FLAGS\).*\bBIND_NOW|FLAGS_1\).*\bNOW)\b")


def test_all_programs_are_hardened(pytestconfig: pytest.Config) -> None:
    if not sys.platform.startswith("linux") or shutil.which("readelf") is None:
        pytest.skip("needs Linux and readelf (apt-get install binutils)")
    folder = TREE / str(pytestconfig.getoption("--build")) / "bin"
    programs = {p.name: p for p in folder.glob("*") if p.read_bytes()[:4] == b"\x7fELF"}
    assert {"02-fork", *BOUND_LAZILY} <= programs.keys(), f"not built: {folder}"
    for name, program in programs.items():
        command = ["readelf", "--wide", "--segments", "--dynamic", "--dyn-syms", str(program)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "GNU_RELRO" in said, f"{name}: its tables of addresses stay writable"
        assert bool(NOW.search(said)) != (name in BOUND_LAZILY), f"{name}: when names are bound"
        assert re.search(r"GNU_STACK .* RW +0x", said), f"{name}: its stack is executable"
        if name not in EMPTY:
            assert "__stack_chk_fail" in said, f"{name}: its stack is not protected"
            assert re.search(r"\b__\w+_chk\b", said), f"{name}: its buffers are not checked"


# ---- two at once

# Once it has made what is asked for, it empties that until it may go on.
SLOW_CC = """\
#!/bin/sh
cc "$@" || exit
for word; do [ "$before" != -o ] || out=$word; before=$word; done
case "$*" in
*"{when}"*)
    mv "$out" {folder}/whole && : > "$out" && touch {folder}/half
    tries=600; while [ ! -e {folder}/go-on ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.1; done
    cat {folder}/whole > "$out" && chmod +x "$out" ;;
esac
"""


@pytest.mark.parametrize("when", [" -c ", "/bin/nothing"], ids=["object", "program"])
def test_what_another_make_has_half_written_is_not_used(tmp_path: Path, when: str) -> None:
    slow, program = tmp_path / "cc", tmp_path / "build/bin/nothing"
    slow.write_text(SLOW_CC.format(when=when, folder=tmp_path), encoding="ascii")
    slow.chmod(0o755)
    words = f"BUILD={tmp_path}/build", str(program)
    first = make(f"CC={slow}", *words)
    try:
        assert wait_until((tmp_path / "half").exists, 60)
        made(make(*words))
        subprocess.run([program], check=True)
    finally:
        (tmp_path / "go-on").touch()
        made(first)
    subprocess.run([program], check=True)
    assert not [*(tmp_path / "build").rglob("*.part")]
    made(make("-q", *words))  # nothing is left to be made


# ---- names with blanks and quotes


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("vm\0IMAGE=a b\0KEY=it's", "IMAGE='a b' KEY='it'\\''s'"),
        ("cflags\0CFLAGS=-DX='a b'", "'-DX='\\''a b'\\''"),
        ("build/runtimes/go\0-W\0benchmarks/peers/runtimes/go/go.mod", "go build -o '{clone}/build/runtimes/go' ."),
    ],
)
def test_what_is_given_to_the_shell_stays_one_word(tmp_path: Path, words: str, says: str) -> None:
    """In a clone whose path has a blank, too."""
    clone = tmp_path / "my clone"
    clone.mkdir()
    for path in TREE.iterdir():
        if path.name not in ("build", "work", ".git"):
            (clone / path.name).symlink_to(path)
    assert says.format(clone=clone) in made(make("-C", str(clone), "-n", *words.split("\0")))


def test_a_server_of_ones_own_in_a_folder_with_a_blank(tmp_path: Path) -> None:
    """make trace compiled ours in its place, and saw no difference."""
    mine = tmp_path / "my work/05-pool/queue.c"
    mine.parent.mkdir(parents=True)
    mine.touch()
    inside = {"MAKELEVEL": "1", "INSIDE": str(TREE)}  # a goal of the test's own
    shown = "shown: ; @printf '%s\\n' $(traced_src)"
    words = ["-s", "--eval", shown, "shown", "LAB=05-pool", f"WORK={tmp_path}/my work"]
    done = subprocess.run(
        ["make", *words], cwd=TREE, env=without_outer_make() | inside, capture_output=True, text=True, check=True
    )
    found = done.stdout.splitlines()
    assert str(mine) in found and "code/05-pool/server.c" in found and "code/05-pool/queue.c" not in found


def test_below_the_root_of_a_tree_with_a_blank_in_its_path(tmp_path: Path) -> None:
    folder = tmp_path / "my clone" / "code" / "09-epoll"
    folder.mkdir(parents=True)
    shutil.copy(TREE / "code/Makefile", folder.parent)
    (folder / "Makefile").symlink_to("../Makefile")
    for below in (folder, folder.parent):
        process = make("-C", str(below), "next")
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 2
        assert f'run from the root of the tree: cd "{tmp_path}/my clone" && make next\n' in said


# ---- for other systems, where nothing here can run them

ELF_X86_64 = rb"\x7fELF\x02\x01.{12}\x3e\x00"  # 64 bits, little-endian, elf(5)
MACH_O_ARM64 = rb"\xcf\xfa\xed\xfe\x0c\x00\x00\x01.{4}\x02\x00\x00\x00"  # an executable


def test_without_zig_cross_says_so(tmp_path: Path) -> None:
    said = made(make("cross", f"BUILD={tmp_path}", "DEPS=skip"))
    assert "SKIP cross: Zig 0.17.1 is not here" in said


@pytest.mark.skipif(
    not (TREE / "build/zig/0.17.1/zig").exists(),
    reason="Zig is not here (make cross DEPS=yes fetches it)",
)
@pytest.mark.parametrize(
    ("triple", "begin", "owner"),
    [  # how a program begins, and who wrote its notes: by them a kernel knows its own
        ("x86_64-freebsd", ELF_X86_64, b"\0FreeBSD\0"),
        ("x86_64-netbsd", ELF_X86_64, b"\0NetBSD\0"),
        ("x86_64-openbsd", ELF_X86_64, b"\0OpenBSD\0"),
        ("aarch64-macos", MACH_O_ARM64, b""),
    ],
)
def test_programs_are_of_their_system(triple: str, begin: bytes, owner: bytes) -> None:
    said = made(make(f"cross-{triple}", "BUILD=build", "DEPS=skip"))
    found = re.search(rf"^{triple}: (\d+) programs in (\S+): (.*)$", said, re.MULTILINE)
    assert found is not None
    names = found[3].split()
    assert int(found[1]) == len(names)
    assert {"00-client", "constant", "05b-nonblocking", "fork-latency"} <= set(names)
    for name in names:
        program = (TREE / found[2] / name).read_bytes()
        assert re.match(begin, program, re.DOTALL) and owner in program, name
