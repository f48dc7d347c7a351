"""Other people's servers: benchmarks/peers/<name>.toml says how one is configured, started and
ended.

A peer runs from a private folder, on a port we have chosen, without touching any file of the
system. Its configuration files are templates with @port@, @docroot@, @scratch@ and the
experiment's own values, and the product of two, @threads*workers@; braces mean something to most
servers.
"""

import contextlib
import http.client
import operator
import os
import re
import resource
import signal
import socket
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from quest.ground import toml
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.places import which
from quest.ground.processes import Process, ends_well, running
from quest.ground.toml import Doc, Rule
from quest.spec.model import Params, Texts, Value, Values, Words
from quest.spec.plan import expand_all

FOLDER = Path("benchmarks/peers")
MARKER = re.compile(r"@([a-z_][a-z0-9_]*)(?:\*([a-z_][a-z0-9_]*))?@")
# Given by the harness.
GIVEN = ("port", "helper_port", "address", "docroot", "scratch", "bin", "descriptors", "only_root")


@dataclass(frozen=True)
class Peer:
    """What one file says."""

    name: str
    command: Annotated[
        Words,
        Doc("with {scratch}, {port}, {docroot}, {bin}; no daemon: all stay in the first one's session"),
    ]
    title: Annotated[str, Doc("in tables and figures; else the name of the file")] = ""
    program: Annotated[str, Doc("whose absence skips it; else the name of the file")] = ""
    stop: Annotated[
        signal.Signals,
        Doc(
            "the signal that asks it to end; default TERM",
            accepts=Annotated[str, Rule(choices=("TERM", "QUIT", "INT", "WINCH"))],
            convert=lambda name: signal.Signals[f"SIG{name}"],
        ),
    ] = signal.SIGTERM
    files: Annotated[
        Mapping[str, str],
        Doc(
            "templates, written into {scratch}; one that begins with #! can be run. Markers: "
            "@port@, @helper_port@, @address@, @docroot@, @scratch@, @bin@, @descriptors@ (20 000, "
            "or what one may have), @only_root@ (# for others), all values, and the product of "
            "two, @threads*workers@",
            example='{ "nginx.conf" = "..." }',
        ),
    ] = field(default_factory=dict)
    as_root: Annotated[
        Texts,
        Doc("precedes the command where the harness is root: Apache refuses to serve as root"),
    ] = ()
    helpers: Annotated[Texts, Doc("programs of ours, whose absence skips it", example='["{bin}/x"]')] = ()
    needs: Annotated[Texts, Doc("probes, as those of an experiment")] = ()
    defaults: Annotated[
        Values,
        Doc(
            'values that profile or variant may set otherwise: set = { sendfile = "off" }',
            example='{ sendfile = "on" }',
        ),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)
        object.__setattr__(self, "program", self.program or self.name)


def load(name: str, folder: Path = FOLDER) -> Peer:
    """The peer of that name, or of that path, if it has a `/`: a learner's server in a race is one. InputError if its
    file is missing or wrong.
    """
    path = Path(name) if "/" in name else folder / name
    return toml.load(Peer, path.with_name(f"{path.name}.toml"), name=path.name)


# ---- templates ----------------------------------------------------------------------------------


def fill(text: str, values: Mapping[str, Value], where: str) -> str:
    """A template with its markers replaced. `where`: the file, for InputError if a value is missing
    or a product is not of two whole numbers.
    """

    def value(match: re.Match[str]) -> str:
        names = [name for name in match.groups() if name]
        for name in names:
            if name not in values:
                raise InputError(f"{where}: unknown value @{name}@")
        factors = [values[name] for name in names]
        if len(factors) == 1:
            return str(factors[0])
        try:
            return str(operator.mul(*map(int, factors)))
        except ValueError:
            raise InputError(f"{where}: {match[0]} is not of two whole numbers") from None

    return MARKER.sub(value, text)


def unknown_values(peer: Peer, known: Iterable[str]) -> list[str]:
    """The names in markers of its files for which there is no value."""
    markers = [names for text in peer.files.values() for names in MARKER.findall(text)]
    wanted = {name for names in markers for name in names if name}
    return sorted(wanted - set(GIVEN) - set(peer.defaults) - set(known))


# ---- A peer while it runs ------------------------------------------------------------------------
#
# It gets a port and a private folder, has answered before it is measured, and is ended where the
# `with` block ends.

ADDRESS = "127.0.0.1"
DESCRIPTORS = 20000
START_PATIENCE = 15.0
REPLY_PATIENCE = 5.0
TOO_MUCH = 1 << 16  # so many bytes more than the file has, and the rest of a reply is not waited for


@dataclass(frozen=True)
class Probe:
    """The file a peer must give before it counts as started; without a size it need not be sent,
    and without a path any reply will do but an error of the server's own.
    """

    path: str = ""
    size: int | None = None


def _surroundings(peer: Peer, values: Params, scratch: Path) -> Params:
    """What the harness gives, for the files of a peer: no path of these is relative."""
    address = str(values.get("address", ADDRESS))
    with socket.create_server((address, 0)) as one, socket.create_server((address, 0)) as other:
        port, helper_port = (int(sock.getsockname()[1]) for sock in (one, other))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    known = DESCRIPTORS if soft == resource.RLIM_INFINITY else min(soft, DESCRIPTORS)
    return {
        **peer.defaults,
        **values,
        "port": port,
        "helper_port": helper_port,
        "address": address,
        "scratch": str(scratch.absolute()),
        "bin": str(Path(str(values["bin"])).absolute()),
        "descriptors": known,
        "only_root": "" if os.geteuid() == 0 else "#",
    }


@contextlib.contextmanager
def serving(
    peer: Peer,
    values: Params,
    scratch: Path,
    probe: Probe,
    cpus: frozenset[int] = frozenset(),
    groups: Iterable[Path] = (),
) -> Iterator[tuple[Process, int]]:
    """A peer that has answered, and its port. `values` has docroot and bin; `groups` as in
    processes.running().
    """
    as_root = peer.as_root if os.geteuid() == 0 else ()
    # Not every root may become another user: some containers have no other user.
    if as_root and not (tried := ends_well([*as_root, "true"])).ok:
        raise Unsupported(f"{peer.title} does not serve as root: {tried.reason}")
    values = _surroundings(peer, values, scratch)
    for name, text in peer.files.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(fill(text, values, f"{FOLDER}/{peer.name}.toml"), encoding="utf-8")
        if text.startswith("#!"):
            path.chmod(0o755)
    words = expand_all((*as_root, *peer.command), values)
    words = [which(word) or word if word == peer.program else word for word in words]
    address, port = str(values["address"]), int(values["port"])
    with running(peer.name, words, cpus, groups=groups) as process:
        _await_reply(process, address, port, probe)
        yield process, port


def _await_reply(process: Process, address: str, port: int, probe: Probe) -> None:
    """Until it answers as it will under load: a peer prints no listening line."""
    deadline = time.monotonic() + START_PATIENCE
    while time.monotonic() < deadline:
        if process.reap(0.0):
            raise RepetitionError(process.describe_end())
        try:
            problem = _ask(address, port, probe)
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
        else:
            if problem:
                raise RepetitionError(f"{process.name}: {problem}")
            return
    raise RepetitionError(f"{process.name} did not answer within {START_PATIENCE:g} s")


def _ask(address: str, port: int, probe: Probe) -> str:
    """What is wrong with the reply; OSError while there is none, as from a helper not ready."""
    connection = http.client.HTTPConnection(address, port, timeout=REPLY_PATIENCE)
    most = (probe.size or 0) + TOO_MUCH
    try:
        target = urllib.parse.quote(f"/{probe.path}")
        method = "GET" if probe.size is not None else "HEAD"
        connection.request(method, target, headers={"Connection": "close"})
        reply = connection.getresponse()
        body = reply.read(most)
        if reply.length and len(body) < most:
            raise http.client.IncompleteRead(body, reply.length)
    finally:
        connection.close()
    if reply.status >= http.client.INTERNAL_SERVER_ERROR:
        raise ConnectionError(reply.status)
    if not probe.path or (reply.status == http.client.OK and len(body) == (probe.size or 0)):
        return ""
    or_more = " or more" if len(body) == most else ""
    wanted = "" if probe.size is None else f" and {len(body)}{or_more} bytes, not {probe.size}"
    return f"{method} {target} gave status {reply.status}{wanted}"
