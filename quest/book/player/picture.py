"""README's picture: the first page's rows as one SVG that moves by itself, for a forge shows no scripts.

It plays twice and rests where the first page does; a reader who wants no motion sees that picture only.
A veil in the colour of the ground moves with now: what is behind it has not happened yet, and is pale.
"""

from collections.abc import Iterator, Sequence
from html import escape

from quest.book.player.front import AXIS_MS, LATE_US, PLAY_S, QUESTION, REST_US, TITLE, check, end_of, late, squares
from quest.book.player.recording import Client, plain_clients
from quest.measure.form import Recording

WIDTH, ROW, TOP, LEFT, RIGHT = 920, 78, 90, 250, 646
CYCLE_S, TIMES = 9, 2

LIGHT = {
    "A": ("#10479a", "#c3d3ec", "#10479a", "#fff"), "B": ("#c0406e", "#f3cfdc", "#a82c58", "#fff"),
    "C": ("#3a9fc0", "#d3eaf3", "#1d6f8e", "#10222a"), "D": ("#d99a1c", "#f8e6c2", "#8a5c00", "#2b1f05"),
    "N": ("#b4b4bc", "#ececf0", "#5c5c64", "#23241f"),
}  # fmt: skip
DARK = {
    "A": ("#7aa5ee", "#26324a", "#a9c6f7", "#14161a"), "B": ("#ee7fa6", "#47273a", "#f5a6c1", "#14161a"),
    "C": ("#6cc4e0", "#21393f", "#9ad8ea", "#14161a"), "D": ("#e6b04a", "#443619", "#f0c878", "#14161a"),
    "N": ("#55565a", "#2b2c2d", "#b6b6bc", "#fff"),
}  # fmt: skip
GROUND = {"light": ("#fffefb", "#23241f", "#5f6158", "#e2dfd6", "#8a3324", "#22661b"),
          "dark": ("#1b1c1a", "#dddcd4", "#a3a398", "#3a3b36", "#e39b83", "#9fd196")}  # fmt: skip


def colours(scheme: dict[str, tuple[str, str, str, str]], ground: tuple[str, ...]) -> str:
    """The classes that give things their colour: `.A` full, `.aA` pale with an edge, `.iA` ink."""
    page, text, soft, rule, now, good = ground
    parts = [
        f".g{{fill:{page}}}text{{fill:{text}}}.s{{fill:{soft}}}.r{{stroke:{rule}}}#n{{fill:{now}}}.bad{{fill:{now}}}"
        f".good{{fill:{good}}}.v{{fill:{page};opacity:.7}}"
    ]
    for letter, (full, pale, ink, on) in scheme.items():
        parts.append(
            f".{letter}{{fill:{full};stroke:{ink}}}.p{letter}{{fill:{pale};stroke:{full}}}.i{letter}{{fill:{ink}}}"
        )
        parts.append(f".o{letter}{{fill:none;stroke:{full}}}.k{letter}{{stroke:{on}}}")
    return "".join(parts)


def style(end: int) -> str:
    """One clock: the veil and the line run for PLAY_S seconds, then wait. The delay is negative, so the first
    frame is the one at rest.
    """
    rest, play = REST_US / end, 100 * PLAY_S / CYCLE_S
    width = RIGHT - LEFT
    move = f"@keyframes m{{0%{{transform:translate(0)}}{play:.1f}%,100%{{transform:translate({width}px)}}}}"
    run = f"animation:m {CYCLE_S}s linear {-rest * PLAY_S:.2f}s {TIMES}"
    return (
        "text{font:13px system-ui,'Segoe UI','DejaVu Sans',sans-serif}.b{font-weight:700}"
        ".h{font-size:21px;font-weight:700}"
        f".t{{font-size:15px}}.l{{font-size:12px}}#m{{transform:translate({rest * width:.1f}px);{run}}}{move}"
        f"{colours(LIGHT, GROUND['light'])}"
        f"@media(prefers-color-scheme:dark){{{colours(DARK, GROUND['dark'])}}}"
        "@media(prefers-reduced-motion:reduce){#m,.q{animation:none!important}}"
    )


def at(t: float, end: int) -> float:
    return LEFT + t / end * (RIGHT - LEFT)


def lane(client: Client, y: float, end: int) -> Iterator[str]:
    letter = client.letter
    x = at(client.connect, end)
    yield f'<text class="b i{letter}" x="{LEFT - 22}" y="{y + 12:g}">{letter}</text>'
    sent, done = client.sent if client.sent is not None else end, client.done if client.done is not None else end
    if client.half is not None:
        begin, stop = at(client.half, end), at(sent, end)
        yield (
            f'<path class="o{letter}" stroke-dasharray="3 2" '
            f'd="M{begin:.1f} {y + 1:g}H{stop:.1f}M{begin:.1f} {y + 14:g}H{stop:.1f}"/>'
            f'<text class="l i{letter}" x="{begin + 9:.1f}" y="{y + 12:g}">silent</text>'
        )
    if done - sent >= LATE_US:
        begin, stop = at(sent, end), at(done, end)
        yield (
            f'<path class="p{letter}" d="M{begin:.1f} {y + 1:g}h{stop - begin:.1f}v13h{begin - stop:.1f}z"/>'
            f'<text class="l i{letter}" x="{begin + 9:.1f}" y="{y + 12:g}">waits</text>'
        )
    yield f'<path class="{letter}" d="M{x:.1f} {y:g}h3v15h-3z"/>'
    middle = at(done, end) + 9
    yield (
        f'<circle class="{letter}" cx="{middle:.1f}" cy="{y + 7.5:g}" r="7"/>'
        f'<path class="k{letter}" fill="none" stroke-width="1.6" d="M{middle - 3.2:.1f} {y + 7.8:g}l2.4 2.4 4-4.6"/>'
    )


def sign(letter: str, x: float, y: float, appears: str) -> str:
    """A process or thread; one that sleeps for B does so only for a while."""
    box = f'd="M{x:g} {y:g}h12v12h-12z"'
    if letter != "b":
        return f'<path class="pN" {box}/>'
    return (
        f'<path class="pN" {box}/><g class="q" style="{appears}"><path class="pB" {box}/>'
        f'<text class="b iB" font-size="10" style="font-size:10px" x="{x + 2.6:g}" y="{y + 9.8:g}">B</text></g>'
    )


def row(recording: Recording, number: int, end: int) -> tuple[str, str]:
    """What the veil covers, and what it does not."""
    said, y = check(recording), TOP + number * ROW
    clients = list(plain_clients(recording).values())
    lanes = "".join("".join(lane(client, y + 4 + 17 * at_, end)) for at_, client in enumerate(clients))
    x, signs = RIGHT + 16, []
    half, sent = min((c.half, c.sent) for c in clients if c.half is not None and c.sent is not None)
    shows = "".join(
        f"{100 * PLAY_S / CYCLE_S * t / end:.1f}%{{opacity:{after}}}"
        for t, after in ((half, 0), (half + 900, 1), (sent, 1), (sent + 900, 0))
    )
    name = f"q{number}"
    frames = f"<style>@keyframes {name}{{0%{{opacity:0}}{shows}100%{{opacity:0}}}}</style>"
    appears = f"animation:{name} {CYCLE_S}s linear {-REST_US / end * PLAY_S:.2f}s {TIMES}"
    many = squares(recording, REST_US)
    for place, letter in enumerate(many):
        signs.append(sign(letter, x + 14 * place + (4 if place else 0) * (len(many) > 1), y + 10, appears))
    kind = "bad" if late(recording) else "good"
    fixed = (
        f'<path class="r" fill="none" d="M16 {y - 3}H{WIDTH - 16}"/>'
        f'<text class="b t" x="16" y="{y + 33}">{escape(recording.server)}</text>'
        f'<text class="s" x="16" y="{y + 52}">{escape(said.what)}</text>'
        f'{frames}{"".join(signs)}<text class="b {kind}" x="{x}" y="{y + 44}">{escape(said.waits)}</text>'
        f'<text x="{x}" y="{y + 62}">{escape(said.why)}</text>'
    )
    return lanes, fixed


def axis(y: float, end: int) -> Iterator[str]:
    """The time in milliseconds, below all rows."""
    times = range(0, end, AXIS_MS * 2000)
    for t in times:
        unit = " ms" if t == times[-1] else ""
        yield f'<text class="s l" text-anchor="middle" x="{at(t, end):.1f}" y="{y:g}">{t // 1000}{unit}</text>'


def picture(recordings: Sequence[Recording]) -> str:
    """The SVG."""
    end = end_of(recordings)
    height = TOP + ROW * len(recordings) + 46
    covered, fixed = zip(*(row(each, number, end) for number, each in enumerate(recordings)), strict=True)
    bottom = height - TOP - 48
    question = f'<tspan class="b">{QUESTION}</tspan>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">'
        f"<title>{TITLE} {QUESTION}</title><desc>"
        + " ".join(f"{each.server}: {check(each).waits} {check(each).why}" for each in recordings)
        + f'</desc><style>{style(end)}</style><rect class="g" width="{WIDTH}" height="{height}" rx="6"/>'
        f'{"".join(covered)}<g id="m">'
        f'<rect class="v" x="{LEFT}" y="{TOP - 2}" width="{RIGHT - LEFT + 30}" height="{bottom}"/>'
        f'<text class="b bad l" text-anchor="middle" x="{LEFT}" y="{TOP - 6}">now</text>'
        f'<rect id="n" x="{LEFT - 1}" y="{TOP - 2}" width="2" height="{bottom}"/></g>'
        # What stands right of the lanes stands above the veil, on a ground of its own.
        f'<rect class="g" x="{RIGHT + 6}" y="0" width="{WIDTH - RIGHT - 6}" height="{height}"/>'
        f'<text class="h" x="16" y="34">{TITLE}</text>'
        f'<text class="t" x="16" y="59">B stops in the middle of its request for a quarter of a second. '
        f"{question}</text>"
        f"{''.join(fixed)}{''.join(axis(height - 35, end))}"
        f'<text class="s l" x="16" y="{height - 13}">Recorded, not drawn. '
        "A square is a process or thread: "
        "empty, it sleeps for any client; B, it sleeps for B only.</text></svg>\n"
    )
