"""Hashes of programs."""

import shutil
import subprocess
from pathlib import Path

import pytest

from quest.measure import programs


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
