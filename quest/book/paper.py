"""Prints a page as PDF: print.py CHROMIUM PAGE[?QUERY] OUTPUT

The page is a file. While its script still lays it out, the root element has data-printing="wait":
`chromium --print-to-pdf` would not wait for that, so selenium drives a headless Chromium here.
A table of contents for paper (.paper-contents) gets the page numbers of its chapters, which CSS
cannot ask for: they are read in a first print and written into a second. If they cannot be read,
or do not stay the same, they are left out, and a line says so. With SOURCE_DATE_EPOCH the PDF bears
that date, and the same page gives the same bytes; Chromium itself does not look at it.
Status 1 and one line on stderr when there is no PDF; then OUTPUT is left as it was.
"""

import base64
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.remote.remote_connection import RemoteConnection
except ImportError:
    sys.exit("print: selenium is not installed (apt-get install python3-selenium)")

SECONDS = 180
FLAGS = [
    "--headless=new", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--no-default-browser-check",
]  # fmt: skip
PRINT = {
    "preferCSSPageSize": True,
    "printBackground": True,
    "generateTaggedPDF": True,
    "generateDocumentOutline": True,
}
# What Chromium itself writes before it ends: not the driver's lines, which begin with "[12.3][".
LAST_WORDS = re.compile(r"^(?!\[[\d.]+\]\[).+$", re.MULTILINE)

# A figure that is not decoded yet, or a font that is not there yet, would be missing on paper.
READY = """const done = arguments[0];
(async () => {
  const root = document.documentElement;
  while (root.dataset.printing === "wait") await new Promise((next) => setTimeout(next, 20));
  await document.fonts.ready;
  await Promise.all([...document.images].map((image) => image.decode()));
  await new Promise((next) => setTimeout(next, 0));
})().then(() => done(""), (error) => done(String(error)));"""

CONTENTS = """return [...document.querySelectorAll('.paper-contents a[href^="#"]')]
  .map((link) => decodeURIComponent(link.hash.slice(1)))"""

NUMBER = """for (const link of document.querySelectorAll('.paper-contents a[href^="#"]'))
  link.dataset.page = arguments[0][decodeURIComponent(link.hash.slice(1))] ?? "";"""

NODE = re.compile(rb"\(node\d{8}\)")
DATE = re.compile(rb"(/(?:CreationDate|ModDate) \(D:)\d{14}\+00'00'\)")


def destinations(pdf: bytes) -> dict[str, int]:
    """Page of every place that a link of the document leads to; {} without poppler's pdfinfo."""
    try:
        said = subprocess.run(["pdfinfo", "-dests", "-"], input=pdf, capture_output=True).stdout
    except OSError:
        return {}
    found = re.findall(r'^ *(\d+) \[.*\] "(.*)"$', said.decode(errors="replace"), re.M)
    return {name: int(page) for page, name in found}


@contextlib.contextmanager
def running(program: str, options: Any) -> Iterator[Any]:  # ChromeOptions; a selenium WebDriver
    """A headless Chromium; each of its steps takes at most SECONDS."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "log"
        options.binary_location = program
        root = ["--no-sandbox"] if os.geteuid() == 0 else []  # it starts no other way then
        for flag in [*FLAGS, *root, f"--user-data-dir={folder}/profile"]:
            options.add_argument(flag)
        service: Any = Service(
            shutil.which("chromedriver") or "chromedriver",
            service_args=["--enable-chrome-logs", f"--log-path={log}"],
            env={**os.environ, "HOME": folder},  # what it writes beside its profile goes there too
        )
        connection: Any = RemoteConnection  # not typed in selenium 4.8
        connection.set_timeout(SECONDS)
        try:
            browser: Any = webdriver.Chrome(options=options, service=service)
        except WebDriverException as error:
            words = LAST_WORDS.findall(log.read_text(errors="replace")) if log.exists() else []
            raise WebDriverException(f"{error.msg}: {words[-1]}" if words else error.msg) from None
        try:
            browser.set_page_load_timeout(SECONDS)
            browser.set_script_timeout(SECONDS)
            yield browser
        finally:
            browser.quit()


def print_once(browser: Any) -> bytes:
    return base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", PRINT)["data"])


def with_contents(browser: Any, wanted: list[str]) -> bytes:
    """The PDF with the pages of these places in its table of contents, or without any."""
    numbers = dict.fromkeys(wanted, 0)
    for _ in range(3):
        browser.execute_script(NUMBER, numbers)
        pdf = print_once(browser)
        found = {name: page for name, page in destinations(pdf).items() if name in numbers}
        if found == numbers:
            return pdf
        numbers |= found
    print("print: the contents have no page numbers: pdfinfo (poppler-utils) cannot read them")
    browser.execute_script(NUMBER, {})
    return print_once(browser)


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
        with running(program, webdriver.ChromeOptions()) as browser:
            browser.get(Path(path).resolve().as_uri() + mark + query)
            fault = browser.execute_async_script(READY)
            if fault:
                sys.exit(f"print: {page}: in the page: {fault}")
            wanted = browser.execute_script(CONTENTS)
            pdf = with_contents(browser, wanted) if wanted else print_once(browser)
    except (WebDriverException, OSError) as error:
        reason = getattr(error, "msg", None) or str(error)
        sys.exit(f"print: {page}: {' '.join(reason.split())}")
    part = Path(f"{output}.{os.getpid()}.part")
    part.write_bytes(dated(pdf, date) if date else pdf)
    part.replace(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
