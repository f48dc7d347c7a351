"""`make` started by anybody: what a process inherits from a shell, an editor, a hook of git,
another make or a supervisor. Each state ends with 0, or with one line that names what is wrong.
"""

import fcntl
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quest.command import of_make
from quest.command.goals import FROM_ENVIRONMENT, GOALS
from quest.ground import entry
from quest.ground.errors import Stopped
from tests.place import without_outer_make

TREE = Path(__file__).resolve().parents[2]
NONE = "/nonexistent"
#: What each goal says where nothing is wrong; they need no program that was built.
SAYS = {
    "help": "make next", "next": "now: make run CH=00-client", "path": "-> 00-client",
    "chapters": "09-epoll", "labs": "02-fork", "diff": "+++ 02-fork/server.c",
}  # fmt: skip
MANY = {
    **SAYS, "lab": "your file", "hint": "First see what it lacks", "claims": "claim",
    "doctor": "servers: ", "amalgamate": "02-fork.c",
}  # fmt: skip

OF_MAKE = re.compile(r"make(\[\d+\])?: (\*\*\* \[|Target .* not remade|TMPDIR value |using default temporary)")

PYTHON = {
    "PYTHONHOME": NONE, "PYTHONPATH": NONE, "PYTHONSTARTUP": NONE, "PYTHONSAFEPATH": "1",
    "PYTHONWARNINGS": "error", "PYTHONOPTIMIZE": "2", "PYTHONINSPECT": "1", "PYTHONUTF8": "0",
    "PYTHONIOENCODING": "ascii:strict", "PYTHONCOERCECLOCALE": "0", "PYTHONDEVMODE": "1",
}  # fmt: skip
SHELL_AND_GIT = {
    "BASH_ENV": NONE, "ENV": NONE, "CDPATH": f"/:{TREE.parent}", "SHELLOPTS": "noexec",
    "POSIXLY_CORRECT": "1", "GREP_OPTIONS": "--color=always", "IFS": "/e", "GIT_DIR": NONE,
    "GIT_WORK_TREE": "/", "GIT_INDEX_FILE": NONE, "GIT_CONFIG_GLOBAL": NONE,
    "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.bare", "GIT_CONFIG_VALUE_0": "true",
}  # fmt: skip
TERMINAL = {
    "TERM": "", "COLUMNS": "0", "LINES": "-1", "NO_COLOR": "1", "DISPLAY": ":99", "BROWSER": NONE,
    "PAGER": NONE, "EDITOR": NONE, "TZ": "nonsense", "HOME": NONE, "TMPDIR": NONE,
    "XDG_CONFIG_HOME": NONE, "USER": "", "LOGNAME": "",
}  # fmt: skip
SETTINGS = {
    "CH": "77", "ONLY": "nothing", "PROFILE": "release", "TRACK": "9", "N": "x", "DIR": NONE,
    "STEP": "x", "UNDO": "1", "JSON": f"{NONE}/x", "CSV": f"{NONE}/x", "PORT": "x", "ADDR": "x",
    "ARGS": "--x", "FROM": "x", "TO": "x", "SURE": "1", "ALL": "1", "WHAT": "x", "SEED": "x",
    "GOAL": "x", "A": "x", "B": "x", "OS": "x", "LOGS": NONE, "MAKEFILES": NONE,
    "MAKELEVEL": "7", "GNUMAKEFLAGS": "-w", "CFLAGS": "-x", "CPPFLAGS": "-x", "LDFLAGS": "-x",
    "ARFLAGS": "-x", "SHELL": NONE, "MFLAGS": "-x", "Q": "false", "BUILD": NONE,
    "PYTEST_ARGS": "--x", "TEST_JOBS": "x", "V": "1", "LINT": "x", "WERROR": "-x",
}  # fmt: skip
#: Of the settings that go with any goal those that come from the command line, too.
OF_ANY_GOAL = {"LOGS", "PYTEST_ARGS", "TEST_JOBS", "V", "LINT", "WERROR"}

EVERYTHING = {**PYTHON, **SHELL_AND_GIT, **TERMINAL, **SETTINGS, "LC_ALL": "C"}


def start(place: Path, *words: str, change: Mapping[str, str | None] | None = None, **more: Any
          ) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """make, with WORK and BUILD in `place`; a change to None takes a variable away."""
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTEST", "INSIDE"))}
    whole: dict[str, str | None] = {**ours, "DEPS": "skip", **(change or {})}
    environment = {name: value for name, value in whole.items() if value is not None}
    where = [f"WORK={place / 'work'}", f"BUILD={place / 'build'}"]
    return subprocess.run(
        ["make", "--no-print-directory", *words, *where], cwd=TREE, env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        timeout=600, **more,
    )  # fmt: skip


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that is said; make's own last words, which only give the status, aside."""
    lines = [line for line in done.stderr.splitlines() if not OF_MAKE.match(line)]
    assert len(lines) <= 1, done.stderr
    return "".join(lines)


def good(done: subprocess.CompletedProcess[str], says: dict[str, str]) -> None:
    assert (done.returncode, complaint(done)) == (0, ""), done
    assert [goal for goal, text in says.items() if text not in done.stdout] == [], done.stdout


@pytest.mark.slow
def test_what_is_in_the_environment_was_meant_for_others(tmp_path: Path) -> None:
    """All of it at once, in a locale that knows no µ, and all that a newcomer types first."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    words = [*MANY, "CH=02", "FROM=01", "TO=02"]
    good(start(tmp_path, "-k", *words, change=EVERYTHING), MANY)


@pytest.mark.slow
def test_the_grader_and_the_reader_too(tmp_path: Path) -> None:
    (tmp_path / "jane").mkdir()
    shutil.copy(TREE / "code/00-client/client.c", tmp_path / "jane")
    graded = start(
        tmp_path, "-sj2", "grade", "CH=00", f"DIR={tmp_path / 'jane'}", "ONLY=fetches",
        f"LOGS={tmp_path / 'logs'}", change=EVERYTHING,
    )  # fmt: skip
    assert "2 of 2 points" in graded.stdout, graded
    assert "jobserver" not in graded.stderr
    book = tmp_path / "build/book"
    book.mkdir(parents=True)
    (book / "index.html").write_text("<body></body>", encoding="utf-8")
    (book / "whole").touch()
    words = ["make", "read", "PORT=0", f"BUILD={tmp_path / 'build'}", f"WORK={tmp_path / 'work'}"]
    environment = {**os.environ, **EVERYTHING, "DEPS": "skip"}
    environment.pop("MAKEFLAGS", None)
    with subprocess.Popen(
        words, cwd=TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=signals,
    ) as process:  # fmt: skip
        assert process.stdout
        try:
            lines = iter(process.stdout.readline, "")
            url = next(found for line in lines if (found := re.search(r"http://\S+", line)))
            with urllib.request.urlopen(f"{url[0]}index.html", timeout=10) as page:
                assert b"live.js" in page.read()
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_what_make_alone_refuses_is_one_line(tmp_path: Path) -> None:
    mistyped = ("--eval", "override ONLY := x", "--eval", "override WANTED := bin/mistyped", "bench-programs")
    for says, *words in (
        ("Python is not here: ", "next", "PYTHON="),
        (f"PYTHON={NONE}/python3: there is no such program", "next", f"PYTHON={NONE}/python3"),
        ("PYTHON=false: it is no Python that runs quest", "next", "PYTHON=false"),
        ("make is run from the root of the tree", "-C", "labs", "-f", "../Makefile", "next"),
        ("mistyped, which an experiment starts, is no program of a module.mk", *mistyped),
    ):
        done = start(tmp_path, *words)
        assert done.returncode == 2 and says in complaint(done), words


def test_without_python_doctor_tells_what_is_missing(tmp_path: Path) -> None:
    done = start(tmp_path, "doctor", "PYTHON=")
    assert (done.returncode, complaint(done)) == (0, "")


def of_make_itself(name: str, **environment: str) -> set[str]:
    """The words of a variable of the Makefile, or of what one of make's functions gives."""
    words, env = ["make", "-s", "--eval", f"shown: ; @echo $({name})", "shown"], without_outer_make() | environment
    return set(subprocess.run(words, cwd=TREE, env=env, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("line", ["compare A", "compare B", "retest A", "retest B", "board NAMES", "merge RUNS"])
def test_a_name_of_somebody_else_is_no_program_of_make(tmp_path: Path, line: str) -> None:
    """Results of others are in folders that they have named."""
    goal, name = line.split()
    text = f"$(shell touch {tmp_path}/mark) a$b"
    done = start(tmp_path, "-n", goal, f"{name}={text}")
    assert f"'{name}={text}'" in done.stdout
    assert not (tmp_path / "mark").exists()


def test_a_python_in_a_folder_with_a_blank(tmp_path: Path) -> None:
    """As an environment of one's own has it in "My Projects"."""
    python = tmp_path / "my tools/python3"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    change = {"PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHON": None}
    good(start(tmp_path, "next", change=change), {"next": SAYS["next"]})
    good(start(tmp_path, "lab", "CH=02", change=change), {"lab": MANY["lab"]})


def test_every_setting_comes_from_the_command_line() -> None:
    """But for those that are documented as the environment's. make reads their names from the table."""
    taken = {setting.name for goal in GOALS for setting in goal.settings}
    names = (taken | OF_ANY_GOAL) - set(FROM_ENVIRONMENT)
    assert of_make_itself("SETTINGS") == names
    taken_over = "foreach name,$(SETTINGS),$(if $(filter of-another,$(value $(name))),$(name))"
    assert of_make_itself(taken_over, **dict.fromkeys(names, "of-another")) == set()
    assert of_make_itself("PRINTS") == of_make_itself("PRINTS", **PYTHON), "what a shell of make asks of Python"
    assert of_make_itself("VPATH) $(GPATH", VPATH="/x", GPATH="/x") == set(), "of the folders of another make"


def test_the_table_of_goals_and_the_makefiles_agree() -> None:
    """Each goal has a rule, or make gives it to Python; each rule's name is a goal, or known to makefiles alone."""
    rules, of_python = of_make.targets(), of_make_itself("OF_PYTHON")
    assert of_python == {goal.name for goal in GOALS} - rules
    assert [goal.name for goal in GOALS if goal.name in of_python and not goal.runs] == []
    inner = {name for name in rules if re.match("(weave|slides|figures)-", name)}
    inner |= {"bench-programs", "cflags", "cross-all", "cross-programs", "lab-objects"}
    assert rules - inner <= {goal.name for goal in GOALS}


def test_clean_keeps_what_was_measured(tmp_path: Path) -> None:
    """A session of the reference takes 90 minutes, and is in build/ until it is committed."""
    kept = {"results/x.jsonl", "reference/cpu/2026-11-27-0915/x.jsonl", "race/ada.json", "race/results/x.jsonl"}
    for name in kept | {"bin/x", "share/x.zip"}:
        (path := tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    good(start(tmp_path, "clean"), {})
    build = tmp_path / "build"
    assert {str(path.relative_to(build)) for path in build.rglob("*") if path.is_file()} == kept


LOCALES: list[dict[str, str | None]] = [
    {"LC_ALL": "xx_YY.latin1", "LANG": "xx", **PYTHON},
    {"LC_ALL": None, "LANG": "tr_TR.ISO-8859-9", "LC_CTYPE": "POSIX", "LC_NUMERIC": "de_DE"},
    {"LC_ALL": None, "LANG": None, "HOME": None, "TERM": None, "TMPDIR": "/tmp/a b",
     "PATH": f"{os.environ['PATH']}:{NONE}"},
]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(LOCALES[0], id="nonsense"),
        pytest.param(LOCALES[1], id="mixed", marks=pytest.mark.slow),
        pytest.param(LOCALES[2], id="none", marks=pytest.mark.slow),
    ],
)
def test_in_any_locale(tmp_path: Path, change: dict[str, str | None]) -> None:
    good(start(tmp_path, *SAYS, "FROM=1", "TO=2", change=change), SAYS)


OPTIONS = ["-k", "-B", "-j8", "-s", "-w", "-R", "-r", "-L", "--output-sync=target", "--trace"]


@pytest.mark.slow
def test_with_any_option_of_make(tmp_path: Path) -> None:
    """-B makes everything anew, -R forgets what cc is."""
    program = tmp_path / "build/bin/nothing"
    done = start(tmp_path, *OPTIONS[:-1], "-e", *SAYS, str(program), "FROM=1", "TO=2")
    good(done, SAYS)
    assert subprocess.run([program], check=False).returncode == 0
    done = start(tmp_path, "--warn-undefined-variables", "--trace", "next")
    assert done.returncode == 0 and SAYS["next"] in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["-i"], ["-ki"], ["-t"], ["-sit"]])
def test_what_would_report_success_is_refused(tmp_path: Path, words: list[str]) -> None:
    for asked in ({}, {"MAKEFLAGS": words[0].lstrip("-")}):
        done = start(tmp_path, *([] if asked else words), "run", "CH=77", change={**asked})
        assert done.returncode == 2
        assert "would report success where there is none" in complaint(done)


def test_a_failure_is_one_with_k_and_others(tmp_path: Path) -> None:
    for words in (["-ks"], ["-B", "-j8", "-e"]):
        assert start(tmp_path, *words, "lab", "CH=77", "help").returncode == 2, words


@pytest.mark.slow
def test_n_does_nothing(tmp_path: Path) -> None:
    """All goals that have a line of help; of a line with $(MAKE) in it make runs the whole."""
    goals = {goal.name for goal in GOALS if goal.group}
    goals -= {"clean", "distclean", "cross", "release", "compare", "libkqueue", "vm"}
    given = ["CH=06-select", "FROM=01", "TO=02", "DIR=/", "STEP=read", "PYTEST_ARGS=--co"]

    def changes() -> bytes:  # a bare machine has no git
        command = ["git", "status", "--porcelain"] if shutil.which("git") else ["true"]
        return subprocess.run(command, cwd=TREE, capture_output=True, check=True).stdout

    before = changes()
    done = start(tmp_path, "-n", *sorted(goals), *given)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    assert before == changes()


# ---- descriptors, signals, limits, umask --------------------------------------------------------


def closed(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def signals() -> None:
    """As a supervisor or a careless parent leaves them."""
    for number in {signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP, signal.SIGTTOU, signal.SIGALRM}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())


@pytest.mark.parametrize("numbers", [*(pytest.param(one, marks=pytest.mark.slow) for one in ((0,), (1, 2))), (0, 1, 2)])
def test_closed_descriptors(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    """What is printed must not land in a file of ours that got the number."""
    done = start(tmp_path, "done", "next", preexec_fn=closed(*numbers))
    assert done.returncode == 0, done.stderr
    assert ("now: make" in done.stdout) != (1 in numbers)
    kept = (tmp_path / "work/path.json").read_text("utf-8")
    assert kept.startswith('{\n "version": 1') and kept.endswith("}\n")


@pytest.mark.slow
def test_signals_that_are_blocked_or_ignored(tmp_path: Path) -> None:
    """With SIGCHLD ignored every program seems to have ended well."""
    good(start(tmp_path, *SAYS, "FROM=1", "TO=2", preexec_fn=signals), SAYS)
    script = "import sys\nfrom quest.ground.entry import begin\nbegin()\nimport subprocess\n" \
        "sys.exit(subprocess.run(['false']).returncode + 1)"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=TREE, preexec_fn=signals, check=False,
        env={**os.environ, "PYTHONPATH": "."},
    )  # fmt: skip
    assert done.returncode == 2


def test_what_we_start_has_the_descriptors_that_were_closed() -> None:
    """Else its first file would be its standard output."""
    looks = "for number in 0 1 2; do [ -e /proc/self/fd/$number ] || exit 3; done"
    script = "from quest.ground.entry import begin\nbegin()\nimport subprocess, sys\n" \
        f"sys.exit(subprocess.run(['sh', '-c', {looks!r}]).returncode)"  # fmt: skip
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, cwd=TREE, preexec_fn=closed(0, 1, 2), check=False).returncode == 0


LIMITS = {
    "NOFILE 6": (resource.RLIMIT_NOFILE, 6), "NOFILE 8": (resource.RLIMIT_NOFILE, 8),
    "STACK 64 KB": (resource.RLIMIT_STACK, 65536), "AS 40 MB": (resource.RLIMIT_AS, 40 << 20),
    "FSIZE 0": (resource.RLIMIT_FSIZE, 0), "CPU 20 s": (resource.RLIMIT_CPU, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_limits(tmp_path: Path, name: str) -> None:
    """Nothing that was typed is lost without a word."""
    kind, value = LIMITS[name]
    done = start(tmp_path, "done", preexec_fn=lambda: resource.setrlimit(kind, (value, value)))
    kept = tmp_path / "work/path.json"
    assert "Traceback" not in done.stderr + done.stdout
    if done.returncode == 0:
        assert kept.exists() and complaint(done) == ""
    else:
        assert not kept.exists() and complaint(done), done


@pytest.mark.parametrize(
    "line",
    ["done", "lab CH=02",
     *(pytest.param(s, marks=pytest.mark.slow) for s in ("lab CH=process-cost", "amalgamate CH=02"))],
)  # fmt: skip
def test_what_cannot_be_written_is_named(tmp_path: Path, line: str) -> None:
    """A full disk tells no name; nor does a limit on the size of files."""
    full = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (0, 0))
    done = start(tmp_path, *line.split(), preexec_fn=full)
    assert done.returncode == 2
    assert re.search(rf"({tmp_path}/work\S*|02-fork): File too large", complaint(done))
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.name == "path.lock" for path in left), left


@pytest.mark.parametrize(("mask", "ends"), [(0o077, 0), (0o777, 2), (0o400, 2)])
def test_umask(tmp_path: Path, mask: int, ends: int) -> None:
    done = start(tmp_path, "done", preexec_fn=lambda: os.umask(mask) and None)
    assert done.returncode == ends
    said = f"umask 0{mask:o} takes your own files away from you: umask 022"
    assert (said in complaint(done)) == (ends != 0)


# ---- what reads and what is full ----------------------------------------------------------------


@pytest.mark.slow
def test_a_full_disk_and_a_reader_that_has_gone(tmp_path: Path) -> None:
    ours = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTEST", "INSIDE"))}

    def told(sink: str) -> tuple[int, list[str]]:
        goals = "labs lab next path help chapters ALL=1"
        command = f"set -o pipefail; make -k {goals} WORK={tmp_path} DEPS=skip {sink}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=TREE, env=ours, capture_output=True, text=True, check=False
        )
        return done.returncode, [x for x in done.stderr.splitlines() if not OF_MAKE.match(x)]

    full = "standard output: No space left on device"
    assert told("> /dev/full") == (2, [
        f"lab: {full}", f"lab: {full}", f"make next: {full}", f"make path: {full}",
        f"make help: {full}", f"make chapters: {full}",
    ])  # fmt: skip
    assert told("| head -n 1 > /dev/null") == (0, [])


def test_a_pipe_that_another_made_non_blocking_gets_all() -> None:
    """It is so for all who have it. More is printed than this one holds."""
    script = "from quest.ground.entry import run_main\nrun_main(lambda _: print('x' * 500_000) or 0)"
    theirs, ours = os.pipe()
    os.set_blocking(ours, False)
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 4096)
    with subprocess.Popen([sys.executable, "-c", script], cwd=TREE, stdout=ours) as process:
        os.close(ours)
        with open(theirs, "rb") as file:
            assert len(file.read()) == 500_001
    assert process.returncode == 0


@pytest.mark.parametrize("error", ["InputError('wrong')", "OSError(2, 'wrong')"])
def test_what_was_printed_before_an_error_is_kept_or_said_to_be_lost_once(error: str) -> None:
    script = "from quest.ground.entry import run_main\nfrom quest.ground.errors import InputError\n" \
        f"def main(_):\n    print('before')\n    raise {error}\nrun_main(main)"  # fmt: skip
    full = os.open("/dev/full", os.O_WRONLY)
    for sink, said in ((subprocess.PIPE, "before\n"), (full, None)):
        done = subprocess.run([sys.executable, "-c", script], cwd=TREE, stdout=sink, stderr=subprocess.PIPE, text=True,
                              check=False)  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (2, said, "wrong\n")
    os.close(full)


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ("s -j8 --jobserver-auth=3,4 -w -- CH=02 ARGS=-v\\ -j", "s -w -- CH=02 ARGS=-v\\ -j"),
        (" -j8 --jobserver-auth=3,4", ""),
        (" --jobserver-auth=fifo:/tmp/x -j8 -- CH=02", None),
        (" -- A=-j\\ --jobserver-auth=3,4", None),
        ("", None),
    ],
)
def test_makes_that_we_start_are_not_promised_a_job_server(flags: str, kept: str | None) -> None:
    """They would say in each make -j8 read or run that they do not have it."""
    assert entry.without_job_server(flags) == (flags if kept is None else kept)


def test_the_file_that_an_error_names() -> None:
    """Of two, as of a copy, that which was to be made; one without a name gets that of the whole."""
    assert entry.os_error_text(OSError(28, "No space left on device", "from", None, "to")).startswith("to: ")
    for name in (None, "inside"):
        with pytest.raises(OSError, match="denied") as error, entry.errors_named(Path("whole")):
            raise OSError(13, "Permission denied", name)
        assert error.value.filename == (name or "whole")


@pytest.mark.parametrize(
    ("error", "stopped", "ends", "said"),
    [
        (Stopped(signal.SIGTERM), "the same goes on", 143, "the same goes on\n"),
        (Stopped(signal.SIGHUP), "", 129, ""),
        (KeyboardInterrupt(), "the same goes on", 130, ""),
    ],
)
def test_the_status_of_what_a_signal_has_ended(
    capsys: pytest.CaptureFixture[str], error: BaseException, stopped: str, ends: int, said: str
) -> None:
    def command() -> int:
        raise error

    assert entry.run_to_status(command, stopped=stopped) == ends
    assert capsys.readouterr() == ("", said)
