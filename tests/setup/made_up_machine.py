"""A made-up machine to run deps.sh on: a PATH of its own, with faked apt-get, sudo, python3, ...

The real tools in that PATH are those of Debian's base system, so a command that deps.sh uses beside
them is "not found" there.
"""

from __future__ import annotations

import hashlib
import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
HARNESS = Path("benchmarks/harness")
SCRIPTS = ("deps.sh", "deps-apt.sh", "deps-reveal.sh", "deps-zig.sh", "packages.tsv")
BASE_TOOLS = (
    "cat", "chmod", "cut", "dash", "dirname", "env", "find", "grep", "ls", "mkdir", "mv", "rm",
    "sed", "sh", "sha256sum", "sleep", "sort", "tail", "tee", "touch", "true", "xargs",
)  # fmt: skip
FAKES = {
    "id": 'cat "$FAKE/uid"',
    # Both words of its only use: which of these modules are there; and pip, and zipfile.
    "python3": """
        case "$1 $2" in
            '-m pip') [ -e "$FAKE/network" ] || { echo 'ERROR: no route' >&2; exit 1; }
                while [ "$1" != -d ]; do shift; done; touch "$2/r.whl" ;;
            '-m zipfile') mkdir -p "$5/sphinx_revealjs/_static" "$5/ziglang" &&
                touch "$5/ziglang/zig" &&
                "$FAKE/make-reveal" "$5/sphinx_revealjs/_static/revealjs" ;;
            *) shift 2; printf ' '
                for m in "$@"; do grep -qx "$m" "$FAKE/modules" && printf '%s ' "$m"; done; echo ;;
        esac
        """,
    "npm": """
        [ -e "$FAKE/network" ] || { echo 'npm ERR! no route' >&2; exit 1; }
        while [ "$1" != --prefix ]; do shift; done
        mkdir -p "$2/node_modules" && "$FAKE/make-reveal" "$2/node_modules/reveal.js"
        """,
    "cc": """grep -qxF "$(sed 's/.*<//; s/>.*//')" "$FAKE/headers" 2>/dev/null""",
    "perl": 'grep -qx "${1#-M}" "$FAKE/modules"',
    "apt-cache": """
        shift
        for p in "$@"; do
            printf '%s:\\n  Installed: (none)\\n' "$p"
            grep -qx "$p" "$FAKE/unknown" && echo '  Candidate: (none)' || echo '  Candidate: 1.0'
        done
        """,
    "dpkg": 'echo "dpkg $*" >>"$FAKE/calls"; rm -f "$FAKE/interrupted"',
    "update-rc.d": 'echo "update-rc.d $*" >>"$FAKE/calls"',
    "apt-get": """
        echo "apt-get $* [$DEBIAN_FRONTEND]" >>"$FAKE/calls"
        case " $* " in
            *' update '*) mkdir -p "$DEPS_ROOT/var/lib/apt/lists"
                touch "$DEPS_ROOT/var/lib/apt/lists/x_Packages"; : >"$FAKE/unknown"; exit 0 ;;
            *' -s '*) simulate=yes ;;
        esac
        test -e "$FAKE/policy" && cat "$DEPS_ROOT/usr/sbin/policy-rc.d" >>"$FAKE/calls"
        test -e "$FAKE/slow" && { touch "$FAKE/begun"; sleep 60; }
        test -e "$FAKE/interrupted" && { echo 'E: dpkg was interrupted' >&2; exit 100; }
        test -e "$FAKE/stale" && [ -z "${simulate-}" ] && {
            rm "$FAKE/stale"; echo 'E: Failed to fetch x  404  Not Found' >&2; exit 100; }
        while [ "$1" != install ]; do shift; done; shift
        for p in "$@"; do
            case $p in -*) continue ;; esac
            if grep -qx "$p" "$FAKE/broken"; then
                echo "E: $p has unmet dependencies" >&2; exit 100
            fi
        done
        for p in "$@"; do
            case $p in -*) continue ;; esac
            if [ -n "${simulate-}" ]; then echo "Inst $p (1.0)"; continue; fi
            echo "Get:1 x $p"; echo "Unpacking $p (1.0) ..."; echo "Setting up $p (1.0) ..."
            "$FAKE/provide" "$p"
        done
        """,
}
SUDO = {
    "free": 'echo "sudo $*" >>"$FAKE/calls"; [ "$1" = -n ] && shift; exec "$@"',
    "password": """
        echo "sudo $*" >>"$FAKE/calls"
        [ "$1" = -n ] && { echo 'sudo: a password is required' >&2; exit 1; }
        [ "$1" = -v ] && exit 0
        exec "$@"
        """,
    "refusing": 'echo "sudo: student is not in the sudoers file." >&2; exit 1',
}


@dataclass
class Result:
    status: int
    said: str


class Machine:
    """A made-up machine: nothing is installed on it until `have`."""

    def __init__(self, folder: Path) -> None:
        self.fake = folder / "fake"
        self.root = folder / "root"
        self.bin = folder / "bin"
        self.tree = folder / "tree"
        for path in (self.fake, self.bin, self.tree / HARNESS, self.root / "var/lib/apt/lists"):
            path.mkdir(parents=True)
        (self.root / "usr/sbin").mkdir(parents=True)
        for name in SCRIPTS:
            shutil.copy(TREE / HARNESS / name, self.tree / HARNESS)
        for name in BASE_TOOLS:
            found = shutil.which(name, path="/usr/bin:/bin")
            assert found, name
            (self.bin / name).symlink_to(found)
        for name in ("modules", "unknown", "broken", "calls"):
            (self.fake / name).touch()
        (self.root / "var/lib/apt/lists/x_Packages").touch()
        self.script(self.fake / "provide", self._provide())
        self.script(self.fake / "make-reveal", MAKE_REVEAL)
        for name in ("id", "apt-get", "apt-cache", "dpkg", "update-rc.d"):
            self.script(self.bin / name, FAKES[name])
        self.user("root")

    @staticmethod
    def script(path: Path, text: str) -> None:
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)

    def rows(self) -> Iterator[list[str]]:
        table = self.tree / HARNESS / "packages.tsv"
        for line in table.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                yield line.split("\t")

    def _provide(self) -> str:
        """A script that makes what a package provides appear."""
        cases = []
        for package, _, provides, _, _ in self.rows():
            kind, _, item = provides.split("|")[0].partition(":")
            action = {
                "command": f'cp "$FAKE/{item}" "{self.bin}/" 2>/dev/null || '
                f'ln -sf /bin/true "{self.bin}/{item}"',
                "daemon": f'ln -sf /bin/true "$DEPS_ROOT/usr/sbin/{item}"',
                "python": '[ -e "$DEPS_ROOT/usr/bin/python3" ] || '
                f'cp "$FAKE/python3" "{self.bin}/"; echo {item} >>"$FAKE/modules"',
                "perl": f'cp "$FAKE/perl" "{self.bin}/"; echo {item} >>"$FAKE/modules"',
                "header": f'echo {item} >>"$FAKE/headers"',
                "file": f'mkdir -p "$DEPS_ROOT{Path(item).parent}" && touch "$DEPS_ROOT{item}"',
                "font": 'mkdir -p "$DEPS_ROOT/usr/share/fonts/truetype/dejavu" && '
                f'touch "$DEPS_ROOT/usr/share/fonts/truetype/dejavu/{item}"',
                "reveal": ":",
                "zig": ":",
            }[kind]
            cases.append(f"{package}) {action} ;;")
        (self.bin / "cp").symlink_to("/bin/cp")
        (self.bin / "ln").symlink_to("/bin/ln")
        for name in ("python3", "cc", "npm", "perl"):
            self.script(self.fake / name, FAKES[name])
        return "case $1 in\n" + "\n".join(cases) + "\nesac"

    def user(self, name: str, sudo: str = "") -> None:
        (self.fake / "uid").write_text("0\n" if name == "root" else "1000\n", encoding="ascii")
        if sudo:
            self.script(self.bin / "sudo", SUDO[sudo])

    def no_apt(self) -> None:
        for name in ("apt-get", "apt-cache"):
            (self.bin / name).unlink()

    def have(self, *packages: str) -> None:
        for package in packages:
            command = ["sh", str(self.fake / "provide"), package]
            subprocess.run(command, env=self.environment(), check=True)

    def have_all_but(self, *packages: str) -> None:
        """All of it is here, reveal.js too, but for these."""
        if "reveal.js@5.2.1" not in packages:
            self.put_reveal()
        self.have(*(row[0] for row in self.rows() if row[0] not in packages))

    def put_reveal(self) -> None:
        place = self.tree / "build/node/node_modules/reveal.js"
        subprocess.run(["sh", str(self.fake / "make-reveal"), str(place)], check=True)
        (self.tree / "build/node/reveal-5.2.1").touch()

    def expect_what_is_made_up(self) -> None:
        """There is a network; the checksums of what the fakes bring take the place of the real."""
        (self.fake / "network").touch()
        subprocess.run(["sh", str(self.fake / "make-reveal"), str(self.fake / "r")], check=True)
        done = subprocess.run(
            "find dist plugin css LICENSE -type f | LC_ALL=C sort | xargs sha256sum | sha256sum",
            shell=True, cwd=self.fake / "r", capture_output=True, text=True, check=True,
        )  # fmt: skip
        empty = hashlib.sha256().hexdigest()  # the wheel that the fake pip brings
        self._edit("deps-reveal.sh", r"(?m)^reveal_sum=.*$", f"reveal_sum={done.stdout.split()[0]}")
        self._edit("deps-zig.sh", "zig_sums='", f"zig_sums='\n{empty}")

    def _edit(self, name: str, pattern: str, new: str) -> None:
        script = self.tree / HARNESS / name
        text, count = re.subn(pattern, new, script.read_text(encoding="utf-8"))
        assert count == 1, name
        script.write_text(text, encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        return {
            "PATH": str(self.bin), "FAKE": str(self.fake), "DEPS_ROOT": str(self.root),
            "HOME": str(self.fake), **more,
        }  # fmt: skip

    def command(self, *words: str) -> list[str]:
        return [str(self.bin / "dash"), str(self.tree / HARNESS / "deps.sh"), *words]

    def run(self, *words: str, typed: str | None = None, **settings: str) -> Result:
        """Without a terminal, or on one on which `typed` is typed."""
        ours, theirs = pty.openpty() if typed is not None else os.pipe()
        if typed is not None:
            os.write(ours, typed.encode())
        child = subprocess.Popen(
            self.command(*words), env=self.environment(**settings), start_new_session=True,
            stdin=subprocess.DEVNULL if typed is None else theirs, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        os.close(ours)
        return Result(child.wait(timeout=60), said.decode().replace("\r\n", "\n"))

    def calls(self) -> list[str]:
        return (self.fake / "calls").read_text(encoding="utf-8").splitlines()

    def installed(self) -> list[str]:
        """The packages of each call that installed."""
        return [
            " ".join(word for word in call.split(" install ")[1].split() if word[0] not in "-[")
            for call in self.calls()
            if call.startswith("apt-get") and " install " in call and " -s " not in call
        ]


MAKE_REVEAL = """
mkdir -p "$1/dist" "$1/plugin" "$1/css"
for f in dist/reveal.js plugin/a css/b LICENSE; do echo "made up: $f" >"$1/$f"; done
"""


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # EIO: nobody has the other end open any more
        return b""
