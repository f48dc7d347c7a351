"""The rules keep what they promise, on made-up noise: seeded, few data sets, wide bounds. The tables with more of them:
/usr/bin/python3 -m tests.harness.simulated
"""

import pytest

numpy = pytest.importorskip("numpy")
pytest.importorskip("scipy")

from quest.measure import usable  # noqa: E402
from quest.report import rules  # noqa: E402
from quest.stats.reach import order, reach  # noqa: E402
from tests.harness import simulated  # noqa: E402
from tests.harness.simulated import LEVELS, PESSIMISTIC, RATIOS, UNIFORM, WORST  # noqa: E402

FEW = 200


def test_the_order_is_that_of_the_binomial_distribution() -> None:
    binom = pytest.importorskip("scipy.stats").binom
    assert all(order(n) == max(1, int(binom.ppf(0.025, n, 0.5))) for n in range(1, 200))


def test_reach_holds_every_median_of_a_session() -> None:
    numbers = simulated.round_numbers(numpy.random.default_rng(1), 50, 3, scenario=WORST)
    middle, low, high = simulated.reaches(numbers)
    for i, sessions in enumerate(numbers):
        found = reach([list(map(float, session)) for session in sessions])
        assert found[:3] == pytest.approx((middle[i], low[i], high[i]))
        assert all(found.low <= m <= found.high for m in found.sessions)
    inf = float("inf")
    assert reach([[inf, -inf, inf, -inf, 0, 0]])[:3] == (0, -inf, inf)
    with pytest.raises(ValueError, match="no values"):
        reach([[]])


@pytest.mark.parametrize("sigma", [0.02, 0.15, 0.6])
@pytest.mark.parametrize("truth", [0.25, 0.4])
@pytest.mark.parametrize("sessions", [1, 3])
def test_no_noise_makes_what_differs_equal(sigma: float, truth: float, sessions: int) -> None:
    assert simulated.equal_holds(sigma, truth, sessions, FEW)[1] <= 8


def test_before_more_noise_made_it_likelier() -> None:
    quiet, loud = (simulated.equal_holds(sigma, 0.4, 1, FEW)[0] for sigma in (0.05, 0.6))
    assert quiet < 5 and loud > 20


@pytest.mark.parametrize(("sigma", "least"), [(0.02, 90), (0.07, 85), (0.15, 70)])
def test_what_is_equal_is_seen_to_be(sigma: float, least: float) -> None:
    assert simulated.equal_holds(sigma, 0.0, 3, FEW)[1] >= least


def test_rounds_that_move_together_hide_nothing() -> None:
    before, one, _ = simulated.faster_seen(0.1, 0.92, 1, FEW)
    assert before < 15 and one > 25
    assert simulated.faster_seen(0.1, 0.92, 3, FEW)[1] > 80
    assert simulated.faster_seen(0.1, 0.14, 3, FEW)[1] > 80


@pytest.mark.parametrize("sessions", [1, 3, 5])
def test_a_difference_is_not_made_up(sessions: int) -> None:
    assert simulated.faster_seen(0.0, 0.14, sessions, FEW, PESSIMISTIC)[1] <= 7
    assert simulated.faster_seen(0.1, 0.14, sessions, FEW, PESSIMISTIC)[2] <= 2


@pytest.mark.parametrize("shape", ["hump of 2 times", "one point of 3 times"])
def test_a_hump_is_not_flat(shape: str) -> None:
    before, holds, changed = simulated.flat_words(shape, 0.07, 1, 30)
    assert before > 80 and holds == 0 and changed > 80


def test_what_is_flat_is_seen_to_be() -> None:
    assert simulated.flat_words("flat", 0.03, 3, 30)[1] > 90
    _, holds, changed = simulated.flat_words("rise to 1.25, the line", 0.03, 3, 40)
    assert holds <= 15 and changed <= 15


@pytest.mark.slow
def test_who_stops_when_sure_is_sure_too_often() -> None:
    once, before, fixed, until = simulated.stopped(15, 300)
    assert before > 1.5 * once
    assert fixed <= 9
    assert until >= fixed


@pytest.mark.parametrize(
    ("sessions", "processors", "scenario", "most"),
    [(3, 1, PESSIMISTIC, 14), (5, 1, PESSIMISTIC, 8), (5, 1, UNIFORM, 14), (3, 2, PESSIMISTIC, 1), (3, 2, UNIFORM, 4)],
)
def test_few_of_the_words_are_wrong_even_where_every_truth_lies_on_its_line(
    sessions: int, processors: int, scenario: simulated.Scenario, most: float
) -> None:
    before, now = simulated.wrong_on_the_line(146, sessions, processors, scenario, 3000)
    assert before == 73
    assert now <= most


def test_far_from_its_line_no_word_is_wrong() -> None:
    parts = [simulated.Part(truth, 0.07, 0.0, 9.0) for truth in (-0.5, -0.3, 0.3, 0.5)]
    _, wrong, undecided = simulated.expected_wrong(parts, 3, 2, PESSIMISTIC, 500)
    assert wrong <= 0.02
    assert undecided <= 0.4


@pytest.mark.parametrize("scenario", [RATIOS, PESSIMISTIC, LEVELS])
def test_two_sessions_say_the_same(scenario: simulated.Scenario) -> None:
    disjoint, before, now = simulated.retest(scenario, 3000)
    assert disjoint <= 8
    assert now >= 97 > before


@pytest.mark.parametrize("effect", [0.05, 0.1, 0.25])
def test_what_a_rule_allows_to_wait_does_not_turn_it(effect: float) -> None:
    """By half of the effect all of it is longer, and with three times as much waiting by more than the effect."""
    share = rules.allowed("faster", {"min_effect": effect})
    assert share == pytest.approx({0.05: 0.024, 0.1: 0.047, 0.25: 0.106}[effect], abs=0.0005)
    whole, mean, _ = simulated.slowed(share, 1e-3, 60)
    assert whole == pytest.approx(1 / (1 - share), rel=0.005) and mean == pytest.approx(whole)
    assert (1 + effect) ** 0.45 < whole < (1 + effect) ** 0.55
    assert simulated.waiting_turns(effect, share, 0.1, FEW) == 0
    assert simulated.waiting_turns(effect, 3 * share, 0.1, FEW) > 50


@pytest.mark.parametrize("share", [0.1, usable.SHORT_MAY_WAIT])
def test_the_median_of_short_samples_does_not_see_it(share: float) -> None:
    for sample_s in (5e-6, usable.SHORT_S):
        whole, _, median = simulated.slowed(share, sample_s)
        assert whole > 1 + share * 0.9 and median < 1.01
    assert simulated.slowed(share, 0.1, 60)[2] > 1 + share * 0.8, "of long ones it does"


def test_a_program_that_differs_from_itself_vouches_for_nothing() -> None:
    false = [simulated.twins_asked(how, 0.25, 0.07, 1, WORST, 2000) for how in ("nothing", "reach")]
    assert false[1] < false[0] / 2
    power = [simulated.twins_asked(how, 0.0, 0.07, 3, PESSIMISTIC, 2000) for how in ("nothing", "reach")]
    assert power[1] > 85
