"""The pictures of slides: bars and squares are to scale, numbers are those of the export, and what lacks says why."""

import json
import re
import xml.etree.ElementTree as ET
from math import isclose
from pathlib import Path

import pytest

from quest.book.pictures import __main__ as pictures
from quest.book.pictures import memory, svg, tally, waits
from quest.book.pictures.data import Data, Missing, Number, read
from quest.ground.errors import InputError
from quest.spec.model import HOLDS, NO_RULE, STANDINGS

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
#: value and text of each number that some picture needs.
VALUES = {
    "slow-client.01-iterative.latency_ms": (0.4, "400 µs"),
    "slow-client.01-iterative-slow.latency_ms": (800.0, "800 ms"),
    "slow-client.02-fork-slow.latency_ms": (0.6, "600 µs"),
    "slow-client.01-iterative-loss": (2000.0, "2000"),
    "send-packets.two.median_ms@500": (44.0, "44.0 ms"),
    **{f"send-packets.{name}.median_ms@500": (0.03, "30 µs") for name in ("nodelay", "more")},
    "send-packets.nodelay.reply_packets@500": (2.0, "2 packets"),
    "send-packets.more.reply_packets@500": (1.0, "1 packets"),
    **{f"toy-shop.{name}.during_good@last": (0.0, "0") for name in ("02-fork", "05-pool")},
    **{f"toy-shop.{name}.during_good@last": (200.0, "200") for name in ("07-poll", "09-epoll", "15-slashdot")},
    **{f"toy-shop.{name}.during_failed@last": (200.0, "200") for name in ("02-fork", "05-pool")},
    **{f"toy-shop.{name}.during_failed@last": (0.0, "0") for name in ("07-poll", "09-epoll", "15-slashdot")},
    "toy-shop.07-poll.during_us@last": (900_000.0, "900 ms"),
    "toy-shop.09-epoll.during_us@last": (110.0, "110 µs"),
    "toy-shop.15-slashdot.during_us@last": (140.0, "140 µs"),
    **{f"server-memory.{name}.pss_kib@{at}-x": (x, f"{x:.0f}") for name in ("02-fork", "04-threads")
       for at, x in (("first", 1.0), ("last", 101.0))},
    **{f"server-memory.{name}.{part}_kib@first": (100.0, "100 KiB") for name in ("02-fork", "04-threads")
       for part, _ in memory.PARTS},
    **{f"server-memory.02-fork.{part}_kib@last": (3300.0, "3300 KiB") for part, _ in memory.PARTS},
    **{f"server-memory.04-threads.{part}_kib@last": (1300.0, "1300 KiB") for part, _ in memory.PARTS},
    "sigio-overflow.signals": (100.0, "100"), "sigio-overflow.lost": (50.0, "50"),
    "sigio-overflow.queue.poll_finds": (150.0, "150"),
}  # fmt: skip
STOOD = (HOLDS,) * 46 + STANDINGS


def data(source: str = "here", without: str = "") -> Data:
    numbers = {key: Number(value, text, source) for key, (value, text) in VALUES.items() if key != without}
    return Data(numbers, STOOD)


def drawn(name: str, of: Data | None = None) -> ET.Element:
    return ET.fromstring(pictures.PICTURES[name](of or data()))


def words(picture: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def boxes(picture: ET.Element, names: str) -> list[float]:
    """The widths of the rectangles of these classes, in their order."""
    return [float(one.attrib["width"]) for one in picture.iter(f"{SVG}rect") if one.attrib["class"] == names]


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_a_picture_can_be_read_and_has_steps(name: str) -> None:
    picture = drawn(name)
    assert min(int(text.attrib["font-size"]) for text in picture.iter(f"{SVG}text")) >= svg.LEAST_SIZE
    assert len(picture.findall(f".//{SVG}g[@class='fragment']")) >= 3
    assert not picture.findall(f".//{SVG}g[@class='fragment']//{SVG}g[@class='fragment']")
    for element in picture.iter():
        if "y" in element.attrib:
            assert 0 <= float(element.attrib["y"]) <= svg.HEIGHT, element.attrib
        if "x" in element.attrib:
            assert 0 <= float(element.attrib["x"]) <= svg.WIDTH, element.attrib


def test_each_picture_is_on_a_slide() -> None:
    shown = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "slides").glob("*.md"))
    assert {name for name in pictures.PICTURES if f"({name}.svg)" in shown} == set(pictures.PICTURES)
    assert set(re.findall(r"\((wall-[a-z-]+)\.svg\)", shown)) == set(pictures.PICTURES)


def test_bars_are_as_long_as_the_waits() -> None:
    short, long = boxes(drawn("wall-slow-client"), "full"), boxes(drawn("wall-slow-client"), "bad")
    assert long == [svg.WIDTH] and short == [svg.HAIRLINE] * 2
    slower = data()
    slower.numbers["slow-client.02-fork-slow.latency_ms"] = Number(400.0, "400 ms", "here")
    assert boxes(drawn("wall-slow-client", slower), "full") == [svg.HAIRLINE, svg.WIDTH / 2]


def test_what_serves_no_customer_runs_off_the_wall() -> None:
    picture = drawn("wall-shop")
    assert boxes(picture, "bad") == [waits.BEYOND] * 2
    assert all(width < svg.WIDTH for width in boxes(picture, "full"))
    assert words(picture).count("serves none of 200") == 2
    none = {f"toy-shop.{name}.during_good@last": Number(0.0, "0", "here") for name, _ in waits.ATTACKED}
    numbers = data().numbers | none
    with pytest.raises(Missing, match="no server has served"):
        waits.shop(Data(numbers, STOOD))


def test_where_two_writes_do_not_wait_there_is_no_picture_of_it() -> None:
    quick = data()
    quick.numbers["send-packets.two.median_ms@500"] = Number(0.05, "50 µs", "here")
    with pytest.raises(Missing, match="waits for no acknowledgement"):
        waits.forty(quick)


def test_a_pixel_is_a_byte() -> None:
    picture = drawn("wall-memory")
    areas = [float(one.attrib["width"]) * float(one.attrib["height"]) for one in picture.iter(f"{SVG}rect")]
    process, thread, needed = sum(areas[:4]), sum(areas[4:8]), areas[8]
    assert isclose(process, 128 * 1024, rel_tol=0.01) and isclose(thread, 48 * 1024, rel_tol=0.01)
    assert needed == 7
    assert {"some 130 kB", "some 49 kB", "7 bytes", "20 000 of them: 2.6 GB"} <= set(words(picture))


@pytest.mark.parametrize(
    ("size", "said"),
    [(7, "7 bytes"), (141_231, "140 kB"), (99_900, "100 kB"), (2.82e9, "2.8 GB"), (53_000, "53 kB"), (6.1e6, "6.1 MB")],
)
def test_sizes_have_two_digits(size: float, said: str) -> None:
    assert memory.said(size) == said


def test_each_claim_is_a_dot() -> None:
    """And each word has its place: one that is new would vanish from the slide."""
    picture = drawn("wall-tally")
    assert len(list(picture.iter(f"{SVG}circle"))) == len(STOOD)
    assert sorted(word for family in tally.FAMILIES for word in family.words) == sorted(STANDINGS)
    assert sum(tally.STEPS) == len(tally.FAMILIES)
    alone = drawn("wall-tally", Data(data().numbers, (NO_RULE,)))
    assert words(alone) == ["1", "cannot be judged", "1 claims, 0 of them can be judged"]


def test_a_number_of_the_reference_run_says_so() -> None:
    assert "44.0 ms" in words(drawn("wall-forty"))
    assert "44.0 ms\N{NARROW NO-BREAK SPACE}ref" in words(drawn("wall-forty", data("reference")))
    plain = Data(data("reference").numbers, STOOD, all_reference=True)
    assert "44.0 ms" in words(drawn("wall-forty", plain))


# ---- the command


def export(folder: Path, without: str = "") -> Path:
    folder.mkdir()
    numbers = {
        key: {"value": value, "text": text, "source": "here"} for key, (value, text) in VALUES.items() if key != without
    }
    entries = {**numbers, "skipped": {"text": "not measured", "run": "now"}}
    (folder / "numbers.json").write_text(json.dumps(entries), encoding="utf-8")
    (folder / "claims.json").write_text(json.dumps([{"standing": word} for word in STOOD]), encoding="utf-8")
    return folder


def test_what_was_not_measured_leaves_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, out = "send-packets.more.median_ms@500", tmp_path / "figures"
    whole, part = export(tmp_path / "whole"), export(tmp_path / "part", key)
    assert pictures.main([str(whole), str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {f"{name}.svg" for name in pictures.PICTURES}
    assert pictures.main([str(part), str(out)]) == 0
    assert capsys.readouterr().out == f"SKIP wall-forty.svg: send-packets was not measured ({key})\n"
    assert (out / "wall-forty.skipped").read_text(encoding="utf-8") == f"send-packets was not measured ({key})\n"
    assert not (out / "wall-forty.svg").exists()
    pictures.main([str(whole), str(out)])
    assert not (out / "wall-forty.skipped").exists()


def test_a_picture_that_is_the_same_is_not_written_again(tmp_path: Path) -> None:
    folder, out = export(tmp_path / "data"), tmp_path / "figures"
    pictures.main([str(folder), str(out)])
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    pictures.main([str(folder), str(out)])
    assert before == {path: path.stat().st_mtime_ns for path in out.iterdir()}


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"a": {"value": 1}}'])
def test_data_that_cannot_be_used_are_one_line(text: str, tmp_path: Path) -> None:
    folder = export(tmp_path / "data")
    (folder / "numbers.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="numbers.json or claims.json"):
        read(folder, all_reference=False)
