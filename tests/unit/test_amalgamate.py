"""`make amalgamate`: every server as one file that compiles alone, without a warning."""

import subprocess
from pathlib import Path

import pytest

from quest.book.amalgamate import amalgamated
from quest.measure import needs
from tests.conformance.matrix import PROGRAMS, rows
from tests.place import without_outer_make

ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wshadow", "-Werror", "-pthread"]
LIBRARIES = {
    "13-uring": ["-luring"],
    "14-owfat": ["-idirafter", "/usr/include/libowfat", "-lowfat"],
}
SOURCES = """sources: ; @printf '%s\\n' $(foreach s,$(SERVERS),"$(s) $($(s)_SRC) $($(s)_SRC_any)")"""


def make(*words: str) -> str:
    command = ["make", "-s", *words]
    return subprocess.run(
        command, cwd=ROOT, env=without_outer_make(), capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="session")
def sources() -> dict[str, list[str]]:
    """Of each server, as make has them: asked once, since each make takes half a second."""
    lines = (line.split() for line in make("--eval", SOURCES, "sources").splitlines())
    return {server: files for server, *files in lines}


@pytest.mark.parametrize("server", rows(PROGRAMS))
def test_one_file_compiles_alone(
    server: str, sources: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (lacking := needs.missing_library(server, ROOT)) is not None:
        pytest.skip(f"{lacking.reason}: {lacking.remedy}")
    monkeypatch.chdir(ROOT)
    text = amalgamated(server, sources[server])
    assert '#include "' not in text
    source = tmp_path / f"{server}.c"
    source.write_text(text + "\n", encoding="utf-8")
    command = ["cc", *FLAGS, "-o", str(tmp_path / server), str(source), *LIBRARIES.get(server, [])]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    help_text = subprocess.run([tmp_path / server, "-h"], capture_output=True, check=True).stdout
    assert b"usage" in help_text


@pytest.mark.parametrize("server", ["02-fork", "10-kqueue"])
def test_the_goal_names_the_file(
    server: str, sources: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is made of more where the system has no kqueue."""
    written = Path(make("amalgamate", f"CH={server}", f"BUILD={tmp_path}").strip())
    monkeypatch.chdir(ROOT)
    assert written.read_text(encoding="utf-8") == amalgamated(server, sources[server]) + "\n"
