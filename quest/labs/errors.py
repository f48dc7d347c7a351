"""The errors that a student or a teacher can mend, each in one line, and what is printed for them.
All other exceptions are defects of ours.
"""

import contextlib
import os
import sys

from quest.ground import foreign
from quest.ground.errors import InputError


class LabError(InputError):
    """One line: what is wrong, where, and what to do. The command line prints it, with status 2."""


class CannotJudge(LabError):
    """The machine is at fault, or may be: there is no grade, and no points are lost."""

    SAYS = "cannot judge here: "

    def __init__(self, why: str) -> None:
        """why: of several lines, as a test says with its transcript, the first counts."""
        super().__init__(f"{self.SAYS}{(why.strip().splitlines() or [''])[0]}")


def say(text: str) -> None:
    """Prints to stdout, with escape codes named and not sent. If the reader has gone (make
    solution | head), the rest is dropped; any other error is an OSError that names stdout."""
    try:
        print(foreign.plain(text), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # also takes what is still in the buffer
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from None


def complain(text: str) -> None:
    """Prints one line to stderr, if that can be written."""
    with contextlib.suppress(OSError):
        print("lab: " + foreign.line(text.replace("\n", " ")), file=sys.stderr)
