"""benchmarks/tsung/quest.xml: as it stands it loads this host alone, and Tsung accepts it."""

from __future__ import annotations

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from harness.system import places

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "tsung" / "quest.xml"
DTD = Path("/usr/share/tsung/tsung-1.0.dtd")
# By the parser that Tsung itself reads the file with.
VALIDATE = """\
case xmerl_scan:file("{file}", [{{validation, true}}, {{quiet, true}}]) of
    {{error, Why}} -> io:format("~p~n", [Why]), halt(1);
    _ -> halt(0)
end.
"""


def validate(file: Path) -> subprocess.CompletedProcess[str]:
    command = ["erl", "-noshell", "-eval", VALIDATE.format(file=file)]
    quiet = {**os.environ, "ERL_CRASH_DUMP_SECONDS": "0"}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=quiet,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def test_it_loads_this_host_alone_until_somebody_changes_it() -> None:
    root = ElementTree.parse(FILE).getroot()
    clients = [dict(client.attrib) for client in root.iter("client")]
    assert [(c["host"], c["use_controller_vm"]) for c in clients] == [("localhost", "true")]
    assert [server.attrib["host"] for server in root.iter("server")] == ["127.0.0.1"]
    seconds = {phase.attrib["unit"]: phase for phase in root.iter("arrivalphase")}
    assert set(seconds) == {"second"}
    assert sum(int(phase.attrib["duration"]) for phase in root.iter("arrivalphase")) <= 30


def test_it_is_what_tsung_expects(tmp_path: Path) -> None:
    if not DTD.is_file() or not places.which("erl"):
        pytest.skip("Tsung is not installed (apt-get install tsung)")
    done = validate(FILE)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = tmp_path / "wrong.xml"
    wrong.write_text(FILE.read_text(encoding="utf-8").replace("<load>", "<load lod='1'>"))
    assert validate(wrong).returncode != 0
