"""A network of the measurement's own: entered once, and only where there can be one."""

import os
import subprocess
import sys

import pytest

from quest.measure import namespaces
from quest.measure.namespaces import OwnNetwork
from tests.harness.made_up import BENCHMARKS

INSIDE = """
import os, pathlib, socket
from quest.measure.namespaces import OwnNetwork
before = os.readlink("/proc/self/ns/net")
network = OwnNetwork()
network.enter()
first = os.readlink("/proc/self/ns/net")
network.enter()
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), timeout=5)
settings = [pathlib.Path("/proc/sys/net/ipv4", name).read_text().split()
            for name in ("tcp_congestion_control", "ip_local_port_range")]
print(before != first, first == os.readlink("/proc/self/ns/net"), network.entered, os.geteuid())
print(settings)
"""


def test_it_is_entered_once_where_there_can_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(namespaces, "_unshare_network", lambda: made.append(1))
    monkeypatch.setattr(namespaces, "why_no_network", lambda: "it is refused")
    network = OwnNetwork()
    network.enter()
    assert (network.entered, made) == (False, [])
    monkeypatch.setattr(namespaces, "why_no_network", lambda: "")
    network.enter()
    network.enter()
    assert (network.entered, made) == (True, [1])


def test_why_there_can_be_none_is_found_out_by_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(namespaces, "_unshare_network", refused)
    assert namespaces.why_no_network() == "no network namespace: Operation not permitted"
    monkeypatch.setattr(namespaces, "_unshare_network", lambda: os._exit(3))
    assert namespaces.why_no_network() == "the probe of network namespaces died"
    monkeypatch.setattr(namespaces, "_unshare_network", lambda: None)  # loopback is up here
    assert namespaces.why_no_network() == ""


def test_inside_nothing_else_is_heard_and_the_settings_are_ours() -> None:
    before = os.readlink("/proc/self/ns/net")
    if reason := namespaces.why_no_network():
        pytest.skip(reason)
    assert os.readlink("/proc/self/ns/net") == before, "it is tried by a child"
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
    words = [sys.executable, "-c", INSIDE]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    moved, settings = done.stdout.splitlines()
    assert moved == f"True True True {os.geteuid()}"
    assert settings == "[['reno'], ['1024', '65535']]"
