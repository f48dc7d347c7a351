"""What is kept for one silent client, drawn to scale: one square pixel of the slide is one byte."""

from collections.abc import Iterator
from math import sqrt

from quest.book.pictures.data import Data
from quest.book.pictures.svg import WIDTH, arrow, box, line, picture, step, text

BASE = 396  #: where the squares stand
KIB = 1024
#: The parts of a process, the largest first, and what each is called where there is room.
PARTS = (
    ("pss", "own memory"), ("page_tables", "page tables"), ("slab", "kernel records"), ("stacks", "kernel stack"),
)  # fmt: skip
MANY = 20_000
SAID = "GET / H"


def bytes_each(data: Data, server: str) -> dict[str, float]:
    """What each part takes for one connection: between the fewest and the most of server-memory. Missing without them.
    What shrank meanwhile, as the kernel's records may, counts as nothing.
    """
    key = f"server-memory.{server}.{{}}_kib@{{}}".format
    count = data.value(key("pss", "last-x")) - data.value(key("pss", "first-x"))
    grown = {part: data.value(key(part, "last")) - data.value(key(part, "first")) for part, _ in PARTS}
    return {part: max(0.0, KIB * size / count) for part, size in grown.items()}


def said(size: float) -> str:
    """In two digits, as what is measured here in steps of a page allows: "140 kB", "2.8 GB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            rounded = float(f"{size / unit:.2g}")
            return f"{rounded:.10g} {name}"
    return f"{size:.0f} bytes"


def square(data: Data, server: str, x: float) -> Iterator[str]:
    """The square of a process or thread, a band for each part."""
    sizes = bytes_each(data, server)
    side = sqrt(sum(sizes.values()))
    top = BASE - side
    for place, (part, name) in enumerate(PARTS):
        height = sizes[part] / side
        yield box(x, top, side, height, f"band{place}")
        if height >= 34:
            yield text(x + 14, top + height / 2 + 8, name, 22)
        top += height


def of_many(size: float) -> str:
    """What the toy shop would need for each of its machines."""
    return f"{MANY // 1000} 000 of them: {said(MANY * size)}"


def memory(data: Data) -> str:
    """A process, a thread, and what has to be known."""
    process, thread = (sum(bytes_each(data, server).values()) for server in ("02-fork", "04-threads"))
    second, third = sqrt(process) + 60, sqrt(process) + sqrt(thread) + 130
    seen = (third + 40, BASE - 4)
    return picture([
        text(WIDTH, 30, "one pixel is one byte", 28, "soft end"),
        step(*square(data, "02-fork", 0), text(0, 438, "a process", 32),
             text(0, 480, f"some {said(process)}", 36, "b")),
        step(text(0, 520, of_many(process), 26, "bad")),
        step(*square(data, "04-threads", second), text(second, 438, "a thread", 32),
             text(second, 480, f"some {said(thread)}", 36, "b"), text(second, 520, of_many(thread), 26, "bad")),
        step(box(*seen, len(SAID), 1, "bad"), arrow(third + 44, BASE - 130, third + 44, BASE - 16),
             line(f"M{third} {BASE}H{WIDTH}"), text(third, 260, SAID, 40, "m"),
             text(third, 438, "what is needed", 32), text(third, 480, f"{len(SAID)} bytes", 36, "b good")),
    ])  # fmt: skip
