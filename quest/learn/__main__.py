"""`python3 -m quest.learn COMMAND NAME=VALUE...`, as the Makefile calls it."""

import os
import sys
from collections.abc import Callable

from quest.ground.entry import begin, ended
from quest.learn import path, read, run, settings
from quest.learn.words import Wrong

COMMANDS: dict[str, Callable[[dict[str, str]], int]] = {
    "run": run.run,
    "read": read.read,
    "watch": read.watch,
    "next": path.show_next,
    "path": path.show_path,
    "done": path.tick,
    "measured": path.note_measurement,
    "chapters": path.show_chapters,
    "refuse": settings.refuse,
    "unknown": settings.unknown,
    "help": settings.show_help,
}
BAD_USAGE = 2


def main(words: list[str]) -> int:
    command, *rest = words or [""]
    given = {"WORK": os.environ.get("WORK", "")}
    given |= dict(word.partition("=")[::2] for word in rest)
    try:
        return ended(lambda: COMMANDS[command](given), f"make {command}: ", BAD_USAGE)
    except Wrong as wrong:
        print(f"make {given.get('GOAL', command)}: {wrong}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    begin()
    sys.exit(main(sys.argv[1:]))
