"""`python3 -m reader COMMAND NAME=VALUE...`, as the Makefile calls it."""

import os
import sys
from collections.abc import Callable

from reader import path, predict, read, run, settings
from reader.words import Wrong

COMMANDS: dict[str, Callable[[dict[str, str]], int]] = {
    "run": run.run,
    "read": read.read,
    "watch": read.watch,
    "next": path.next_step,
    "path": path.show_path,
    "done": path.tick,
    "measured": path.measured,
    "predict": predict.predict,
    "chapters": path.show_chapters,
    "refuse": settings.refuse,
    "unknown": settings.unknown,
    "help": settings.show_help,
}
BAD_USAGE = 2


def main(words: list[str]) -> int:
    command, *rest = words or [""]
    given = dict(word.partition("=")[::2] for word in rest)
    try:
        return COMMANDS[command](given)
    except Wrong as wrong:
        print(f"make {given.get('GOAL', command)}: {wrong}", file=sys.stderr)
        return BAD_USAGE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"make {command}: {place}{error.strerror}", file=sys.stderr)
        return BAD_USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
