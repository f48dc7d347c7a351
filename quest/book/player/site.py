"""The page of one server: its recordings, and beside its neighbour, at the full width of the window."""

from collections.abc import Mapping, Sequence
from html import escape

from quest.book.player.recording import Recording, milliseconds

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
try {{ document.documentElement.dataset.theme = localStorage.getItem("theme") || ""; }} catch (error) {{ /* private mode */ }}
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
    told = recording.raw["how"]
    traced, plain = told["overhead"]
    return (
        f"Recorded on {escape(told['date'])} at commit {escape(told['commit'])}, Linux {escape(told['kernel'])}, with strace "
        f"{escape(told['strace'])}, which made the page of A take {milliseconds(traced)} instead of {milliseconds(plain)}: the order of "
        "the calls and their lines are right, their lengths are the tracer's. Times in sentences are those without it."
    )


def page(server: str, recordings: Sequence[Recording], pieces: Mapping[str, str], servers: Sequence[str]) -> str:
    """All that is recorded of a server. `pieces`: the players by name; `servers`: all that have a page."""
    parts = [f"<h1>{escape(server)}, call by call</h1>\n"]
    for one in recordings:
        parts.append(f'<section class="one"><h2>{escape(one.title)}</h2>{pieces[one.name]}<p class="told">{how(one)}</p></section>\n')
    names = {one.name for one in recordings}
    for name in sorted(pieces):
        first, plus, second = name.partition("+")
        if plus and (first in names or second in names):
            beside = f"{first.partition('.')[0]} beside {second.partition('.')[0]}"
            parts.append(f'<section class="one"><h2>{escape(beside)}</h2>{pieces[name]}</section>\n')
    links = [
        f'<b aria-current="page">{escape(one)}</b>' if one == server else f'<a href="player-{one}.html">{escape(one)}</a>'
        for one in servers
    ]
    parts.append(f'<nav class="servers" aria-label="Servers"><a href="{server}.html">The chapter</a> · {" · ".join(links)}</nav>\n')
    return HEAD.format(server=escape(server)) + "".join(parts) + FOOT
