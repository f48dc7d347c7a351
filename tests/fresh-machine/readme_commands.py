"""What the README tells a reader to type: the lines of its block ```sh fresh-machine."""

from pathlib import Path

FENCE = "```sh fresh-machine"


class ReadmeError(Exception):
    """The README has no such block, or it cannot be run. One line."""


def commands(text: str) -> list[str]:
    """The commands, one a line. Comments and empty lines are not commands."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.strip() == FENCE]
    if len(starts) != 1:
        raise ReadmeError(f'README.md: {len(starts)} blocks "{FENCE}", there must be one')
    found = []
    for number, line in enumerate(lines[starts[0] + 1 :], starts[0] + 2):
        if line.strip() == "```":
            break
        if line.rstrip().endswith("\\"):
            raise ReadmeError(f"README.md:{number}: a command must stand on one line")
        if line.strip() and not line.lstrip().startswith("#"):
            found.append(line.strip())
    else:
        raise ReadmeError(f'README.md:{starts[0] + 1}: the block "{FENCE}" is not closed')
    if not found:
        raise ReadmeError(f'README.md:{starts[0] + 1}: the block "{FENCE}" holds no command')
    return found


def read(path: Path) -> list[str]:
    try:
        return commands(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ReadmeError(f"{path.name}: {error}") from error
