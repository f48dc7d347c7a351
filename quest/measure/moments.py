"""The moments of a recording that matter, found by rule, each with the sentence that is said about it."""

from quest.measure.recording import Moment, Recording

MOST = 9


def found(recording: Recording) -> list[Moment]:
    """At most nine, in the order of time."""
    return []
