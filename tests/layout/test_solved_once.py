"""Equal networks are solved once: what is shared does not depend on who asked first, or in which shape."""

import numpy as np

import capplan
from capplan.layout import solution as layout_solution
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.planner.predict import capacity
from capplan.planner.predict.capacity import sustained_rate
from capplan.systems.registry import resolve


def test_a_layout_with_and_without_pauses_is_one_network() -> None:
    base = capplan.scenario(dcs=3, cass_nodes=3)
    one, other = (resolve(each, None, 1).solution for each in (base, changed(base, gc="0.6%@45ms")))

    assert one.analysis is other.analysis
    assert resolve(changed(base, cass_nodes=4), None, 1).solution.analysis is not one.analysis


def test_rates_of_any_shape_give_the_same_figures() -> None:
    """At 20,000 TPS the layout is overloaded, so that the response at the sustained rate is needed, too."""
    solution = resolve(capplan.scenario(dcs=3, cass_nodes=3), None, 1).solution
    rates = np.full(solution.analysis.draws, 20_000.0)
    row, both, plain = (solution.at(each).latencies_s("acct") for each in (rates[None], np.stack([rates] * 2), rates))

    np.testing.assert_array_equal(row[:, 0], plain)
    np.testing.assert_allclose(both[:, 1], plain, rtol=1e-9)


def test_another_objective_over_a_network_solves_no_rate_again() -> None:
    base = capplan.scenario(dcs=2, cass_nodes=3)
    misses = []
    for limit in ("100ms", "100.0001ms"):
        its = resolve(changed(base, slo=(f"acct.p99<{limit}",)), None, 1)
        before = layout_solution._point.cache_info().misses
        sustained_rate(its.solution, its.uncertainty, its.objectives)
        misses.append(layout_solution._point.cache_info().misses - before)
    assert misses[0] > 1
    assert misses[1] == 0


def test_a_capacity_is_the_same_once_its_rates_are_forgotten() -> None:
    """After other limits over one network, in another order, and with nothing kept of the rates."""
    base = capplan.scenario(dcs=2, cass_nodes=3)
    cases = [resolve(changed(base, slo=(f"acct.p99<{limit}ms",)), None, 1) for limit in (15, 40)]

    def rates() -> list[FloatArray]:
        return [sustained_rate(its.solution, its.uncertainty, its.objectives).repeated for its in cases]

    before = rates()
    capacity._rates.cache_clear()
    capacity._curve.cache_clear()
    cases.reverse()
    np.testing.assert_allclose(rates()[::-1], before, rtol=1e-6)
