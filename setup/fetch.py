"""Fetches what Debian does not have: `fetch.py reveal.js`, ziglang, axe-core, two fonts. packages.tsv says why each
comes the way it does.

A wheel is only unpacked: nothing of it is run. It is fetched beside its place, compared, then moved: killed at any
moment, it is there whole or not. Status 0, or 1 with one line that says why it is not there.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

ARGUMENTS = "-q --disable-pip-version-check --no-cache-dir --retries 1 --timeout 15 --no-deps --only-binary :all:"


class Wanted(NamedTuple):
    wheel: str  #: for pip, with its version
    inside: str  #: the folder of the wheel that is taken
    place: Path  #: where it goes
    parts: tuple[str, ...]  #: of that folder: what is compared, all below it
    sums: tuple[str, ...]  #: tree_sum() of these; another for each system that there is a wheel for
    mark: Path  #: there once all of it is
    program: str = ""  #: may be executed


WANTED = {
    "reveal.js": Wanted(
        "sphinx-revealjs==3.2.1",
        "sphinx_revealjs/_static/revealjs",
        Path("build/node/node_modules/reveal.js"),
        ("dist", "plugin", "css", "LICENSE"),
        ("e02b2af6c44a2239f77065d63b08b1fe5c87d1e94033b435af02fed9702e9ec5",),
        Path("build/node/reveal-5.2.1"),
    ),
    "atkinson-hyperlegible": Wanted(
        "fontpkg-atkinson-hyperlegible==1.6",
        "fontpkg_atkinson_hyperlegible",
        Path("build/node/atkinson-hyperlegible"),
        ("files", "LICENSE"),
        ("b6d3a1f843dfc95e22c2357f83b18b6f8f716cc3ea5eab4758c8f1f35093133b",),
        Path("build/node/atkinson-hyperlegible-1.6"),
    ),
    "ibm-plex-mono": Wanted(
        "fontpkg-ibm-plex-mono==2.3",
        "fontpkg_ibm_plex_mono",
        Path("build/node/ibm-plex-mono"),
        ("files", "LICENSE"),
        ("b54e27a3e6d000cb010cc00665421dd1133c08ef7f9a2bbe129c208dc1d08678",),
        Path("build/node/ibm-plex-mono-2.3"),
    ),
    "axe-core": Wanted(
        "axe-playwright-python==0.1.8",
        "axe_playwright_python",
        Path("build/node/axe-core"),
        ("axe.min.js",),
        ("6afa2bfa8e6467bdc7d33b646ca671794350f82e2be2c86bcd2c5c3757eb4902",),
        Path("build/node/axe-core-4.12.1"),
    ),
    "ziglang": Wanted(
        "ziglang==0.17.1",
        "ziglang",
        Path("build/zig/0.17.1"),
        (),
        (  # the wheels for Linux on x86-64, Linux on aarch64, and macOS on arm64
            "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54",
            "b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e",
            "09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23",
        ),
        Path("build/zig/0.17.1/zig"),
        "zig",
    ),
}


class NotFetched(Exception):
    """Why."""


def tree_sum(folder: Path, parts: tuple[str, ...]) -> str:
    """sha256 over the lines that sha256sum prints for all files of these parts, sorted by name."""
    files = sorted(
        (str(path.relative_to(folder)) for part in parts for path in [folder / part, *(folder / part).rglob("*")]
         if path.is_file()), key=os.fsencode,
    )  # fmt: skip
    lines = (f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def file_sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def wheel_of(wanted: Wanted, into: Path) -> Path:
    """The file, by pip."""
    command = [sys.executable, "-m", "pip", "download", *ARGUMENTS.split(), "-d", str(into), wanted.wheel]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = list(into.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        told = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
        raise NotFetched(f"not fetched: {(told or ['pip says nothing'])[-1]}")
    return found[0]


def put(wanted: Wanted, wheel: Path, beside: Path) -> None:
    """Unpacks the wheel, compares it, and moves it to its place. NotFetched if it is not what was expected."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(beside / "wheel")
    folder = beside / "wheel" / wanted.inside
    if (tree_sum(folder, wanted.parts) if wanted.parts else file_sum(wheel)) not in wanted.sums:
        raise NotFetched(f"not used: what pip brought is not {wanted.wheel}: wrong checksum")
    if wanted.program:
        (folder / wanted.program).chmod(0o755)
    wanted.place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(wanted.place, ignore_errors=True)
    folder.replace(wanted.place)
    wanted.mark.touch()


def main(words: list[str]) -> int:
    if len(words) != 1 or words[0] not in WANTED:
        print(f"fetch.py: one of {', '.join(WANTED)}", file=sys.stderr)
        return 2
    wanted = WANTED[words[0]]
    top = Path("build")
    print(f"fetching {words[0]} ...", flush=True)
    try:
        top.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=top) as folder:
            put(wanted, wheel_of(wanted, Path(folder)), Path(folder))
    except (NotFetched, OSError, zipfile.BadZipFile) as error:
        print(f"  {words[0]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
