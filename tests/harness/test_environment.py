"""What is recorded of a machine, and that it names no person."""

from pathlib import Path

import pytest

from quest.ground import foreign
from quest.measure import environment


def test_no_path_host_or_user_name_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "someone")
    monkeypatch.setattr("socket.gethostname", lambda: "secret-host")
    text = f"{Path.cwd()}/build/x on secret-host by someone in /home/someone/a: /proc/self/fd"
    assert foreign.anonymous(text) == "build/x on  by  in a: /proc/self/fd"
    assert foreign.anonymous("http://127.0.0.1:80/a/b") == "http://127.0.0.1:80/a/b"


def test_short_processor_names() -> None:
    short = {
        "Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz": "Intel Core i7-8550U",
        "AMD EPYC 7763 64-Core Processor": "AMD EPYC 7763",
    }
    assert {long: environment.short_cpu(long) for long in short} == short
