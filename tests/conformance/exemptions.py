"""Reads the table of exemptions; a mistake in it is an error with its place, not a test that is
skipped silently.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from conformance.contract import LINES
from conformance.servers import MODELS

TABLE = Path(__file__).with_name("exemptions.toml")
FAILS = "fails"
NOT_RUN = "not run"


class TableError(Exception):
    """One line that says what is wrong in which entry."""


@dataclass(frozen=True)
class Exemption:
    server: str
    line: str
    reason: str
    must_fail: bool


def _check(number: int, entry: dict[str, object]) -> list[Exemption]:
    where = f"{TABLE.name}, entry {number}"
    if set(entry) != {"server", "lines", "proof", "reason"}:
        raise TableError(f"{where}: expected server, lines, proof and reason, found {list(entry)}")
    server, lines, reason = entry["server"], entry["lines"], entry["reason"]
    if server not in MODELS:
        raise TableError(f"{where}: no such server: {server}")
    if entry["proof"] not in (FAILS, NOT_RUN):
        raise TableError(f'{where}: proof is "{FAILS}" or "{NOT_RUN}", not {entry["proof"]!r}')
    if not isinstance(reason, str) or not reason.strip():
        raise TableError(f"{where}: no reason")
    if not isinstance(lines, list) or not lines:
        raise TableError(f"{where}: no lines")
    unknown = [line for line in lines if line not in LINES]
    if unknown:
        raise TableError(f"{where}: no such line of the contract: {', '.join(map(str, unknown))}")
    return [Exemption(str(server), line, reason, entry["proof"] == FAILS) for line in lines]


def parse(text: str) -> dict[tuple[str, str], Exemption]:
    """(server, line) -> exemption."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TableError(f"{TABLE.name}: {error}") from None
    table: dict[tuple[str, str], Exemption] = {}
    for number, entry in enumerate(document.get("exempt", []), 1):
        for exemption in _check(number, entry):
            key = (exemption.server, exemption.line)
            if key in table:
                raise TableError(f"{TABLE.name}, entry {number}: {' x '.join(key)} a second time")
            table[key] = exemption
    return table


def load() -> dict[tuple[str, str], Exemption]:
    return parse(TABLE.read_text(encoding="utf-8"))
