"""Prints a page as PDF: print.py CHROMIUM PAGE[?QUERY] OUTPUT

The page is a file. While its script still lays it out, the root element has data-printing="wait".
A table of contents for paper (.paper-contents) gets the page numbers of its chapters: CSS has no
way to ask for them (Chromium knows no target-counter), so they are read in a first print and
written into a second. If they cannot be read, or do not stay the same, they are left out, and a
line says so.

With SOURCE_DATE_EPOCH in the environment the PDF bears that date, and the same page gives the same
bytes. Chromium itself does not look at it.

Status 1 and one line on stderr when there is no PDF; then OUTPUT is left as it was.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from chromium import Browser, ChromiumError, running

SECONDS = 180

# A figure that is not decoded yet, or a font that is not there yet, would be missing on paper.
READY = """(async () => {
  const root = document.documentElement;
  while (root.dataset.printing === "wait") await new Promise((done) => setTimeout(done, 20));
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode()));
  await new Promise((done) => setTimeout(done, 0));
})()"""

CONTENTS = """[...document.querySelectorAll('.paper-contents a[href^="#"]')]
  .map((link) => decodeURIComponent(link.hash.slice(1)))"""

NUMBER = """(() => {
  const pages = %s;
  for (const link of document.querySelectorAll('.paper-contents a[href^="#"]'))
    link.dataset.page = pages[decodeURIComponent(link.hash.slice(1))] ?? "";
})()"""

OBJECT = re.compile(rb"\n(\d+) 0 obj\n(.*?)\nendobj", re.DOTALL)
DESTINATION = re.compile(rb"/([^\s/\[]+) \[(\d+) 0 R /XYZ")
NODE = re.compile(rb"\(node\d{8}\)")
DATE = re.compile(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}\+00'00'\)")


def objects_of(pdf: bytes) -> dict[int, bytes]:
    """The objects of a PDF as Chromium writes it: version 1.4, none inside a stream."""
    return {int(number): text for number, text in OBJECT.findall(b"\n" + pdf)}


def pages_under(objects: dict[int, bytes], number: int) -> list[int]:
    """The pages below a node of the page tree, in order."""
    kids = re.search(rb"/Kids \[([^\]]*)\]", objects.get(number, b""))
    if not kids:
        return [number]
    children = [int(kid) for kid in re.findall(rb"(\d+) 0 R", kids[1])]
    return [page for child in children for page in pages_under(objects, child)]


def name_of(raw: bytes) -> str:
    """A PDF name without its escapes: #20 is a space."""
    plain = re.sub(rb"#([0-9A-Fa-f]{2})", lambda match: bytes([int(match[1], 16)]), raw)
    return plain.decode(errors="replace")


def destinations(pdf: bytes) -> dict[str, int]:
    """Page of every place that a link of the document leads to; {} if it cannot be read."""
    objects = objects_of(pdf)
    catalog = next((text for text in objects.values() if text.startswith(b"<</Type /Catalog")), b"")
    roots = {key: int(number) for key, number in re.findall(rb"/(Pages|Dests) (\d+) 0 R", catalog)}
    if len(roots) != 2:
        return {}
    pages = {number: at + 1 for at, number in enumerate(pages_under(objects, roots[b"Pages"]))}
    found = DESTINATION.findall(objects.get(roots[b"Dests"], b""))
    return {name_of(name): pages[int(page)] for name, page in found if int(page) in pages}


def with_contents(browser: Browser, wanted: list[str]) -> bytes:
    """The PDF with the pages of these places in its table of contents, or without any."""
    numbers = dict.fromkeys(wanted, 0)
    for _ in range(3):
        browser.evaluate(NUMBER % json.dumps(numbers))
        pdf = browser.pdf()
        found = destinations(pdf)
        if any(name not in found for name in wanted):
            break
        if numbers == {name: found[name] for name in wanted}:
            return pdf
        numbers = {name: found[name] for name in wanted}
    print("print: the contents have no page numbers: they cannot be read in this Chromium's PDF")
    browser.evaluate(NUMBER % "{}")
    return browser.pdf()


def dated(pdf: bytes, seconds: str) -> bytes:
    """With this date for its own, and without what differs from one run of Chromium to the next:
    it numbers the places of a tagged PDF as it happened to number the nodes of the page. They get
    other numbers in the same order, which their index needs. No byte moves, for a PDF finds its
    objects by their offsets.
    """
    date = time.strftime("%Y%m%d%H%M%S", time.gmtime(int(seconds))).encode()
    numbers = {node: b"(node%08d)" % at for at, node in enumerate(sorted(set(NODE.findall(pdf))))}
    renumbered = NODE.sub(lambda match: numbers[match[0]], pdf)
    return DATE.sub(rb"\g<1>%b+00'00')" % date, renumbered)


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        sys.exit("usage: print.py CHROMIUM PAGE[?QUERY] OUTPUT")
    program, page, output = arguments
    date = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not re.fullmatch(r"\d{0,11}", date):
        sys.exit(f"print: SOURCE_DATE_EPOCH={date} is no number of seconds")
    path, mark, query = page.partition("?")
    if not Path(path).is_file():
        sys.exit(f"print: {path} is not there")
    try:
        with running(program, SECONDS) as browser:
            browser.open(Path(path).resolve().as_uri() + mark + query)
            browser.evaluate(READY)
            wanted = browser.evaluate(CONTENTS)
            pdf = with_contents(browser, wanted) if wanted else browser.pdf()
    except ChromiumError as error:
        sys.exit(f"print: {page}: {error}")
    part = Path(f"{output}.{os.getpid()}.part")
    part.write_bytes(dated(pdf, date) if date else pdf)
    part.replace(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
