"""Makes the players of all recordings:

    python3 -m quest.book.player OUT

OUT/NN-slug.SCENE.html     a piece of HTML for each recording
OUT/A.SCENE+B.SCENE.html   two on one scale, for the pairs below
OUT/player-NN-slug.html    a page for each server; of another scene than "slow" player-NN-slug.SCENE.html
OUT/front.html             six servers for the first page; front.skipped says why not

A file is written only if it differs. Status 2 and one line: a recording is wrong, or a recorded line has changed.
"""

from pathlib import Path

from quest.book.player import front, site
from quest.book.player.page import player
from quest.book.player.recording import read_recording
from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_if_other
from quest.measure.form import FOLDER

#: Two servers that differ in one idea.
PAIRS = (("01-iterative", "02-fork"), ("04-threads", "05-pool"), ("07-poll", "09-epoll"), ("09-epoll", "13-uring"))


def make(root: Path, out: Path) -> None:
    """All files, of the recordings below `root`."""
    recordings = {path.stem: read_recording(path) for path in sorted((root / FOLDER).glob("*.json"))}
    pieces = {name: player([one], root) for name, one in recordings.items()}
    for first, second in PAIRS:
        pair = [f"{first}.{front.SCENE}", f"{second}.{front.SCENE}"]
        if all(name in recordings for name in pair):
            pieces["+".join(pair)] = player([recordings[name] for name in pair], root)
    out.mkdir(parents=True, exist_ok=True)
    for name, text in pieces.items():
        write_if_other(out / f"{name}.html", text)
    for one in recordings.values():
        write_if_other(out / site.address(one), site.page(one, pieces, list(recordings.values())))
    missing = [server for server in front.SERVERS if f"{server}.{front.SCENE}" not in recordings]
    (out / ("front.html" if missing else "front.skipped")).unlink(missing_ok=True)
    if missing:
        write_if_other(out / "front.skipped", f"no recording of {', '.join(missing)}\n")
    else:
        write_if_other(out / "front.html", front.front(front.recorded(root)))


def main(arguments: list[str]) -> int:
    """OUT"""
    if len(arguments) != 1:
        raise InputError("player: OUT")
    make(Path(), Path(arguments[0]))
    return 0


if __name__ == "__main__":
    run_main(main)
