"""Prints a page as PDF:

    python3 -m quest.book.paper CHROMIUM PAGE[?QUERY] OUTPUT

The page is a file. While its script still lays it out, the root element has data-printing="wait":
`chromium --print-to-pdf` would not wait for that, so selenium drives a headless Chromium here. The
PDF is tagged and has an outline; it bears the time at which it was made.
Status 2 and one line on stderr when there is no PDF; then OUTPUT is left as it was.
"""

import base64
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quest.ground.entry import run_main
from quest.ground.errors import InputError
from quest.ground.files import write_whole

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


@contextlib.contextmanager
def running(program: str, options: Any) -> Iterator[Any]:  # ChromeOptions; a selenium WebDriver
    """A headless Chromium; each of its steps takes at most SECONDS. WebDriverException, with the
    last words of Chromium, if it does not start.
    """
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.remote.remote_connection import RemoteConnection

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


def printed(program: str, page: str) -> bytes:
    """The PDF of PAGE[?QUERY] by this Chromium. InputError: the page is not there, a part of it
    cannot be shown, or Chromium cannot be driven.
    """
    path, mark, query = page.partition("?")
    if not Path(path).is_file():
        raise InputError(f"print: {path} is not there")
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
    except ImportError:
        need = "selenium is not installed (apt-get install python3-selenium)"
        raise InputError(f"print: {need}") from None
    try:
        with running(program, webdriver.ChromeOptions()) as browser:
            browser.get(Path(path).resolve().as_uri() + mark + query)
            if fault := browser.execute_async_script(READY):
                raise InputError(f"print: {page}: in the page: {fault}")
            return base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", PRINT)["data"])
    except (WebDriverException, OSError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise InputError(f"print: {page}: {' '.join(reason.split())}") from None


def main(arguments: list[str]) -> int:
    """CHROMIUM PAGE[?QUERY] OUTPUT"""
    if len(arguments) != 3:
        raise InputError("print: CHROMIUM PAGE[?QUERY] OUTPUT")
    program, page, output = arguments
    write_whole(Path(output), printed(program, page))
    return 0


if __name__ == "__main__":
    run_main(main)
