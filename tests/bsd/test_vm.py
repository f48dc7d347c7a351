"""`make vm` with a machine that is made up: what is fetched, and when; that it is reached from here
only; what its tests say; and that what it runs there can fail.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMMANDS = {
    "qemu-system-x86_64": 'echo "$*" >$FAKE/booted; echo $$ >$FAKE/pid; exec sleep 60',
    "qemu-img": "",
    "genisoimage": "",
    # What is to be done there is done here, in a folder of its own.
    "ssh": 'for word; do :; done; cd $FAKE/there && PATH=$FAKE/guest:$PATH exec sh -c "$word"',
    "guest/sysctl": "test -e $FAKE/booted && echo 7",
    "guest/env": "",
    "guest/gmake": """
        test -e code/10-kqueue/server.c && mkdir -p build/bin
        printf '#!/bin/sh\\necho ok 1 - made up\\n' >build/bin/kqueue_test
        chmod +x build/bin/kqueue_test""",
    "guest/python3": 'test "$2" = tests.bsd.test_smoke && exit $SMOKE',
    "guest/shutdown": "kill $(cat $FAKE/pid)",
}


def vm(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """With the commands that are made up, and an image that is."""
    for name in ("curl", "xz", "ssh-keygen", "git"):
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}")
    for name, text in COMMANDS.items():
        path = folder / "fake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
        path.chmod(0o755)
    (folder / "fake/there").mkdir(exist_ok=True)
    packed = lzma.compress(b"a disk")
    (folder / "disk.qcow2.xz").write_bytes(packed)
    known = {
        "PATH": f"{folder}/fake:{os.environ['PATH']}", "FAKE": f"{folder}/fake", "SMOKE": "0",
        "BUILD": f"{folder}/build", "VM_URL": (folder / "disk.qcow2.xz").as_uri(), "VM_CALM": "0",
        "VM_SHA256": hashlib.sha256(packed).hexdigest(), "DEPS": "yes",
    }  # fmt: skip
    return subprocess.run(
        ["/bin/sh", HERE / "vm.sh"], cwd=HERE.parents[1], env={**os.environ, **known, **settings},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def left(folder: Path) -> set[str]:
    return {path.name for path in (folder / "build/vm").iterdir()}


def test_a_machine(tmp_path: Path) -> None:
    """Twice, and then nothing is fetched any more."""
    for smoke, said in enumerate(("vm: passed; ", "vm: NOT passed; ")):
        done = vm(tmp_path, SMOKE=str(smoke))
        assert (done.returncode, said in done.stdout + done.stderr) == (smoke, True), done
        assert f"smoke test of 10-kqueue: status {smoke}" in done.stdout
        assert ("fetching" in done.stdout) == (smoke == 0)
        assert left(tmp_path) == {"disk.qcow2", "freebsd.txt"}
        booted = (tmp_path / "fake/booted").read_text(encoding="ascii")
        assert re.search(r"hostfwd=tcp:127\.0\.0\.1:\d+-:22 ", booted), "reached from here only"
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / "fake/pid").read_text(encoding="ascii")), 0)
        (tmp_path / "fake/booted").unlink()


@pytest.mark.parametrize(
    ("setting", "refusal"),
    [
        ({"VM_SHA256": "0" * 64}, "not used"),
        ({"DEPS": "skip"}, "DEPS=yes fetches it"),
        ({"DEPS": "ask"}, "DEPS=yes fetches it"),  # nobody is asked: this is no terminal
        ({"OS": "plan9"}, "there is no plan9"),
        ({"PATH": "/nowhere"}, "qemu-system-x86_64 (Debian: qemu-system-x86)"),
    ],
)
def test_nothing_is_fetched(tmp_path: Path, setting: dict[str, str], refusal: str) -> None:
    (tmp_path / "build/vm").mkdir(parents=True)
    done = vm(tmp_path, **setting)
    assert done.returncode == 1
    assert refusal in done.stderr
    assert left(tmp_path) == set()


def test_the_smoke_test_can_fail() -> None:
    """Of a server for one client."""
    command = [sys.executable, "-m", "tests.bsd.test_smoke"]
    command += ["-k", "test_connections", "-k", "test_pipelining", "-k", "test_stop_in_flight"]
    done = subprocess.run(
        command, env=os.environ | {"SERVER": "01-iterative", "SECONDS": "1"}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    failed = set(re.findall(r"^FAIL: (\w+)", done.stderr, re.MULTILINE))
    assert failed == {"test_connections", "test_pipelining"}, done.stderr
