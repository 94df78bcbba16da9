"""Observations of `rhino-shcm`: its load tests, and predictions of their figures.

A predicted latency is that of a run of two hours that starts empty, as documented, on the compiled engine. Such a run
takes seconds, and calibration needs tens of thousands of parameter draws. Each load test is therefore simulated once,
at the reference parameters. The closed form of the wait for a server that stalls extends this figure to other draws: it
is a control variate with random numbers common to all draws. The simulated figure includes what the closed form
neglects (small services, Cassandra's replicas, the start and the end of a run).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from capplan.evidence.table import PERCENTILES, Evidence, select
from capplan.layout.baselines import BASELINES, Baseline
from capplan.layout.observations import Figure, Goal, Kind, LoadTest, Observations, Scored
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.units import FloatArray, Number
from capplan.simulator.output import block_maxima_s, maximum_over_s
from capplan.simulator.replications import DrawRun, simulate_draws
from capplan.simulator.results.run import Run
from capplan.simulator.specification.network_facts import check_draws
from capplan.systems.rhino_shcm.network import (
    NEAREST,
    REQUEST,
    application_cores,
    network,
    response_s,
    saturation_per_s,
)
from capplan.systems.rhino_shcm.priors import PARAMETERS
from capplan.systems.rhino_shcm.scenario import SESSION_REQUESTS, RhinoShcmScenario

LENGTH_S = 7200.0  # evidence t1.duration and its like
SEED = 1
RUNS: Mapping[str, int] = MappingProxyType({"T1": 4, "T2": 4, "T3": 8, "T4": 1, "T5": 1, "T6": 1, "T7": 4})
"""Runs of each test at the reference parameters; those of the test at the edge of its capacity differ most."""
FAR = 1 - 1e-6  # level of the percentile that represents the longest latency of millions in closed form

LIMITS: Mapping[str, float] = MappingProxyType({"B": 0.15, "A": 0.35, "C": 0.35})
LONGEST = "maximum"
_NEAR_THE_FIT: Mapping[str, float] = MappingProxyType(
    {
        "application_s": 1.55e-3,
        "uncached_excess": 0.3,
        "cassandra_s": 1.5e-3,
        "path_s": 3.5e-3,
        "uncached_share": 0.57,
        "short_stall_requests": 250.0,
        "short_stall_s": 13e-3,
        "long_stall_requests": 10_000.0,
        "long_stall_s": 80e-3,
        "cassandra_stalls": 1.7,
    }
)
REFERENCE: Values = {**defaults(PARAMETERS), **_NEAR_THE_FIT}
"""Parameters of the simulated load tests and start of the search: rounded values near the fit, not a prior."""
_EDGE = 0.95  # share of saturation above which a load test is at the edge of its capacity
_LOAD_LEVEL = "p90"  # latency that scores the loads of configuration A
_QUANTITIES = ("latency", "cpu", "request_rate")
_HALVINGS = 40


def _load_test(name: str, rows: tuple[Evidence, ...]) -> LoadTest[RhinoShcmScenario]:
    return LoadTest(name, rows[0].fold, _scenario(rows[0]), rows)


def _scenario(row: Evidence) -> RhinoShcmScenario:
    return RhinoShcmScenario(
        cass_nodes=row.cass_nodes,
        rf=row.rf,
        colocated=row.layout["colocated"] == "yes",
        cache=row.layout["cache"] == "yes",
        sps=float(row.layout["sps"]),
    )


def at_the_edge(row: Evidence) -> bool:
    """Whether a figure's load test ran close to saturation, by the reference parameters.

    There one per cent of load changes latencies by a quarter or more, so they inform the capacity and not times.
    """
    load_per_s = SESSION_REQUESTS * float(row.layout["sps"])
    return load_per_s > _EDGE * float(np.asarray(saturation_per_s(_scenario(row), REFERENCE)))


def _offered(test: LoadTest[RhinoShcmScenario]) -> float:
    """Return the offered rate of a test, requests per second."""
    return float(test.scenario.offered_per_s() or 0.0)


def _figure(
    evidence: Sequence[Evidence], test: LoadTest[RhinoShcmScenario], row: Evidence, values: Values
) -> FloatArray:
    if row.quantity == "cpu":
        return np.atleast_1d(application_cores(test.scenario, values, _offered(test)))
    if row.quantity == "request_rate":
        return load_at_latency(test, _scored_latency(evidence, row), values)
    return simulated_over_closed(test)[row.statistic] * closed_s(test.scenario, values, row.statistic, _offered(test))


def closed_s(scenario: RhinoShcmScenario, values: Values, statistic: str, rate_per_s: Number) -> FloatArray:
    """Return a percentile, or a percentile that stands for the maximum, in closed form, seconds (draws,)."""
    return response_s(scenario, values, rate_per_s, PERCENTILES.get(statistic, FAR))


def simulated_over_closed(test: LoadTest[RhinoShcmScenario]) -> dict[str, float]:
    """Return the ratio of simulated to closed-form latency at the reference parameters, by statistic."""
    simulated = {name: float(value[0]) for name, value in _at_reference(test.name, test.scenario).items()}
    return {
        name: value / float(closed_s(test.scenario, REFERENCE, name, _offered(test))[0])
        for name, value in simulated.items()
    }


@lru_cache(maxsize=16)
def _at_reference(name: str, scenario: RhinoShcmScenario) -> dict[str, FloatArray]:
    return simulated_s(network(scenario, REFERENCE, scenario.offered_per_s() or 0.0), LENGTH_S, RUNS[name])


def simulated_s(model: Network, length_s: float, runs: int, seed: int = SEED) -> dict[str, FloatArray]:
    """Simulate a load test that starts empty, with common random numbers for all draws.

    Parameters
    ----------
    model : Network
        The system under its load; its distributions may have arrays (draws,).
    length_s : float
        Length of a run, seconds.
    runs : int
        Number of runs.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    dict of arrays (draws,)
        Percentiles, each the geometric mean over runs, and the median `maximum` of a run, seconds.
    """
    draws = check_draws(model)
    order = [DrawRun(draw, run, length_s, 0.0) for draw in range(draws) for run in range(runs)]
    results = simulate_draws(model, order, _read, seed=seed)
    levels = np.array([percentiles for percentiles, _ in results]).reshape(draws, runs, len(PERCENTILES))
    latencies = dict(zip(PERCENTILES, np.exp(np.log(levels).mean(axis=1)).T, strict=True))
    blocks = np.array([maxima for _, maxima in results]).reshape(draws, runs, -1)
    latencies[LONGEST] = np.array([maximum_over_s(each.ravel(), each.shape[1]) for each in blocks])
    return latencies


def _read(run: Run) -> tuple[list[float], FloatArray]:
    latencies = run.report(REQUEST).intended
    return [latencies.quantile_s(level) for level in PERCENTILES.values()], block_maxima_s(run)


def _scored_latency(evidence: Sequence[Evidence], row: Evidence) -> Evidence:
    """Return the documented latency that the load of a row's test is scored by."""
    return select(evidence, scenario=row.scenario, quantity="latency", statistic=_LOAD_LEVEL)[0]


def load_at_latency(test: LoadTest[RhinoShcmScenario], row: Evidence, values: Values) -> FloatArray:
    """Return the load at which the model reaches the documented latency, requests per second (draws,).

    Near saturation, one per cent of load changes latencies by twenty per cent or more, so the load is the better score.

    Parameters
    ----------
    test : LoadTest
        The load test.
    row : Evidence
        Its latency.
    values : mapping
        Parameter values by name, SI; numbers, or arrays (draws,).
    """
    ratio = simulated_over_closed(test)[row.statistic]
    high = (1 - NEAREST) * np.atleast_1d(np.asarray(saturation_per_s(test.scenario, values), dtype=float))
    low = np.full(high.shape, 1.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slower = ratio * closed_s(test.scenario, values, row.statistic, middle) > row.value
        low, high = np.where(slower, low, middle), np.where(slower, middle, high)
    return (low + high) / 2


def _rms(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def _place(colocated: bool) -> str:
    """Return the group by Cassandra's server: its stalls matter on the application's server, hardly on its own."""
    return "colocated" if colocated else "dedicated"


class RhinoShcmObservations(Observations[RhinoShcmScenario]):
    """The load tests of `rhino-shcm`."""

    goals_in_words = (
        "Goals: cores of the JVM within 10 %; root mean square logarithmic errors of the percentiles from p50 to p99 "
        "at most 15 % (configuration B) and 35 % (A and C). Near saturation, one per cent of load changes latencies by "
        f"twenty per cent. A's tests therefore also have a request rate: the load with the documented {_LOAD_LEVEL}."
    )
    start = _NEAR_THE_FIT
    baselines: Mapping[str, Baseline] = MappingProxyType(
        {name: rule for name, rule in BASELINES.items() if name != "USL"}  # USL applies to capacities only
    )
    logarithmic = True

    def figure_of(self, row: Evidence) -> Figure | None:
        """Return the figure that a row measures; CPU is that of the application's server."""
        return Figure("utilisation", "server", "mean") if row.quantity == "cpu" else super().figure_of(row)

    def load_tests(self, _choice: Mapping[str, str] | None = None) -> tuple[LoadTest[RhinoShcmScenario], ...]:
        """Return the seven load tests."""
        rows = [row for row in self.system.evidence if row.quantity in _QUANTITIES and row.use in ("fit", "check")]
        names = dict.fromkeys(row.scenario for row in rows)
        return tuple(_load_test(name, select(rows, scenario=name)) for name in names)

    def predicted(self, tests: Sequence[LoadTest[RhinoShcmScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the figures of some load tests; arrays (draws,) by row id, SI."""
        return {row.id: _figure(self.system.evidence, test, row, values) for test in tests for row in test.rows}

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a figure between repeats, without the rounding.

        Latencies of rented machines differ by 10 % from day to day (a guess). Percentiles of simulated two-hour runs
        scatter less, by 3 to 5 %, but by 20 % in the test at the edge of capacity; the longest latency scatters by
        15 %.
        """
        if row.quantity == "cpu":
            return 0.03
        return 0.2 if row.statistic == LONGEST or at_the_edge(row) else 0.1

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the goal of the JVM's cores: within 10 %; percentiles have shared goals instead."""
        return (0.9 * row.value, 1.1 * row.value) if row.quantity == "cpu" else None

    def goals(self, medians: Mapping[str, float]) -> tuple[Goal, ...]:
        """Return the goals of percentiles: root mean square logarithmic errors by configuration."""
        errors: dict[str, list[float]] = {name: [] for name in LIMITS}
        for test in self.load_tests():
            for row in test.rows:
                if row.statistic in PERCENTILES and row.id in medians:
                    errors[row.layout["configuration"]].append(np.log(medians[row.id] / row.value))
        return tuple(
            Goal(f"percentiles of configuration {name}: root mean square logarithmic error", _rms(errors[name]), limit)
            for name, limit in LIMITS.items()
            if errors[name]
        )

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return rate for cores and for the load at a latency, time for percentiles; None for others.

        Others are the longest latency, which is only a check, and two more. A latency at the edge of capacity informs
        no time: in the fit without its test, the load is above the capacity, and latencies have no steady state,
        although the load itself is predicted within a few per cent. It is scored as the miss that it is but widens no
        band. Only one test has no caches; a fit without it leaves two parameters at their priors, so the error is that
        of the priors.
        """
        if row.layout["cache"] == "no":
            return None
        if row.quantity in ("cpu", "request_rate"):
            return "rate"
        return "time" if row.statistic in PERCENTILES and not at_the_edge(row) else None

    def scored(self, row: Evidence) -> Scored | None:
        """Compare latencies and cores with rules over the load, and the load with rules over the latency."""
        load_per_s = SESSION_REQUESTS * float(row.layout["sps"])
        if row.quantity == "cpu":
            return Scored("cores", load_per_s, "cores")
        if row.quantity == "request_rate":
            family = f"load at the {_LOAD_LEVEL}"
            return Scored(family, _scored_latency(self.system.evidence, row).value, family)
        if row.statistic not in PERCENTILES:
            return None
        place = _place(row.layout["colocated"] == "yes")
        return Scored(f"{row.statistic}, {place}", load_per_s, f"times ({place})")

    def not_scored(self, row: Evidence) -> str:
        """Return why a row is not scored; empty if it is."""
        return "all other tests have caches" if row.layout["cache"] == "no" else ""

    def group_of(self, row: Evidence) -> str:
        """Return the group by Cassandra's server in the load test of a figure."""
        return _place(row.layout["colocated"] == "yes")

    def group(self, scenario: RhinoShcmScenario, _request_class: str) -> str:
        """Return the group by Cassandra's server in a scenario."""
        return _place(scenario.colocated)
