"""Other people's servers: benchmarks/peers/<name>.toml says how one is configured, started and
ended.

A peer runs from a private folder, on a port we have chosen, without touching any file of the
system. Its configuration files are templates with @port@, @docroot@, @scratch@ and the
experiment's own values, and the product of two, @threads*workers@; braces mean something to most
servers.
"""

import math
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.model import Value
from harness.tables import Table, read_toml

FOLDER = Path("benchmarks/peers")
MARKER = re.compile(r"@([a-z_][a-z0-9_]*)(?:\*([a-z_][a-z0-9_]*))?@")
STOP_SIGNALS = ("TERM", "QUIT", "INT", "WINCH")
# Given by the harness, beside the folders a peer's own file looks for.
GIVEN = ("port", "helper_port", "address", "docroot", "scratch", "bin", "descriptors", "only_root")


@dataclass(frozen=True)
class Peer:
    """`folders`: for each marker, where its folder may be; `as_root` precedes the command there."""

    name: str
    title: str
    program: str
    command: tuple[str, ...]
    files: Mapping[str, str]
    stop: signal.Signals
    as_root: tuple[str, ...]
    helpers: tuple[str, ...]
    needs: tuple[str, ...]
    defaults: Mapping[str, Value]
    folders: Mapping[str, tuple[str, ...]]


def load(name: str, folder: Path = FOLDER) -> Peer:
    path = folder / f"{name}.toml"
    table = Table(str(path), read_toml(path, str(path)))
    files, folders = table.table("files"), table.table("folders")
    peer = Peer(
        name=name,
        title=table.text("title", name),
        program=table.text("program", name),
        command=table.texts("command"),
        files={file: files.text(file) for file in files.names()},
        stop=signal.Signals[f"SIG{table.choice('stop', STOP_SIGNALS, 'TERM')}"],
        as_root=table.texts("as_root"),
        helpers=table.texts("helpers"),
        needs=table.texts("needs"),
        defaults=_defaults(table.table("defaults")),
        folders={key: folders.texts(key) for key in folders.names()},
    )
    table.required("command")
    table.done()
    return peer


def _defaults(table: Table) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for key in table.names():
        value = table.raw(key)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise table.error(f'"{key}" must be a number or text')
        values[key] = value
    return values


# ---- templates ----------------------------------------------------------------------------------


def fill(text: str, values: Mapping[str, Value], where: str) -> str:
    def value(match: re.Match[str]) -> str:
        names = [name for name in match.groups() if name]
        for name in names:
            if name not in values:
                raise InputError(f"{where}: unknown value @{name}@")
        found = [values[name] for name in names]
        if len(found) == 1:
            return str(found[0])
        if not all(isinstance(each, int) for each in found):
            raise InputError(f"{where}: {match.group()} is not of two whole numbers")
        return str(math.prod(map(int, found)))

    return MARKER.sub(value, text)


def unknown_values(peer: Peer, known: Iterable[str]) -> list[str]:
    """Markers of its files that nothing will fill in."""
    found = [names for text in peer.files.values() for names in MARKER.findall(text)]
    wanted = {name for names in found for name in names if name}
    return sorted(wanted - set(GIVEN) - set(peer.defaults) - set(peer.folders) - set(known))


def write_files(peer: Peer, folder: Path, values: Mapping[str, Value]) -> None:
    """A file that begins with #! can be run."""
    for name, text in peer.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(text, values, f"{FOLDER}/{peer.name}.toml"), encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)
