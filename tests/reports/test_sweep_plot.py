"""Plots of sweeps: few lines in a panel, capacities in a panel of their own."""

import math
from collections import Counter
from functools import cache
from typing import Any

import plotly.graph_objects as go
import pytest

from capplan.models.language.scenario import Scenario
from capplan.planner.sweep import OfferedRates, Sweep, SweepPoint, SweepTask, layouts_of, points_of
from capplan.reports.figure import LIMIT, WORD
from capplan.reports.sweep import MOST_LINES, plot
from capplan.systems.registry import scenario, system

LOADS = OfferedRates("load", (0.3, 0.6, 0.9))


@cache
def points(task: SweepTask) -> tuple[SweepPoint, ...]:
    """Solve a layout once for all pictures."""
    return tuple(points_of(task, 0))


def rows(base: Scenario, rates: OfferedRates = LOADS, **axes: Any) -> list[SweepPoint]:
    asked = Sweep(base.system, layouts_of(base, axes), rates, draws=2)
    return [point for each in asked.configurations() for point in points(each.subject)]


def drawn(rates: OfferedRates = LOADS, **axes: Any) -> go.Figure:
    return plot(
        rows(scenario("openprovider"), rates, **axes),
        system("openprovider"),
        "openprovider",
        ("acct.p99<20ms", "auth.mean<5ms"),
    )


def lines(figure: go.Figure) -> Counter[str]:
    return Counter(each.yaxis for each in figure.data if each.mode == "lines+markers")


@pytest.mark.parametrize(
    "axes",
    [
        {"cass_nodes": (3, 6, 9)},
        {"cass_nodes": (3, 4, 5, 6)},
        pytest.param({"dcs": (1, 2, 3), "cass_nodes": (3, 6)}, marks=pytest.mark.slow),
        {"consistency_write": ("QUORUM", "ALL")},
    ],
)
def test_every_layout_is_shown_and_few_share_a_panel(axes: dict[str, Any]) -> None:
    found, layouts = lines(drawn(**axes)), math.prod(map(len, axes.values()))

    assert found.total() == layouts
    assert max(found.values()) <= MOST_LINES
    assert (len(found) == 1) is (layouts <= MOST_LINES)


def test_each_capacity_is_named_beside_its_line() -> None:
    named = [each for each in drawn(cass_nodes=(3, 6)).layout.annotations if each.name == WORD]
    found = {row["cass_nodes"]: row["capacity_tps"] for row in rows(scenario("openprovider"), cass_nodes=(3, 6))}

    assert [each.x for each in named] == list(found.values())
    assert [each.text.partition(":")[0] for each in named] == [f"cass-nodes {each}" for each in found]


def test_the_upper_end_of_a_band_is_not_below_its_line() -> None:
    several = drawn(cass_nodes=(3, 6))

    for low, line in zip(several.data[0::2], several.data[1::2], strict=False):
        assert all(end >= middle for end, middle in zip(low.y, line.y, strict=True) if low.yaxis == "y")


def test_marks_say_whether_the_rate_is_carried() -> None:
    rates = OfferedRates("load", (0.3, 1.5))
    (found,) = [each for each in drawn(rates, cass_nodes=(3,)).data if each.mode == "lines+markers"]

    assert found.marker.symbol == ("circle", "x")


def test_the_menu_shows_the_objective_of_what_is_chosen() -> None:
    figure = drawn(cass_nodes=(3, 6))
    limits = [place for place, each in enumerate(figure.layout.shapes) if each.line.color == LIMIT]
    shown = [figure.layout.shapes[place].visible for place in limits]
    ((menu,),) = (figure.layout.updatemenus,)
    chosen = {button.label: button.args[1] for button in menu.buttons}

    assert shown == [True, False]
    assert [chosen["auth mean"][f"shapes[{place}].visible"] for place in limits] == [False, True]
    assert [chosen["auth p50"][f"shapes[{place}].visible"] for place in limits] == [False, False]
