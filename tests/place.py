"""What a place must give before a test run there means anything: processes, a folder in which
programs may run, room. Where it does not, hundreds of tests would fail and none would say why.
And the environment of a make that a test starts.
"""

import os
import resource
import tempfile
from pathlib import Path

PROCESSES = 256  # and threads, beside those there are: eight tests at once, each with a server's
ROOM_MIB = {"temporary files": 64, "programs": 16}


def without_outer_make() -> dict[str, str]:
    """Our environment, without what the make that has started the tests tells those that it starts: its options, its
    settings and its job server.
    """
    return {name: text for name, text in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def lacking(build: Path) -> str:
    """One line: what this place lacks, and the remedy; "" if nothing."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.geteuid() != 0 and most != resource.RLIM_INFINITY:  # root is exempt, fork(2)
        here = own_threads()
        if most - here < PROCESSES:
            return (
                f"this user may have {most} processes and threads (ulimit -u), and has {here}; "
                f"the tests need {PROCESSES} more"
            )
    temporary = Path(tempfile.gettempdir())
    if os.statvfs(temporary).f_flag & os.ST_NOEXEC:
        return f"no program may run in {temporary} (it is mounted noexec); TMPDIR= names another"
    for what, folder in (("temporary files", temporary), ("programs", build)):
        about = os.statvfs(folder if folder.exists() else folder.parent)
        free = about.f_bavail * about.f_frsize >> 20
        if free < ROOM_MIB[what]:
            return f"no space: {folder} has {free} MiB for {what}, and {ROOM_MIB[what]} are needed"
    return ""


def own_threads() -> int:
    """Of all processes of this user; some may end meanwhile."""
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == os.getuid():
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count
