"""All labs, of both kinds: those with a program to write, and those that measure."""

from quest.labs import lab, measured
from quest.labs.errors import LabError
from quest.labs.lab import Lab
from quest.labs.measured import MeasuredLab


def slugs() -> list[str]:
    """The names of all labs, in the order of their chapters."""
    return sorted([*lab.slugs(), *measured.slugs()])


def load(slug: str) -> Lab | MeasuredLab:
    """The lab of that name, or a LabError that says which there are."""
    if slug in measured.slugs():
        return measured.load(slug)
    if slug not in lab.slugs():
        raise LabError(f"CH={slug}: there is no such lab. There are: {', '.join(slugs())}")
    return lab.load(slug)


def load_program(slug: str) -> Lab:
    """The same; a lab that measures is refused, since it has nothing to build."""
    one = load(slug)
    if isinstance(one, MeasuredLab):
        raise LabError(f"CH={slug}: a lab that measures has no program to build; use make grade")
    return one
