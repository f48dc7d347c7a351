"""The page of one server: its recordings, and beside its neighbour, at the full width of the window."""

from collections.abc import Mapping, Sequence
from html import escape

from quest.book.player.front import SCENE
from quest.book.player.recording import milliseconds
from quest.measure.form import Recording

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{server}, call by call – The Quest for a Good Web Server</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="code.css">
<link rel="stylesheet" href="book.css">
<link rel="stylesheet" href="player.css">
<script>
try {{ document.documentElement.dataset.theme = localStorage.getItem("theme") || ""; }}
catch (error) {{ /* private mode */ }}
</script>
</head>
<body class="wide">
<a class="skip" href="#text">Skip to the player</a>
<header class="bar"><a class="home" href="index.html">The Quest for a Good Web Server</a>
<button class="theme" type="button" aria-label="Light or dark">◐</button></header>
<main id="text">
"""
FOOT = """</main>
<script src="book.js" defer></script>
<script src="player.js" defer></script>
</body>
</html>
"""


def how(recording: Recording) -> str:
    """What a reader has to know of where this comes from."""
    told = recording.how
    traced, plain = told["overhead"]
    slower = ""
    if traced is not None and plain is not None:
        slower = f", which made the page of A take {milliseconds(traced)} instead of {milliseconds(plain)}"
    return (
        f"Recorded on {escape(told['date'])} at commit {escape(told['commit'])}, Linux {escape(told['kernel'])}, with "
        f"strace {escape(told['strace'])}{slower}: the order of the calls and their lines are right, their lengths are "
        "the tracer's. Times in sentences are those without it."
    )


def address(recording: Recording) -> str:
    """The name of its page. That of the scene in which all servers were recorded is the server's."""
    scene = recording.name.removeprefix(f"{recording.server}.")
    return f"player-{recording.server}{'' if scene == SCENE else f'.{scene}'}.html"


def page(recording: Recording, pieces: Mapping[str, str], recordings: Sequence[Recording]) -> str:
    """One recording, and beside its neighbours. `pieces`: the players by name; `recordings`: all that have a page."""
    server = escape(recording.server)
    parts = [
        f"<h1>{server}, call by call <small>{escape(recording.title)}</small></h1>\n"
        f'<section class="one">{pieces[recording.name]}'
        f'<p class="told">{how(recording)}</p></section>\n'
    ]
    for name in sorted(pieces):
        pair = name.split("+")
        if len(pair) == 2 and recording.name in pair:
            beside = " beside ".join(escape(one.partition(".")[0]) for one in pair)
            parts.append(f'<section class="one"><h2>{beside}</h2>{pieces[name]}</section>\n')
    scenes = [one for one in recordings if one.server == recording.server and one is not recording]
    others = [one for one in recordings if one.title == recording.title]
    parts.append('<nav class="servers" aria-label="Recordings">')
    parts.append(f'<p><a href="{server}.html">The chapter</a></p>')
    if scenes:
        links = (f'<a href="{address(one)}">{escape(one.title)}</a>' for one in scenes)
        parts.append(f"<p>{server} in other scenes: {' · '.join(links)}</p>")
    links = (
        f'<b aria-current="page">{server}</b>'
        if one is recording
        else f'<a href="{address(one)}">{escape(one.server)}</a>'
        for one in others
    )
    parts.append(f"<p>This scene at {' · '.join(links)}</p></nav>\n")
    return HEAD.format(server=server) + "".join(parts) + FOOT
