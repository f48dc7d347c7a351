"""Where the programs under test are, and which of them the command line asks for."""

import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance import tracing
from tests.conformance.matrix import FOLDERS, KINDS, MODELS, Kind
from tests.conformance.process import AS_ROOT, Server, Target

TREE = Path(__file__).resolve().parents[2]
Start = Callable[..., Server]  #: of the fixture `start`
Run = Callable[..., subprocess.CompletedProcess[str]]  #: of the fixture `run`
Traced = Callable[..., tuple[Server, tracing.Trace]]  #: of the fixture `traced`
#: All tests that were collected, before any were taken away by -k or -m.
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def _listed(config: pytest.Config, option: str, known: list[str]) -> list[str]:
    names = [name for name in str(config.getoption(option)).replace(",", " ").split() if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise pytest.UsageError(f"{option}: {unknown or 'none'}; there are {', '.join(known)}")
    return names


def binary(config: pytest.Config, variant: str, name: str) -> Path:
    build = Path(str(config.getoption("--build")))
    return TREE / build / FOLDERS[variant] / name  # an absolute --build stays as it is


def kind_of(node: pytest.Item | pytest.Function) -> Kind | None:
    """What the matrix says of this test; None for one that is not in it (the labs' own)."""
    marker = node.get_closest_marker("kind")
    return KINDS[marker.args[0]] if marker is not None else None


def variants(config: pytest.Config, of: Kind | None = None) -> list[str]:
    asked = _listed(config, "--variants", list(FOLDERS))
    return [variant for variant in asked if of is None or variant in of.variants]


def targets(config: pytest.Config, of: Kind | None = None) -> list[Target]:
    """The servers under test, each in every variant that is asked for and that it is built in."""
    in_cell = bool(config.getoption("--in-cell"))
    return [
        Target(MODELS[name], variant, binary(config, variant, MODELS[name].program or name), in_cell)
        for name in _listed(config, "--servers", list(MODELS))
        for variant in variants(config, of)
        if variant in MODELS[name].variants and (of is None or name in of.servers)
    ]


def is_about(item: pytest.Item, program: str) -> bool:
    """Whether a test starts this program, or has its name; so do the tests of what all servers
    share, and those of 00-client and constant, which start both.
    """
    marker = item.get_closest_marker("kind")
    if marker is not None and marker.args[0] == "programs":
        return program not in MODELS
    target = item.callspec.params.get("target") if hasattr(item, "callspec") else None
    if isinstance(target, Target):
        return target.name == program
    return program in item.name or item.path.name == "test_unit.py"


def complaint(done: subprocess.CompletedProcess[str], status: int, name: str) -> str:
    """What a program says that cannot go on: one line on stderr, nothing on stdout."""
    assert (done.returncode, done.stdout) == (status, ""), done
    line = re.fullmatch(rf"{re.escape(name)}: (.*)\n", AS_ROOT.sub("", done.stderr))
    assert line is not None, done
    return line[1]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False
