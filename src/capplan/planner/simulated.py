"""Latencies by simulation: replications of one engine at one offered rate, with one set of parameters."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from capplan.models.network import Network
from capplan.models.openprovider import REPORTED, network
from capplan.models.parameter import Values
from capplan.models.quantity import FloatArray
from capplan.models.scenario import Scenario
from capplan.models.traffic import Open
from capplan.planner.prediction import STATISTICS, Band, Latency
from capplan.planner.system_figures import LEVELS
from capplan.simulator.engine import Engine, simulate
from capplan.simulator.run import Run

REPLICATIONS = 4
_REQUESTS: dict[Engine, int] = {"compiled": 24_000, "simpy": 12_000}  # measured in each replication
_WARMUP_S = 0.5
_T_95 = 2.3533634348018264  # 95th percentile of Student's t with three degrees of freedom


def simulated_latency(
    scenario: Scenario, values: Values, peak_rate: float, numbers: tuple[int, Engine], analytic: dict[str, Latency]
) -> dict[str, Latency]:
    """Replace the analytic medians by simulated ones, and add the simulation's part to the bands.

    Parameters
    ----------
    scenario, values
        The layout and one value of each parameter.
    peak_rate : float
        Offered peak rate, requests per second.
    numbers : tuple
        Seed (replications are numbered) and engine.
    analytic : dict of Latency
        The analytic latencies, whose bands carry the other parts (in ms).
    """
    phases = _phases(scenario, values, peak_rate)
    runs = [
        [_replication(phase, number, place, numbers) for place, phase in enumerate(phases)]
        for number in range(REPLICATIONS)
    ]
    return {name: _latency(runs, classes, analytic[name]) for name, classes in REPORTED.items()}


def _phases(scenario: Scenario, values: Values, peak_rate: float) -> list[tuple[float, float, Network]]:
    """Return bursts and the time between them apart: the share of the requests that each has, its rate, its network.

    A run that is long enough to hold many bursts would take minutes; bursts are long beside the time to settle.
    """
    ratio, fraction = 1 + float(values["burst_excess"]), float(values["burst_fraction"])
    calm = peak_rate * (1 / ratio - fraction) / (1 - fraction)
    steady = {**values, "burst_excess": 0.0}
    bursts = network(scenario, steady, peak_rate)
    traffic = cast("Open", bursts.traffic)  # the system is asked by open traffic
    between = replace(bursts, traffic=replace(traffic, rate_per_s=calm))
    return [(fraction * ratio, peak_rate, bursts), (1 - fraction * ratio, calm, between)]


def _replication(
    phase: tuple[float, float, Network], number: int, place: int, numbers: tuple[int, Engine]
) -> tuple[float, Run]:
    share, rate, system = phase
    seed, engine = numbers
    until = _WARMUP_S + _REQUESTS[engine] / 2 / rate
    replication = 2 * number + place
    run = simulate(system, until, seed=seed, replication=replication, warmup_s=_WARMUP_S, trace=True, engine=engine)
    return share, run


def _latency(runs: list[list[tuple[float, Run]]], classes: tuple[str, ...], analytic: Latency) -> Latency:
    bands: dict[str, Band | None] = {}
    for statistic in STATISTICS:
        by_run = np.array([_statistic(phases, classes, statistic) for phases in runs])
        bands[statistic] = _shifted(getattr(analytic, statistic), by_run * 1e3)
    return Latency(**bands)


def _statistic(phases: list[tuple[float, Run]], classes: tuple[str, ...], statistic: str) -> float:
    """Return a statistic of the mixture of the phases, in seconds."""
    parts = [(share, np.concatenate([run.latencies_s(name) for name in classes])) for share, run in phases]
    latency = np.concatenate([times for _, times in parts])
    weight = np.concatenate([np.full(len(times), share / len(times)) for share, times in parts])
    if statistic == "mean":
        return float(np.average(latency, weights=weight))
    return float(np.quantile(latency, LEVELS[statistic], weights=weight, method="inverted_cdf"))


def _shifted(band: Band, by_run: FloatArray) -> Band:
    """Move an analytic band to the simulated median and widen it by the replications' own scatter."""
    value = float(by_run.mean())
    half = _T_95 * float(by_run.std(ddof=1)) / np.sqrt(len(by_run))
    scale = value / band.value
    down = np.hypot((band.value - band.low) * scale, half)
    up = np.hypot((band.high - band.value) * scale, half)
    parts = replace(
        band.parts,
        parameter=None if band.parts.parameter is None else band.parts.parameter * scale,
        discrepancy=None if band.parts.discrepancy is None else band.parts.discrepancy * scale,
        simulation=half,
    )
    return Band(value, max(value - float(down), 0.0), value + float(up), parts)
