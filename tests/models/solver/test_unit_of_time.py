"""Nothing depends on the unit of time: a network that is 1,024 times as slow has the same figures, so much later."""

from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.solver.test_backpressure import network as backpressure
from tests.models.solver.test_random_networks import UNKNOWN
from tests.strategies import networks

from capplan.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.traffic import Open, Timeline
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import OperatingPoint, solve

FACTOR = 1024.0  # a power of two, so that scaling rounds nothing
LEVELS = (0.5, 0.95, 0.99)


def slower(value: Any, factor: float) -> Any:
    """Return a part of a network with all of its times multiplied and all of its rates divided."""
    if isinstance(value, tuple):
        return tuple(slower(each, factor) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for field in fields(value):
        found = getattr(value, field.name)
        power = -1 if field.name.endswith("_per_s") else 1 if field.name.endswith("_s") else 0
        changed[field.name] = _times(found, factor**power) if power else slower(found, factor)
    return replace(value, **changed)


def _times(value: Any, factor: float) -> Any:
    if isinstance(value, tuple):
        return tuple(_times(each, factor) for each in value)
    return value * factor if isinstance(value, (int, float)) else slower(value, factor)


def figures(point: OperatingPoint, names: list[str]) -> dict[str, float]:
    """Return shares and times of an operating point."""
    found = {"drop rate": float(point.drop_rate[0])}
    for name in names:
        found[f"mean {name}"] = float(point.response_s(name)[0])
        found |= {f"p{level} {name}": float(point.quantile_s(level, name)[0]) for level in LEVELS}
    return found


def compare(network: Network, rate_per_s: float) -> None:
    names = [each.name for each in network.classes]
    with np.errstate(all="ignore"):
        fast = figures(solve(Analysis(network), rate_per_s), names)
        slow = figures(solve(Analysis(slower(network, FACTOR)), rate_per_s / FACTOR), names)
    assert slow == pytest.approx(
        {name: value if name == "drop rate" else value * FACTOR for name, value in fast.items()}, rel=1e-6, nan_ok=True
    )


@pytest.mark.parametrize("rate_per_s", [100.0, 190.0, 260.0, 320.0])
def test_a_network_that_pushes_back(rate_per_s: float) -> None:
    compare(backpressure(rate_per_s), rate_per_s)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(networks(UNKNOWN), st.floats(0.5, 50.0))
def test_a_random_network_with_open_traffic(network: Network, rate_per_s: float) -> None:
    """Four in ten can be solved; of the others the solver says what it does not support."""
    traffic = Open(rate_per_s, {each.name: 1.0 / len(network.classes) for each in network.classes})
    stations = tuple(replace(each, expiry_s=None) for each in network.stations)
    with suppress(InputError):
        compare(replace(network, stations=stations, traffic=traffic, timeline=Timeline()), rate_per_s)
