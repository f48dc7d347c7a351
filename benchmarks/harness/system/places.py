"""Where things are: programs in PATH, the build folder, scratch folders. It imports no other module
of ours, so that all may import it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BUILD = Path("build")


class Answer(NamedTuple):
    ok: bool
    reason: str = ""
    remedy: str = ""


def answer(problem: str, remedy: str = "") -> Answer:
    """Why something is not to be had here, and what helps; "" if it is."""
    return Answer(False, problem, remedy) if problem else Answer(True)


def text_of(path: str | Path) -> str:
    """"" where there is no such file, or none for us."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


# Debian's package of a program, where the two differ.
PACKAGES = {
    "diet": "dietlibc-dev",
    "musl-gcc": "musl-tools",
    "h2load": "nghttp2-client",
    "cc": "gcc libc6-dev",
    "tcpserver": "ucspi-tcp",
    "tcpsvd": "ipsvd",
    "systemd-socket-activate": "systemd",
    "apache2": "apache2",
    "ab": "apache2-utils",
    "fusermount3": "fuse3",
    "unshare": "util-linux",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "sshd": "openssh-server",
    "ip": "iproute2",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mkfs.btrfs": "btrfs-progs",
}

# Servers are asked for separately, because Debian starts some of them when it installs them.
PEERS = {
    "nginx", "lighttpd", "apache2", "h2o", "perlbal", "tcpserver", "tcpsvd", "xinetd", "inetd",
    "sshd",
}  # fmt: skip

EXTRA_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")  # a user's PATH often lacks them


def which(program: str) -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *EXTRA_FOLDERS])
    return shutil.which(program, path=path)


def program(name: str) -> Answer:
    install = "make peers" if name in PEERS else f"apt-get install {PACKAGES.get(name, name)}"
    return answer("" if which(name) else f"{name} is not installed", install)


def build_folder(build: str) -> Path:
    """build/bin holds the glibc variant, build/<name> each other."""
    return BUILD / ("bin" if build == "glibc" else build)


def scratch_parent() -> Path:
    parent = BUILD / "scratch"
    parent.mkdir(parents=True, exist_ok=True)
    return parent


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder for one repetition. It carries our process id, for `sweep_scratch`."""
    prefix = f"{os.getpid()}-"
    with tempfile.TemporaryDirectory(dir=scratch_parent(), prefix=prefix) as folder:
        yield folder


def sweep_scratch() -> None:
    """Removes what a killed harness has left."""
    for folder in scratch_parent().iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(folder, ignore_errors=True)
