"""What others say is text, wherever it ends."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from quest.ground import foreign, processes
from quest.report import tsv
from quest.report.gnuplot import assignments


def test_a_terminal_is_told_nothing() -> None:
    """And what can be read stays as it is: letters of all kinds, spaces that do not break."""
    kept = "a b\tc\nJürgen, 10\u00a0000 \u65e5\u672c `$(x)` \\x"
    assert foreign.plain(kept) == kept
    codes = "\x1b[31m\x07\r\x9b1A\x7f\u202e\u2028\udcfc\udc80\udcff\ud800\0\U000e0041"
    named = "\\x1b[31m\\x07\\x0d\\x9b1A\\x7f\\u202e\\u2028\\xfc\\x80\\xff\\ud800\\x00\\U000e0041"
    assert foreign.plain(codes) == named
    assert foreign.line("a\n\tb") == "a\\n\\tb"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1", "\uff1d1", "a;=1", 'a",=1', "'=1"])
def test_a_spreadsheet_computes_nothing(text: str) -> None:
    cell = foreign.cell(text)
    for part in cell.replace('"', ";").replace(",", ";").split(";"):
        assert part.lstrip()[:1] not in tuple("=+-@\uff1d\uff0b\uff0d\uff20"), cell
    if text[0] in "=+-@'\uff1d ":
        assert foreign.from_cell(cell) == text
    assert foreign.cell("o'brien, 1-2") == "o'brien, 1-2"


@pytest.mark.parametrize(
    "text",
    [
        "<b>x</b>",
        "[x](y)",
        "*a* _b_ `c`",
        "- x",
        "+ x",
        "1. x",
        "2) x",
        "# x",
        "> x",
        "a\\b & &amp;",
        "== ~~x~~ $y$",
        "|a|",
    ],
)
@pytest.mark.skipif(shutil.which("pandoc") is None, reason="pandoc is not installed")
def test_markdown_means_nothing(text: str) -> None:
    """What pandoc makes of it is one paragraph, with the text as it was."""
    written = foreign.markdown(text)
    command = ["pandoc", "-f", "gfm-smart", "-t", "html", "--wrap=none"]
    seen = subprocess.run(command, input=written, capture_output=True, text=True, check=True).stdout.strip()
    assert seen == f"<p>{foreign.page(text).replace('&#x27;', chr(39))}</p>"


def test_markdown_calls_nobody_and_links_to_nothing() -> None:
    assert foreign.markdown("@all: http://x, www.y") == "@<!-- -->all: http:\\//x, www\\.y"


def test_json_has_no_half_of_a_character() -> None:
    text = foreign.to_json({"\ud800": ["\udcfc\x1b", 1, None, 0.5, True]})
    assert json.loads(text) == {"\\ud800": ["\\xfc\\x1b", 1, None, 0.5, True]}


@pytest.mark.skipif(shutil.which("gnuplot") is None, reason="gnuplot is not installed")
def test_gnuplot_runs_nothing(tmp_path: Path) -> None:
    """The name of a processor is in the foot of a figure, and results come from other machines."""
    text = f'cpu `touch {tmp_path}/was_here` \\ "x"'
    script = tmp_path / "meta.gp"
    script.write_text(assignments({"cpu": text, "n": 5}) + "set print '-'\nprint cpu\n")
    done = subprocess.run(["gnuplot", script], capture_output=True, text=True, check=True)
    assert done.stdout == text + "\n"
    assert not (tmp_path / "was_here").exists()


def test_a_cell_of_a_table_stays_one() -> None:
    assert tsv.table([["a\tb\nc", 1.5, None]]).count("\t") == 2


def test_the_last_words_of_a_server_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from quest.report import bench

    with processes.running("x", ["sh", "-c", "printf '\\033]0;t\\007no\\n' >&2; exit 1"]) as process:
        process.reap(10)
        said = process.describe_end()
    report = bench.Report()
    report.failures.append(said)
    bench._print_report(report, False)
    assert capsys.readouterr().err == "failed: x ended with status 1: \\x1b]0;t\\x07no\n"
