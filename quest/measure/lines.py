"""The source lines of addresses: addr2line, which knows inlined functions too (-i)."""

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from quest.ground.errors import RepetitionError
from quest.measure.strace import Frame

LINE = re.compile(r"(?P<file>.*):(?P<line>\d+)(?: \(discriminator \d+\))?")
#: The frame below the one of that name was interrupted by a signal: it has called nothing.
TRAMPOLINE = "__restore_rt"


class Place(NamedTuple):
    """A line of a function. file: below the tree's root, or as the compiler knew it."""

    function: str
    file: str
    line: int


Stack = tuple[Place, ...]  # the outermost function first


def returning(frames: Sequence[Frame]) -> list[tuple[str, int]]:
    """(file, address) to look up for each frame. A return address is that of the next instruction, which may belong to
    the next line, or after a call that never returns to the next function: the one before is looked up.
    """
    exact = [False, *(frame.symbol == TRAMPOLINE for frame in frames)]
    return [(frame.path, frame.address - (not is_exact)) for frame, is_exact in zip(frames, exact, strict=False)]


def parse(text: str, root: str) -> dict[int, list[Place]]:
    """What `addr2line -a -f -i` prints: address -> the functions there, the innermost first."""
    found: dict[int, list[Place]] = {}
    places: list[Place] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("0x"):
            places = found[int(line, 16)] = []
            continue
        match = LINE.fullmatch(next(lines, ""))
        if match and line != "??":
            file = os.path.normpath(match["file"])
            file = os.path.relpath(file, root) if file.startswith(f"{root}/") else file
            places.append(Place(line.partition(".")[0], file, int(match["line"])))
    return found


def look_up(addresses: Mapping[str, Iterable[int]], root: Path) -> dict[tuple[str, int], list[Place]]:
    """(file, address) -> the functions there, the innermost first; empty for a file without lines. RepetitionError if
    addr2line cannot be run.
    """
    found: dict[tuple[str, int], list[Place]] = {}
    for path, wanted in addresses.items():
        words = ["addr2line", "-a", "-f", "-i", "-e", path]
        asked = "".join(f"{address:#x}\n" for address in sorted(set(wanted)))
        try:
            done = subprocess.run(
                words, input=asked, capture_output=True, text=True, check=True, timeout=60,
                encoding="utf-8", errors="surrogateescape",
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            raise RepetitionError(f"addr2line: {error}") from None
        found.update({(path, address): places for address, places in parse(done.stdout, str(root)).items()})
    return found


def stacks(all_frames: Iterable[tuple[Frame, ...]], program: Path, root: Path, folders: tuple[str, ...]) -> dict[
    tuple[Frame, ...], Stack
]:  # fmt: skip
    """Each stack with its source lines: of the program alone, and only what is below one of `folders`."""
    known = set(all_frames)
    addresses: dict[str, set[int]] = defaultdict(set)
    own = str(program.resolve())
    for frames in known:
        for path, address in returning(frames):
            if path == own:
                addresses[path].add(address)
    places = look_up(addresses, root)
    return {
        frames: tuple(
            place
            for key in reversed(returning(frames))
            for place in reversed(places.get(key, []))
            if place.file.startswith(folders)
        )
        for frames in known
    }
