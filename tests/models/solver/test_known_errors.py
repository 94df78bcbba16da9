"""What the solver says of its own errors, beside simulations of random layouts that it was not derived from."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from capplan.models.language.distribution import Deterministic, Distribution, Exponential, Hyperexponential
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment, Station
from capplan.models.language.step import ForkJoin, Step, Visit
from capplan.models.language.traffic import Bursty, Closed, Open, RequestClass, Throttled, Traffic
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.known_errors import KnownError, known_errors

SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "generate" / "random_layouts.py"))
MIX = {"job": 1.0}
IRREGULAR = Hyperexponential((0.8, 0.2), (0.5, 3.0))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mean", "p99"])
def test_few_figures_miss_the_goal_without_a_label(name: str, errors: list[Any]) -> None:
    """At most one in ten. With one miss in twenty, more come in 2 % of the samples; with one in five, in 99 %."""
    silent = [each for each in errors if not SCRIPT["is_labelled"](each, name)]
    assert len(silent) >= len(errors) / 4
    assert SCRIPT["misses"](silent, name) <= len(silent) / 10


@pytest.fixture(scope="module")
def errors() -> list[Any]:
    """120 layouts with open traffic and 120 with clients, of a seed of their own."""
    return [*SCRIPT["open_errors"](120, 2026), *SCRIPT["client_errors"](120, 2026)]


def labels(
    servers: int = 8,
    traffic: Traffic | None = None,
    *,
    load: float = 0.5,
    assignment: Assignment = "pooled",
    service: Distribution | None = None,
    needed: int = 1,
) -> tuple[KnownError, ...]:
    """Return what is said of a write to three nodes with processor sharing."""
    branches = tuple(Visit(f"node {number}", service or Exponential(1.0)) for number in range(3))
    flow: Step = ForkJoin(branches, needed)
    nodes = tuple(Station(f"node {number}", servers, "ps", assignment=assignment) for number in range(3))
    made = Network("labels", nodes, (RequestClass("job", flow),), traffic or Open(1.0, MIX))
    return known_errors(Analysis(made), load)


def test_nothing_is_said_where_the_solver_is_as_accurate_as_elsewhere() -> None:
    assert labels() == ()
    assert labels(needed=2) == labels(load=0.8) == ()
    assert labels(traffic=Closed(15, Exponential(1.0), MIX)) == labels(traffic=Throttled(200, 4.0, MIX)) == ()
    assert labels(traffic=Open(1.0, MIX, Bursty(2.0, 0.1, 300.0))) == ()
    assert labels(assignment="random", service=IRREGULAR) == labels(assignment="random", needed=2) == ()


def test_each_condition_is_named() -> None:
    found = [
        labels(load=0.9),
        labels(assignment="random", service=IRREGULAR, needed=2),
        labels(traffic=Throttled(80, 4.0, MIX)),
        labels(traffic=Open(1.0, MIX, Bursty(2.0, 0.1, 30.0))),
        labels(service=Hyperexponential((0.95, 0.05), (0.55, 9.55))),
        labels(assignment="random", service=Deterministic(1.0)),
        labels(servers=2),
    ]
    assert [len(each) for each in found] == [1] * 7
    assert len({each[0].where for each in found}) == 7
