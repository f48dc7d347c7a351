"""What every command of ours does first and last: it must not depend on how its parent left
descriptors, signals and the encoding of the terminal, and it ends with one line if something fails.
"""

import contextlib
import io
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NoReturn, TextIO

from quest.ground import foreign
from quest.ground.errors import InputError, Stopped

NAMES = {1: "standard output", 2: "standard error"}


class _Pipe(io.RawIOBase):
    """Standard output, or errors. A reader that has gone (`| head`) is no error: the work goes on
    unheard.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        try:
            while True:
                try:
                    return os.write(self._descriptor, view)
                except BlockingIOError:  # another program that has the same pipe or terminal made it non-blocking
                    room = select.poll()
                    room.register(self._descriptor, select.POLLOUT)
                    room.poll()
        except BrokenPipeError:  # for programs that are started later, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._descriptor)
            return view.nbytes
        except OSError as error:
            raise OSError(error.errno, error.strerror, NAMES[self._descriptor]) from None


def begin() -> None:
    """Before anything is opened or started.

    A closed descriptor 0, 1 or 2 would be given to the next file, which would then get what
    programs print; with SIGCHLD ignored a program that failed seems to have ended well; what the
    terminal's encoding lacks is escaped, and ends nothing.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            # It gets the lowest number that is free: this one. A program that we start is to have it, too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if "MAKEFLAGS" in os.environ:
        os.environ["MAKEFLAGS"] = without_job_server(os.environ["MAKEFLAGS"])
    sys.stdout = _text(1, sys.stdout, at_once=os.isatty(1))
    sys.stderr = _text(2, sys.stderr, at_once=True)


def without_job_server(flags: str) -> str:
    """MAKEFLAGS for the makes that we start. Up to make 4.3 the job server of a make -j is two descriptors that only
    its own makes inherit. We do not have them, so a make below us would warn that its job server is not available.
    """
    options, dashes, settings = flags.partition(" -- ")
    if "--jobserver-auth=fifo:" in options:
        return flags
    words = (word for word in options.split(" ") if not word.startswith(("-j", "--jobserver")))
    return " ".join(words) + dashes + settings


def takes_codes(environment: Mapping[str, str]) -> bool:
    """Whether a terminal, if there is one, obeys the codes by which a line is written over."""
    return environment.get("TERM", "") not in ("", "dumb") and not environment.get("NO_COLOR")


@contextlib.contextmanager
def under_way(what: str) -> Iterator[None]:
    """While the block runs a terminal shows what is done, so that a silence is explained; afterwards it is gone. It is
    one line however narrow the window is: of two only the last could be taken back. Where none can be, it stays.
    """
    shows, rewrites = sys.stderr.isatty(), takes_codes(os.environ)
    if shows:
        text = f"{foreign.line(what)} ..."
        with contextlib.suppress(OSError):
            text = text[: (os.get_terminal_size(2).columns or 80) - 1] if rewrites else text
        print(text, end="" if rewrites else "\n", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shows and rewrites:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _text(descriptor: int, old: TextIO | None, at_once: bool) -> TextIO:
    encoding = getattr(old, "encoding", None) or "utf-8"
    buffer = io.BufferedWriter(_Pipe(descriptor))
    return io.TextIOWrapper(buffer, encoding, "backslashreplace", line_buffering=at_once)


def os_error_text(error: OSError) -> str:
    """The file and what is wrong with it, in one line. An error without a name: errors_named() gives it one."""
    name = error.filename2 or error.filename  # of a copy: where it was to be
    what = error.strerror or str(error) or type(error).__name__
    if isinstance(name, str | bytes | os.PathLike):
        return f"{os.fsdecode(name)}: {what}"
    return what


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """An OSError of the block that comes without a name gets this one: a full disk has none."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def run_to_status(command: Callable[[], int], prefix: str = "", wrong: int = 2, stopped: str = "") -> int:
    """Runs a command to its last byte of output, and gives its status. Where it fails, one line on
    stderr says what and where, after `prefix`, and the status is `wrong`; where a signal has ended
    it, 128 and the signal's number, after a line with `stopped` if there is one.
    """
    try:
        status = command()
        sys.stdout.flush()
        return status
    except InputError as error:
        _complain(foreign.plain(f"{prefix}{error}"))
    except Stopped as signalled:
        if stopped:
            _complain(stopped)
        wrong = 128 + signalled.signal_number
    except KeyboardInterrupt:
        wrong = 128 + signal.SIGINT
    except OSError as error:
        _complain(foreign.line(f"{prefix}{os_error_text(error)}"))
    except MemoryError:
        _complain(f"{prefix}not enough memory (ulimit -v)")
    # What was printed before is kept. What cannot be written now could not be at the exit either, which would tell it
    # once more, with a status of its own.
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return wrong


def run_main(main: Callable[[list[str]], int]) -> NoReturn:
    """Of a module that is a program of its own: python3 -m quest.book.lint."""
    begin()
    sys.exit(run_to_status(lambda: main(sys.argv[1:])))


def _complain(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr)
