"""The line that says how far a measurement is."""

import io
import os
import pty
import re
import subprocess
import sys
import termios

import pytest

from quest.measure.progress import Estimate, Progress, duration, terminal_width
from quest.measure.session import Settings
from quest.spec.plan import Step
from tests.known import ROOT


def test_durations() -> None:
    texts = {-1: "0 s", 7.4: "7 s", 60: "1:00", 75: "1:15", 3600: "1:00:00", 3725: "1:02:05"}
    assert {seconds: duration(seconds) for seconds in texts} == texts


def test_a_table_is_as_wide_as_the_terminal_within_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns, wide in ((40, 60), (100, 100), (500, 120)):
        monkeypatch.setattr("shutil.get_terminal_size", lambda _, columns=columns: os.terminal_size((columns, 24)))
        assert terminal_width(120) == wide


def test_the_estimate_learns() -> None:
    steps = [Step(variant, {}, number, 0) for number in range(3) for variant in "ab"]
    estimate = Estimate(2.0)
    assert estimate.seconds_for(steps) == 12
    estimate.learn(steps[0], 1.0)
    assert estimate.seconds_for(steps) == 6
    estimate.learn(steps[1], 3.0)
    assert estimate.seconds_for(steps) == 12


def test_elsewhere_than_on_a_terminal_a_line_every_ten_seconds() -> None:
    now = [0.0]
    out = io.StringIO()
    shown = Progress(True, out, clock=lambda: now[0])
    shown.experiment(1, 2, "fork-latency", 30)
    for second in range(25):
        now[0] = float(second)
        shown.step(second, 25, "round 1, static", 25.0 - second)
    assert out.getvalue().splitlines() == [
        "[1/2] fork-latency: about 30 s",
        "[1/2] fork-latency  10/25  round 1, static  15 s left",
        "[1/2] fork-latency  20/25  round 1, static  5 s left",
    ]


def test_a_bar_never_goes_back_and_is_not_full_before_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two steps were to be left, and at the end of both noise makes two more."""
    out, now = io.StringIO(), [0.0]
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(True, out, clock=lambda: now[0])
    shown.experiment(1, 1, "x", 3)
    for second, left in ((0, 2.0), (1, 1.0), (2, 0.0), (2.5, 2.0), (3, 1.0), (4, 0.0), (5, 3.0)):
        now[0] = float(second)
        shown.step(1, 2, "a", left)
    bars = [len(text) for text in re.findall(r"\x1b\[K(#*)\.+ ", out.getvalue())]
    assert len(bars) == 7 and bars == sorted(bars), bars
    assert bars[0] == 0 and bars[-1] == 19


def test_settings_from_the_environment() -> None:
    made = {
        "CLIENT": "me@there", "SERVER": "192.0.2.1", "MANY": "1", "QUEST_CFLAGS": " -O2 ",
        "MAKELEVEL": "1", "TERM": "xterm", "RESULTS": "reference",
    }  # fmt: skip
    assert Settings.from_environment(made) == Settings(
        "me@there", "192.0.2.1", many=True, compiler_flags="-O2", started_by_make=True,
        reference_only=True, escape_codes=True,
    )  # fmt: skip
    assert Settings.from_environment({}) == Settings()
    assert not Settings.from_environment({"MANY": "0"}).many
    for change in ({"TERM": "dumb"}, {"TERM": ""}, {"NO_COLOR": "1"}):
        assert not Settings.from_environment(made | change).escape_codes


@pytest.mark.parametrize(("term", "shown"), [("xterm", "w" * 39 + "\r\x1b[K"), ("dumb", "w" * 300 + " ...\r\n")])
def test_what_is_taken_back_is_one_line_in_a_narrow_window(term: str, shown: str) -> None:
    program = "from quest.ground.entry import begin, under_way\nbegin()\nwith under_way('w' * 300): pass"
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    ours, theirs = pty.openpty()
    try:
        termios.tcsetwinsize(theirs, (24, 40))
        command = [sys.executable, "-c", program]
        subprocess.run(command, cwd=ROOT, env={**kept, "TERM": term}, stderr=theirs, check=True, timeout=60)
        assert os.read(ours, 4096).decode() == shown
    finally:
        os.close(ours)
        os.close(theirs)


def test_no_escape_code_where_none_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(False, out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x", 3)
    shown.step(0, 2, "a", 4.0)
    shown.finish()
    assert out.getvalue() == "[1/1] x: about 3 s\n"


def test_on_a_terminal_one_line_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    shown = Progress(True, out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x", 3)
    shown.step(0, 2, "round 1, a", 4.0)
    shown.step(1, 2, "round 1, b", 2.0)
    shown.step(2, 3, "round 2, a", 1.0, most=4)
    shown.finish()
    assert "2 of up to 4  round 2, a" in out.getvalue()
    assert "\n" not in out.getvalue()
    assert out.getvalue().count("\r") == 4
    assert "...... 4 s left  [1/1] x  0/2  round 1, a" in out.getvalue()


def test_a_line_that_is_rewritten_is_narrower_than_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on in the next line cannot be taken back."""
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_: os.terminal_size((40, 24)))
    shown = Progress(True, out, clock=lambda: 0.0)
    shown.experiment(1, 1, "x" * 50, 3)
    shown.step(0, 2, "a", 4.0)
    assert [len(line) for line in out.getvalue().split("\r\x1b[K")] == [0, 39]
