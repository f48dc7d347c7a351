"""What a newcomer types: the first minute, wrong command lines, and the path."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from quest.__main__ import main
from quest.command.goals import GOALS
from quest.ground.errors import InputError
from quest.ground.files import changed_ns
from quest.learn import local, read, run, state
from quest.learn import path as learn_path

TREE = Path(__file__).resolve().parents[2]


def environment(work: Path) -> dict[str, str]:
    """A reader's, who may have come from a shell or an editor that another make has started."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return {**kept, "WORK": str(work), "DEPS": "skip", "INSIDE": str(TREE)}


def make(work: Path, *words: str, cwd: Path = TREE, **more: str) -> tuple[int, str, str]:
    done = subprocess.run(
        ["make", "--no-print-directory", *words], cwd=cwd, env=environment(work) | more, text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


# ---- wrong command lines -------------------------------------------------------------------------

WRONG = {
    "run PRT=8090": r"make run: there is no setting PRT; did you mean PORT\?; it takes ADDR, .*",
    "bench CH=2": r"make bench: CH= goes only together with ONLY=; for 02-fork: ONLY=fork-latency,.*",
    "bench CH=99 ONLY=slow-client": r"make bench: CH=99: there is no such chapter; .*",
    "bench ONLY=nix": r'unknown experiment "nix"; .*',
    "bench ONLY=fork-latncy": r'unknown experiment "fork-latncy"; did you mean fork-latency\?',
    "bench PROFILE=fast": "make bench: PROFILE=fast: PROFILE is one of smoke, quick, full",
    "present TRACK=talk5": "make present: TRACK=talk5: TRACK is one of talk45, .*, course",
    "diff FROM=07": "TO= is missing: make diff FROM=07 TO=09",
    "diff FROM=05 TO=0": "make diff: TO=0: it fits several: 00-client, 01-iterative, .*",
    "diff FROM=01 TO=99": "make diff: TO=99: there is no such program; there are 00-client, .*",
    "chek CH=02": r"make chek: there is no such goal; did you mean check\?; make help .*",
    "help GOALS=bench": r"make help: there is no setting GOALS; did you mean GOAL\?; it takes ALL, GOAL",
    "lab CH=02 JSON=x": "make lab: it takes no JSON; it takes CH",
    "hint CH=02 DIR=x": "make hint: it takes no DIR; it takes CH, N",
    "check CH=02 SURE=1": "make check: it takes no SURE; it takes CH, ONLY, .*",
    "test CH=77": "make test: CH=77: there is no such program; there are 00-client, .*",
    "test CH=0": "make test: CH=0: it fits several: 00-client, 01-iterative, .*",
    "claims PORT=3": "make claims: it takes no PORT; it takes ONLY, SINCE",
    "next N=1": "make next: it takes no settings",
    "run": r"make run: which server\? CH=01 is the first; there are 00-client, 01-iterative, .*",
    "run CH=epol1": r"make run: CH=epol1: there is no such server; did you mean 09-epoll\?",
    "run CH=0": "make run: CH=0: it fits several: 00-client, 01-iterative, .*",
    "run CH=02 PORT=x": "make run: PORT=x: a port is a number from 1 to 65535",  # not 02-inetd
    "run CH=01 PORT=99999": "make run: PORT=99999: a port is a number from 1 to 65535",
    "run CH=01 ADDR=room": "make run: ADDR=room: give an IP address of this machine; 0.0.0.0 is all it has",
    "run CH=01 ADDR=192.0.2.1": "make run: ADDR=192.0.2.1: this machine has no such address",
    "-n clean BUILD=": "BUILD= names no folder: leave it away",  # it would remove the tree
    "-n clean BUILD=.": "BUILD=. holds the tree itself: what is made needs a folder of its own",
    "-n distclean BUILD=../..": r"BUILD=\.\./\.\. holds the tree itself: .*",
    "lint-bok": r"make lint-bok: there is no such goal; did you mean lint-book\?; make help .*",
    "cross-freebsd JOBS=1": r"make cross-freebsd: there is no such goal; make help .*",
    "tset": r"make tset: there is no such goal; did you mean test\?; make help says what there is",
    "tests": r"make tests: there is no such goal; did you mean test\?; make help says what there is",  # a folder
    "code": "make code: there is no such goal; .*make help says what there is",
    "build/no-such": "make build/no-such: there is no such file, and no rule that makes it",
    "predict CH=16": "make predict: there is no such goal; make help says what there is",
    "lab CH=2x": "make lab: CH=2x: there is no such lab; there are 00-client, 01-iterative, .*",
    "test ONLY=nothing": "make test: ONLY=nothing: there is no such part; there are .*",
    "test ONLY=m": "make test: ONLY=m: it fits several: measure, micro, mutants, my",
    "soak SECONDS=long": "make soak: SECONDS=long: it must be a whole number",
    "help GOAL=bnch": r"make help: GOAL=bnch: there is no such goal; did you mean bench\?",
    "done STEP=read": "make done: STEP= needs a chapter, too: make done CH=01 STEP=read",
    "hint CH=02 N=x": r"lab: N=x: give a number above 0, at most \d+",
    "check CH=02 WATCH=no": "make check: WATCH=no: write WATCH=1, or leave it out",
    "my ALL=no": "make my: ALL=no: write ALL=yes, or leave it out",
    "compare": "compare needs A=, a folder of results or one of the words reference and here",
}


#: As another of them is answered: by the same check of another goal's setting.
ALIKE = (
    "bench CH=99 ONLY=slow-client", "bench ONLY=nix", "diff FROM=05 TO=0", "diff FROM=01 TO=99", "lab CH=02 JSON=x",
    "hint CH=02 DIR=x", "check CH=02 SURE=1", "test CH=77", "test CH=0", "run CH=0", "run CH=01 PORT=99999",
    "chek CH=02", "test ONLY=m", "help GOAL=bnch", "my ALL=no",
)  # fmt: skip


@pytest.mark.parametrize("line", [pytest.param(s, marks=[pytest.mark.slow] * (s in ALIKE)) for s in WRONG])
def test_a_wrong_command_line_is_answered_in_one_line(tmp_path: Path, line: str) -> None:
    status, out, err = make(tmp_path, *line.split())
    said = [text for text in err.splitlines() if not text.startswith("make: *** [")]
    assert (status, out, len(said)) == (2, "", 1), said
    text = re.sub(r"^\S+:\d+: \*\*\* |\.  Stop\.$", "", said[0])
    assert re.fullmatch(WRONG[line], text), text


def test_a_build_that_make_or_the_shell_would_take_apart(tmp_path: Path) -> None:
    """`make distclean` would remove what the parts are names of."""
    for name in ("a b", "a ", "a*", "a;b", "a$$b", "a#b", "a,b", "a:b", "a'b", "a\\b", "a(b", "a%", "~", "~/a"):
        status, out, err = make(tmp_path, "-n", "distclean", f"BUILD={name}")
        assert (status, out) == (2, "") and ": only letters, digits and any of / . _ - + @ may " in err, name


def test_a_value_of_two_lines(tmp_path: Path) -> None:
    """As a name of a folder may have them."""
    status, out, err = make(tmp_path, "board", "DIR=a\nb")
    assert (status, out) == (2, "") and re.fullmatch(r"\S+ \*\*\* DIR= has more than one line\.  Stop\.\n", err)


def test_a_number_of_more_digits_than_python_reads(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["my", f"HINT={'1' * 5000}"], ["run", "CH=01", f"PORT={'9' * 5000}"]):
        assert main(words) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_measurement_builds_what_it_starts_and_no_more(tmp_path: Path) -> None:
    """As `make bench` asks; die.c is in all programs, and is as if it had changed."""
    wanted = "build/bin/fork-latency"
    line = ["-n", "-W", "code/common/die.c", "bench-programs", "ONLY=fork-latency"]
    status, out, err = make(tmp_path, *line, f"WANTED={wanted}", MAKELEVEL="1")
    assert (status, err) == (0, "")
    assert set(re.findall(r"-o (build/(?!obj)[^\s.]+)", out)) == {wanted}


def test_from_a_folder_below_make_says_where_to_go(tmp_path: Path) -> None:
    said = f"make is run from the root of the tree: cd {TREE} && make next"
    for folder in ("code", "code/09-epoll", "chapters", "labs", "benchmarks", "slides", "tests"):
        status, _, err = make(tmp_path, "next", cwd=TREE / folder)
        assert (status, err.splitlines()[0]) == (2, said)


def test_a_reader_who_has_seen_enough(tmp_path: Path) -> None:
    command = "make --no-print-directory path | head -2"
    done = subprocess.run(
        command, shell=True, cwd=TREE, env=environment(tmp_path), capture_output=True, text=True,
        check=True, executable="/bin/sh",
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.stdout.splitlines()[1].startswith("-> 00-client")


def test_a_reader_who_has_gone_is_no_error(tmp_path: Path) -> None:
    """Of what make starts beside our goals, too."""
    ours = "from quest.ground.entry import run_main\nrun_main(lambda _: print('x' * 100_000) or 0)"
    for command in ("make --no-print-directory diff FROM=07 TO=13", f'{sys.executable} -c "{ours}"'):
        done = subprocess.run(
            f"{{ {command}; echo $? >&2; }} | true", shell=True, cwd=TREE, env=environment(tmp_path),
            stderr=subprocess.PIPE, text=True, check=True, executable="/bin/sh",
        )  # fmt: skip
        assert done.stderr == "0\n", command
    for path in TREE.glob("quest/book/**/*.py"):
        text = path.read_text(encoding="utf-8")
        assert ('if __name__ == "__main__":\n    run_main(main)\n' in text) == ("__main__" in text), path


def test_help_is_short_and_whole_when_asked(tmp_path: Path) -> None:
    _, short, _ = make(tmp_path, "help")
    first = [goal.name for goal in GOALS if goal.first]
    assert re.findall(r"^  make (\S*)", short, re.M) == ["", *first[1:]] and len(first) == 10
    _, whole, _ = make(tmp_path, "help", "ALL=1")
    assert set(re.findall(r"^  make (\S+)", whole, re.M)) == {g.name for g in GOALS if g.group}
    assert make(tmp_path, "help", "ALL=yes")[1] == whole, "1 and yes are the same"
    _, one, _ = make(tmp_path, "help", "GOAL=bench")
    (bench,) = [goal for goal in GOALS if goal.name == "bench"]
    assert re.findall(r"^  \[([A-Z]+)=", one, re.M) == [setting.name for setting in bench.settings]
    assert all(setting.help in one for setting in bench.settings)


# ---- the first minute ----------------------------------------------------------------------------


@contextmanager
def running(
    work: Path, *words: str, goal: str = "run", until: str = "listening on"
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`make run`, and where it says that it can be looked at."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quest", goal, *words], cwd=TREE, env=environment(work),
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout
    said = ""
    try:
        while until not in said:
            line = process.stdout.readline()
            assert line, process.communicate()
            said += line
        yield said, process
    finally:
        process.terminate()
        process.communicate(timeout=20)


def fetched(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        return error.code, ""


def test_the_first_server_shows_a_page_that_helps_on(tmp_path: Path) -> None:
    with running(tmp_path, "CH=01", "PORT=8470") as (said, _):
        url = re.search(r"^  open  (\S+)$", said, re.M)
        assert url
        assert re.search(r"^  try   .*00-client", said, re.M)
        assert re.search(r"^  stop  Ctrl-C$", said, re.M)
        status, page = fetched(url[1])
        assert status == 200
        assert "<h1>01-iterative</h1>" in page
        assert "@" not in page
        for link in set(re.findall(r'(?:href|src)="(/[^"]*)"', page)) - {"/big.bin"}:
            assert fetched(url[1].rstrip("/") + link)[0] == 200, link
    kept = json.loads((tmp_path / "path.json").read_text("utf-8"))
    assert list(kept["done"]) == ["01-iterative"]


def test_a_port_that_is_taken_gives_way_to_the_next(tmp_path: Path) -> None:
    """For the room, too, which is told an address that a browser can open."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ("CH=epoll", f"PORT={port}", "ADDR=0.0.0.0")
        with running(tmp_path, *words) as (said, process):
            found = re.search(rf"port {port} is taken: (\d+) is used instead", said)
            assert found and int(found[1]) > port
            url = re.search(r"^  open  (\S+)$", said, re.M)
            assert url and "0.0.0.0" not in url[1]
            assert "<h1>09-epoll</h1>" in fetched(url[1])[1]
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0, "Ctrl-C reaches the server itself"


@pytest.mark.parametrize(
    ("args", "page", "tree"),
    [
        pytest.param("-vp 0", 200, 404, marks=pytest.mark.slow),
        pytest.param("-p 0 -t 9 code", 404, 404, marks=pytest.mark.slow),
        (". -p 0", 404, 200),
    ],
)
def test_the_tree_is_not_served_unless_it_is_named(
    tmp_path: Path, args: str, page: int, tree: int
) -> None:
    with running(tmp_path, "CH=03", f"ARGS={args}") as (said, _):
        url = re.findall(r"http://\S+/", said)[-1]
        assert fetched(url + "hello.txt")[0] == page
        assert fetched(url + "CONTRIBUTING.md")[0] == tree


def test_the_client_has_something_to_fetch_from(tmp_path: Path) -> None:
    status, out, _ = make(tmp_path, "run", "CH=00", "PORT=8490")
    assert status == 0
    assert "Hello. This is a small file." in out


def test_chapters_are_those_of_the_tree_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quest.learn import chapters

    (tmp_path / "chapters").mkdir()
    (tmp_path / "chapters/contents.json").write_text("[]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert chapters.slugs() == []
    monkeypatch.chdir(TREE)
    assert "09-epoll" in chapters.slugs()
    assert chapters.experiments()


@pytest.mark.parametrize("text", ["[", "profile = 3", "[profile]\nquick = []", "[profile.quick]", "chapters = 3\n{}"])
def test_an_experiment_that_cannot_be_read_is_left_to_bench(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quest.learn import chapters

    monkeypatch.chdir(tmp_path)
    chapters.EXPERIMENTS.mkdir(parents=True)
    whole = 'id = "x"\nquestion = "?"\nkind = "http"\n[profile.quick]\n'
    (chapters.EXPERIMENTS / "x.toml").write_text(text.format(whole), encoding="utf-8")
    assert chapters.experiments() == {}


def test_what_a_chapter_starts_by_hand_is_built_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from quest.learn.run import build_typed_programs

    asked: list[list[str]] = []
    monkeypatch.chdir(TREE)
    monkeypatch.setattr("subprocess.run", lambda command, **_: asked.append(command))
    build_typed_programs(Path("build"), "01-iterative")
    assert {"build/bin/constant", "build/bin/00-client"} <= set(asked[0])


def test_without_a_plain_text_there_is_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quest.learn.run import site

    monkeypatch.chdir(TREE)
    monkeypatch.setattr("shutil.which", lambda _: "/bin/false")  # as pandoc where the disk is full
    assert (site(tmp_path, "01-iterative") / "chapter.txt").read_text(encoding="utf-8").startswith("---")


# ---- the path ------------------------------------------------------------------------------------


def test_next_names_a_step_and_done_ticks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TREE)
    monkeypatch.setenv("WORK", str(tmp_path))

    def told(*words: str) -> str:
        assert main([*words]) == 0
        return capsys.readouterr().out

    assert "now: make run CH=00-client" in make(tmp_path, "next")[1]
    make(tmp_path, "done")
    said = told("done")
    assert "> lab" in said and "- run" in said
    row = r"^-> 00-client +\[-\] run  \[-\] measure  \[ \] lab  \[ \] read"
    assert re.search(row, told("path"), re.M)
    make(tmp_path, "done", "CH=09", "STEP=read")
    assert re.search(r"^   09-epoll .*\[x\] read", told("path"), re.M)
    told("done", "CH=09-epoll", "STEP=read", "UNDO=1")
    assert re.search(r"^   09-epoll .*\[ \] read", told("path"), re.M)
    (tmp_path / "00-client").mkdir()
    (tmp_path / "00-client" / ".progress.json").write_text('{"score": 2}', encoding="utf-8")
    (tmp_path / "00-client" / ".progress.json").write_text('{"score": 1e999, "stage": [[]]}', encoding="utf-8")
    assert "0 of 20 so far; the task" in told("next")
    (tmp_path / "00-client" / ".progress.json").write_text('{"score": 2, "stage": 0}', encoding="utf-8")
    task = "2 of 20 so far; the task: labs/00-client/task.md"
    assert f"now: make check CH=00-client ({task})" in told("next")
    (tmp_path / "00-client" / ".progress.json").write_text('{"score": 2, "stage": 2}', encoding="utf-8")
    assert "2 of 20 so far; stage 2 of 4: No more than was promised (about 10 minutes); the task" in told("next")
    (tmp_path / "00-client" / ".progress.json").write_text('{"score": 20}', encoding="utf-8")
    told("done", "CH=00", "STEP=lab")
    assert "[x] lab" in told("path").splitlines()[1], "skipped and solved is solved"


def test_a_lab_that_measures_comes_before_its_chapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    places = state.Folders(tmp_path / "build", tmp_path / "work")
    kinds = {about.slug: [step.kind for step in some] for about, some in learn_path.marked_steps(places).items()}
    assert kinds["process-cost"][0] == "lab" and "lab" not in kinds["09-epoll"][:1]
    assert kinds["09-epoll"].index("lab") < kinds["09-epoll"].index("read")


def test_a_measurement_that_was_finished_is_ticked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    results = tmp_path / "build/results/throughput.jsonl"
    results.parent.mkdir(parents=True)
    given = {"BUILD": str(tmp_path / "build"), "WORK": str(tmp_path), "CH": "02-fork"}
    for text, done in (('{"type":"run"}\n', {}), ('{"type":"run"}\n{"type":"end"}\n', {"02-fork": ["measure"]})):
        results.write_text(text, encoding="utf-8")
        assert learn_path.note_measurement(given) == 0
        assert {slug: [*steps] for slug, steps in state.read_progress(tmp_path / "path.json").done.items()} == done


def test_when_a_step_was_done_first_is_kept(tmp_path: Path) -> None:
    """To skip it later takes nothing away; what was skipped can be done."""
    kept = tmp_path / "path.json"
    kept.write_text('{"done": {"01-iterative": {"run": "before", "lab": "skipped"}}}', encoding="utf-8")
    for skipped in (True, False):
        assert state.note_step(kept, "run", "01-iterative", skipped=skipped)
        assert state.note_step(kept, "lab", "01-iterative", skipped=skipped)
        steps = state.read_progress(kept).done["01-iterative"]
        assert steps["run"] == "before" and (steps["lab"] == "skipped") == skipped
    assert state.note_step(kept, "run", "01-iterative", done=False)
    assert [*state.read_progress(kept).done["01-iterative"]] == ["lab"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "path.json: "),
        pytest.param("[" * 100_000, "path.json: ", id="deep"),
        ('{"version": 99}', "version 99"),
        ("[]", "not in the form that make next writes"),
        ('{"version": null}', "not in the form that make next writes"),
        ('{"done": {"01-iterative": "run"}}', "not in the form that make next writes"),
        ('{"done": {"01-iterative": {"run": 5}}}', "not in the form that make next writes"),
        ('{"guesses": {"01-iterative": {"drawn-0": [1]}}}', "not in the form that make next writes"),
        ('{"guesses": {"01-iterative": {"drawn-0": {"y": ["nan"]}}}}', "not in the form that make next writes"),
    ],
)
def test_a_state_that_cannot_be_read_is_kept_aside(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "path.json").write_text(text, encoding="utf-8")
    status, out, err = make(tmp_path, "next")
    assert status == 0
    assert why in err and "it is kept as" in err
    assert "now: make run" in out
    assert (tmp_path / "path.1.json").read_text(encoding="utf-8") == text
    assert f"mv {tmp_path}/path.1.json {tmp_path}/path.json" in out


def test_half_of_a_character_in_what_is_kept_stops_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "path.json"
    kept.write_text('{"done": {"\\ud800": {"run": "before"}}}', encoding="utf-8")
    assert state.note_step(kept, "read", "01-iterative")
    done = state.read_progress(kept).done
    assert done["\ud800"] == {"run": "before"} and list(done["01-iterative"]) == ["read"]


def test_a_lab_whose_file_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what an editor keeps beside it is no second one."""
    from quest.learn.path import lab_points

    monkeypatch.chdir(tmp_path)
    lab = tmp_path / "labs/x"
    lab.mkdir(parents=True)
    (lab / "lab.toml").write_text("[[test]]\npoints = 3\n", encoding="utf-8")
    (lab / ".#lab.toml").symlink_to("somebody@here.1")
    assert lab_points("x", tmp_path) == (0, 3)
    for text in ("[", "test = 3", "[[test]]\nname = 1", "[[test]]\npoints = 'many'"):
        (lab / "lab.toml").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="labs/x: the points of the lab cannot be read"):
            lab_points("x", tmp_path)


def test_many_at_once_lose_nothing(tmp_path: Path) -> None:
    """Requests of a page are threads of one process; make done is another."""
    kept = tmp_path / "path.json"
    slugs = [f"{number:02}-chapter" for number in range(100)]
    noting = f"state.note_step(Path({str(kept)!r}), 'read', f'{{n:02}}-chapter')"
    others = f"""from pathlib import Path
from quest.learn import state
for n in range(100): {noting}"""
    beside = subprocess.Popen([sys.executable, "-c", others], cwd=TREE)
    with ThreadPoolExecutor(32) as threads:
        list(threads.map(lambda slug: state.note_step(kept, "run", slug), slugs))
        list(threads.map(lambda slug: state.keep_drawing(kept, slug, "0", [1]), slugs))
    assert beside.wait(60) == 0
    progress = state.read_progress(kept)
    assert {slug: set(progress.done[slug]) for slug in slugs} == {s: {"run", "read"} for s in slugs}
    assert [progress.drawings(slug) for slug in slugs] == [{"0": [1]}] * len(slugs)
    assert {path.name for path in tmp_path.iterdir()} == {"path.json", "path.lock"}


def test_the_book_shows_the_path_and_ticks_what_was_read(tmp_path: Path) -> None:
    book = tmp_path / "build" / "book"
    book.mkdir(parents=True)
    for name in ("index", "09-epoll"):
        (book / f"{name}.html").write_text("<body><p>A page.</p></body>", encoding="utf-8")
    (book / "whole").touch()
    words = (f"BUILD={tmp_path / 'build'}", "PORT=8370")
    with running(tmp_path / "work", *words, goal="read", until="stop") as (said, process):
        url = f"http://{said.split('/')[2]}"
        assert fetched(f"{url}/09-epoll.html")[1].count("live.js") == 1
        assert fetched(f"{url}/live.js")[0] == 200
        assert fetched(f"{url}/nothing.html")[0] == 404
        assert fetched(f"{url}/../../../etc/passwd")[0] == 404

        def steps() -> dict[str, bool]:
            found = json.loads(fetched(f"{url}/state/09-epoll")[1])["steps"]
            return {step["kind"]: step["mark"] == "x" for step in found}

        assert steps()["read"] is False
        tick = urllib.request.Request(f"{url}/done/09-epoll/read", method="POST")
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(tick, timeout=10)  # from somebody else's page
        drawn = urllib.request.Request(
            f"{url}/guess/09-epoll/0", b'{"y": [1, null, 2.5], "shown": true}', {"X-Reader": "1"}
        )
        urllib.request.urlopen(drawn, timeout=10).close()
        kept = json.loads((tmp_path / "work" / "path.json").read_text("utf-8"))
        assert kept["guesses"]["09-epoll"]["drawn-0"] == {"y": [1.0, None, 2.5]}
        assert steps()["predict"] is True
        guesses = json.loads(fetched(f"{url}/state/09-epoll")[1])["guesses"]
        assert guesses == {"0": [1.0, None, 2.5]}
        tick.add_header("X-Reader", "1")
        urllib.request.urlopen(tick, timeout=10).close()
        assert steps()["read"] is True
        assert json.loads(fetched(f"{url}/state/index")[1])["chapters"]["09-epoll"][0] == "2"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


def test_what_cannot_be_kept_is_said_and_not_done(tmp_path: Path) -> None:
    """In the terminal, and to the page."""
    (tmp_path / "file").touch()
    status, out, err = make(tmp_path / "file/work", "done")
    assert (status, out) == (2, "")
    assert "what you have done could not be saved" in err
    book = tmp_path / "build/book"
    book.mkdir(parents=True)
    for name in ("index.html", "whole"):
        (book / name).touch()
    words = (f"BUILD={tmp_path / 'build'}", "PORT=8360")
    with running(tmp_path / "file/work", *words, goal="read", until="stop") as (said, process):
        for place, body in (("done/09-epoll/read", b""), ("guess/09-epoll/0", b'{"y": [1]}')):
            url = f"http://{said.split('/')[2]}/{place}"
            tick = urllib.request.Request(url, body, {"X-Reader": "1"}, method="POST")
            with pytest.raises(urllib.error.HTTPError, match="507"):
                urllib.request.urlopen(tick, timeout=10)
        process.terminate()
        assert process.communicate(timeout=20)[1].count("what you have done could not be saved") >= 2


def test_the_port_is_taken_when_it_is_listened_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a minute before, while the book is made: another may have it by then."""
    (tmp_path / "build/book").mkdir(parents=True)
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    taken.close()

    def made() -> bool:
        nonlocal taken
        taken = socket.create_server(("127.0.0.1", port))
        (tmp_path / "build/book/index.html").touch()
        return True

    listening: list[int] = []
    monkeypatch.setattr(read, "make_book", made)
    monkeypatch.setattr(local.Server, "serve_forever", lambda server: listening.append(server.server_address[1]))
    monkeypatch.chdir(TREE)
    given = {"PORT": str(port), "BUILD": str(tmp_path / "build"), "WORK": str(tmp_path / "work")}
    assert read.serve_book(given) == 0
    taken.close()
    assert listening and listening[0] != port


def test_a_book_that_cannot_be_made_anew_is_read_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no pages at all that is an error. A book that is whole is not made again, but for a watcher."""
    asked: list[str] = []

    def fails() -> bool:
        asked.append("book")
        return False

    monkeypatch.setattr(read, "make_book", fails)
    monkeypatch.setattr(read, "_watch", lambda _: None)
    monkeypatch.setattr(local.Server, "serve_forever", lambda _: None)
    monkeypatch.chdir(TREE)
    book = tmp_path / "build/book"
    book.mkdir(parents=True)
    given = {"PORT": "0", "BUILD": str(tmp_path / "build"), "WORK": str(tmp_path / "work")}
    with pytest.raises(InputError):
        read.serve_book(given)
    (book / "index.html").touch()
    assert (read.serve_book(given), len(asked)) == (0, 2)
    (book / "whole").touch()
    assert (read.serve_book(given), len(asked)) == (0, 2)
    assert (read.serve_book(given, watching=True), len(asked)) == (0, 3)


@pytest.mark.parametrize("more", [{}, {"ARGS": "-v"}, {"ARGS": "-v", "ADDR": "127.0.0.1"}], ids=str)
def test_the_port_of_a_server_is_taken_when_all_is_made(
    more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with two terminals: while its pages are written, the other one's server takes the port."""
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    taken.close()
    became: list[list[str]] = []

    def made(*_: object) -> Path:
        nonlocal taken
        taken = socket.create_server(("127.0.0.1", port))
        return tmp_path

    def become(command: list[str]) -> int:
        became.append(command)
        return 0

    monkeypatch.setattr(run, "built", lambda *_: Path("/bin/true"))
    monkeypatch.setattr(run, "build_typed_programs", lambda *_: None)
    monkeypatch.setattr(run, "site", made)
    monkeypatch.setattr(run, "_become", become)
    assert run.run({"CH": "01-iterative", "PORT": str(port), "WORK": str(tmp_path), **more}) == 0
    taken.close()
    assert int(became[0][became[0].index("-p") + 1]) > port
    assert ("-a" in became[0]) == ("ADDR" in more or not more)


def test_a_client_listens_at_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ADDR= is refused before anything is built."""
    monkeypatch.setattr(run, "built", lambda *_: pytest.fail("built"))
    with pytest.raises(InputError, match="ADDR=0.0.0.0"):
        run.run({"CH": "00-client", "ADDR": "0.0.0.0", "PORT": "0", "WORK": str(tmp_path)})


def test_options_reach_a_server_that_tcpserver_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[list[str]] = []
    monkeypatch.setattr(run, "built", lambda *_: Path("/bin/true"))
    monkeypatch.setattr(run, "build_typed_programs", lambda *_: None)
    monkeypatch.setattr(run, "site", lambda *_: tmp_path)
    monkeypatch.setattr(run, "_become", became.append)
    monkeypatch.setattr("shutil.which", lambda name: name)
    run.run({"CH": "02-inetd", "PORT": "0", "ARGS": "-t 5", "WORK": str(tmp_path)})
    assert became[0][3:] == ["/bin/true", "-t", "5", str(tmp_path)]


def test_what_did_not_run_is_not_ticked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that needs tcpserver, where there is none; a client that has fetched nothing."""
    monkeypatch.setattr(run, "built", lambda _, name: Path({"00-client": "/bin/false"}.get(name, "/bin/echo")))
    monkeypatch.setattr(run, "build_typed_programs", lambda *_: None)
    monkeypatch.setattr(run, "site", lambda *_: tmp_path)
    monkeypatch.setattr("shutil.which", lambda _: None)
    given = {"PORT": "0", "WORK": str(tmp_path)}
    with pytest.raises(InputError, match="02-inetd needs tcpserver"):
        run.run({"CH": "02-inetd", **given})
    assert run.run({"CH": "00-client", **given}) == 1
    assert state.read_progress(tmp_path / "path.json").done == {}


def test_a_file_that_has_just_gone_has_no_date(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "folder").mkdir()
    assert changed_ns(tmp_path / "gone") == changed_ns(tmp_path / "folder") == 0
    (tmp_path / "4913").touch()  # as an editor writes one, to see whether it may
    assert changed_ns(tmp_path / "4913") > 0


def test_a_change_is_seen_beside_a_file_of_the_future(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "WATCHED", (str(tmp_path),))
    for name, seconds in (("future", 1 << 32), ("chapter.md", 1000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (seconds, seconds))
    before = read.dates()
    (tmp_path / ".#chapter.md").symlink_to("somebody@here.1")
    (tmp_path / ".chapter.md.swp").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "#chapter.md#").touch()
    assert not read.has_changed(before, read.dates()), "an editor has it open, and has saved nothing"
    os.utime(tmp_path / "chapter.md", (2000, 2000))
    assert read.has_changed(before, read.dates())
    (tmp_path / "chapter.md").unlink()
    assert not read.has_changed(before, read.dates()), "an editor is about to put another in its place"
