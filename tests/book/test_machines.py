"""The small machines: their models by known values; in Chromium what moves them, what they draw and what they say."""

import re
import subprocess
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.book import axe, browser
from tests.book.machines import FOLDER, NAMES, SHARED, STILLS, drawn, script, stills
from tests.book.tree import ROOT, Once

STYLES = ("book.css", "player.css", "machine.css")
CALM = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
ON_SLIDES = """
<div class="reveal"><div class="slides"><section id="slide" style="height: 720px; width: 1280px">
<h2>x</h2><div class="slide machine" data-machine="{name}">
{still}</div>{moments}<aside class="notes">x</aside></section></div></div>
<script>window.heard = []; window.Reveal = {{ on: (event, act) => heard.push(act) }};</script>
"""


def figure(name: str, still: str) -> str:
    return (
        f'<h2>{name}</h2><figure class="figure machine-figure" id="{name}">'
        f'<div class="machine" data-machine="{name}">{still}'
        '<div class="in-words"><p>The same in words.</p></div></div><figcaption>A caption.</figcaption></figure>'
    )


def page(body: str) -> str:
    links = "".join(f'<link rel="stylesheet" href="{name}">' for name in STYLES)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>x</title><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{links}</head><body><main id="text"><article><h1>All machines on one page</h1>{body}'
        '</article></main><script src="machines.js"></script></body></html>'
    )


@pytest.fixture(scope="module")
def pages(once: Once) -> Path:
    """A page with all machines, and one for each as it stands on a slide."""

    def fill(folder: Path) -> None:
        for name in STYLES:
            (folder / name).write_bytes((ROOT / "chapters/pandoc" / name).read_bytes())
        (folder / "machines.js").write_text(script(), encoding="utf-8")
        of = stills()
        (folder / "all.html").write_text(page("".join(figure(name, of[name]) for name in NAMES)), encoding="utf-8")
        for name in NAMES:
            steps = int(re.findall(r'data-steps="(\d+)"', of[name])[0])
            moments = '<span class="fragment moment"></span>' * (steps - 1)
            text = page(ON_SLIDES.format(name=name, still=of[name], moments=moments))
            (folder / f"slide-{name}.html").write_text(text, encoding="utf-8")

    return once("machines", fill)


Show = Callable[..., Any]


@pytest.fixture
def show(driver: Any, pages: Path) -> Show:
    def load(name: str = "all", width: int = 1280) -> Any:
        browser.resize(driver, width, 900)
        driver.get((pages / f"{name}.html").as_uri())
        return driver

    return load


def model(driver: Any, name: str, expression: str) -> Any:
    """The value of an expression in which `one` is this machine."""
    return driver.execute_script(f"const one = machines.known['{name}']; return {expression};")


# ---- the models ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "ready"), [(10, 1), (1000, 1), (5000, 500)])
def test_poll_looks_at_all_and_epoll_at_what_is_ready(show: Show, n: int, ready: int) -> None:
    whole = model(show(), "poll-walk", f"one.model({{ n: {n}, ready: {ready}, walked: {n} }})")
    assert (whole["pollLooks"], whole["epollLooks"], whole["found"], whole["perEvent"]) == (n, ready, ready, n / ready)
    steps = "let state = one.again({ n: %d, ready: %d }), k = 0; while ((state = one.next(state))) k++; return k;"
    walk = show().execute_script("const one = machines.known['poll-walk'];" + steps % (n, ready))
    assert walk == -(-n // 20), "the time of a walk grows with n"


def test_fewer_connections_are_never_ready_than_there_are(show: Show) -> None:
    assert model(show(), "poll-walk", "one.changed({ n: 10, ready: 500 })") == {"n": 10, "ready": 10, "walked": 10}


#: rate, service, threads, held: load, wait by Erlang's formula. With one thread it is S · load / (1 - load).
QUEUES = [
    ((50, 10, 1, 0), 0.5, 10.0),
    ((90, 10, 1, 0), 0.9, 90.0),
    ((100, 30, 4, 0), 0.75, 15.283),
    ((100, 30, 16, 12), 0.75, 15.283),
    ((120, 30, 4, 0), 0.9, 59.081),
]


@pytest.mark.parametrize(("queue", "load", "wait"), QUEUES)
def test_a_queue_waits_as_erlang_says(show: Show, queue: tuple[int, ...], load: float, wait: float) -> None:
    rate, service, threads, held = queue
    found = model(
        show(), "pool-queue", f"one.model({{ rate: {rate}, service: {service}, threads: {threads}, held: {held} }})"
    )
    assert found["load"] == pytest.approx(load)
    assert found["wait"] == pytest.approx(wait, abs=0.001)
    assert found["there"] == pytest.approx(rate * (found["wait"] + service) / 1000), "N = X R"


@pytest.mark.parametrize(("queue", "load", "wait"), QUEUES[2:])
def test_littles_law_holds_in_a_run_and_its_wait_is_near_the_formula(
    show: Show, queue: tuple[int, ...], load: float, wait: float
) -> None:
    rate, service, threads, held = queue
    setting = f"{{ rate: {rate}, service: {service}, threads: {threads}, held: {held} }}"
    requests = f"one.run({setting}, 2e6)"
    law = model(show(), "pool-queue", f"one.little({requests})")
    assert law["N"] == pytest.approx(law["X"] * law["R"] / 1000)
    assert law["R"] == pytest.approx(wait + service, rel=0.1)
    assert law["X"] == pytest.approx(rate, rel=0.02)


def test_what_was_measured_stands_at_its_load_beside_the_curve_of_as_many_threads(show: Show) -> None:
    places = """
      const text = machines.picture(one, { ...one.start, ...arguments[0] }, arguments[1]);
      const drawn = new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll(".d");
      return [...drawn].map((each) => each.getAttribute("d").match(/[\\d.]+/g).slice(0, 2).map(Number));"""

    def drawn(state: dict[str, int], points: list[list[float]]) -> list[list[float]]:
        script = f"const one = machines.known['pool-queue'];{places}"
        return list(show().execute_script(script, state, points))

    low, half, high, legend = drawn({}, [[0, 1], [50, 1.087], [99, 40]])
    assert (low[0], half[0]) == (356, 356 + 276 / 2)
    assert low[1] > half[1] > high[1] == 58 - 9, "what is above the chart stands at its edge"
    assert drawn({}, []) == drawn({"threads": 6}, [[50, 1.087]]) == []
    assert drawn({"threads": 6, "held": 2}, [[50, 1.087]]) == [half, legend]


def test_silent_clients_that_hold_every_thread_stop_the_pool(show: Show) -> None:
    held = "one.model({ rate: 10, service: 1, threads: 4, held: %d })"
    assert model(show(), "pool-queue", held % 3)["wait"] < 1
    assert model(show(), "pool-queue", f"({held % 4}).wait === Infinity")
    say = "one.say({ rate: 10, service: 1, threads: 4, held: 4, t: 100 })"
    assert "every thread" in model(show(), "pool-queue", say)


@pytest.mark.parametrize(
    ("setting", "packets", "done"),
    [
        ({}, ["request", "head", "ACK", "body"], 44),
        ({"quick": True}, ["request", "head", "ACK", "body"], 4),
        ({"nodelay": True}, ["request", "head", "body"], 2),
        ({"joined": True}, ["request", "head and body"], 2),
        ({"joined": True, "nodelay": True}, ["request", "head and body"], 2),
        ({"distance": 10}, ["request", "head", "ACK", "body"], 80),
    ],
)
def test_only_two_sends_under_nagle_wait_for_an_acknowledgement(
    show: Show, setting: dict[str, object], packets: list[str], done: float
) -> None:
    state = {"joined": False, "nodelay": False, "quick": False, "distance": 1, **setting}
    found = show().execute_script("return machines.known.nagle.model(arguments[0])", state)
    assert [packet["what"] for packet in found["packets"]] == packets
    assert found["done"] == pytest.approx(done)
    assert (found["silent"] is not None) == (done >= 40)


@pytest.mark.parametrize(
    ("actions", "level", "edge"),
    [
        ("", "asleep", "asleep"),
        ("arrive", "awake", "awake"),
        ("arrive drain wait", "asleep", "asleep"),
        ("arrive read wait", "awake", "hangs"),
        ("arrive read wait arrive", "awake", "awake"),
        ("arrive arrive drain wait arrive read", "awake", "awake"),
    ],
)
def test_an_edge_is_not_repeated_and_a_level_is(show: Show, actions: str, level: str, edge: str) -> None:
    found = show().execute_script(
        "const one = machines.known.edge; return one.model(one.after(...arguments[0]));", actions.split()
    )

    def state(side: dict[str, bool]) -> str:
        return "hangs" if side["hangs"] else "asleep" if side["asleep"] else "awake"

    assert (state(found["level"]), state(found["edge"])) == (level, edge)


def test_a_descriptor_is_the_lowest_free_and_a_second_close_hits_its_new_owner(show: Show) -> None:
    after = "const one = machines.known['lowest-fd']; return one.after(...arguments[0]);"
    calls = {
        "accept": "accept() = 7", "open accept": "accept() = 8", "close accept": "accept() = 5",
        "close close": "close(5) = −1 EBADF", "accept accept accept accept": "accept() = −1 EMFILE",
        "dup2 accept": "accept() = 7", "again": "nothing has been closed yet",
    }  # fmt: skip
    for actions, call in calls.items():
        assert show().execute_script(after, actions.split())["call"] == call, actions
    twice = show().execute_script(after, ["close", "accept", "again"])
    assert (twice["lost"], twice["slots"][5], twice["call"]) == ("D", "", "close(5) = 0")
    assert show().execute_script(after, ["close", "again"])["lost"] is None, "no client has the number yet"


def test_the_disk_has_the_parameters_of_the_museum_disk(show: Show) -> None:
    source = (ROOT / "benchmarks/disk/model.c").read_text(encoding="utf-8")
    geometry = source[source.index("default_geometry") : source.index("geometry_problem")]
    original = {name: float(value) for name, value in re.findall(r"\.(\w+) = ([\d.e]+)", geometry)}
    disk = model(show(), "elevator", "one.DISK")
    assert {name: original[name] for name in disk} == disk


def test_an_elevator_takes_what_lies_on_its_way(show: Show) -> None:
    order = """
      const { run, read } = machines.known.elevator, done = run({ readers: 30, disks: 1, sorted: arguments[0] }, 600);
      const first = done.requests.slice(0, 30);
      return [first.map((one) => one.place), read(done, 1e9).map((one) => one.place)];
    """
    asked, fifo = show().execute_script(order, False)
    assert fifo[: len(asked)] == asked
    _, sweep = show().execute_script(order, True)
    # The first is begun while it is alone; then the arm goes up, past what it has left behind.
    turn = next(i for i in range(2, len(sweep)) if sweep[i] < sweep[i - 1])
    assert turn > 3
    assert sweep[1:turn] == sorted(sweep[1:turn])


def test_the_disk_gives_what_the_museum_disk_gives(show: Show) -> None:
    program = ROOT / "build/bin/museum-model"
    if not program.exists():
        pytest.skip("museum-model is not built")
    for readers, scheduler in [(1, "fifo"), (4, "fifo"), (100, "fifo"), (16, "elevator"), (100, "elevator")]:
        command = [str(program), "-j", str(readers), "--scheduler", scheduler, "files=100000x102400"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        original = [float(line.split()[1]) for line in lines[1:]]
        rate = model(show(), "elevator", f"one.model({{ readers: {readers}, disks: 2, t: 250 }}).{scheduler}.rate")
        assert rate == pytest.approx(sum(original) / len(original), rel=0.06), (readers, scheduler)


# ---- what stands there without a script -------------------------------------------------------------


def test_there_are_six_of_one_size(show: Show) -> None:
    assert len(NAMES) >= 6
    for path in [SHARED, *(FOLDER / f"{name}.js" for name in NAMES)]:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 180, path.name


def test_the_stills_are_what_the_machines_draw(driver: Any) -> None:
    assert drawn(driver) == STILLS.read_text(encoding="utf-8"), "python3 -m tests.book.machines"
    assert sorted(stills()) == NAMES


def test_without_a_script_there_is_a_drawing_a_sentence_and_words(show: Show, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        show()
        for name in NAMES:
            [machine] = driver.find_elements("css selector", f"#{name} .machine")
            for part in ("svg", ".say", ".in-words"):
                assert machine.find_element("css selector", part).is_displayed(), (name, part)
            assert machine.find_elements("css selector", "button, input") == []
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_on_paper_stand_drawing_and_words_and_no_controls(show: Show, driver: Any) -> None:
    show()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert driver.find_element("css selector", ".machine .in-words").is_displayed()
        assert not driver.find_element("css selector", ".machine .controls").is_displayed()
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


# ---- in Chromium -------------------------------------------------------------------------------------

#: All that the controls can bring about one by one, from the state of rest: what is wrong with a drawing.
WRONG = """
const wrong = [], { live } = machines;
for (const { root, machine, go } of live) {
  const states = [machine.start, ...machine.steps];
  for (const control of machine.controls) {
    for (const state of [machine.start, ...machine.steps]) {
      if (control.action) states.push(machine.act(state, control.action));
      for (const value of control.values ?? (control.name ? [true, false] : [])) {
        const to = { ...state, [control.name]: value };
        states.push(machine.changed ? machine.changed(to) : to);
      }
    }
  }
  let state = machine.again?.(machine.start), steps = 0;
  for (; state && steps < 400; steps++) {
    states.push(state);
    state = machine.next(state);
  }
  for (const state of states) {
    go(state);
    const svg = root.querySelector("svg"), { width, height } = svg.viewBox.baseVal, said = machine.say(state);
    const say = (what) => wrong.push(`${machine.title.slice(0, 20)}: ${what} ${JSON.stringify(state).slice(0, 300)}`);
    if (/NaN|undefined|Infinity|null/.test(svg.outerHTML + said)) say("not a number");
    const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBBox()]);
    for (const [words, box] of boxes) {
      const right = box.x + box.width, bottom = box.y + box.height;
      if (box.x < -2 || box.y < -2 || right > width + 2 || bottom > height + 3) say("cut: " + words);
    }
    boxes.forEach(([words, a], at) => boxes.slice(at + 1).forEach(([others, b]) => {
      const beside = a.x + a.width <= b.x + 1 || b.x + b.width <= a.x + 1;
      if (!beside && a.y + a.height > b.y + 5 && b.y + b.height > a.y + 5) say(`covered: ${words} / ${others}`);
    }));
  }
  go(machine.start);
}
return [...new Set(wrong)];
"""


def test_whatever_is_moved_the_drawing_is_whole_and_no_word_covers_another(show: Show) -> None:
    driver = show()
    driver.set_script_timeout(300)
    assert driver.execute_script(WRONG) == []
    assert browser.console_errors(driver) == []


def state_of(driver: Any, name: str) -> Any:
    return driver.execute_script(f"return machines.live.find((one) => one.root.dataset.machine === '{name}').state;")


def test_sliders_boxes_and_buttons_work_by_keyboard(show: Show) -> None:
    from selenium.webdriver.common.keys import Keys

    driver = show()
    for name in NAMES:
        for control in driver.find_elements("css selector", f"#{name} :is(input, button:not(.reset, .play))"):
            driver.find_element("css selector", f"#{name} .reset").send_keys(Keys.ENTER)
            before = state_of(driver, name)
            for key in [Keys.END, Keys.HOME, Keys.ARROW_RIGHT] if control.get_attribute("type") == "range" else [" "]:
                control.send_keys(key)
                if state_of(driver, name) != before:
                    break
            assert state_of(driver, name) != before, (name, control.get_attribute("outerHTML"))
            assert driver.find_element("css selector", f"#{name} .say").text
            assert driver.switch_to.active_element == control, "the focus stays"
    assert browser.console_errors(driver) == []


def test_each_control_has_a_name_and_says_its_value(show: Show) -> None:
    driver = show()
    nameless = driver.execute_script("""
      return [...document.querySelectorAll(".machine :is(input, button)")]
        .filter((one) => !(one.labels?.[0] ?? one).textContent.trim()
          || one.type === "range" && !one.getAttribute("aria-valuetext"))
        .map((one) => one.outerHTML);""")
    assert nameless == []


def test_nothing_plays_by_itself_and_what_plays_ends(show: Show) -> None:
    driver = show()
    before = {name: state_of(driver, name) for name in NAMES}
    driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert {name: state_of(driver, name) for name in NAMES} == before
    play = driver.find_element("css selector", "#nagle .play")
    live = "return document.querySelector('#nagle .say').getAttribute('aria-live')"
    assert driver.execute_script(live) == "polite"
    play.send_keys(" ")
    assert driver.execute_script(live) == "off"
    assert browser.wait_until(lambda: driver.execute_script(live) == "polite")
    assert state_of(driver, "nagle")["shown"] == 4
    assert play.text == "▶ play"


def test_where_no_motion_is_wanted_there_are_steps_and_no_play(show: Show, driver: Any) -> None:
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", CALM)
    try:
        show()
        assert driver.find_elements("css selector", ".play") == []
        for name in NAMES:
            for button in driver.find_elements("css selector", f"#{name} button"):
                if button.text == "step":
                    before = state_of(driver, name)
                    button.send_keys(" ")
                    assert state_of(driver, name) != before
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.parametrize("width", [320, 390, 640, 1280])
def test_nothing_is_wider_than_the_window_and_letters_can_be_read(show: Show, width: int) -> None:
    driver = show(width=width)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    if width < 390:
        return
    sizes = driver.execute_script("""
      return [...document.querySelectorAll(".machine svg")]
        .map((svg) => 18 * svg.getBoundingClientRect().width / 640);""")
    assert min(sizes) >= 9.5
    if width == 390:
        small = driver.execute_script("""
          return [...document.querySelectorAll(".machine :is(button, .slider, .tick)")]
            .filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML);""")
        assert small == []


def test_nothing_is_asked_of_the_network(show: Show) -> None:
    driver = show()
    assert browser.requests(driver) == []
    assert not re.search(r"fetch\(|XMLHttpRequest|https?://(?!www\.w3\.org/2000/svg)", script())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(show: Show, axe_core: None, theme: str) -> None:
    driver = show()
    axe.load(driver)
    with axe.scheme(driver, theme):
        assert axe.found(driver) == []


# ---- on a slide ----------------------------------------------------------------------------------------


def stands_at(driver: Any, name: str, state: object) -> bool:
    return bool(state_of(driver, name) == state)


@pytest.mark.parametrize("name", NAMES)
def test_on_a_slide_each_fragment_is_a_step(show: Show, name: str) -> None:
    driver = show(f"slide-{name}")
    assert driver.find_elements("css selector", ".machine :is(button, input)") == []
    steps = model(driver, name, "one.steps")
    drawings = model(driver, name, "one.steps.map((state) => machines.picture(one, state) + one.say(state))")
    assert all(one != other for one, other in combinations(drawings, 2)), "each step shows something new"
    for at in [*range(len(steps)), 0]:
        driver.execute_script(
            "document.querySelectorAll('.moment')"
            ".forEach((one, i) => one.classList.toggle('visible', i < arguments[0]));"
            "heard.forEach((act) => act());", at,
        )  # fmt: skip
        assert browser.wait_until(partial(stands_at, driver, name, steps[at]))
