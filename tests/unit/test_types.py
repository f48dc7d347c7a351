"""The content types of code/http/reply.c beside Debian's table of them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DEBIAN = Path("/etc/mime.types")
ROW = re.compile(r'^    \{"\.(\w+)", "([^";]+)(?:; charset=utf-8)?"\},$', re.M)


def ours() -> dict[str, str]:
    text = (ROOT / "code/http/reply.c").read_text(encoding="utf-8")
    return dict(ROW.findall(text[text.index("} types[]") :]))


def debians() -> dict[str, str]:
    rows = [line.partition("#")[0].split() for line in DEBIAN.read_text("utf-8").splitlines()]
    return {suffix: row[0] for row in rows if row for suffix in row[1:]}


def test_each_type_is_debians() -> None:
    if not DEBIAN.exists():
        pytest.skip(f"{DEBIAN} is not here (apt-get install media-types)")
    expected = debians()
    assert len(ours()) > 25
    assert {suffix: expected.get(suffix) for suffix in ours()} == ours()
