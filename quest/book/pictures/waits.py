"""How long a client waits, as bars on one linear scale: a wait that is thousands of times as long as another runs
across the wall, and the other is a line of the least width that is seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from quest.book.pictures.data import Data, Missing
from quest.book.pictures.svg import HAIRLINE, HEIGHT, WIDTH, arrow, box, line, picture, step, text

#: Where what is longer than the wall ends: far beyond the slide, on either side of any projector.
BEYOND = 2 * WIDTH


@dataclass(frozen=True)
class Row:
    """One bar."""

    name: str
    value: float  #: in the unit of the axis
    words: str  #: what stands at its end
    names: str  #: the class that colours it
    inside: str = ""  #: what stands in it, if there is room


def bar(one: Row, y: float, height: float, scale: float) -> str:
    """The bar with its words: behind it, or in it where it is longer than three quarters of the wall."""
    length = max(HAIRLINE, one.value * scale)
    middle = y + height / 2
    if length > 0.75 * WIDTH:
        words = text(length - 20, middle + 14, one.words, 42, "b on end") + text(24, middle + 11, one.inside, 30, "on")
    else:
        words = text(length + 18, middle + 14, one.words, 42, "b")
    return box(0, y, length, height, one.names) + words


def foot(words: str) -> str:
    """The line below a picture that says what its scale is."""
    return text(WIDTH, HEIGHT - 4, words, 24, "soft end")


def many(times: float) -> str:
    """In two digits, with a space for thousands: "28 000"."""
    digits = f"{float(f'{times:.2g}'):.0f}"
    return f"{digits[:-3]} {digits[-3:]}" if len(digits) > 4 else digits


def slow_client(data: Data) -> str:
    """The loop alone, beside a slow client, and a process for each client beside one."""
    key = "slow-client.{}.latency_ms".format
    times = many(data.value("slow-client.01-iterative-loss"))
    shown = (
        ("the loop, alone", "01-iterative", "full", ""),
        ("the loop, beside one slow client", "01-iterative-slow", "bad", f"{times} times as long"),
        ("a process for each, beside one slow client", "02-fork-slow", "full", ""),
    )
    rows = [
        Row(name, data.value(key(variant)), data.words(key(variant)), names, inside)
        for name, variant, names, inside in shown
    ]
    scale = WIDTH / max(row.value for row in rows)
    parts = []
    for place, row in enumerate(rows):
        top = 160 * place
        parts += [text(0, top + 34, row.name, 32), step(bar(row, top + 50, 84, scale))]
    return picture([*parts, foot("the median wait, all three to one scale")])


#: How wide the longest wait is where its number stands behind it.
FORTY = WIDTH - 230


def packets(data: Data) -> Iterator[str]:
    """The reply in two writes: the head at once, then a wait of both sides, then the body."""
    key = "send-packets.two.median_ms@500"
    wide, top, height = FORTY, 52, 150
    yield text(0, 34, "two writes", 32)
    yield step(
        box(0, top, HAIRLINE, height, "full"), text(14, top + 40, "head", 28),
        box(wide - HAIRLINE, top, HAIRLINE, height, "full"), text(wide - 14, top + 40, "body", 28, "end"),
        line(f"M{HAIRLINE} {top}H{wide}M{HAIRLINE} {top + height}H{wide}", "waits"),
        text(wide + 14, top + height / 2 + 14, data.words(key), 42, "b bad"),
    )  # fmt: skip
    yield step(
        text(wide / 2, top + 76, "server: no ACK yet, so I keep the body", 28, "middle bad"),
        text(wide / 2, top + 118, "client: no data to send, so I keep the ACK", 28, "middle bad"),
    )


def forty(data: Data) -> str:
    """A reply of 500 bytes: two writes, the same with TCP_NODELAY, one packet. Missing where two writes do not wait."""
    if data.value("send-packets.two.median_ms@500") < 10 * data.value("send-packets.more.median_ms@500"):
        raise Missing("in this run a reply in two writes waits for no acknowledgement (send-packets)")
    scale = FORTY / data.value("send-packets.two.median_ms@500")
    parts = list(packets(data))
    for place, (name, variant) in enumerate((("two writes, TCP_NODELAY", "nodelay"), ("one packet: MSG_MORE", "more"))):
        key, top = f"send-packets.{variant}.median_ms@500", 228 + 128 * place
        count = round(data.value(f"send-packets.{variant}.reply_packets@500"))
        words = f"{data.words(key)}, {count} packet{'s' * (count != 1)}"
        row = Row(name, data.value(key), words, "full")
        parts += [text(0, top + 32, name, 32), step(bar(row, top + 46, 60, scale))]
    return picture([*parts, foot("the median of a kept connection, all three to one scale")])


#: The servers of the attack in the order of the talk, and what each is.
ATTACKED = (
    ("02-fork", "02-fork, a process for each"),
    ("05-pool", "05-pool, a pool of threads"),
    ("07-poll", "07-poll"),
    ("09-epoll", "09-epoll"),
    ("15-slashdot", "15-slashdot"),
)


def serves(data: Data, server: str) -> bool:
    """Whether the customer was answered at all while the attack went on."""
    return data.value(f"toy-shop.{server}.during_good@last") > 0 and data.is_there(f"toy-shop.{server}.during_us@last")


def off_the_wall(y: float, height: float, words: str) -> str:
    """A wait without an end: it has no length, so it does not stop at the edge."""
    middle = y + height / 2
    head = arrow(WIDTH - 150, middle, WIDTH, middle, "arrow on")
    return box(0, y, BEYOND, height, "bad") + text(24, middle + 13, words, 38, "b on") + head


def shop(data: Data) -> str:
    """The customer's median wait beside the largest attack. A server that never served it has a bar that runs off the
    wall. Missing if none has.
    """
    served = [server for server, _ in ATTACKED if serves(data, server)]
    if not served:
        raise Missing("no server has served the customer of toy-shop")
    longest = max(data.value(f"toy-shop.{server}.during_us@last") for server in served)
    scale = 0.6 * WIDTH / longest
    parts = []
    for place, (server, name) in enumerate(ATTACKED):
        top = 100 * place
        key = f"toy-shop.{server}."
        if server in served:
            waited = key + "during_us@last"
            drawn = bar(Row(name, data.value(waited), data.words(waited), "full"), top + 38, 50, scale)
        else:
            asked = data.value(key + "during_good@last") + data.value(key + "during_failed@last")
            drawn = off_the_wall(top + 38, 50, f"serves none of {asked:.0f}")
        parts += [text(0, top + 28, name, 28), step(drawn)]
    return picture([*parts, foot("the customer’s median wait, to one scale")])
