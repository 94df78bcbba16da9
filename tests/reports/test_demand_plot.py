"""The plot of a demand shows what the forecast says, with the same bytes each time."""

from pathlib import Path

import pytest

from capplan.models.results import Band
from capplan.planner.demand.demand import read_demand
from capplan.planner.demand.forecast import Forecast, Layout, forecast
from capplan.reports.demand import plot

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "demand.toml"
LAYOUT = Layout(words="", cass_nodes=(6,), rf=(3,), capacity=Band(9e3, 8e3, 1e4), reattach_capacity=Band(2e4, 1e4, 3e4))


@pytest.fixture(scope="module")
def found() -> Forecast:
    return forecast(read_demand(EXAMPLE), LAYOUT)


def test_each_line_is_a_figure_of_the_forecast(found: Forecast) -> None:
    lines = {trace.name: trace.y for trace in plot(found, "demand.toml").data if trace.name}
    storm = found.reattach.over_time
    assert list(lines["auth"][:-1]) == [each.rates.auth_per_s for each in storm]
    assert list(lines["acct"][:-1]) == [each.rates.acct_per_s for each in storm]
    medians = [trace.y for trace in plot(found, "demand.toml").data if trace.line.width == 2]
    assert [list(each) for each in medians] == [
        [each.busy_hour_per_s.value for each in found.months],
        [each.node_gib.value for each in found.months if each.node_gib is not None],
    ]


def test_limits_stand_in_their_panels(found: Forecast) -> None:
    levels = {shape.y0 for shape in plot(found, "demand.toml").layout.shapes if shape.type == "line"}
    disk = next(each for each in found.fits if each.what == "disk")
    held = 200 * 0.9 * 0.9
    assert {20_000, 9_000, found.busy_hour.total_per_s} <= levels
    assert disk.limit.value == 200
    assert any(level == pytest.approx(held) for level in levels)
