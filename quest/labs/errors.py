"""What is said to who grades or is graded, and the one kind of error that is theirs to mend; all
others are defects of the grader.
"""

import os

from quest.ground import foreign


class LabError(Exception):
    """One line: what is wrong, where, and what to do. cli.main() prints it; the status is 2."""


class CannotJudge(LabError):
    """The place is at fault, or may be: so nobody has points, and nobody has lost any."""

    SAYS = "cannot judge here: "

    def __init__(self, why: str) -> None:
        super().__init__(f"{self.SAYS}{why}")


def say(text: str) -> None:
    """To stdout, whoever's words are in it. A reader that has gone (make solution | head) has what
    it wanted."""
    try:
        print(foreign.plain(text), flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # and so what is still in the buffer
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from None
