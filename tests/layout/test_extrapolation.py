"""The distance of a layout from the measured ones, and which figures respond to it."""

import math
from typing import Any

import numpy as np
import pytest

from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.layout.extrapolation import RATE, Excess, Extrapolation, extrapolation
from capplan.models.language.scenario import changed
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, system
from capplan.systems.two_tier.scenario import TwoTierScenario

OPENPROVIDER = system("openprovider")
MEASURED = [OpenproviderScenario(dcs=dcs) for dcs in (1, 2, 4)]
AXES = {"dcs": "data centres", "cass_nodes": "Cassandra nodes"}


def found(**fields: Any) -> Extrapolation:
    return OPENPROVIDER.extrapolation(changed(OpenproviderScenario(data_factor=1.0), **fields))


@pytest.mark.parametrize(
    ("fields", "basis", "doublings", "named"),
    [
        ({"dcs": 2}, "measured", 0.0, []),
        ({"dcs": 3}, "interpolated", 0.0, ["3 data centres", "2 and 4"]),
        ({"dcs": 8}, "extrapolated", 1.0, ["8 data centres", "above 4"]),
        ({"cass_nodes": 2, "rf": 2}, "extrapolated", 0.585, ["2 Cassandra nodes", "below 3"]),
        ({"dcs": 8, "cass_nodes": 6}, "extrapolated", 2.0, ["8 data centres", "6 Cassandra nodes"]),
        ({"cass_nodes": (6, 3)}, "extrapolated", 1.0, ["6/3 Cassandra nodes", "above 3"]),
        ({"cass_nodes": (12, 3, 6)}, "extrapolated", 2.0, ["12/3/6 Cassandra nodes", "above 3"]),
        ({"cass_nodes": (6, 2), "rf": 2}, "extrapolated", 1.585, ["above 3", "below 3"]),
    ],
)
def test_distance_is_counted_in_doublings_of_the_axes(
    fields: dict[str, Any], basis: str, doublings: float, named: list[str]
) -> None:
    far = extrapolation(changed(OpenproviderScenario(), **fields), MEASURED, AXES)

    assert far.basis == basis
    assert far.doublings == pytest.approx(doublings, abs=1e-3)
    assert far.excess_of_rates == ()
    assert all(each in far.why for each in named)


@pytest.mark.parametrize(("nodes", "named"), [(1, "1 Cassandra node per DC"), (2, "2 Cassandra nodes per DC")])
def test_one_machine_per_data_centre_is_singular(nodes: int, named: str) -> None:
    asked = OpenproviderScenario(cass_nodes=nodes, rf=nodes)
    assert named in extrapolation(asked, MEASURED, {"cass_nodes": "Cassandra nodes per DC"}).why


def test_unequal_data_centres_within_the_measured_range_are_interpolated() -> None:
    measured = [OpenproviderScenario(cass_nodes=nodes) for nodes in (3, 6)]

    assert extrapolation(OpenproviderScenario(cass_nodes=(6, 3, 3)), measured, AXES).basis == "measured"
    between = extrapolation(OpenproviderScenario(cass_nodes=(6, 5, 3)), measured, AXES)
    assert (between.basis, between.doublings) == ("interpolated", 0.0)
    assert "6/5/3 Cassandra nodes (3 and 6 were measured)" in between.why


def test_other_ways_of_being_outside_add_up_and_some_concern_rates_only() -> None:
    far = extrapolation(
        OpenproviderScenario(dcs=8), MEASURED, AXES, [Excess(0.5, "a load")], [Excess(0.25, "a mixture")]
    )

    assert far.doublings == pytest.approx(1.75)
    assert [far.factor(1.0, name, {}) for name in (RATE, "acct")] == pytest.approx([2.75, 2.5])
    assert all(each in far.why for each in ("data centres", "a load", "a mixture"))


FAR = Extrapolation((Excess(1.0, "nodes"),), (Excess(0.5, "a mixture"),), "extrapolated", "made up")


@pytest.mark.parametrize(("widening", "rate", "time"), [(0.0, 1.0, 1.0), (0.5, 1.75, 1.5), (1.0, 2.5, 2.0)])
def test_each_doubling_adds_as_much_again(widening: float, rate: float, time: float) -> None:
    assert FAR.factor(widening, RATE, {}) == pytest.approx(rate)
    assert FAR.factor(widening, "acct", {}) == pytest.approx(time)


def test_beside_another_layout_only_what_both_exceed_counts() -> None:
    ways = Excess(1.0, "6 nodes", axis="nodes >"), Excess(2.0, "a load"), Excess(4.0, "little", axis="data <")
    others = Excess(3.0, "24 nodes", axis="nodes >"), Excess(0.5, "a load"), Excess(4.0, "much", axis="data >")
    one, other = (Extrapolation(each, (), "extrapolated", "made up") for each in (ways, others))

    assert one.factor(1.0, "acct", {}, beside=other) == other.factor(1.0, "acct", {}, beside=one) == 1 + 1 + 0.5
    assert one.factor(1.0, "acct", {}, beside=one) == one.factor(1.0, "acct", {})
    assert one.factor(1.0, "acct", {ways[0]: {"acct": 0.02}}, beside=other) == pytest.approx(1 + 0.2 + 0.5)
    rates = Extrapolation((), (Excess(1.5, "a load"),), "extrapolated", "made up")  # a way may concern rates only
    assert one.factor(1.0, RATE, {}, beside=rates) == rates.factor(1.0, RATE, {}, beside=one) == 2.5
    measured = Extrapolation((), (), "measured", "made up")
    assert one.factor(1.0, "acct", {}, beside=measured) == measured.factor(1.0, "acct", {}, beside=one) == 1


def test_an_axis_is_without_effect_if_it_moves_no_figure_at_all() -> None:
    (way,) = FAR.excess

    assert FAR.without_effect({way: {RATE: 0.0, "acct": 0.0}}) == (way,)
    assert FAR.without_effect({way: {RATE: 0.0, "acct": 0.01}}) == ()
    assert FAR.without_effect({}) == ()


@pytest.mark.parametrize(
    ("response", "factor"), [(0.0, 1.0), (0.01, 1.1), (0.05, 1.5), (0.1, 2.0), (1.0, 2.0), (math.inf, 2.0)]
)
def test_what_hardly_moves_a_figure_hardly_widens_its_band(response: float, factor: float) -> None:
    """From a tenth of a doubling of the figure per doubling of the axis, the excess counts fully."""
    responses = {FAR.excess[0]: {"acct": response}}

    assert FAR.factor(1.0, "acct", responses) == pytest.approx(factor)
    assert FAR.factor(1.0, "auth", responses) == pytest.approx(2.0)  # not measured: fully
    assert FAR.without_effect(responses) == (FAR.excess if response == 0 else ())


def test_the_layout_inside_has_the_nearest_measured_value_and_is_otherwise_the_same() -> None:
    asked = OpenproviderScenario(dcs=3, cass_nodes=(12, 3, 2), rf=2)
    few, many = extrapolation(asked, MEASURED, AXES).excess

    assert few.inside == changed(asked, cass_nodes=(12, 3, 3))
    assert many.inside == changed(asked, cass_nodes=(3, 3, 2))


def test_without_such_a_layout_inside_every_figure_is_taken_to_respond() -> None:
    """Five replicas on three nodes are no layout."""
    (nodes,) = extrapolation(OpenproviderScenario(cass_nodes=5, rf=5), MEASURED, {"cass_nodes": "nodes"}).excess

    assert nodes.inside is None


@pytest.mark.parametrize(
    ("fields", "doublings"),
    [
        ({"cass_nodes": 12}, 2.0),
        ({"front_nodes": 4}, 1.0),
        ({"front_workers": 32}, 1.0),
        ({"distance": "300km"}, 1.0),
        ({"distance": "75km"}, 1.0),
        ({"distance": "0km"}, 3.0),
        ({"cass_nodes": 6, "data_factor": 4.0}, 1.0),  # a stated factor is evidence
        ({"dcs": 1, "distance": "5000km"}, 0.0),
        ({"client_share": (0.5, 0.5, 0.0)}, 0.585),
        ({"client_share": (0.5, 0.5, 0.0), "front_nodes": (2, 2, 0)}, 0.585),
        ({"client_share": (1.0, 0.0)}, 1.0),
    ],
)
def test_openprovider_counts_its_axes_and_the_distance(fields: dict[str, Any], doublings: float) -> None:
    assert found(**fields).doublings == pytest.approx(doublings, abs=1e-4)
    assert found(**fields).basis == ("extrapolated" if doublings else "measured")


def test_openprovider_adds_up_its_axes() -> None:
    both, nodes, level = found(dcs=4, consistency_read="LOCAL_ONE"), found(dcs=4), found(consistency_read="LOCAL_ONE")

    assert both.doublings == pytest.approx(nodes.doublings + level.doublings)
    assert min(nodes.doublings, level.doublings) > 0


@pytest.mark.parametrize(("nearer", "farther"), [("3ms", "4ms"), ("4ms", "200ms"), ("1ms", "0ms")])
def test_openprovider_compares_round_trips_with_that_of_the_distance(nearer: str, farther: str) -> None:
    assert 0 < found(rtt=nearer).doublings < found(rtt=farther).doublings


@pytest.mark.parametrize("rtt", ["1.66ms", "2ms", "2.2ms"])
def test_round_trips_that_the_distance_of_the_test_allows_are_measured(rtt: str) -> None:
    """Fibre routes are 1.1 to 1.5 times the straight line."""
    assert found(rtt=rtt) == found()


def test_the_longest_of_a_matrix_of_round_trips_counts() -> None:
    matrix = (("0", "2ms", "2ms"), ("2ms", "0", "100ms"), ("2ms", "100ms", "0"))
    assert found(rtt=matrix) == found(rtt="100ms")


def test_a_load_above_the_measured_ones_counts_where_capacities_were_not_measured() -> None:
    shcm = system("rhino-shcm")
    asked = shcm.scenario()

    assert shcm.extrapolation(asked, 2520.0) == shcm.extrapolation(asked)
    assert shcm.extrapolation(asked, 5040.0).doublings == pytest.approx(1.0)
    assert found() == OPENPROVIDER.extrapolation(OpenproviderScenario(data_factor=1.0), 1e6)


@pytest.mark.parametrize(
    ("measured", "fields", "doublings"),
    [
        ({"front_nodes": 0}, {"front_nodes": 1}, 1.0),
        ({"front_nodes": 0}, {"front_nodes": 4}, 3.0),
        ({"front_nodes": 2}, {"front_nodes": 0}, 2.0),
        ({"read_fraction": 0.0}, {"read_fraction": 1.0}, 1.0),
        ({"read_fraction": 1.0}, {"read_fraction": 0.001}, 1.0),
        ({"read_fraction": 1.0}, {"read_fraction": 0.5}, 1.0),
    ],
)
def test_none_is_a_doubling_from_one_and_shares_are_at_most_one_apart(
    measured: dict[str, Any], fields: dict[str, Any], doublings: float
) -> None:
    axes = {"front_nodes": "front nodes", "read_fraction": "share of reads"}
    far = extrapolation(TwoTierScenario(**fields), [TwoTierScenario(**{**fields, **measured})], axes)

    assert far.doublings == pytest.approx(doublings)


LOCAL = {"consistency_read": "LOCAL_QUORUM", "consistency_write": "LOCAL_QUORUM"}


def case(**fields: Any) -> Case[Any]:
    return resolve(changed(OpenproviderScenario(data_factor=1.0), **fields))


def moved(one: Case[Any]) -> dict[str, float]:
    """Return how far each figure is moved by the only excess of a layout."""
    (found,) = one.layout.responses.values()
    return dict(found)


def half_widths(one: Case[Any]) -> list[float]:
    """Return the half-widths of the model errors in the logarithm, of the capacity and of both times."""
    its = one.at(1000.0).uncertainty
    return [its.rate.half_width, *(its.by_class[name].half_width for name in ("auth", "acct"))]


def test_distance_moves_nothing_where_all_work_is_local_and_widens_no_band() -> None:
    near, far = case(**LOCAL), case(**LOCAL, distance="1200km")
    distance, _ = far.extrapolation.excess

    assert far.extrapolation.doublings == pytest.approx(near.extrapolation.doublings + 3)
    assert set(far.layout.responses[distance]) == {RATE, "auth", "acct"}
    assert max(far.layout.responses[distance].values()) == 0
    assert far.extrapolation.without_effect(far.layout.responses) == (distance,)
    assert half_widths(far) == pytest.approx(half_widths(near))


def test_distance_moves_the_times_of_writes_that_wait_for_other_data_centres() -> None:
    far = case(distance="1200km")

    assert moved(far)["acct"] > 1
    assert far.extrapolation.without_effect(far.layout.responses) == ()
    assert half_widths(far) == pytest.approx([4 * each for each in half_widths(case())])


def test_a_limit_that_does_not_bind_counts_by_its_load() -> None:
    """Twice the RADIUS servers leave the capacity, and halve the load of their workers."""
    assert moved(case(front_nodes=4)) == pytest.approx({RATE: 1.0, "auth": 1.0, "acct": 1.0}, rel=0.01)


@pytest.mark.parametrize("fields", [{"cass_nodes": 6}, {"dcs": 6}])
def test_what_changes_the_work_of_a_node_moves_every_figure(fields: dict[str, Any]) -> None:
    assert min(moved(case(**fields)).values()) > 0.5


def test_an_excess_that_leaves_the_layout_as_it_is_moves_nothing() -> None:
    asked = OpenproviderScenario()
    ways = (Excess(1.0, "the same", asked), Excess(1.0, "not compared"))
    found = OPENPROVIDER.responses(OPENPROVIDER.fitted(), asked, Extrapolation(ways, (), "extrapolated", "Made up."))

    assert found == {ways[0]: {RATE: 0.0, "auth": 0.0, "acct": 0.0}}


def test_times_count_by_themselves_where_loads_do_not_change_enough() -> None:
    """Twice the nodes halve the loads: waits for nodes become shorter by more, which counts for a far layout only."""
    asked, inside = changed(OpenproviderScenario(data_factor=1.0), cass_nodes=6), OpenproviderScenario(data_factor=1.0)
    near, far = Excess(1.0, "near", inside), Excess(30.0, "far", inside)
    both = Extrapolation((near, far), (), "extrapolated", "Made up.")
    found = OPENPROVIDER.responses(OPENPROVIDER.fitted(), asked, both)

    assert found[near] == pytest.approx({RATE: 1.0, "auth": 1.0, "acct": 1.0}, rel=0.01)
    assert found[far][RATE] == found[near][RATE]
    assert found[far]["auth"] > 1.5
    assert found[far]["acct"] > 1.5


def test_responses_do_not_depend_on_the_offered_rate() -> None:
    asked = case(cass_nodes=6)

    assert asked.layout.responses
    assert asked.at(10.0).layout.responses is asked.layout.responses


def test_of_a_system_with_ratios_the_ratios_respond() -> None:
    vcider = system("vcider")
    asked = vcider.scenario(rf=4)
    its = resolve(asked)
    (found,) = its.layout.responses.values()
    values = vcider.median_values(its.fitted, asked)
    ratios = vcider.component(Ratios).of
    assert ratios is not None
    here, inside = (ratios(layout, values) for layout in (asked, vcider.scenario(rf=3)))

    assert set(found) == {RATE}
    assert found[RATE] == pytest.approx(max(abs(float(np.log2(here[name] / inside[name])[0])) for name in here))
