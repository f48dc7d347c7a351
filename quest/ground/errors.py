"""Errors that end in one clear line on stderr and a non-zero status."""


class InputError(Exception):
    """What the user wrote or keeps is wrong: a file, an option. The text says where and what."""


class Unreachable(InputError):
    """The other host that the load comes from is gone: nothing else can be measured with it."""


class RepetitionError(Exception):
    """One repetition failed. It becomes a "failure" record; the others go on."""


class Stopped(BaseException):
    """SIGINT, SIGTERM or SIGHUP came. Not an Exception: nothing but the outermost caller may swallow it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number = signal_number


class Unsupported(Exception):
    """What is measured says that this system cannot run it: a "skip" record, not a failure."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy
