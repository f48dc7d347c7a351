"""Hashes of programs."""

import hashlib
import shutil
import struct
import subprocess
from pathlib import Path
from typing import cast

import pytest

from quest.ground.places import Answer
from quest.measure import needs, programs
from quest.measure.remote import Client
from tests.harness.made_up import parsed
from tests.harness.test_load import loaded


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler")
def test_a_comment_does_not_change_a_program_but_code_does(tmp_path: Path) -> None:
    def build(source: str) -> str:
        (tmp_path / "x.c").write_text(source)
        command = ["cc", "-O2", "-g", "-Wl,--build-id", "-o", "x", "x.c"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return programs.fingerprint(tmp_path / "x")

    first = build("int main(void) { return 0; }\n")
    assert build("/* moved down */\n\nint main(void) { return 0; }\n") == first
    assert build("int main(void) { return 1; }\n") != first
    assert build("char room[77];\nint main(void) { return 0; }\n") != first


def test_a_script_is_hashed_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "x"
    script.write_bytes(b"#!/bin/sh\n")
    first = programs.fingerprint(script)
    script.write_bytes(b"\x7fELF\x02\x01 not really")
    assert programs.fingerprint(script) != first


def test_a_program_whose_sections_are_nowhere_is_hashed_as_it_is(tmp_path: Path) -> None:
    """As a program that was packed may say: the kernel does not look at its sections."""
    header = bytearray(b"\x7fELF\x02\x01".ljust(64, b"\0"))
    struct.pack_into("<Q", header, 0x28, 1 << 63)
    struct.pack_into("<HHH", header, 0x3A, 64, 1, 0)
    (tmp_path / "x").write_bytes(header)
    assert programs.fingerprint(tmp_path / "x") == hashlib.sha256(header).hexdigest()


def test_the_programs_of_a_variant() -> None:
    """All command words that start one: helpers, what a command starts, the load."""
    micro = parsed()
    assert programs.needed_programs(micro, micro.variants[0]) == ["build/bin/fake"]
    command = ["env", "X=1", "{bin}/x", "{n}"]
    other = parsed(variant=[{"name": "a", "build": "diet", "command": command}])
    assert programs.needed_programs(other, other.variants[0]) == ["env", "build/diet/x"]
    helper = {"name": "h", "command": ["{bin}/h"]}
    load = loaded({"build": "musl"}, helper=[helper])
    words = ["build/musl/h", "build/musl/fake-server", "build/bin/hammer"]
    assert programs.needed_programs(load, load.variants[0]) == words
    wrk = loaded({"load": "wrk"}, wrk={"args": ["{url}/a"]})
    assert programs.needed_programs(wrk, wrk.variants[0]) == ["build/bin/fake-server", "wrk"]
    client = cast(Client, object())
    assert programs.needed_programs(wrk, wrk.variants[0], client) == ["build/bin/fake-server"]
    silent = loaded({"load": "none"}, helper=[helper])
    assert "build/bin/hammer" not in programs.needed_programs(silent, silent.variants[0])


def test_the_other_hosts_hammer_is_static_where_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert programs.hammer_to_copy() == Path("build/bin/hammer")
    Path("build/static").mkdir(parents=True)
    Path("build/static/hammer").touch()
    assert programs.hammer_to_copy() == Path("build/static/hammer")


def test_the_first_thing_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    experiment = parsed(variant=[{"name": "a", "command": ["{bin}/fake"], "needs": ["thing"]}])
    (variant,) = experiment.variants
    lacks = {"thing": Answer(False, "no thing", "buy one")}
    monkeypatch.setattr(needs, "probe", lambda need, _many=False: lacks.get(need, Answer(True)))
    assert programs.missing(experiment, variant) == lacks.pop("thing")
    built = Answer(False, "build/bin/fake is not built", "make variants")
    assert programs.missing(experiment, variant) == built
    Path("build/bin").mkdir(parents=True)
    Path("build/bin/fake").touch()
    assert programs.missing(experiment, variant) is None
    static = parsed(variant=[{"name": "a", "build": "static", "command": ["{bin}/fake"]}])
    lacks["static"] = Answer(False, "no static library", "install it")
    assert programs.missing(static, static.variants[0]) == lacks["static"]
    tool = parsed(variant=[{"name": "a", "command": ["no-such-tool"]}])
    assert programs.missing(tool, tool.variants[0]) == (
        False, "no-such-tool is not installed", "apt-get install no-such-tool"
    )  # fmt: skip


def test_a_load_tool_is_needed_where_the_load_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Host:
        def why_not(self, *_: object) -> None:
            """Nothing is missing there."""

    monkeypatch.chdir(tmp_path)
    Path("build/bin").mkdir(parents=True)
    Path("build/bin/fake-server").touch()
    absent = Answer(False, "wrk is not installed", "apt-get install wrk")
    monkeypatch.setattr(needs, "probe", lambda need, _many=False: absent if need == "wrk" else Answer(True))
    wrk = loaded({"load": "wrk", "needs": ["wrk"]}, wrk={"args": ["{url}/a"]})
    assert programs.missing(wrk, wrk.variants[0]) == absent
    assert programs.missing(wrk, wrk.variants[0], cast(Client, Host())) is None


def test_hashes_are_of_what_is_there_and_of_the_other_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is passed decides, and nothing else: the same call without the host is as before."""

    class Host:
        kernel = "Linux 6.1"

        def fingerprint(self) -> str:
            return f"of {self.kernel}"

    monkeypatch.chdir(tmp_path)
    Path("build/bin").mkdir(parents=True)
    Path("build/bin/fake-server").write_text("#!/bin/sh\n", encoding="ascii")
    experiment = loaded()
    here = programs.fingerprints(experiment, experiment.variants)
    assert here == {"bin/fake-server": programs.fingerprint(Path("build/bin/fake-server"))}
    host = Host()
    far = programs.fingerprints(experiment, experiment.variants, cast(Client, host))
    assert far == {"client": "of Linux 6.1", **here}
    host.kernel = "Linux 2.4"
    assert programs.fingerprints(experiment, (), cast(Client, host)) == {"client": "of Linux 2.4"}
    assert programs.fingerprints(experiment, experiment.variants) == here
