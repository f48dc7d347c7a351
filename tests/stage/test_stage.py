"""Demos: what they tell, who may start one, and that nothing of them is left."""

import errno
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.ground.files import write_whole
from quest.measure.needs import probe
from quest.stage import cli, control, demos, scene, seen
from quest.stage.demos import Contrast, Demo
from quest.stage.events import Begin, End, Event, Listener, Note, Point
from quest.stage.play import play

ROOT = Path(__file__).resolve().parents[2]
BUILD, CODE = ROOT / "build", ROOT / "code"
DEMOS = {demo.name: demo for demo in demos.demos()}


@pytest.fixture(autouse=True)
def built() -> None:
    for program in ("hammer", "01-iterative", "07-poll", "15-slashdot"):
        if not (BUILD / "bin" / program).exists():
            pytest.skip(f"build/bin/{program} is not built (make servers)")


def short(name: str) -> Demo:
    """The demo, over in some five seconds."""
    demo = DEMOS[name]
    act = replace(demo.acts[0], end=4.5, silent=(1,), arrive=1, leave=3.5)
    return replace(demo, acts=(act,))


def played(demo: Demo, build: Path = BUILD) -> list[Event]:
    events: list[Event] = []
    play(demo, build, CODE, events.append, threading.Event())
    return events


def points(events: Sequence[Event]) -> list[Point]:
    return [event for event in events if isinstance(event, Point)]


def test_one_silent_client_stops_the_iterative_server() -> None:
    events = played(short("silent"))
    assert events[0] == Begin(
        "silent", DEMOS["silent"].title, "seconds", "pages a second", 60, 4.5, ["01-iterative"], []
    )
    assert events[-1] == End()
    notes = {event.text: index for index, event in enumerate(events) if isinstance(event, Note)}
    came, gone = notes["one silent client at 01-iterative"], notes["gone from 01-iterative"]
    assert max(point.y or 0 for point in points(events[1:came])) > 0
    assert points(events[:gone])[-1].y == 0, "the last point beside the silent client"


def test_the_share_of_the_busiest_worker() -> None:
    assert scene.share_of_busiest({1: 10, 2: 20, 3: 5}, {1: 16, 2: 21, 3: 6, 9: 100}) == 75.0, "9 is new"
    assert scene.share_of_busiest({1: 10, 2: 20}, {1: 12}) == 100.0, "2 has ended"
    assert scene.share_of_busiest({1: 10}, {1: 10}) is scene.share_of_busiest({}, {}) is None


@pytest.mark.parametrize(
    ("hard", "asked", "clients"),
    [(1024, 8000, 524), (1024, 524, 524), (1024, 10, 10), (100, 10, 1), (resource.RLIM_INFINITY, 8000, 8000)],
)
def test_how_many_silent_clients_there_may_be(
    monkeypatch: pytest.MonkeyPatch, hard: int, asked: int, clients: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (100, hard))
    assert scene.allowed(asked) == clients


def test_a_load_becomes_a_point() -> None:
    """Pages or files a second, or milliseconds; where no request was answered there is no wait."""
    for good, rate, wait, files in ((20, 50.0, 2.5, 25.0), (0, 0.0, None, 0.0)):
        on: Any = SimpleNamespace(hammer=lambda *_, good=good: (good, 2_500_000.0))
        found = [scene.measured(on, DEMOS[name], "http://127.0.0.1:1/") for name in ("silent", "race")]
        assert found == [rate, wait]
        assert scene.files_per_s(on, "http://127.0.0.1:1/", 3) == files


def test_workers_that_are_woken_are_counted() -> None:
    if not (BUILD / "bin/03-prefork").exists():
        pytest.skip("build/bin/03-prefork is not built (make servers)")
    demo = replace(DEMOS["order"], acts=(replace(DEMOS["order"].acts[0], end=2.5),))
    events = played(demo)
    assert events[-1] == End() and points(events)
    assert all(point.y is None or 25 <= point.y <= 100 for point in points(events))
    assert any(point.y for point in points(events))


@pytest.mark.slow
def test_one_client_that_has_something_computed() -> None:
    """Beside it the loop serves no other for as long as that takes; with threads the others are served."""
    for act in DEMOS["compute"].acts:
        if not (ROOT / act.script).exists():
            pytest.skip(f"{act.script} is not here")
    acts = tuple(replace(act, end=4, arrive=1.2, leave=3.6) for act in DEMOS["compute"].acts)
    events = played(replace(DEMOS["compute"], acts=acts))
    assert events[-1] == End()
    notes = [event.text for event in events if isinstance(event, Note)]
    assert sum("has fib(28) computed" in text for text in notes) == 2
    assert {point.line for point in points(events) if point.y} == {act.server for act in acts}


def test_a_server_in_python_that_is_not_there(tmp_path: Path) -> None:
    missing, silent = tmp_path / "none.py", tmp_path / "silent.py"
    silent.write_text("raise SystemExit(1)\n", encoding="utf-8")
    for script, why in ((missing, "is not here"), (silent, "does not listen")):
        act = replace(DEMOS["compute"].acts[0], script=str(script))
        assert played(replace(DEMOS["compute"], acts=(act,)))[-1] == End(f"{script} {why}")


def test_a_demo_without_its_programs_says_so(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for missing in ("01-iterative", "hammer"):
        why = f"{tmp_path}/bin/{missing} is not built (make servers)"
        assert played(short("silent"), tmp_path)[-1] == End(why)
        (tmp_path / "bin" / missing).symlink_to(BUILD / "bin" / missing)
    (tmp_path / "bin/museum").symlink_to("/bin/false")
    why = "the museum disk cannot be had here (make doctor)"
    assert played(DEMOS["disk"], tmp_path)[-1] == End(why)


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    deaf = tmp_path / "bin/01-iterative"
    deaf.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    deaf.chmod(0o755)
    monkeypatch.setattr(scene, "START_SECONDS", 0.5)
    began = time.monotonic()
    last = played(short("silent"), tmp_path)[-1]
    assert time.monotonic() - began < 30
    assert isinstance(last, End) and last.why.startswith("01-iterative does not start here")


def test_an_act_that_fails_ends_those_that_wait_for_their_turn(tmp_path: Path) -> None:
    late = replace(DEMOS["shop"].acts[1], begin=25, end=30)
    demo = replace(DEMOS["shop"], acts=(DEMOS["shop"].acts[0], late))
    began = time.monotonic()
    last = played(demo, tmp_path)[-1]
    assert isinstance(last, End) and "is not built" in last.why
    assert time.monotonic() - began < late.begin, "it waited for the second act"


def test_a_sweep_has_a_point_for_each_number() -> None:
    act = replace(DEMOS["poll"].acts[0], silent=(1, 20))
    line = points(played(replace(DEMOS["poll"], acts=(act,))))
    assert [point.x for point in line] == [1, 20]
    assert all(point.y for point in line)


@pytest.mark.parametrize("name", ["silent", "disk"])
def test_a_stopped_demo_leaves_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "disk" and not (probe("fuse").ok and (BUILD / "bin/museum").exists()):
        pytest.skip("no museum disk here (make doctor)")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started: list[subprocess.Popen[str]] = []
    start = scene.Scene.start

    def noted(self: scene.Scene, *words: str) -> subprocess.Popen[str]:
        started.append(start(self, *words))
        return started[-1]

    monkeypatch.setattr(scene.Scene, "start", noted)
    stop = threading.Event()
    events: list[Event] = []
    demo = replace(DEMOS[name], acts=(replace(DEMOS[name].acts[0], arrive=0),))
    player = threading.Thread(target=play, args=(demo, BUILD, CODE, events.append, stop))
    player.start()
    while not any(isinstance(event, Note | End) for event in events):
        time.sleep(0.05)
    assert len(list(tmp_path.iterdir())) == (name == "disk")
    stop.set()
    player.join(20)
    assert not player.is_alive()
    assert len(started) > 1
    assert [process.args for process in started if process.poll() is None] == []
    assert not list(tmp_path.iterdir()), "a mount, or its folder, is left"


@pytest.mark.parametrize("name", DEMOS)
def test_each_demo_has_a_recording_of_all_its_lines(name: str) -> None:
    path = ROOT / cli.recording(DEMOS[name])
    about, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert set(about) == {"date", "system", "cores"}
    assert events[0]["begin"] == name and events[-1]["end"] is True
    assert [event["at"] for event in events] == sorted(event["at"] for event in events)
    points = {event["line"] for event in events if "line" in event and event["y"]}
    assert points == {act.server for act in DEMOS[name].acts}
    assert events[0] == {"at": events[0]["at"], **DEMOS[name].begin().message()}, "make demo-record"


def event_of(message: dict[str, Any]) -> Event:
    """The event whose message this is."""
    if "begin" in message:
        return Begin(message.pop("begin"), **message)
    if "note" in message:
        return Note(message["note"], message.get("x"))
    return Point(**message) if "line" in message else End(message.get("failed", ""))


def recorded(name: str) -> list[Event]:
    text = (ROOT / cli.recording(DEMOS[name])).read_text(encoding="utf-8")
    messages = [json.loads(line) for line in text.splitlines()[1:]]
    events = [event_of({k: v for k, v in message.items() if k != "at"}) for message in messages]
    assert [
        {"at": m["at"], **e.message()} for m, e in zip(messages, events, strict=True)
    ] == messages
    return events


@pytest.mark.parametrize("name", DEMOS)
def test_a_recording_shows_what_its_slide_says(name: str) -> None:
    assert seen.missing(DEMOS[name], recorded(name)) == ""


def changed(name: str, server: str, y: float | None, first: float, last: float) -> list[Event]:
    """The recording, with the line of a server put to y there."""
    return [
        replace(event, y=y)
        if isinstance(event, Point) and event.line == server and first <= event.x <= last
        else event
        for event in recorded(name)
    ]


@pytest.mark.parametrize(
    ("name", "server", "y", "first", "last", "why"),
    [
        ("silent", "01-iterative", 50, 5, 10, "01-iterative serves beside the silent clients, and"),
        ("silent", "01-iterative", None, 0, 4, "01-iterative does not serve before the clients"),
        ("silent", "01-iterative", 0, 0, 99, "01-iterative: nothing was measured"),
        ("fork", "02-fork", 0, 5, 10, "02-fork serves in 0% of the time beside the clients"),
        ("shop", "15-slashdot", None, 15, 20, "15-slashdot serves in 0% of the time"),
        ("shop", "02-fork", 20, 4, 9, "02-fork serves beside the silent clients"),
        ("race", "07-poll", 0.4, 4, 11, "07-poll over 09-epoll is 1.8, but must be at least 3"),
        ("poll", "07-poll", 0.3, 8000, 8000, "07-poll: last over first is 1.2, but must be at least 3"),
        ("disk", "12-aio", 78, 6, 15, "12-aio over 11-sendfile is 0.99, but must be at least 1.5"),
    ],
)
def test_what_a_demo_does_not_show_is_said(
    name: str, server: str, y: float | None, first: float, last: float, why: str
) -> None:
    assert seen.missing(DEMOS[name], changed(name, server, y, first, last)).startswith(why)


def test_a_demo_that_has_no_point_beside_its_clients() -> None:
    (act,) = DEMOS["fork"].acts
    events = [event for event in recorded("fork") if not isinstance(event, Point) or event.x < act.arrive]
    assert points(events)
    assert seen.missing(DEMOS["fork"], events) == "02-fork: nothing was measured beside the clients"


def test_all_points_lie_inside_but_for_those_of_an_arrival() -> None:
    demo = DEMOS["race"]
    assert seen.top(demo, changed("race", "07-poll", 400, 4, 5)) == demo.top, "an arrival"
    assert seen.top(demo, changed("race", "07-poll", 30, 6, 7)) == 30, "a slower machine"


def test_the_file_of_the_demos(tmp_path: Path) -> None:
    """What it says is what is played, and what is wrong in it is one line."""
    race = DEMOS["race"]
    assert (race.number, race.measure, race.x, race.top) == (4, "wait", "seconds", 4)
    assert race.contrast == Contrast("07-poll", 3, "09-epoll")
    assert DEMOS["poll"].contrast == Contrast("07-poll", 3)
    assert [act.must for act in DEMOS["shop"].acts] == ["nobody", "served"]
    assert DEMOS["poll"].begin().ticks == [10, 100, 1000, 3000, 8000] and race.begin().ticks == []
    assert DEMOS["shop"].begin().until == 22
    act = '[x]\ntitle = "t"\nmeasure = "rate"\ny = "y"\n[[x.acts]]\nserver = "s"\n'
    for text, why in (
        (act + "end = 31\nsilent = [1]\n", 'act 1: "end" must be at most 30 s'),
        (act + "end = 30\nsilent = [10001]\n", "act 1: there may be at most 10000 clients"),
        (act + "end = 30\nreaders = [1, 10001]\n", "act 1: there may be at most 10000 clients"),
        (act + "end = 30\nloud = [1]\n", 'act 1: unknown key "loud"'),
        (act + "end = 30\ncomputes = 33\n", 'act 1: "computes" must be at most 32'),
        ('[x]\ntitle = "t"\n', '"acts" is missing'),
    ):
        path = tmp_path / "demos.toml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=rf"demos\.toml: x: {why}$"):
            demos.demos(path)
    path.write_text(act + "end = 30\nsilent = [10000]\n", encoding="utf-8")
    assert demos.demos(path)[0].acts[0].silent == (10000,)


def test_a_server_that_ends_in_the_middle_fails_the_demo() -> None:
    """And does not look like one that serves no client."""
    events: list[Event] = []
    started: list[subprocess.Popen[str]] = []
    start = scene.Scene.start

    def noted(self: scene.Scene, *words: str) -> subprocess.Popen[str]:
        started.append(start(self, *words))
        return started[-1]

    def report(event: Event) -> None:
        events.append(event)
        if len(points(events)) == 2:
            started[0].kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scene.Scene, "start", noted)
        assert not play(short("fork"), BUILD, CODE, report, threading.Event())
    assert events[-1] == End("02-fork has ended")
    assert all(point.y for point in points(events))


def test_clients_that_end_in_the_middle_fail_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the slide says that they are there, and shows a server without them."""
    events: list[Event] = []
    crowd: list[subprocess.Popen[str]] = []
    start = scene.Scene.start

    def noted(self: scene.Scene, *words: str) -> subprocess.Popen[str]:
        process = start(self, *words)
        crowd.extend([process] if "--idle" in words else [])
        return process

    def report(event: Event) -> None:
        events.append(event)
        if crowd and isinstance(event, Point):
            crowd[0].kill()

    monkeypatch.setattr(scene.Scene, "start", noted)
    assert not play(short("fork"), BUILD, CODE, report, threading.Event())
    assert events[-1] == End("the clients beside the measurement have ended")


def test_an_act_that_raises_was_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> float:
        raise TypeError("no number")

    monkeypatch.setattr("quest.stage.play.measured", broken)
    assert played(short("silent"))[-1] == End("no number")


def test_a_recording_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *_: object, **__: object) -> int:
        with path.open("w"):  # it is empty by then
            raise OSError(errno.ENOSPC, "No space left on device")

    def one_event(_demo: Demo, _build: Path, _docroot: Path, report: Listener, _stop: object) -> bool:
        report(End())
        return True

    monkeypatch.setattr(cli, "RECORDINGS", tmp_path)
    monkeypatch.setattr(cli, "play", one_event)
    before = cli.recording(DEMOS["silent"])
    before.write_text("the last one\n", encoding="utf-8")
    for name in ("write_bytes", "write_text"):
        monkeypatch.setattr(Path, name, full)
    with pytest.raises(OSError, match="silent.jsonl"):
        cli.record(DEMOS["silent"], BUILD)
    assert before.read_text(encoding="utf-8") == "the last one\n"


@pytest.mark.parametrize("columns", [200, 80])
def test_the_bars_of_a_demo_have_one_scale(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def replayed(demo: Demo, _build: Path, _docroot: Path, report: Listener, _stop: object) -> bool:
        for event in recorded(demo.name):
            report(event)
        return True

    monkeypatch.setattr(cli, "play", replayed)
    monkeypatch.setenv("COLUMNS", str(columns))
    for name in DEMOS:
        assert cli.play_in_terminal(DEMOS[name], BUILD)
        ys = [point.y or 0.0 for point in points(recorded(name))]
        shown = capsys.readouterr().out.splitlines()
        lines = [line for line in shown if line[:7].strip().replace(".", "").isdigit()]
        assert max(map(len, lines)) <= columns, "none is broken"
        bars = [line.count("#") for line in lines]
        assert len(bars) == len(ys)
        longest = max(bars)
        for y, bar in zip(ys, bars, strict=True):
            assert bar == longest or abs(bar - longest * y / max(ys)) <= 1.5, (name, y)
        assert len(set(bars)) > 1 or len(set(ys)) == 1


def test_a_number_that_is_none() -> None:
    with pytest.raises(InputError, match="^N=9: there is no such demo; 1 01-iterative,"):
        cli.demo({"N": "9"})


def test_the_demos_that_are_named_are_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one fails the others are played, too."""
    numbers: list[int] = []

    def act(demo: Demo, _: Path) -> bool:
        numbers.append(demo.number)
        return demo.number != 3

    monkeypatch.setattr(scene, "heed_signals", lambda: None)
    for given, wanted, status in (("3, 1", [1, 3], 1), ("2 1", [1, 2], 0), ("", [*range(1, len(DEMOS) + 1)], 1)):
        numbers.clear()
        assert cli._each({"N": given}, act) == status
        assert numbers == wanted


@pytest.mark.parametrize(
    "lacking", ["", "demo", "program", "recording", "clients", "setpriv", "dygraphs", "address", "deck"]
)
def test_a_rehearsal_finds_what_will_not_work(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints one NOT, for what is lacking; and none where nothing is."""
    tapes = {name: recorded(name) for name in DEMOS}
    if lacking == "demo":
        tapes["silent"] = changed("silent", "01-iterative", 50, 5, 10)

    def replayed(demo: Demo, _build: Path, _docroot: Path, report: Listener, _stop: object) -> bool:
        fails = lacking == "program" and demo.name == "silent"
        for event in [End("hammer is not built")] if fails else tapes[demo.name]:
            report(event)
        return not fails

    def tape(demo: Demo) -> Path:
        return ROOT / "slides/recordings" / ("none" if demo.name == "silent" else f"{demo.name}.jsonl")

    deck = tmp_path / "slides/deck.html"
    deck.parent.mkdir()
    if lacking != "deck":
        deck.write_text('<p class="no-address">' if lacking == "address" else "<p>", encoding="utf-8")
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cli, "play", replayed)
    monkeypatch.setattr(cli, "DYGRAPHS", tmp_path / "none" if lacking == "dygraphs" else tmp_path)
    monkeypatch.setattr(scene, "allowed", lambda most: most - (lacking == "clients"))
    monkeypatch.setattr("shutil.which", lambda _: None if lacking == "setpriv" else "/bin/true")
    if lacking == "recording":
        monkeypatch.setattr(cli, "recording", tape)
    assert cli.rehearse(tmp_path) == (not lacking)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  NOT ") for line in lines) == bool(lacking)


# ---- the show ------------------------------------------------------------------------------------


def test_a_deck_that_cannot_be_taken_does_not_end_the_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "deck.html")

    deck = tmp_path / "deck.html"
    deck.write_text("one", encoding="utf-8")
    stand = control.Stand(deck, tmp_path)
    served = stand.folder / "deck.html"
    for text, date in (("two", 1), ("three", 2)):
        deck.write_text(text, encoding="utf-8")
        os.utime(deck, (date, date))
        monkeypatch.setattr(control, "write_whole", full if text == "three" else write_whole)
        stand.refresh()
        stand.refresh()
        assert served.read_text(encoding="utf-8") == "two"
    assert capsys.readouterr().err == "present: the deck is shown as it was: deck.html: No space left on device\n"
    deck.unlink()
    stand.refresh()
    assert served.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_show_leaves_nothing_however_it_is_ended(tmp_path: Path, number: int) -> None:
    """SIGHUP comes when its terminal is closed."""
    deck = tmp_path / "deck.html"
    deck.touch()
    (tmp_path / "tmp").mkdir()
    program = f"""from pathlib import Path
from quest.stage.control import present
raise SystemExit(present(Path({str(BUILD)!r}), Path({str(deck)!r}), "0", False))"""
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout and process.stdout.readline().startswith("deck")
        process.send_signal(number)
        assert process.wait(20) == 0
    assert list((tmp_path / "tmp").iterdir()) == []


#: A demo, and a show, in the middle of starting something: a folder of theirs is there.
UNDER_WAY = """import signal, sys, tempfile, time
from pathlib import Path
from quest.ground.entry import run_to_status
from quest.stage import cli, control, scene

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # nohup make test
    signal.signal(number, signal.SIG_DFL)

def waits(on):
    print("here", flush=True)
    time.sleep(60)

def played(_demo, build, docroot, _report, _stop):
    with scene.Scene(build, docroot) as on:
        on.disks.append(Path(tempfile.mkdtemp(prefix="quest-disk-")))
        waits(on)

cli.play, scene.Scene.serve = played, lambda on, *_: waits(on)
goals = {"demo": lambda: cli.demo({"N": "1"}), "rehearse": lambda: cli.rehearse_all({}),
         "present": lambda: control.present(Path("build"), Path(sys.argv[2]), "0", False)}
raise SystemExit(run_to_status(goals[sys.argv[1]]))"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("goal", ["demo", "rehearse", "present"])
def test_what_is_stopped_in_the_middle_leaves_no_folder(goal: str, number: int, tmp_path: Path) -> None:
    deck, folder = tmp_path / "deck.html", tmp_path / "tmp"
    deck.touch()
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", UNDER_WAY, goal, str(deck)], cwd=ROOT, env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout and "here" in process.stdout.readline()
        assert len(list(folder.iterdir())) == 1
        process.send_signal(number)
        assert process.wait(20) == 128 + number
    assert list(folder.iterdir()) == []


# ---- who may start one ---------------------------------------------------------------------------

ORIGIN = "http://127.0.0.1:8000"


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Iterator[control.Control]:
    monkeypatch.setattr(demos, "demos", lambda: [short("silent")])
    monkeypatch.setattr(scene, "DOCROOT", CODE)
    server = control.Control(BUILD, ORIGIN)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.current.set()
    server.shutdown()
    server.server_close()


def ask(
    show: control.Control, demo: str = "silent", token: str = "", **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", show.port, timeout=20)
    query = f"/demo?demo={demo}&token={token or show.token}"
    connection.request("GET", query, headers={"Origin": ORIGIN, **headers})
    return connection.getresponse()


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"token": "guessed"}, 403),
        ({"Origin": "http://127.0.0.1:9000"}, 403),
        ({"Origin": "null"}, 403),  # a page from a file
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost"}, 403),
        ({"demo": "rm"}, 404),
    ],
)
def test_no_other_page_starts_a_demo(
    show: control.Control, changed: dict[str, str], status: int
) -> None:
    idle = show.current
    assert ask(show, **changed).status == status
    assert show.current is idle


def test_a_demo_ends_with_the_connection(show: control.Control) -> None:
    reply = ask(show)
    assert reply.status == 200
    assert reply.headers["Access-Control-Allow-Origin"] == ORIGIN
    first = json.loads(reply.readline().removeprefix(b"data: "))
    assert first["begin"] == "silent"
    reply.close()
    assert show.current.wait(10), "it is told to end"


def test_a_demo_ends_when_the_next_begins(show: control.Control) -> None:
    first = ask(show)
    while b"line" not in (line := first.readline()):
        assert line, "it has ended without a point"
    second = ask(show)
    rest = first.read().decode()
    assert rest.rstrip().endswith('{"failed": "the demo was stopped"}')
    assert b"begin" in second.readline()
    second.close()


def test_a_server_that_ends_in_the_middle_of_a_show_is_said(
    show: control.Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deck = tmp_path / "deck.html"
    deck.touch()
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # they are pytest's
    with subprocess.Popen(["sh", "-c", "exit 3"], text=True) as server:
        assert control._run_show(server, show, ORIGIN, control.Stand(deck, tmp_path), False) == 1
    assert capsys.readouterr().err == "present: 15-slashdot has ended (status 3), and the show with it\n"
