"""A measured data factor of a Cassandra cluster, and the condition until it is stated."""

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.layout.components import MeasuredRange
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.planner.size.size import SizingQuestion, size
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.registry import resolve

DAY_S = 86_400.0
WHOLE = CassandraScenario(cass_nodes=6, node_cores=16, read_fraction=0.8)


def capacity(factor: float | str | None) -> FloatArray:
    """Return the capacity by draw."""
    return resolve(changed(WHOLE, data_factor=factor), None, 1).solution.capacity


def test_work_of_replicas_alone_grows() -> None:
    ratio = np.median(capacity(None) / capacity(2.0))
    assert 1.3 < ratio < 2.0  # coordinators have the rest
    np.testing.assert_allclose(capacity(1.0), capacity(None))


def test_a_range_is_drawn_between_its_ends() -> None:
    ranged, low, high = (np.median(capacity(each)) for each in ("1.5..3", 1.5, 3.0))
    assert high < ranged < low
    spread = np.log(capacity("1.5..3") / capacity(2.0))
    assert float(np.ptp(spread)) > 0.1


@pytest.mark.parametrize("stated", ["3..1.5", 0.1, "much"])
def test_what_is_no_factor_is_refused(stated: float | str) -> None:
    with pytest.raises(InputError, match="data factor"):
        CassandraScenario(data_factor=stated)


def test_a_plan_of_kept_rows_names_aged_data_until_they_are_measured() -> None:
    unmeasured = SYSTEM.component(MeasuredRange).unmeasured
    plan = changed(WHOLE, keep=2 * DAY_S, tps=20e3)
    assert [each.field for each in unmeasured(plan)] == ["data_factor", "busiest"]
    stated = changed(plan, data_factor=1.3, busiest=1.2)
    assert not unmeasured(stated)


@pytest.mark.slow
def test_machines_in_reserve_carry_the_lowest_expected_work() -> None:
    """The layout that is bought holds up to its break-even, and more machines are named for what lies beyond."""
    plan = changed(WHOLE, cass_nodes=3, keep=2 * DAY_S, tps=50e3)
    found = size(plan, SizingQuestion(sized={"cass_nodes": (3, 64)}, survive=(), engine="analytic"))
    (aged,) = (each for each in found.conditions if each.option == "--data-factor")
    assert found.chosen is not None
    assert aged.break_even is not None
    for end in (aged.at_low, aged.at_high):
        assert end is not None
        more = end.machines["node"] - found.chosen.machines["node"]
        assert (more <= 0) is (end.value <= aged.break_even)
