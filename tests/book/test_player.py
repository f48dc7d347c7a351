"""The player: what a recording is turned into, and what it does in Chromium with keys, mouse and little room."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from quest.book.player import front, lanes, picture, scale
from quest.book.player.__main__ import make
from quest.book.player.excerpts import excerpts
from quest.book.player.page import player
from quest.book.player.recording import best, milliseconds, plain_clients, read_recording
from quest.ground.errors import InputError
from quest.measure.form import FOLDER, Recording
from tests.book import axe, browser
from tests.book.tree import ROOT, Once

NAMES = sorted(path.stem for path in (ROOT / FOLDER).glob("*.json"))
STYLES = ("code.css", "book.css", "player.css", "front.css", "player.js", "front.js", "book.js")
FORK, EPOLL, ITERATIVE = "02-fork.slow", "09-epoll.slow", "01-iterative.slow"


def recorded(name: str) -> Recording:
    return read_recording(ROOT / FOLDER / f"{name}.json")


# ---- what the build makes ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_without_a_script_there_is_a_still_and_a_table_of_all_moments(name: str) -> None:
    recording = recorded(name)
    html = player([recording], ROOT)
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", html)
    assert len(rows) == len(recording.moments)
    for row, moment in zip(rows, recording.moments, strict=True):
        assert moment.head in unescape(row)
        if moment.call is not None:
            site = recording.sites[recording.stacks[recording.calls[moment.call].stack][-1]]
            assert f"{site.file.removeprefix('code/')}:{site.line}" in row
    rest = recording.moments[best(recording)]
    assert all(rest.rank <= moment.rank for moment in recording.moments)
    assert f'<p class="say"><b>{rest.head}' in unescape(html)
    assert html.count('class="dot"') == len(recording.moments)
    assert len(re.findall(r'class="lane client', html)) == len(recording.clients)


@pytest.mark.parametrize("name", NAMES)
def test_milliseconds_that_are_written_are_those_without_a_tracer(name: str) -> None:
    recording = recorded(name)
    known = {
        milliseconds(after - before)
        for client in plain_clients(recording).values()
        for before in (client.connect, client.half, client.sent)
        for after in (client.sent, client.first, client.done)
        if before is not None and after is not None
    }
    sentences = [f"{moment.head} {moment.rest}" for moment in recording.moments]
    labels = re.findall(r'data-says="([^"]*)"', player([recording], ROOT))
    written = [found for text in sentences + labels for found in re.findall(r"[\d.]+ ms", text)]
    assert written
    assert set(written) <= known


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_a_stack_is_shown_in_its_function(name: str) -> None:
    recording = recorded(name)
    shown, of_site = excerpts(recording, ROOT)
    for site, at in zip(recording.sites, of_site, strict=True):
        lines = (ROOT / site.file).read_text(encoding="utf-8").expandtabs(4).splitlines()
        assert shown[at].lines[site.line - shown[at].first] == lines[site.line - 1]
        assert any(re.search(rf"\b{site.function}\(", text) for text in shown[at].lines)


def test_a_recorded_line_that_has_changed_stops_the_build(tmp_path: Path) -> None:
    recording = recorded(FORK)
    shutil.copytree(ROOT / "code", tmp_path / "code")
    excerpts(recording, tmp_path)
    site = recording.sites[recording.stacks[recording.calls[-1].stack][-1]]
    path = tmp_path / site.file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[site.line - 1] = "    other(); /* another line */\n"
    path.write_text("".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=rf"^{site.file}:{site.line}: not the line that is in {FORK}; make trace"):
        excerpts(recording, tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=rf"^{site.file}: in {FORK}, and not in the tree"):
        excerpts(recording, tmp_path)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda text: text[:-40], "not JSON"),
        (lambda text: text.replace('"moments"', '"others"'), "not a recording: KeyError: 'moments'"),
        (lambda text: re.sub(r'"moments":\[.*\]\}', '"moments":[]}', text, flags=re.S), "a recording without a moment"),
        (lambda text: text.replace('"calls":[[', '"calls":[["x",'), "not a recording: TypeError"),
    ],
)
def test_a_file_that_is_no_recording(tmp_path: Path, spoil: Callable[[str], str], says: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(spoil((ROOT / FOLDER / f"{FORK}.json").read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match="x.json: ") as error:
        read_recording(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_room_is_equal_for_calls_and_logarithmic_for_sleeps() -> None:
    assert [scale.width(gap) for gap in (50, 299, 300, 2500)] == [0.35, 0.35, 1.0, 1.0]
    assert scale.width(5000) == pytest.approx(2.25)
    assert scale.width(10_000) == pytest.approx(3.5)
    assert scale.width(250_000) == scale.width(400_000) == 7.0
    one = scale.scale_of(recorded(ITERATIVE), recorded(FORK))
    places = [one.at(t) for t in range(-2000, 400_000, 500)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, 1.0)
    assert [gap >= scale.CUT_US for _, gap in one.cuts()] == [True] * len(one.cuts()) != []


def test_of_many_tasks_those_that_serve_have_lanes_and_the_others_share_one() -> None:
    for name in NAMES:
        recording = recorded(name)
        tasks = range(len(recording.tasks))
        own, others = lanes.drawn_tasks(recording)
        serving = {task for task in tasks if any(call.letter for call in recording.calls_of(task))}
        many = len(tasks) > lanes.MOST_LANES
        assert sorted([*own, *others]) == [*tasks] and own[0] == 0 and bool(others) == many, name
        assert len(own) <= lanes.MOST_LANES and (not many or {*own} <= {0, *serving}), name
        assert serving <= {*own} or len(own) >= lanes.MOST_LANES - 1, name


# ---- the first page ------------------------------------------------------------------------------


def test_the_first_page_says_what_the_six_recordings_show() -> None:
    six = front.recorded(ROOT)
    assert [front.late(one) for one in six] == [["C", "D"], [], [], [], [], []]
    assert [front.squares(one, front.REST_US).count("b") for one in six] == [1, 1, 1, 1, 0, 0]
    assert [len(front.squares(one, front.REST_US)) for one in six] == [1, 2, 17, 17, 1, 1]
    html = front.front(six)
    assert re.findall(r'href="player-([^"]*)\.html"><span class="who">', html) == list(front.SERVERS)


def test_the_first_page_does_not_say_what_a_recording_contradicts() -> None:
    fork, epoll = recorded(FORK), recorded(EPOLL)
    with pytest.raises(InputError, match="says C and D wait.*It shows: No other client waits. 1 sleep"):
        front.check(replace(fork, server="01-iterative"))
    with pytest.raises(InputError, match="It shows: No other client waits. 0 sleep for B alone"):
        front.check(replace(epoll, server="02-fork"))


def test_the_picture_of_the_readme_is_small_and_moves_by_itself() -> None:
    svg = picture.picture(front.recorded(ROOT))
    assert len(svg.encode()) <= 20_000
    assert (ROOT / "figures/readme.svg").read_text(encoding="utf-8") == svg
    assert "<script" not in svg
    for part in ("prefers-color-scheme:dark", "prefers-reduced-motion:reduce", "@keyframes", "<title>", "<desc>"):
        assert part in svg
    delay = re.search(r"animation:m 9s linear -([\d.]+)s 2", svg)
    assert delay
    assert float(delay[1]) == pytest.approx(front.PLAY_S * front.REST_US / front.end_of(front.recorded(ROOT)), abs=0.01)


def test_scripts_and_pages_are_small() -> None:
    import gzip

    pandoc = ROOT / "chapters/pandoc"
    assert len((pandoc / "player.js").read_text(encoding="utf-8").splitlines()) <= 1000
    assert len(gzip.compress((pandoc / "player.js").read_bytes())) <= 20_000
    for name in NAMES:
        assert len(gzip.compress((ROOT / FOLDER / f"{name}.json").read_bytes())) <= (
            4_096 if name.endswith(".slow") else 8_192
        ), name
    parts = [(pandoc / name).read_bytes() for name in ("player.css", "front.css", "front.js")]
    assert len(gzip.compress(b"".join(parts) + front.front(front.recorded(ROOT)).encode())) <= 60_000


# ---- in Chromium ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(once: Once) -> Path:
    """The pages of all servers, and what they need."""

    def fill(folder: Path) -> None:
        make(ROOT, folder)
        for name in STYLES:
            shutil.copy(ROOT / "chapters/pandoc" / name, folder)
        text = (folder / "front.html").read_text(encoding="utf-8")
        links = "".join(f'<link rel="stylesheet" href="{name}">' for name in STYLES if name.endswith(".css"))
        (folder / "index.html").write_text(
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>x</title><link rel="icon" href="data:,">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'{links}</head><body class="wide" style="--margin:0px"><main><h1>x</h1>{text}</main>'
            '<script src="front.js"></script></body></html>',
            encoding="utf-8",
        )

    return once("players", fill)


Show = Callable[..., Any]


@pytest.fixture
def show(driver: Any, pages: Path) -> Show:
    """show("player-02-fork"): the page at this width."""

    def load(name: str, width: int = 1280, height: int = 900, mark: str = "") -> Any:
        browser.resize(driver, width, height)
        driver.get("about:blank")  # else only the part behind the mark would change
        driver.get((pages / f"{name}.html").as_uri() + mark)
        return driver

    return load


def said(driver: Any) -> str:
    return str(driver.execute_script("return document.querySelector('.player .say').textContent.trim()"))


def now(driver: Any) -> float:
    return float(driver.execute_script("return questPlayers[0].t"))


def press(driver: Any, *keys: str) -> None:
    driver.switch_to.active_element.send_keys(*keys)


def focus(driver: Any) -> None:
    driver.execute_script("document.querySelector('.player .lanes').focus()")


#: A recording that is made up: main accepts A at 30, forks at 50 and closes it; child and its thread have it then.
MADE_UP = {
    "tasks": [["main", "process", None, None, None], ["child", "process", 50, 90, 0], ["one", "thread", 60, None, 1]],
    "clients": [
        ["A", 0, [0, 10, 0, 0, 0, 80], 0, 0, [[20, "send", 5]]],
        ["B", 0, [0, 15, 0, 0, 0, 70], 0, 0, [[16, "send", 4], [60, "send", 4]]],
    ],
    "calls": [
        [0, 0, 30, "accept", 3, 4, "A", 0, "", 1],
        [0, 50, 1, "fork", -1, 7, "", 0, "", 0],
        [0, 52, 1, "close", 4, 0, "", 0, "", 0],
        [1, 55, 1, "recv", 4, 5, "A", 0, "", 0],
        [1, 57, None, "recv", 4, None, "A", 0, "", 1],
        [2, 62, 1, "open", -1, 5, "", 0, "a file", 0],
    ],
    "moments": [[5, 0, 0, 0, "", "", ""], [30, 1, 0, 0, "", "", ""]],
    "open": [[0, 0, "a terminal"], [0, 3, "listening"], [1, 9, "of another"]],
}
#: What is asked of it -> the answers.
TOLD: dict[str, list[object]] = {
    "[9, 10, 14, 15, 29, 30, 69, 70].map((t) => side.queue(t).join(''))": ["", "A", "A", "AB", "AB", "B", "B", ""],
    "[15, 16, 20, 55, 56, 99].map((t) => side.ready(t).join(''))": ["", "B", "AB", "AB", "B", "B"],
    "[29, 30, 52, 53].map((t) => side.descriptors(0, t).join())": ["3,listening", "3,listening,4,A", "3,listening,4,A",
                                                                  "3,listening"],
    "[[1, 51], [1, 62], [1, 63], [2, 63]].map(([task, t]) => side.descriptors(task, t).length)": [2, 2, 3, 3],
    "[0, 29, 30].map((t) => side.asleep(0, t)?.index ?? -1)": [0, 0, -1],
    "[55, 57, 999].map((t) => side.asleep(1, t)?.index ?? -1)": [-1, 4, 4],
    "[29, 30, 51].map((t) => side.works(0, t)?.index ?? -1)": [-1, 0, 1],
    "[49, 50, 60, 89, 90].map((t) => side.living(t).join(''))": ["0", "01", "012", "012", "02"],
    "side.stops.map((stop) => stop.t)": [0, 30, 50, 52, 55, 57, 62],
    "[29, 30, 49, 1000].map((t) => side.stopAt(t).t)": [0, 30, 30, 62],
    "[4, 5, 29, 30].map((t) => side.momentAt(t))": [-1, 0, 0, 1],
}  # fmt: skip


def test_what_is_so_at_a_time(show: Show) -> None:
    """At its first moment, and not before; until its last, and no longer."""
    driver = show("player-02-fork")
    side = "const side = new questPlayers[0].now.constructor(arguments[0]);"
    found = {asked: driver.execute_script(f"{side} return {asked};", MADE_UP) for asked in TOLD}
    assert found == TOLD


LIT = """
  return [...document.querySelector(".player").querySelectorAll(".code .lit")]
    .map((line) => [line.dataset.n, line.textContent]);
"""


def test_by_keyboard_to_the_sleep_of_child_2(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = show("player-02-fork")
    focus(driver)
    press(driver, Keys.HOME)
    for _ in range(8):
        press(driver, "n")
        if said(driver).startswith("Child 2 falls asleep in recv(), for B."):
            break
    assert said(driver).startswith("Child 2 falls asleep in recv(), for B.")
    assert driver.execute_script("return document.activeElement.getAttribute('role')") == "slider"
    assert driver.switch_to.active_element.get_attribute("aria-valuetext").strip() == said(driver)
    [[_, line]] = driver.execute_script(LIT)
    assert "recv(" in line
    asleep = driver.execute_script("return document.querySelector('.player .state').innerText")
    assert "child 2 in recv(), for B" in asleep
    assert "main in accept()" in asleep
    before = now(driver)
    press(driver, Keys.ARROW_RIGHT)
    assert now(driver) > before
    press(driver, Keys.ARROW_LEFT)
    assert now(driver) == before
    press(driver, "[")
    assert driver.execute_script("return document.querySelector('.path .shown').textContent") == "serve_request"
    press(driver, Keys.ESCAPE)
    assert driver.execute_script("return document.activeElement === document.body")


@pytest.mark.parametrize("name", ["player-01-iterative", "player-05-pool", "player-09-epoll", "player-13-uring"])
def test_at_each_stop_one_line_is_lit_and_it_is_the_recorded_one(show: Show, name: str) -> None:
    driver = show(name)
    wrong = driver.execute_script("""
      const player = questPlayers[0], wrong = [];
      for (const stop of [...player.now.stops, ...player.now.moments]) {
        player.go(stop);
        const call = player.now.calls[player.call], site = player.now.sites[player.now.stacks[call.stack].at(-1)];
        const lit = [...player.root.querySelectorAll(".code .lit")];
        const box = player.code.getBoundingClientRect(), at = lit[0]?.getBoundingClientRect();
        const seen = at && at.top >= box.top - 1 && at.bottom <= box.bottom + 1;
        if (lit.length !== 1 || Number(lit[0].dataset.n) !== site[2] || !seen) {
          wrong.push([stop.t, call.name, site]);
        }
      }
      return wrong;""")
    assert wrong == []
    assert browser.console_errors(driver) == []


def test_drag_tap_chips_and_dots(show: Show) -> None:
    from selenium import webdriver

    def mouse() -> Any:
        return webdriver.ActionChains(driver)  # type: ignore[no-untyped-call]

    driver = show("player-02-fork")
    lanes = driver.find_element("css selector", ".player .lanes")
    mouse().move_to_element_with_offset(lanes, -300, 0).click_and_hold().move_by_offset(150, 0).perform()
    assert browser.wait_until(lambda: now(driver) > 0)
    held = now(driver)
    mouse().move_by_offset(150, 0).release().perform()
    assert browser.wait_until(lambda: now(driver) > held)
    assert "#02-fork/" in driver.current_url
    dots = driver.find_elements("css selector", ".player .dot")
    mouse().move_to_element(dots[2]).click().perform()
    moment = recorded(FORK).moments[2]
    assert said(driver).startswith(moment.head)
    assert driver.execute_script("return document.querySelector('.player').querySelectorAll('.dot.here').length") == 1
    chips = driver.find_elements("css selector", ".player .chip.later")
    name = chips[0].text.split()[0]
    chips[0].click()
    assert f"{name}(" in said(driver)


def test_the_address_keeps_the_place(show: Show) -> None:
    driver = show("player-02-fork", mark="#02-fork/2")
    assert said(driver).startswith(recorded(FORK).moments[1].head)
    driver.find_element("css selector", ".buttons .main").click()
    assert driver.current_url.endswith("#02-fork/3")


def test_an_address_that_means_nothing_here_stops_no_player(show: Show) -> None:
    driver = show("player-02-fork", mark="#100%")
    players = driver.execute_script("return [questPlayers.length, document.querySelectorAll('.player').length];")
    assert players[0] == players[1] > 0
    assert browser.console_errors(driver) == []


def test_a_key_that_is_held_goes_on_where_the_address_may_not_change(show: Show) -> None:
    """Safari and Firefox throw after some hundred changes of the address in some seconds."""
    driver = show("player-02-fork")
    moved = driver.execute_script("""
      history.replaceState = () => { throw new DOMException("too often", "SecurityError"); };
      const event = new KeyboardEvent("keydown", { key: "Home", bubbles: true, cancelable: true });
      questPlayers[0].lanes.dispatchEvent(event);
      return [event.defaultPrevented, questPlayers[0].t === questPlayers[0].now.stops[0].t];""")
    assert moved == [True, True]
    assert browser.console_errors(driver) == []


def test_two_servers_stand_on_one_scale_with_one_now(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = show("player-02-fork")
    script = """
      const two = document.querySelector(".player.two"), player = questPlayers.find((one) => one.root === two);
      two.querySelector(".lanes").focus();
      const track = two.querySelector(".track").getBoundingClientRect();
      return player.sides.map((side, at) => side.clients.map((client) => {
        const group = two.querySelectorAll(".group")[at];
        const bar = group.querySelector(`.client.${client.letter} .works`).getBoundingClientRect();
        return Math.abs((bar.left - track.left) / track.width - player.place(client.acts[0][0]));
      })).flat();"""
    assert max(driver.execute_script(script)) < 0.002
    servers = ("01-iterative", "02-fork")
    active = "return [...document.querySelectorAll('.two .group')].map((group) => group.classList.contains('active'))"
    assert driver.execute_script(active) == [True, False]
    press(driver, "x")
    assert driver.execute_script(active) == [False, True]
    ends = """
      const two = document.querySelector(".player.two"), player = questPlayers.find((one) => one.root === two);
      return [Number(two.querySelector(".lanes").getAttribute("aria-valuemax")), player.sides[1].stops.length - 1];"""
    assert len(set(driver.execute_script(ends))) == 1, "the slider ends with this side's stops"
    press(driver, Keys.SHIFT, Keys.ARROW_RIGHT)
    assert driver.execute_script("return document.querySelectorAll('.two .over .now').length") == 1
    assert [each.text for each in driver.find_elements("css selector", ".two .server")] == list(servers)


IN_SIGHT = """
  const seen = (selector) => {
    const box = document.querySelector(".player " + selector).getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth + 1 && box.height > 0;
  };
  document.querySelector(".player").scrollIntoView();
  return [".say", ".tasks", ".buttons", ".code .lit"].filter((selector) => !seen(selector));
"""


def test_a_phone_shows_caption_lanes_buttons_and_the_lit_line(show: Show) -> None:
    driver = show("player-02-fork", 390, 844)
    assert driver.execute_script(IN_SIGHT) == []
    small = driver.execute_script("""
      return [...document.querySelectorAll(".player button:not(.chip, .path button)")].filter((one) => one.offsetParent
        && one.getBoundingClientRect().height < 44).map((one) => one.textContent)""")
    assert small == []
    sizes = driver.execute_script("""
      return [...document.querySelectorAll(".player *")]
        .filter((one) => one.offsetParent && !one.closest(".steps, script, .sq"))
        .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
        .map((one) => parseFloat(getComputedStyle(one).fontSize))""")
    assert min(sizes) >= 12


@pytest.mark.parametrize("width", [320, 390, 640, 1280])
def test_nothing_is_wider_than_the_window(show: Show, width: int) -> None:
    for name in ("player-02-fork", "player-03-prefork", "player-15-slashdot", "index"):
        driver = show(name, width)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, name
        assert browser.console_errors(driver) == []


def test_play_rests_and_stops_and_does_not_glide_where_no_motion_is_wanted(show: Show) -> None:
    driver = show("player-02-fork")
    assert driver.execute_script("return Boolean(questPlayers[0].timer)") is False, "nothing plays by itself"
    gliding = "return document.querySelector('.player .lanes').classList.contains('gliding')"
    live = "return document.querySelector('.player .say').getAttribute('aria-live')"
    focus(driver)
    press(driver, " ")
    assert driver.execute_script(gliding)
    assert driver.execute_script(live) == "off"
    press(driver, "n")
    assert not driver.execute_script(gliding)
    assert driver.execute_script(live) == "polite"
    calm = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", calm)
    try:
        press(driver, " ")
        assert not driver.execute_script(gliding)
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_true_time_and_back(show: Show) -> None:
    driver = show("player-02-fork")
    focus(driver)
    places = "return [...document.querySelectorAll('.player .track > *')].map((one) => parseFloat(one.style.left) || 0)"
    before = driver.execute_script(places)
    press(driver, "t")
    assert driver.execute_script(places) != before
    press(driver, "t")
    after = driver.execute_script(places)
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 0.05


def test_nothing_is_asked_of_the_network_and_nothing_complains(show: Show) -> None:
    for name in ("player-02-fork", "player-09-epoll", "index"):
        driver = show(name)
        assert browser.requests(driver) == []
        assert browser.console_errors(driver) == []
        assert driver.execute_script(browser.CHECK_PAGE.replace("link to nowhere", "nowhere")) is not None


def test_without_a_script_the_still_and_the_table_are_seen(show: Show, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show("player-02-fork")
        table = driver.find_element("css selector", ".player .steps")
        assert table.is_displayed()
        assert table.size["height"] > 100
        assert len(table.find_elements("css selector", "tbody tr")) == len(recorded(FORK).moments)
        assert driver.find_element("css selector", ".player .works").is_displayed()
        assert driver.find_elements("css selector", ".player button") == []
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_in_grey_work_sleep_and_silence_differ_in_shape(show: Show) -> None:
    driver = show("player-02-fork")
    works, sleeps, silent = (
        driver.execute_script(
            "const style = getComputedStyle(document.querySelector(arguments[0]));"
            "return [parseFloat(style.height), style.borderStyle]", f".player {name}",
        )
        for name in (".task .works", ".task .sleeps", ".client .silent")
    )  # fmt: skip
    assert works[0] > 2 * sleeps[0]
    assert "dashed" in silent[1]
    assert "dashed" not in works[1]


def test_the_first_page_rests_plays_and_rests_again(show: Show) -> None:
    driver = show("index")
    clock = "return document.querySelector('.front .clock').textContent"
    assert driver.execute_script(clock) == "now: 200 ms"
    # All in the page: on a busy machine a second command may come after the picture has played to its end.
    playing, stopped = driver.execute_async_script("""
      const done = arguments[0], button = document.querySelector(".front button");
      const clock = () => document.querySelector(".front .clock").textContent, rest = clock();
      const look = () => {
        if (clock() === rest) return setTimeout(look, 20);
        const playing = clock();
        button.click();
        done([playing, clock()]);
      };
      button.click();
      look();
    """)
    assert playing != "now: 200 ms"
    assert stopped == "now: 200 ms"
    rows = driver.find_elements("css selector", ".front a.row")
    assert [len(row.find_elements("css selector", ".sq")) for row in rows] == [1, 2, 17, 17, 1, 1]
    assert driver.execute_script("return document.querySelector('.front .foot').getBoundingClientRect().bottom") <= 900


def test_the_first_page_has_a_clock_and_shows_that_what_is_not_over_goes_on(show: Show) -> None:
    driver = show("index")
    line, label, *axis = driver.execute_script("""
      const middle = (one) => { const box = one.getBoundingClientRect(); return box.left + box.width / 2; };
      return [".front a.row .over i", ".front .clock"].map((one) => middle(document.querySelector(one)))
        .concat([...document.querySelectorAll(".front .axis i")]
          .map((one) => [parseInt(one.textContent), middle(one)]));
    """)
    assert label == pytest.approx(line, abs=1)
    places = dict(axis)
    assert places[front.REST_US // 1000] == pytest.approx(line, abs=1)
    assert places[100] - places[0] == pytest.approx(places[200] - places[100], abs=1)
    ends = driver.execute_script("""
      const first = document.querySelector(".front a.row");
      return [...first.querySelectorAll(".silent, .waits")].map((one) => one.getBoundingClientRect().right);""")
    assert len(ends) == 3
    assert all(end > line + 100 for end in ends)
    ground = "return getComputedStyle(document.querySelector('.front a.row .over'), '::after').opacity"
    assert 0 < float(driver.execute_script(ground)) < 1, "what comes after now is pale, and seen"
    letters = driver.execute_script(
        "return [...document.querySelectorAll('.front a.row .sq.first')].map((one) => one.textContent)"
    )
    assert letters == ["m"] * 3


@pytest.mark.parametrize("name", ["player-01-iterative", "player-02-fork", "player-03-prefork", "player-05-pool"])
def test_a_low_window_shows_caption_lanes_buttons_and_the_lit_line(show: Show, name: str) -> None:
    driver = show(name, 1280, 720)
    assert driver.execute_script(IN_SIGHT.replace('document.querySelector(".player").scrollIntoView();', "")) == []


def test_signs_and_keys_open_at_a_question_mark_and_close(show: Show) -> None:
    driver = show("player-02-fork")
    focus(driver)
    press(driver, "?")
    shown = driver.execute_script("return document.querySelectorAll('.keys .sign').length")
    kinds = driver.execute_script(
        "return ['.works', '.sleeps', '.zombie', '.silent', '.waits', 'svg', 'u']"
        ".filter((one) => !document.querySelector('.keys .sign ' + one))"
    )
    assert shown >= 8
    assert kinds == []
    press(driver, "?")
    assert driver.find_elements("css selector", ".keys") == []


def test_what_a_call_returned_has_its_unit_and_time_its_ends(show: Show) -> None:
    driver = show("player-02-fork")
    chips = [chip.text for chip in driver.find_elements("css selector", ".player .chip")]
    assert "recv 27 bytes" in chips
    titles = driver.execute_script("return [...document.querySelectorAll('.player .chip')].map((one) => one.title)")
    assert "recv(), for B returns 27 bytes" in titles
    axis = driver.execute_script("return [...document.querySelectorAll('.player .axis')].map((one) => one.textContent)")
    assert axis[0] == "0 ms"
    assert re.fullmatch(r"\d+ ms", axis[1])


def test_it_plays_as_slowly_as_is_chosen(show: Show) -> None:
    driver = show("player-02-fork")
    focus(driver)
    press(driver, "End")
    choose = (
        "const pace = document.querySelector('.pace'); pace.value = arguments[0];"
        "questPlayers[0].go({ t: 0 }); questPlayers[0].play(true)"
    )
    driver.execute_script(choose, "20")
    assert browser.wait_until(lambda: now(driver) > 0)
    seen = {now(driver) for _ in range(20)}
    assert any(t not in {stop["t"] for stop in driver.execute_script("return questPlayers[0].now.stops")} for t in seen)
    driver.execute_script("questPlayers[0].go({ t: questPlayers[0].points.at(-1) - 10 })")
    press(driver, "p")
    assert not driver.execute_script("return Boolean(questPlayers[0].timer)"), "a key stops it"
    driver.execute_script(choose, "20")
    assert browser.wait_until(lambda: not driver.execute_script("return Boolean(questPlayers[0].timer)"), 40), "it ends"


def test_the_data_in_a_page_is_the_recording() -> None:
    html = player([recorded(FORK)], ROOT)
    found = re.search(r'<script type="application/json">(.*?)</script>', html, re.S)
    assert found
    side = json.loads(found[1])["sides"][0]
    raw = json.loads((ROOT / FOLDER / f"{FORK}.json").read_text(encoding="utf-8"))
    assert [side[name] for name in ("calls", "tasks", "moments")] == [
        raw[name] for name in ("calls", "tasks", "moments")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["player-02-fork", "player-13-uring", "player-05-pool.seventeenth", "index"])
def test_axe_finds_nothing(show: Show, axe_core: None, name: str, theme: str) -> None:
    driver = show(name)
    axe.load(driver)
    with axe.scheme(driver, theme):
        assert axe.found(driver) == []
