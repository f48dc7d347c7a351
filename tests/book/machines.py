"""What stands in the place of a machine where there is no script: chapters/pandoc/machines/stills.txt.

    python3 -m tests.book.machines    writes it anew, by Chromium; look at its diff before it is committed
"""

from pathlib import Path
from typing import Any

from quest.book.paper import running
from tests.book.tree import CHROMIUM, ROOT, files_of

FOLDER = ROOT / "chapters/pandoc/machines"
STILLS = FOLDER / "stills.txt"
SHARED = FOLDER / "machine.js"
NAMES = sorted(path.stem for path in FOLDER.glob("*.js") if path != SHARED)


def script() -> str:
    """What the page has: the shared file first, as chapters/module.mk puts it."""
    return "".join(path.read_text(encoding="utf-8") for path in [SHARED, *(FOLDER / f"{name}.js" for name in NAMES)])


def drawn(driver: Any) -> str:  # selenium's WebDriver
    """The text of stills.txt, drawn by this browser."""
    driver.get("about:blank")
    each = "return Object.entries(machines.known).map(([name, one]) => `==> ${name} <==\\n${machines.still(one)}`)"
    return str(driver.execute_script(f"{script()}{each}.join('');"))


def stills(path: Path = STILLS) -> dict[str, str]:
    """Drawing and sentence of each machine, by its name."""
    return files_of(path.read_text(encoding="utf-8"))


def write() -> None:
    """stills.txt, of the scripts of this tree."""
    from selenium import webdriver

    with running(CHROMIUM, webdriver.ChromeOptions()) as driver:
        STILLS.write_text(drawn(driver), encoding="utf-8")


if __name__ == "__main__":
    write()
