"""A made-up machine to run deps.sh on. Its PATH has the tools of Debian's base system, so that what
deps.sh uses beside them is "not found"; all else there is made_up_commands.sh.
"""

import hashlib
import os
import pty
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
HARNESS = Path("setup")
TABLE = [
    line.split("\t")
    for line in (TREE / HARNESS / "packages.tsv").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
BASE_TOOLS = (
    "cat chmod cp cut dash dirname env find grep ln ls mkdir mv rm sed sh sha256sum sleep sort "
    "tail tee touch true xargs"
)
MADE_UP = "provide make-reveal id apt-get apt-cache dpkg update-rc.d"
REVEAL = Path("build/node/node_modules/reveal.js")
#: of what make_reveal makes, and pip's wheel of Zig is empty:
#:     find dist plugin css LICENSE -type f | LC_ALL=C sort | xargs sha256sum | sha256sum
REVEAL_SUM = "72869e3612179d23659145252cedddd9f05211bae3118fb7910cc5f4cad8dcf4"


@dataclass
class Result:
    status: int
    said: str


class Machine:
    """Nothing is installed on it until `have`; root uses it until `user`."""

    def __init__(self, folder: Path) -> None:
        self.fake, self.root, self.bin, self.tree = (
            folder / name for name in ("fake", "root", "bin", "tree")
        )
        lists = self.root / "var/lib/apt/lists"
        for path in (self.fake, self.bin, self.tree / HARNESS, self.root / "usr/sbin", lists):
            path.mkdir(parents=True)
        (lists / "x_Packages").touch()
        for source in (TREE / HARNESS).glob("deps*.sh"):
            shutil.copy(source, self.tree / HARNESS)
        shutil.copy(TREE / HARNESS / "packages.tsv", self.tree / HARNESS)
        for name in BASE_TOOLS.split():
            found = shutil.which(name, path="/usr/bin:/bin")
            assert found, name
            (self.bin / name).symlink_to(found)
        self.has(*MADE_UP.split())
        for name in ("modules", "headers", "unknown", "broken", "calls"):
            self.put(name)
        self.put("uid", "0")

    def has(self, *commands: str) -> None:
        for name in commands:
            (self.bin / name).symlink_to(Path(__file__).with_name("made_up_commands.sh"))

    def put(self, name: str, text: str = "") -> None:
        """A file that the made-up commands go by."""
        (self.fake / name).write_text(f"{text}\n" if text else "", encoding="ascii")

    def user(self, sudo: str) -> None:
        """Without rights: sudo is "free", asks for a "password", is "refusing", or not there."""
        self.put("uid", "1000")
        self.put("sudo", sudo)
        if sudo:
            self.has("sudo")

    def script(self, path: Path, text: str) -> None:
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)

    def have_all_but(self, *packages: str) -> None:
        """All of it is here, reveal.js too, but for these."""
        if "reveal.js@5.2.1" not in packages:
            self._calls("make-reveal", str(REVEAL))
            (self.tree / "build/node/reveal-5.2.1").touch()
        self.have(*(row[0] for row in TABLE if row[0] not in packages))

    def have(self, *packages: str) -> None:
        self._calls("provide", *packages)

    def _calls(self, name: str, *words: str) -> None:
        command = [str(self.bin / name), *words]
        subprocess.run(command, cwd=self.tree, env=self.environment(), check=True)

    def expect_what_is_made_up(self) -> None:
        """There is a network, and what comes from it has the checksums that deps.sh wants."""
        self.put("network")
        for name, line, wanted in (
            ("deps-reveal.sh", "(?m)^reveal_sum=.*$", f"reveal_sum={REVEAL_SUM}"),
            ("deps-zig.sh", "zig_sums='", f"zig_sums='\n{hashlib.sha256().hexdigest()}"),
        ):
            script = self.tree / HARNESS / name
            text, count = re.subn(line, wanted, script.read_text(encoding="utf-8"))
            assert count == 1, name
            script.write_text(text, encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        words = {"PATH": self.bin, "FAKE": self.fake, "DEPS_ROOT": self.root, "HOME": self.fake}
        return {name: str(path) for name, path in words.items()} | more

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
        calls = (re.match(r"apt-get (?!.* -s ).* --no-install-recommends (.*) \[", call)
                 for call in self.calls())  # fmt: skip
        return [call[1] for call in calls if call]


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # EIO: nobody has the other end open any more
        return b""
