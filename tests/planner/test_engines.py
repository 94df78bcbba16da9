"""Every system with every engine: SimPy and the compiled engine give the same figures, the solver similar ones."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from capplan.layout.components import Ratios
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import documented_names, documented_systems, scenario

CHEAP: dict[str, dict[str, Any]] = {
    "openprovider": {"dcs": 1, "cass_nodes": 1, "rf": 1, "front_nodes": 1, "tps": 500.0},
    "rhino-shcm": {"cass_nodes": 1, "rf": 1, "tps": 100.0},
    "fedora4": {"nodes": 1, "tps": 100.0},
    "vcider": {"rf": 1},
    "arion": {"servers": 1, "clients": 50, "tps": 2000.0},
}
WITH_RATES = [each.name for each in documented_systems() if each.component(Ratios).of is None]


@cache
def by(engine: PredictionEngine, name: str) -> Prediction:
    """Ask with the least that is ever simulated: the same requests with either engine."""
    return predict(scenario(name, **CHEAP[name]), engine=engine, budget_s=1e-3)


def test_every_system_is_asked() -> None:
    assert set(CHEAP) == set(documented_names())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != "rhino-shcm")) for name in WITH_RATES]
)
def test_simpy_agrees_with_the_compiled_engine_in_every_digit(name: str) -> None:
    """The engines walk the same path, so that none of the four digits differs."""
    slow, fast = (by(engine, name).to_json() for engine in ("simpy", "compiled"))

    assert slow["engine"] == "simpy"
    assert slow["latency_ms"]
    assert slow | {"engine": "compiled"} == fast


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "openprovider")) for name in WITH_RATES]
)
def test_the_solver_s_means_are_inside_the_simulated_bands(name: str) -> None:
    solved, simulated = by("analytic", name), by("simpy", name)

    assert list(solved.latency_ms) == list(simulated.latency_ms)
    for request, latency in solved.latency_ms.items():
        band, mean = simulated.latency_ms[request].mean, latency.mean
        assert band is not None
        assert mean is not None
        assert band.low < mean.value < band.high
        assert band.parts.simulation is not None
        assert mean.parts.simulation is None
    assert simulated.solver_errors == ()
    assert replace(
        solved, latency_ms={}, promises=(), solver_errors=(), engine="", evidence=simulated.evidence
    ) == replace(simulated, latency_ms={}, promises=(), engine="")  # the rest is the solver's in any case


@pytest.mark.parametrize("engine", ["analytic", "compiled", "simpy"])
@pytest.mark.parametrize("name", [name for name in documented_names() if name not in WITH_RATES])
def test_a_system_of_ratios_is_solved_whatever_engine_is_asked_for(name: str, engine: PredictionEngine) -> None:
    made = by(engine, name)

    assert made == by("analytic", name)
    assert (made.engine, made.latency_ms) == ("analytic", {})
