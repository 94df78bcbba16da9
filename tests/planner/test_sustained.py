"""Rates that are sustained at a confidence: the side of the draws, the rate meant, and all objectives at once."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.answers.verdict import NORMAL
from capplan.layout.case import Case
from capplan.layout.situations import Factor, Situation
from capplan.models.language.scenario import changed
from capplan.planner.predict.capacity import repeated_at_rate
from capplan.planner.sustained import Conditions, Judged, Strained, at_confidence, band_of_rates
from capplan.systems.registry import resolve, scenario

RATE = 150.0
SURGE = Situation(name="surge", meaning="half as many requests again", rate=Factor(1.5, 0.0))


def case(*slo: str, rate: float = RATE) -> Case[Any]:
    return resolve(scenario("fedora4", nodes=3, slo=slo)).at(rate)


def normal(*slo: str, rate: float = RATE) -> Strained:
    return Strained(case(*slo, rate=rate), Conditions(NORMAL), rate)


def p99_ms() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the 99th percentiles of reads that repeats would measure, ms (draws,)."""
    strain = normal("read.p99<1s")
    ((metric,),) = (each.metrics() for each in strain.objectives)
    rates = np.full(len(strain.solution.capacity), RATE)
    return np.asarray(1e3 * repeated_at_rate(strain.solution, strain.uncertainty, metric, rates, {}))


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 99))
def test_the_highest_rate_is_chosen_that_enough_draws_reach(rates: list[int], per_cent: int) -> None:
    array, confidence = np.array(rates, dtype=float), per_cent / 100
    found = at_confidence(array, confidence)
    higher = array[array > found]

    assert found in array
    assert np.mean(array >= found) >= confidence - 1e-9
    assert not len(higher) or np.mean(array >= higher.min()) < confidence - 1e-9


def test_a_band_of_rates_leaves_a_twentieth_on_either_side() -> None:
    found = band_of_rates(np.random.default_rng(1).permutation(np.arange(1.0, 101.0)))

    assert (found.low, found.value, found.high) == (6, 51, 96)


def test_a_latency_that_repeats_keep_is_higher_the_surer_it_must_be() -> None:
    repeated, strain = p99_ms(), normal("read.p99<1s")
    for confidence in (0.05, 0.5, 0.9, 0.95):
        reached = strain.reached_ms(confidence)["read.p99"]
        assert reached is not None
        assert np.mean(repeated <= reached) >= confidence
        assert np.mean(repeated < 0.999 * reached) < confidence


def test_a_surge_leaves_as_much_less_of_the_normal_rate() -> None:
    """What repeats sustain is the normal rate, of which the surge makes half as much again."""
    of = case("read.p99<200ms")
    usual, surging = (Strained(of, each, RATE) for each in (Conditions(NORMAL), Conditions("surge", None, (SURGE,))))

    assert surging.sustained_rates() == pytest.approx(usual.sustained_rates() / 1.5, rel=1e-3)
    assert surging.sustained_per_s(0.9) == pytest.approx(usual.sustained_per_s(0.9) / 1.5, rel=1e-3)
    assert surging.reached_ms(0.9) == Strained(of.at(1.5 * RATE), Conditions(NORMAL), 1.5 * RATE).reached_ms(0.9)
    assert surging.shortfall(0.9) == pytest.approx(usual.shortfall(0.9) + np.log(1.5))


def test_objectives_must_hold_at_once() -> None:
    """Repeats that are too fast for one objective are not those that are too slow for the other: the risks add up."""
    fast, slow = np.quantile(p99_ms(), [0.2, 0.7])
    judged = Judged(case(f"read.p99>{fast:.9g}ms", f"read.p99<{slow:.9g}ms"), [Conditions(NORMAL)], RATE)
    (strain,) = judged.strains.values()
    overload, too_fast, too_slow = judged.risks(strain).values()

    assert overload < 0.05
    assert (too_fast, too_slow) == pytest.approx((0.2, 0.3), abs=0.05)
    assert judged.situation(strain).risk == pytest.approx(too_fast + too_slow - overload, abs=0.01)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_no_repeat_carries_more_encrypted_than_it_would_without(share: float) -> None:
    """Storage limits both layouts, and the error of the encrypted one is wider: its rates end where the others do."""
    plain = resolve(scenario("openprovider", dcs=3))
    rate = float(np.quantile(Strained(plain, Conditions(NORMAL), 1.0).sustained_rates(), share))
    encrypted = resolve(changed(plain.scenario, encryption="internode+client"))
    strains = [Strained(each.at(rate), Conditions(NORMAL), rate) for each in (plain, encrypted)]
    without, encrypted_rates = (each.sustained_rates() for each in strains)

    assert np.all(encrypted_rates <= without * (1 + 1e-9))
    assert strains[1].risk() >= strains[0].risk() == pytest.approx(share, abs=0.01)
