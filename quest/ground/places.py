"""Where things are: programs in PATH and the packages that have them, the build folder, scratch
folders. It imports no other module of ours, so that all may import it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BUILD = Path("build")
TABLE = Path(__file__).resolve().parents[2] / "setup/packages.tsv"


class Answer(NamedTuple):
    """Whether something is to be had here; if not, why, and what helps."""

    ok: bool
    reason: str = ""
    remedy: str = ""


def answer(problem: str, remedy: str = "") -> Answer:
    """An answer from a problem: "" is none."""
    return Answer(False, problem, remedy) if problem else Answer(True)


def text_of(path: str | Path) -> str:
    """What is in a file, without blanks at its ends; "" if it is not there, or not for us to read.
    Bytes that are not UTF-8 are replaced.
    """
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def link_of(path: str | Path) -> str:
    """Where a link of /proc leads (cwd, exe, fd/3); "" if it is none, or its process has ended.
    os.path.realpath() and Path.resolve() look twice, and fail if the process ends in between.
    """
    try:
        return os.readlink(path)
    except OSError:
        return ""


def numbered(folder: Path) -> list[Path]:
    """The entries of a folder of /proc that are numbers: processes or threads. Path.glob() asks
    whether each file is there, and fails with ESRCH for a process that ends meanwhile.
    """
    try:
        return [folder / name for name in os.listdir(folder) if name.isdigit()]
    except OSError:
        return []


class Package(NamedTuple):
    """A line of packages.tsv, which describes its columns."""

    name: str
    classes: str
    provides: str
    generic: str
    needed_by: str


def packages(table: Path = TABLE) -> list[Package]:
    """The lines of the table."""
    lines = table.read_text(encoding="utf-8").splitlines()
    return [Package(*line.split("\t")) for line in lines if line and not line.startswith("#")]


def _programs() -> Iterator[tuple[str, Package]]:
    """Each program that a package has, and the package."""
    for package in packages():
        for item in package.provides.split("|"):
            if item.startswith(("command:", "daemon:")):
                yield item.partition(":")[2], package


# Debian's package of a program, where the two differ; what make deps does not install comes first.
PACKAGES = {
    "systemd-socket-activate": "systemd",
    "ab": "apache2-utils",
    "unshare": "util-linux",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
    "tc": "iproute2",
    "go": "golang-go",
    "node": "nodejs",
    "java": "openjdk-21-jdk-headless",
    **{program: package.name for program, package in _programs()},
    "cc": "gcc libc6-dev",
}
# Servers are asked for separately, because Debian starts some of them when it installs them.
PEERS = {program for program, package in _programs() if package.classes == "peers"}

EXTRA_FOLDERS = ("/usr/sbin", "/sbin", "/usr/local/sbin")  # a user's PATH often lacks them


def which(program: str) -> str | None:
    """The path of a program, also in folders that a user's PATH often lacks; None if there is none."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *EXTRA_FOLDERS])
    return shutil.which(program, path=path)


def program(name: str) -> Answer:
    """Whether a program is installed; if not, the command that installs it."""
    install = "make peers" if name in PEERS else f"apt-get install {PACKAGES.get(name, name)}"
    return answer("" if which(name) else f"{name} is not installed", install)


def build_folder(build: str) -> Path:
    """The folder of a build variant's programs: build/bin for glibc, build/NAME for the others."""
    return BUILD / ("bin" if build == "glibc" else build)


def scratch_parent() -> Path:
    """The folder of all scratch folders; made if it is not there."""
    parent = BUILD / "scratch"
    parent.mkdir(parents=True, exist_ok=True)
    return parent


@contextlib.contextmanager
def scratch() -> Iterator[str]:
    """A folder for one repetition, removed afterwards. Its name has our process id, for
    sweep_scratch().
    """
    prefix = f"{os.getpid()}-"
    with tempfile.TemporaryDirectory(dir=scratch_parent(), prefix=prefix) as folder:
        yield folder


def sweep_scratch() -> None:
    """Removes the scratch folders of processes that are no more: a harness that was killed."""
    for folder in scratch_parent().iterdir():
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            shutil.rmtree(folder, ignore_errors=True)
