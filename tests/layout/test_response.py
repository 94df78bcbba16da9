"""Which figures respond to an excess, by solving the layout with it and without it."""

from typing import Any

import numpy as np
import pytest

from capplan.layout.extrapolation import RATE, Excess, Extrapolation
from capplan.layout.system import Case
from capplan.models.language.scenario import changed
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, system

OPENPROVIDER = system("openprovider")
LOCAL = {"consistency_read": "LOCAL_QUORUM", "consistency_write": "LOCAL_QUORUM"}


def case(**fields: Any) -> Case[Any]:
    return resolve(changed(OpenproviderScenario(data_factor=1.0), **fields))


def moved(one: Case[Any]) -> dict[str, float]:
    """Return how far each figure is moved by the only excess of a layout."""
    (found,) = one.responses.values()
    return dict(found)


def half_widths(one: Case[Any]) -> list[float]:
    """Return the half-widths of the model errors in the logarithm, of the capacity and of both times."""
    its = one.at(1000.0).uncertainty
    return [its.rate.half_width, *(its.by_class[name].half_width for name in ("auth", "acct"))]


def test_distance_moves_nothing_where_all_work_is_local_and_widens_no_band() -> None:
    near, far = case(**LOCAL), case(**LOCAL, distance="1200km")
    distance, _ = far.extrapolation.excess

    assert far.extrapolation.doublings == pytest.approx(near.extrapolation.doublings + 3)
    assert set(far.responses[distance]) == {RATE, "auth", "acct"}
    assert max(far.responses[distance].values()) == 0
    assert far.extrapolation.without_effect(far.responses) == (distance,)
    assert half_widths(far) == pytest.approx(half_widths(near))


def test_distance_moves_the_times_of_writes_that_wait_for_other_data_centres() -> None:
    far = case(distance="1200km")

    assert moved(far)["acct"] > 1
    assert far.extrapolation.without_effect(far.responses) == ()
    assert half_widths(far) == pytest.approx([4 * each for each in half_widths(case())])


def test_a_limit_that_does_not_bind_counts_by_its_load() -> None:
    """Twice the RADIUS servers leave the capacity, and halve the load of their workers."""
    assert moved(case(front_nodes=4)) == pytest.approx({RATE: 1.0, "auth": 1.0, "acct": 1.0}, rel=0.01)


@pytest.mark.parametrize("fields", [{"cass_nodes": 6}, {"dcs": 6}, {"data_factor": 2.0}, {"data_factor": None}])
def test_what_changes_the_work_of_a_node_moves_every_figure(fields: dict[str, Any]) -> None:
    assert min(moved(case(**fields)).values()) > 0.5


def test_an_excess_that_leaves_the_layout_as_it_is_moves_nothing() -> None:
    asked = OpenproviderScenario()
    ways = (Excess(1.0, "the same", asked), Excess(1.0, "not compared"))
    found = OPENPROVIDER.responses(OPENPROVIDER.fitted(), asked, Extrapolation(ways, (), "extrapolated", "Made up."))

    assert found == {ways[0]: {RATE: 0.0, "auth": 0.0, "acct": 0.0}}


def test_responses_do_not_depend_on_the_offered_rate() -> None:
    asked = case(cass_nodes=6)

    assert asked.responses
    assert asked.at(10.0).responses is asked.responses


def test_of_a_system_with_ratios_the_ratios_respond() -> None:
    vcider = system("vcider")
    asked = vcider.scenario(rf=4)
    its = resolve(asked)
    (found,) = its.responses.values()
    values = vcider.median_values(its.fitted, asked)
    here, inside = (vcider.ratios(layout, values) for layout in (asked, vcider.scenario(rf=3)))

    assert set(found) == {RATE}
    assert found[RATE] == pytest.approx(max(abs(float(np.log2(here[name] / inside[name])[0])) for name in here))
