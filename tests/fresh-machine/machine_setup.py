"""What a fresh machine takes over from this one: the mirror and the way to the network.

No mirror is named here: it is the one apt uses on this machine.
"""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
NETWORK_FILES = ("etc/resolv.conf", "etc/hosts")
# Authorities of this machine's own: update-ca-certificates takes them from here.
AUTHORITIES = Path("/usr/local/share/ca-certificates")
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")  # all of them, for a mirror over https
TARGETS = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]


class SetupError(Exception):
    """This machine lacks something that the proof needs. One line, with the remedy."""


@dataclass(frozen=True)
class Source:
    """A repository of this machine: where, and which part of a release it holds."""

    uri: str
    part: str  # "", "-updates" or "-security"


def parse_sources(listing: str, codename: str) -> list[Source]:
    """`apt-get indextargets` -> Debian's repositories: those whose release is CODENAME[-part]."""
    sources = []
    for line in listing.splitlines():
        uri, release, component = [*line.split(), "", "", ""][:3]
        part = release.removeprefix(codename)
        if component != "main" or not release.startswith(codename):
            continue
        source = Source(uri.rstrip("/"), part)
        if part in ("", "-updates", "-security") and source not in sources:
            sources.append(source)
    return sources


def sources_list(sources: Iterable[Source], suite: str) -> str:
    return "".join(f"deb {source.uri} {suite}{source.part} main\n" for source in sources)


def codename(os_release: str) -> str:
    for line in os_release.splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    return ""


def output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def debian_sources() -> list[Source]:
    """This machine's repositories; the first is the mirror of the release itself."""
    remedy = "give one with --mirror URL"
    if not shutil.which("apt-get"):
        raise SetupError(f"no apt here to take a mirror from; {remedy}")
    name = codename(Path("/etc/os-release").read_text(encoding="utf-8"))
    listing = output([*TARGETS, "Created-By: Packages"])
    sources = sorted(parse_sources(listing, name), key=lambda source: source.part)
    if not sources or sources[0].part:
        raise SetupError(f"apt here has no repository of Debian {name}; {remedy}")
    return sources


def proxies(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.lower() in PROXIES}


def apt_proxies(dump: str) -> str:
    """The lines of `apt-config dump` that say how apt reaches its mirrors."""
    wanted = ("Acquire::http::", "Acquire::https::", "Acquire::ftp::")
    lines = [line for line in dump.splitlines() if line.startswith(wanted) and "roxy" in line]
    return "".join(line + "\n" for line in lines if not line.endswith('"";'))


def give_network(tree: Path, sources: list[Source], suite: str) -> None:
    """Writes the network set-up of this machine into a bare tree."""
    for name in NETWORK_FILES:
        if Path("/", name).exists():
            shutil.copyfile(Path("/", name), tree / name)
    (tree / "etc/hostname").write_text("fresh\n", encoding="ascii")
    own = tree / AUTHORITIES.relative_to("/")
    own.mkdir(parents=True, exist_ok=True)
    for certificate in AUTHORITIES.glob("*.crt"):
        shutil.copy(certificate, own)
    if BUNDLE.exists() and any(source.uri.startswith("https:") for source in sources):
        bundle = tree / BUNDLE.relative_to("/")
        bundle.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(BUNDLE, bundle)
    (tree / "etc/apt/sources.list").write_text(sources_list(sources, suite), encoding="utf-8")
    if shutil.which("apt-config"):
        proxy = tree / "etc/apt/apt.conf.d/90fresh-machine"
        proxy.write_text(apt_proxies(output(["apt-config", "dump"])), encoding="utf-8")


def debootstrap_command(suite: str, tree: Path, mirror: str) -> list[str]:
    """An older debootstrap has no script for a younger release; that of sid does the same then."""
    if not shutil.which("debootstrap"):
        raise SetupError("debootstrap is not installed (apt-get install debootstrap)")
    scripts = Path(os.environ.get("DEBOOTSTRAP_DIR", "/usr/share/debootstrap"), "scripts")
    command = ["debootstrap", "--variant=minbase", suite, str(tree), mirror]
    return command if (scripts / suite).exists() else [*command, str(scripts / "sid")]
