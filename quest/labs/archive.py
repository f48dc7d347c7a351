"""archive.py ARCHIVE INTO MOST NAME...: copies the members of an archive that have these names, in
any folder, to INTO/0, INTO/1 and so on, each cut after MOST + 1 bytes. On stdout JSON: "members", in
that order, each [path in the archive, whether it is a file, how often it is there], and "archives",
the names of some that are in it and are not looked into. Status 2: one line says why not; 3: the
number of an error of this machine.

Of several members with one path the last counts, as for every program that unpacks.

A process of its own, with limits (intake.py), which imports nothing of the tree: an archive may be
made to break the program that reads it.
"""

import errno
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

SUFFIXES = (".zip", ".tar.gz", ".tgz", ".tar", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
UNREAD = (".7z", ".rar", ".zipx", ".tar.zst")  #: archives that Python cannot read
MOST_MEMBERS = 50_000
MOST_UNPACKED = 2 << 30
MOST_NAMED = 200  #: members that have one of the names
LONGEST_NAME = 4096  #: no system unpacks a longer path
#: errors of the folder that it is copied to: no fault of the archive
OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
SHOWN = 5  #: names of archives inside
ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")
Member = tuple[str, int, bool, Callable[[], IO[bytes] | None]]  #: name, size, is it a file, open it


class Refused(Exception):
    """One line: why an archive is not read."""


def _of_zip(path: str) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            is_file = kind in (0, stat.S_IFREG) and not info.filename.endswith(("/", "\\"))
            if info.flag_bits & 1:
                raise Refused("it wants a password")
            yield info.filename, info.file_size, is_file, partial(archive.open, info)


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
        if len(name) > LONGEST_NAME:
            raise Refused(f"it has a member whose name has {len(name)} characters")
        if total > MOST_UNPACKED:
            raise Refused(f"it would be more than {MOST_UNPACKED >> 30} GiB, unpacked")
        if ABSOLUTE.match(name):
            raise Refused(f"it has a member with an absolute path: {name!a}")
        if ".." in re.split(r"[/\\]", name):
            raise Refused(f"it has a member outside of itself: {name!a}")
        yield name.replace("\\", "/"), *member[1:]  # some programs write the separator of Windows


def _fits(name: str, wanted: list[str]) -> bool:
    """Whether a name may be one of these. Rather too often: intake.meant() decides."""
    last = os.path.basename(name.rstrip("/")).lower()
    return any(
        last.startswith(stem) and last.endswith((end, f"{end}.txt"))
        for stem, end in (os.path.splitext(file.lower()) for file in wanted)
    )


def _copy(members: Iterator[Member], into: Path, most: int, wanted: list[str]) -> dict[str, list[object]]:
    copied: dict[str, tuple[int, bool, int]] = {}  # path -> number, whether it is a file, how often it was there
    archives: list[object] = []
    room, number = 8 * most, 0
    for name, _, is_file, opened in members:
        if name.lower().endswith((*SUFFIXES, *UNREAD)) and len(archives) < SHOWN:
            archives.append(name)
        if not _fits(name, wanted):
            continue
        number += 1
        if number > MOST_NAMED:
            raise Refused(f"it has more than {MOST_NAMED} of {', '.join(wanted)}")
        data = b""
        if is_file and (file := opened()) is not None:
            with file:
                data = file.read(most + 1)
        room -= len(data)
        if room < 0:
            raise Refused(f"its files {', '.join(wanted)} are too long")
        path = os.path.normpath(name)
        place, _, times = copied.get(path, (len(copied), False, 0))
        (into / str(place)).write_bytes(data)
        copied[path] = place, is_file, times + 1
    return {"members": [[path, is_file, times] for path, (_, is_file, times) in copied.items()], "archives": archives}


def main(words: list[str]) -> int:
    """ARCHIVE INTO MOST NAME...; the status."""
    path, into, most, wanted = words[0], Path(words[1]), int(words[2]), words[3:]
    try:
        # A tar first: a zip that is the last file in it would be taken for the whole.
        is_zip = not tarfile.is_tarfile(path) and zipfile.is_zipfile(path)
        members = _of_zip(path) if is_zip else _of_tar(path)
        copied = _copy(_checked(members), into, most, wanted)
    except Refused as error:
        reason = str(error)
    except (OSError, EOFError, MemoryError, RuntimeError, NotImplementedError, ValueError,
            zipfile.BadZipFile, tarfile.TarError) as error:  # fmt: skip
        if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
            print(error.errno, file=sys.stderr)
            return 3
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
