"""Where the programs under test are, and which of them the command line asks for."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.process import Server, Target
from conformance.servers import FOLDERS, MODELS

TREE = Path(__file__).resolve().parents[2]
Start = Callable[..., Server]  #: of the fixture `start`
Run = Callable[..., subprocess.CompletedProcess[str]]  #: of the fixture `run`


def _listed(config: pytest.Config, option: str, known: list[str]) -> list[str]:
    names = [name for name in str(config.getoption(option)).replace(",", " ").split() if name]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise pytest.UsageError(f"{option}: {unknown or 'none'}; there are {', '.join(known)}")
    return names


def variants(config: pytest.Config) -> list[str]:
    return _listed(config, "--variants", list(FOLDERS))


def binary(config: pytest.Config, variant: str, name: str) -> Path:
    build = Path(str(config.getoption("--build")))
    return TREE / build / FOLDERS[variant] / name  # an absolute --build stays as it is


def targets(config: pytest.Config) -> list[Target]:
    return [
        Target(MODELS[name], variant, binary(config, variant, MODELS[name].program or name))
        for name in _listed(config, "--servers", list(MODELS))
        for variant in variants(config)
    ]


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False
