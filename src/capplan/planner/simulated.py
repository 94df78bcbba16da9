"""Latencies by simulation: replications of the SimPy engine at one offered rate, with one set of parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from capplan.models.network import Network
from capplan.models.openprovider import REPORTED, network
from capplan.models.parameter import Values
from capplan.models.quantity import FloatArray
from capplan.models.scenario import Scenario
from capplan.planner.prediction import STATISTICS, Band, Latency
from capplan.planner.system_figures import LEVELS
from capplan.simulator.reference import simulate
from capplan.simulator.run import Run

REPLICATIONS = 4
_REQUESTS = 12_000  # measured in each replication
_WARMUP_S = 0.5
_T_95 = 2.3533634348018264  # 95th percentile of Student's t with three degrees of freedom


def simulated_latency(
    scenario: Scenario, values: Values, peak_rate: float, seed: int, analytic: dict[str, Latency]
) -> dict[str, Latency]:
    """Replace the analytic medians by simulated ones, and add the simulation's part to the bands.

    Parameters
    ----------
    scenario, values
        The layout and one value of each parameter.
    peak_rate : float
        Offered peak rate, requests per second.
    seed : int
        Seed; replications are numbered.
    analytic : dict of Latency
        The analytic latencies, whose bands carry the other parts (in ms).
    """
    system = network(scenario, values, peak_rate)
    runs = [_run(system, peak_rate, seed, number) for number in range(REPLICATIONS)]
    return {name: _latency(runs, classes, analytic[name]) for name, classes in REPORTED.items()}


def _run(system: Network, peak_rate: float, seed: int, number: int) -> Run:
    return simulate(system, _WARMUP_S + _REQUESTS / peak_rate, seed=seed, replication=number, warmup_s=_WARMUP_S)


def _latency(runs: list[Run], classes: tuple[str, ...], analytic: Latency) -> Latency:
    bands: dict[str, Band | None] = {}
    for statistic in STATISTICS:
        by_run = np.array(
            [_statistic(np.concatenate([run.latencies_s(c) for c in classes]), statistic) for run in runs]
        )
        bands[statistic] = _shifted(getattr(analytic, statistic), by_run * 1e3)
    return Latency(**bands)


def _statistic(latency_s: FloatArray, statistic: str) -> float:
    return float(latency_s.mean() if statistic == "mean" else np.quantile(latency_s, LEVELS[statistic]))


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
