"""Equal networks are solved once: what is shared does not depend on who asked first, or in which shape."""

import numpy as np

import capplan
from capplan.models.language.scenario import changed
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
