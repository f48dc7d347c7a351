"""Shows the deck through one of our own servers: present.py SERVER ROOT DECK PORT

Starts SERVER on 127.0.0.1:PORT (0: any free one) with ROOT as what it serves, prints the addresses
of the deck and of the speaker view, and ends when the server ends or is told to (Ctrl-C, SIGTERM).
Its status is the server's.
"""

import contextlib
import re
import signal
import subprocess
import sys
from pathlib import Path

LISTENING = re.compile(r"^[\w-]+: listening on (http://\S+/)$")


def addresses(base: str, root: Path, deck: Path) -> str:
    """What the speaker has to know."""
    address = base + deck.relative_to(root).as_posix()
    return (
        f"deck          {address}\n"
        f"speaker view  {address}?speaker\n"
        "S in the deck opens the speaker view too, F fills the screen, Ctrl-C here ends the show.\n"
        f"Without a server: open {deck} in the browser."
    )


def show(command: list[str], root: Path, deck: Path) -> int:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        # A terminal sends Ctrl-C to both; SIGTERM comes to this process alone and is handed on.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        assert server.stdout is not None
        line = server.stdout.readline().strip()
        listening = LISTENING.match(line)
        if listening:
            print(addresses(listening[1], root, deck), flush=True)
        status = server.wait()
    if not listening:
        print("present: no server, no show; PORT=0 takes any free port", file=sys.stderr)
    return status


def main(arguments: list[str]) -> int:
    if len(arguments) != 4:
        sys.exit("usage: present.py SERVER ROOT DECK PORT")
    server, root, deck, port = arguments
    if not Path(deck).is_file():
        sys.exit(f"present: {deck} is not there (make slides)")
    with contextlib.suppress(BrokenPipeError):
        return show([server, "-p", port, root], Path(root), Path(deck))
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
