"""Whether a simulated mean agrees with theory: a t test with both error rates stated.

`ALPHA`: a correct engine fails a comparison with this probability (over seeds; they are fixed, so it never does again).
`BETA`: an engine that is wrong by `detects` or more passes with at most this probability; a sample too small for that
fails the test, so the sample sizes follow from the rates.
"""

from collections.abc import Callable

import numpy as np
from scipy import stats

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import Run, StationReport
from capplan.simulator.results.tally import Status

ALPHA, BETA = 1e-3, 1e-2


def assert_agrees(samples: list[float], expected: float, detects: float) -> None:
    """Compare the mean of independent replications with `expected`; `detects` is the relative error to be found."""
    freedom = len(samples) - 1
    standard_error = float(np.std(samples, ddof=1)) / len(samples) ** 0.5
    tolerated = float(stats.t.ppf(1 - ALPHA / 2, freedom)) * standard_error
    found = tolerated + float(stats.t.ppf(1 - BETA, freedom)) * standard_error
    assert found <= detects * expected, f"finds {found / expected:.2%} only: simulate more"
    assert abs(np.mean(samples) - expected) <= tolerated, f"{np.mean(samples)} is not {expected} ± {tolerated}"


def assert_laws(run: Run, network: Network, tolerance: float = 0.05) -> None:
    """Check that requests that start end, and Little's law; `tolerance` is for requests that cross an end."""
    assert sum(run.count(status) for status in Status) == int(run.measured().sum())
    assert run.count(Status.UNFINISHED) == 0
    assert abs(run.little().error) < tolerance
    for station in network.each_station:
        assert_laws_at(run.stations[station.name], station, run.window_s, tolerance)
    for pool in run.pools.values():
        rate_per_s = pool.taken / run.window_s
        assert abs(rate_per_s * pool.mean_hold_s - pool.mean_busy) <= tolerance * pool.mean_busy
        assert abs(rate_per_s * pool.mean_wait_s - pool.mean_queue) <= tolerance * max(pool.mean_queue, 1)
        assert abs(pool.busy_share.sum() - 1) < 1e-12


def assert_laws_at(report: StationReport, station: Station, window_s: float, tolerance: float) -> None:
    """Little's law for visits inside and visits served; the queue includes visits that are dropped later."""
    if not report.visits:  # a member that is down
        assert report.mean_number == 0
        return
    rate_per_s, busy = report.visits / window_s, report.utilisation * report.servers
    number = rate_per_s * report.mean_response_s
    assert number <= (1 + tolerance) * report.mean_number
    if not report.drops:
        assert number >= (1 - tolerance) * report.mean_number
    changes = station.rate or station.pauses or station.background or station.host
    if station.discipline == "fcfs" or not changes:  # else the wait is the response beyond the demand
        assert abs(rate_per_s * (report.mean_response_s - report.mean_wait_s) - busy) <= tolerance * busy


def replications(network: Network, duration_s: float, warmup_s: float, count: int = 20, seed: int = 2026) -> list[Run]:
    """Simulate independent replications by the compiled engine (SimPy takes the same path); all obey the laws."""
    runs = [
        simulate(network, duration_s, seed=seed, replication=n, warmup_s=warmup_s, trace=True) for n in range(count)
    ]
    for run in runs:
        assert_laws(run, network)
    return runs


def each(runs: list[Run], figure: Callable[[Run], float]) -> list[float]:
    return [figure(run) for run in runs]


def exp(mean_s: float) -> Exponential:
    return Exponential(mean_s)
