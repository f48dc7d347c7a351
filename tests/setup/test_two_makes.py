"""Two makes at once in one build/: neither sees what the other has half written."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parents[2]
# Once it has made what is asked for, it empties that until it may go on.
SLOW_CC = """\
#!/bin/sh
cc "$@" || exit
for word; do [ "$before" != -o ] || out=$word; before=$word; done
case "$*" in
*"{when}"*)
    mv "$out" {folder}/whole && : > "$out" && touch {folder}/half
    tries=600; while [ ! -e {folder}/go-on ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.1; done
    cat {folder}/whole > "$out" && chmod +x "$out" ;;
esac
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    command = ["make", "--no-print-directory", f"BUILD={folder}/build", *words]
    return subprocess.Popen(
        [*command, f"{folder}/build/bin/nothing"], cwd=TREE, env=environment, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


@pytest.mark.parametrize("when", [" -c ", "/bin/nothing"], ids=["object", "program"])
def test_what_another_make_has_half_written_is_not_used(tmp_path: Path, when: str) -> None:
    slow = tmp_path / "cc"
    slow.write_text(SLOW_CC.format(when=when, folder=tmp_path), encoding="ascii")
    slow.chmod(0o755)
    program = tmp_path / "build/bin/nothing"
    first = start(tmp_path, f"CC={slow}")
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "half").exists():
            assert first.poll() is None and time.monotonic() < deadline
            time.sleep(0.02)
        second = start(tmp_path)
        out, _ = second.communicate(timeout=60)
        assert second.returncode == 0, out
        assert subprocess.run([program], check=False).returncode == 0
    finally:
        (tmp_path / "go-on").touch()
        out, _ = first.communicate(timeout=60)
    assert first.returncode == 0, out
    assert subprocess.run([program], check=False).returncode == 0
    assert not [*(tmp_path / "build").rglob("*.part")]
    assert start(tmp_path, "-q").wait(timeout=60) == 0  # nothing is left to be made
