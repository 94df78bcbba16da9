"""`simulate`: replications of a system at one offered rate, with one set of parameters, and what they have seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.calibration.fitted_file import Fitted
from capplan.calibration.fitted_file import load as load_fitted
from capplan.models.errors import InputError
from capplan.models.network import Network
from capplan.models.openprovider import network as openprovider
from capplan.models.quantity import FloatArray, check_number
from capplan.models.scenario import Scenario
from capplan.models.traffic import Closed
from capplan.planner.predict import default_rate, given_fields
from capplan.planner.simulation import (
    EVERY_CLASS,
    ClassFigures,
    Estimate,
    LatencyByClock,
    LatencyFigures,
    Little,
    OfferedSource,
    PoolFigures,
    Simulation,
    StationFigures,
)
from capplan.simulator.replicate import Plan
from capplan.simulator.replications import Replications
from capplan.simulator.run import ClassReport, Clock, PoolReport, StationReport, together

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
CONFIDENCE = 0.95
BIN = 1 / 256  # relative error of a percentile that is read from a histogram


@dataclass(frozen=True)
class Subject:
    """What is simulated.

    Attributes
    ----------
    network
        The network, at the offered rate.
    scenario
        The layout as a scenario file has it; None when a network was given.
    offered_tps, offered_source
        As in `Simulation`.
    """

    network: Network
    scenario: dict[str, Any] | None
    offered_tps: float | None
    offered_source: OfferedSource


def of_scenario(scenario: Scenario, fitted: Fitted | None = None) -> Subject:
    """Return a layout at its offered peak rate, or else at 80 % of its predicted capacity.

    Parameters are those of the draw nearest to the median of the calibrated ensemble.

    Raises
    ------
    InputError
        When an objective cannot be read, or the system is not calibrated.
    """
    fitted = fitted or load_fitted(scenario.system)
    offered = default_rate(scenario, fitted) if scenario.tps is None else float(np.max(scenario.tps))
    network = openprovider(scenario, fitted.median_values(), offered)
    return Subject(network, given_fields(scenario), offered, "default" if scenario.tps is None else "given")


def of_network(network: Network, rate_per_s: float | None = None) -> Subject:
    """Return a network with its own traffic, at another mean rate if one is given.

    Everything else about the traffic stays: its mix, how arrivals come, the number of throttled clients.

    Raises
    ------
    InputError
        When a rate is given and the traffic is closed, or the rate is not positive.
    """
    traffic = network.traffic
    if isinstance(traffic, Closed):
        if rate_per_s is not None:
            raise InputError(
                f"--tps does not fit {network.name!r}, whose traffic is closed: its clients and their think time set"
                " the rate"
            )
        return Subject(network, None, None, "network")
    if rate_per_s is None:
        return Subject(network, None, float(np.max(traffic.rate_per_s)), "network")
    rate = float(np.max(check_number(rate_per_s, "rate per second", above=0.0, bounded=True)))
    return Subject(replace(network, traffic=replace(traffic, rate_per_s=rate)), None, rate, "given")


def summed_up(target: str, subject: Subject, plan: Plan, seen: Replications) -> Simulation:
    """Return what the replications of a plan have seen.

    Parameters
    ----------
    target
        What was asked for, in the user's words.
    subject, plan
        What was run.
    seen
        The runs.
    """
    every = replace(seen, reports={**seen.reports, EVERY_CLASS: _all_classes(seen)})
    first, traffic = seen.runs[0], plan.network.traffic
    return Simulation(
        target=target,
        network=plan.network.name,
        scenario=subject.scenario,
        offered_tps=subject.offered_tps,
        mean_tps=None if isinstance(traffic, Closed) else float(np.max(traffic.rate_per_s)),
        offered_source=subject.offered_source,
        duration_s=first.duration_s,
        warmup_s=first.warmup_s,
        seed=plan.seed,
        replications=len(seen.runs),
        classes={name: _class(every, name) for name in every.reports},
        stations={name: _station([run.stations[name] for run in seen.runs]) for name in first.stations},
        pools={name: _pool([run.pools[name] for run in seen.runs]) for name in first.pools},
        version=version("capplan"),
    )


def _all_classes(seen: Replications) -> ClassReport:
    return together((run.report() for run in seen.runs), name=EVERY_CLASS, windows="apart")


def _class(seen: Replications, name: str) -> ClassFigures:
    report, number = seen.reports[name], None if name == EVERY_CLASS else name

    def estimate(figure: Callable[[ClassReport], float]) -> Estimate:
        return Estimate(figure(report), half_width(seen.each(lambda run: figure(run.report(number)))))

    little = report.little()
    return ClassFigures(
        started=report.started,
        completed=report.completed,
        dropped=report.dropped,
        timed_out=report.timed_out,
        unfinished=report.unfinished,
        retries=report.retries,
        offered_per_s=estimate(lambda each: each.started / each.window_s),
        throughput_per_s=estimate(lambda each: each.throughput_per_s),
        loss=estimate(lambda each: each.loss_fraction),
        latency_ms=LatencyByClock(
            intended=_latency(estimate, report, "intended"), actual=_latency(estimate, report, "actual")
        ),
        little=Little(
            number=little.number, rate_per_s=little.rate_per_s, response_s=little.response_s, error=little.error
        ),
    )


def _latency(
    estimate: Callable[[Callable[[ClassReport], float]], Estimate], report: ClassReport, clock: Clock
) -> LatencyFigures:
    def quantile(probability: float) -> Estimate:
        found = estimate(lambda each: each.latency(clock).quantile_s(probability) * 1e3)
        if found.half_width is None:
            return found
        return replace(found, half_width=max(found.half_width, found.value * BIN))  # runs may share a bin

    return LatencyFigures(
        mean=estimate(lambda each: each.latency(clock).mean_s * 1e3),
        **{name: quantile(probability) for name, probability in QUANTILES.items()},
        max=report.latency(clock).max_s * 1e3,
        hdr_histogram=report.latency(clock).encoded(),
    )


def half_width(figures: FloatArray) -> float | None:
    """Return the half-width of the 95 % interval of the mean of independent figures (Student's t).

    It is None for fewer than two, or where one of them has seen nothing.
    """
    count = len(figures)
    if count < 2 or not np.isfinite(figures).all():
        return None
    from scipy.special import stdtrit

    quantile = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    return quantile * float(figures.std(ddof=1)) / math.sqrt(count)


def _station(reports: list[StationReport]) -> StationFigures:
    visits = [each.visits for each in reports]
    return StationFigures(
        servers=reports[0].servers,
        utilisation=_mean([each.utilisation for each in reports]),
        mean_queue=_mean([each.mean_queue for each in reports]),
        mean_number=_mean([each.mean_number for each in reports]),
        visits=sum(visits),
        mean_wait_ms=_weighted([each.mean_wait_s for each in reports], visits) * 1e3,
        mean_response_ms=_weighted([each.mean_response_s for each in reports], visits) * 1e3,
        drops=sum(each.drops for each in reports),
        paused_share=_mean([each.paused_share for each in reports]),
    )


def _pool(reports: list[PoolReport]) -> PoolFigures:
    taken = [each.taken for each in reports]
    busy = replace(reports[0], busy_share=np.mean([each.busy_share for each in reports], axis=0))
    return PoolFigures(
        size=busy.size,
        mean_busy=_mean([each.mean_busy for each in reports]),
        p99_busy=busy.busy_quantile(0.99),
        mean_queue=_mean([each.mean_queue for each in reports]),
        taken=sum(taken),
        drops=sum(each.drops for each in reports),
        mean_wait_ms=_weighted([each.mean_wait_s for each in reports], taken) * 1e3,
        mean_hold_ms=_weighted([each.mean_hold_s for each in reports], taken) * 1e3,
    )


def _mean(figures: list[float]) -> float:
    return sum(figures) / len(figures)


def _weighted(means: list[float], counts: list[int]) -> float:
    """Return the mean over all, where some runs may have seen none."""
    total = sum(mean * count for mean, count in zip(means, counts, strict=True) if count)
    return total / sum(counts) if sum(counts) else math.nan
