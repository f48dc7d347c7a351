"""archive.py ARCHIVE INTO MOST NAME...: copies the members of an archive that have these names, in
any folder, to INTO/0, INTO/1 and so on, each cut after MOST + 1 bytes; on stdout a list in JSON,
[path in the archive, whether it is a file], in that order. Status 2: one line says why not.

A process of its own, with limits (intake.py), which imports nothing of the tree: an archive may be
made to break the program that reads it.
"""

import json
import os
import re
import stat
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar")
MOST_MEMBERS = 50_000
MOST_UNPACKED = 2 << 30
MOST_NAMED = 200  #: members that have one of the names
ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
Member = tuple[str, int, bool, Callable[[], IO[bytes] | None]]  #: name, size, is it a file, open it


class Refused(Exception):
    """One line: why an archive is not read."""


def _of_zip(path: str) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            # Some programs write the separator of Windows.
            name = info.filename if "/" in info.filename else info.filename.replace("\\", "/")
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_file = kind in (0, stat.S_IFREG) and not info.is_dir()
            if info.flag_bits & 1:
                raise Refused("it wants a password")
            yield name, info.file_size, is_file, partial(archive.open, info)


def _of_tar(path: str) -> Iterator[Member]:
    with tarfile.open(path, "r|*") as archive:
        for info in archive:
            yield info.name, info.size, info.isreg(), partial(archive.extractfile, info)
            archive.members = []  # type: ignore[attr-defined]  # else all of them stay in memory


def _checked(members: Iterator[Member]) -> Iterator[Member]:
    total = 0
    for number, member in enumerate(members, 1):
        name, size = member[:2]
        total += size
        if number > MOST_MEMBERS:
            raise Refused(f"it has more than {MOST_MEMBERS} members")
        if total > MOST_UNPACKED:
            raise Refused(f"it would be more than {MOST_UNPACKED >> 30} GiB, unpacked")
        if ABSOLUTE.match(name):
            raise Refused(f"it has a member with an absolute path: {name!a}")
        if ".." in re.split(r"[/\\]", name):
            raise Refused(f"it has a member outside of itself: {name!a}")
        yield member


def _fits(name: str, wanted: list[str]) -> bool:
    """Whether a name may be one of these. Rather too often: intake.meant() decides."""
    last = os.path.basename(name.rstrip("/")).lower()
    return any(
        last.startswith(os.path.splitext(file.lower())[0]) and last.endswith(os.path.splitext(file)[1])
        for file in wanted
    )


def _copy(members: Iterator[Member], into: Path, most: int, wanted: list[str]) -> list[list[object]]:
    copied: list[list[object]] = []
    room = 8 * most
    for name, _, is_file, opened in members:
        if not _fits(name, wanted):
            continue
        if len(copied) == MOST_NAMED:
            raise Refused(f"it has more than {MOST_NAMED} of {', '.join(wanted)}")
        data = b""
        if is_file and (file := opened()) is not None:
            with file:
                data = file.read(most + 1)
        room -= len(data)
        if room < 0:
            raise Refused(f"its files {', '.join(wanted)} are too long")
        (into / str(len(copied))).write_bytes(data)
        copied.append([name, is_file])
    return copied


def main(words: list[str]) -> int:
    """ARCHIVE INTO MOST NAME...; the status."""
    path, into, most, wanted = words[0], Path(words[1]), int(words[2]), words[3:]
    try:
        members = _of_zip(path) if zipfile.is_zipfile(path) else _of_tar(path)
        copied = _copy(_checked(members), into, most, wanted)
    except Refused as error:
        reason = str(error)
    except (OSError, EOFError, MemoryError, RuntimeError, NotImplementedError, ValueError,
            zipfile.BadZipFile, tarfile.TarError) as error:  # fmt: skip
        reason = f"it cannot be unpacked ({type(error).__name__})"
    except Exception as error:  # zlib, lzma and struct have errors of their own
        reason = f"it is damaged ({type(error).__name__})"
    else:
        print(json.dumps(copied))
        return 0
    print(reason, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
