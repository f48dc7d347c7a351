"""The one kind of error that is somebody's to mend; all others are defects of the grader."""

from __future__ import annotations


class LabError(Exception):
    """One line: what is wrong, where, and what to do. cli.main() prints it; the status is 2."""
