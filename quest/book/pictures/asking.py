"""How a server learns which client has something: poll looks at every row, and a queue of signals can overflow."""

from quest.book.pictures.data import Data
from quest.book.pictures.svg import WIDTH, arrow, box, line, picture, step, text

CELL = 12  #: a row of the server's list, drawn as a cell of this size
COLUMNS, ROWS = 40, 25
FOUND = (27, 16)  #: the one that is ready


def grid(x: float, y: float, rows: int, names: str, columns: int = COLUMNS) -> str:
    """Cells beside one another: a dashed stroke for each line of them (pictures.css has the dashes)."""
    lines = "".join(f"M{x:g} {y + CELL * row + (CELL - 3) / 2:g}h{CELL * columns}" for row in range(rows))
    return line(lines, f"cells {names}")


def cell(x: float, y: float, at: tuple[int, int], names: str) -> str:
    """One cell of a grid, and a ring so that it is found."""
    column, row = at
    left, top = x + CELL * column, y + CELL * row
    return box(left, top, CELL - 3, CELL - 3, names) + (
        f'<circle class="ring" cx="{left + (CELL - 3) / 2:g}" cy="{top + (CELL - 3) / 2:g}" r="17"/>'
    )


def poll(_: Data) -> str:
    """A thousand rows go to the kernel, which looks at all; they come back, and the server looks at all."""
    width, top = CELL * COLUMNS, 100
    right, bottom = WIDTH - width, top + CELL * ROWS
    middle = WIDTH / 2
    return picture([
        text(0, 34, "the server", 32, "b"), text(right, 34, "the kernel", 32, "b"),
        text(0, 78, f"its list: {COLUMNS * ROWS} clients", 28, "soft"),
        grid(0, top, ROWS, "plain"),
        step(arrow(width + 16, top + 90, right - 16, top + 90),
             text(middle, top + 70, "the whole list", 26, "middle"),
             text(right, 78, "poll(fds, nfds, timeout)", 26, "m"), grid(right, top, ROWS, "plain")),
        step(grid(right, top, ROWS, "walked"), cell(right, top, FOUND, "hit"),
             text(right, bottom + 44, f"looks at all {COLUMNS * ROWS}", 30, "bad")),
        step(arrow(right - 16, top + 210, width + 16, top + 210),
             text(middle, top + 190, "one row marked", 24, "middle")),
        step(grid(0, top, ROWS, "walked"), cell(0, top, FOUND, "hit"),
             text(0, bottom + 44, f"looks at all {COLUMNS * ROWS} again", 30, "bad"),
             text(0, bottom + 86, "if (fds[i].revents)", 26, "m"),
             text(0, bottom + 122, "    serve(&clients[i]);", 26, "m")),
        step(text(right, bottom + 100, "to find one, each time", 32, "b bad")),
    ])  # fmt: skip


#: Descriptors of events, as a queue of signals holds them.
EVENTS = (7, 9, 31, 12, 31, 8, 40, 9, 23, 17)


def sigio(data: Data) -> str:
    """A signal for each event, until the queue is full; then one plain SIGIO, and every descriptor is asked."""
    room, lost = data.number("sigio-overflow.signals").text, data.number("sigio-overflow.lost").text
    found = data.number("sigio-overflow.queue.poll_finds").text
    wide = WIDTH / len(EVENTS)
    slots = []
    for place, descriptor in enumerate(EVENTS):
        slots += [
            box(wide * place + 3, 62, wide - 6, 74, "pale"),
            text(wide * (place + 0.5), 110, f"fd {descriptor}", 30, "middle b"),
        ]
    return picture([
        text(0, 34, "fcntl(fd, F_SETSIG, SIGRTMIN)", 30, "m"),
        text(WIDTH, 34, "a signal for each event", 30, "end soft"),
        box(0, 56, WIDTH, 86, "frame"),
        step(*slots, text(0, 184, f"sigtimedwait() takes one for each call: fd {EVENTS[0]}, then fd {EVENTS[1]}", 28)),
        step(box(WIDTH - 560, 212, 560, 84, "bad"), text(WIDTH - 536, 266, "SIGIO", 40, "b on"),
             text(WIDTH - 24, 264, "something, somewhere", 28, "on end"),
             text(0, 264, "The queue is full:", 34, "b bad")),
        step(text(0, 354, "So you keep the array for poll.", 34, "b"),
             grid(0, 378, 6, "walked", int(WIDTH / CELL))),
        step(text(0, 486, f"Measured, with room for {room}: of {found} events {lost} come as no signal;", 28, "soft"),
             text(0, 522, f"poll finds all {found}.", 28, "soft")),
    ])  # fmt: skip
