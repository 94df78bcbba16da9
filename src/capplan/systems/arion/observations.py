"""Observations of `arion`: its load tests, and predictions of their figures.

With one kind of client for all tests, the document's figures contradict each other. Each test therefore has the kind of
client that its own figures imply:

- *Steps* of offered load, and *1,000 clients*: the highest throughput.
- *Clients*, the number at which throughput almost stops growing: clients without think time. At 40,000 per second, 30
  of them have 0.75 ms per request.
- *Clients*, 300 of them at 1.0 ms: clients with think time, because 300 without it would take 7.5 ms. By the test of 30
  clients, a client sends about 150 requests per second, so 300 clients offer slightly more than is sustained.
- *1,000 clients* that together send 30,000 requests per second: open traffic, because each client is idle most of the
  time; latency is at most that with all clients waiting.
- *Watches* of 100,000 records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from capplan.evidence.table import Evidence
from capplan.layout.observations import Kind, LoadTest, Observations, Scored
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.systems.arion.network import (
    LONG_QUEUE,
    closed_per_s,
    drooped_per_s,
    paced_response_s,
    peak_per_s,
    response_s,
    useful_clients,
    watch_s,
)
from capplan.systems.arion.scenario import ArionScenario

GOAL = 0.1  # relative error of the consistent figures
REPEATABILITY = {"offered_rate": 0.01, "clients": 0.1, "latency": 0.05, "throughput_ratio": 0.02, "watch_time": 0.05}
"""Relative standard deviations between repeats, in addition to the rounding, by quantity: guesses, because no test was
repeated. The number of clients is read off a chart with few points."""
_SEVENFOLD = 7.5
"""Ratio of the relative error of the time of 300 clients to that of the throughput: a cycle takes 7.5 ms at 40,000 per
second, of which the response time is 1.0 ms."""

_OFFERED_AT_PEAK_PER_S = 40_000.0  # evidence peak.rps
_TIMED_AT_PER_S = {"clients300.mean": _OFFERED_AT_PEAK_PER_S, "clients1000.r30000.mean": 30_000.0}
"""Throughput at which a time was measured, requests per second, by row id."""
_OPTIMAL, _MANY = 30, 100  # numbers of clients: the documented one, and one with the highest throughput

_PREDICTIONS: Mapping[str, Callable[[ArionScenario, Values], Number]] = {
    "peak.rps": peak_per_s,
    "peak.droop": lambda scenario, values: _droop(scenario, values),
    "peak.clients": useful_clients,
    "clients.growth": lambda scenario, values: _growth(scenario, values),
    "clients1000.peak": peak_per_s,
    "clients300.mean": paced_response_s,
    "clients1000.r30000.mean": lambda scenario, values: response_s(scenario, values, scenario.offered_per_s() or 0.0),
    "watch.direct": lambda _, values: watch_s(values, direct=True),
    "watch.master": lambda _, values: watch_s(values),
}
"""Prediction of each figure, by row id."""


def _layout(row: Evidence) -> ArionScenario:
    clients, rate = row.layout.get("clients", LONG_QUEUE), row.layout.get("rps_per_client")
    return ArionScenario(clients=int(clients), rps_per_client=float(rate) if rate else None)


def _droop(scenario: ArionScenario, values: Values) -> FloatArray:
    """Return the ratio of throughput in overload to that at the peak, capped by the rate offered there."""
    at_peak = np.minimum(peak_per_s(scenario, values), _OFFERED_AT_PEAK_PER_S)
    return np.asarray(drooped_per_s(scenario, values) / at_peak)


def _growth(scenario: ArionScenario, values: Values) -> FloatArray:
    """Return the ratio of the highest throughput to the throughput of 30 clients without think time."""
    completed = closed_per_s(scenario, values, range(_OPTIMAL, _MANY))
    return np.asarray(completed.max(axis=-1) / completed[:, 0])


class ArionObservations(Observations[ArionScenario]):
    """The load tests of `arion`."""

    goals_in_words = "Goal: figures without contradiction within 10 %, or inside the interval of their rounding."

    def load_tests(self, _choice: Mapping[str, str] | None = None) -> tuple[LoadTest[ArionScenario], ...]:
        """Return one load test per figure, because each has its own layout."""
        return tuple(
            LoadTest(row.id, row.fold, _layout(row), (row,))
            for row in self.system.evidence
            if row.use in ("fit", "check") and row.id in _PREDICTIONS
        )

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a figure between repeats, without the rounding."""
        return (
            _SEVENFOLD * REPEATABILITY["offered_rate"] if row.id == "clients300.mean" else REPEATABILITY[row.quantity]
        )

    def predicted(self, tests: Sequence[LoadTest[ArionScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the figures of some load tests; arrays (draws,) by row id, SI."""
        draws = np.broadcast_shapes((1,), *(np.shape(value) for value in values.values()))
        predicted = {row.id: _PREDICTIONS[row.id](test.scenario, values) for test in tests for row in test.rows}
        return {name: np.broadcast_to(np.asarray(value, dtype=float), draws) for name, value in predicted.items()}

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the goal of a fitted figure: within 10 %, or inside the interval of its rounding, SI."""
        if row.use != "fit":
            return None
        return min((1 - GOAL) * row.value, row.low), max((1 + GOAL) * row.value, row.high)

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return rate or time; None for the time of 300 clients and for watches.

        The number of clients that saturate a master, divided by their rate, is the time of a request. The throughput of
        300 clients determines their time, where it appears sevenfold. Watches have parameters that no other figure
        informs: a fit without them leaves these at their priors.
        """
        if row.id in ("peak.rps", "clients1000.peak"):
            return "rate"
        return "time" if row.id in ("peak.clients", "clients1000.r30000.mean") else None

    def scored(self, row: Evidence) -> Scored | None:
        """Compare the highest rates with rules over the number of masters, and times with rules over the rate.

        The two tests of the highest rate have one master each, so every rule predicts one by the other. Nothing else
        is like the number of clients that saturate a master.
        """
        if row.id in ("peak.rps", "clients1000.peak"):
            return Scored("highest rate", 1.0, "rates")
        if row.id in _TIMED_AT_PER_S:
            return Scored("mean time", _TIMED_AT_PER_S[row.id], "times")
        return None

    def not_scored(self, row: Evidence) -> str:
        """Return why a row is not scored; empty if it is."""
        return "no other figure informs the time of a record in a watch" if row.id.startswith("watch.") else ""
