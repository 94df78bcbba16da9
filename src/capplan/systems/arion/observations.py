"""What the model of `arion` says for each documented figure that can be compared.

Read as clients of one kind the document's figures contradict one another. Each test is therefore read as what its own
figures say of its clients:

- *Steps* of offered load, and *1,000 clients*: the rate at which throughput is highest.
- *Clients*, the number with which throughput almost stops growing: clients that ask again at once. 30 of them at
  40,000 per second have 0.75 ms for each request.
- *Clients*, 300 of them at 1.0 ms: they have a time of their own between requests, for 300 that ask again at once would
  take 7.5 ms. A client asks about 150 times a second by the test of 30 clients, so 300 offer a little more than is
  carried.
- *1,000 clients* that together ask 30,000 times a second: as open traffic, for each is idle nearly all the
  time, and at most as when all of them wait.
- *Watches* of 100,000 records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.observations import Kind, LoadTest, Observations, Scored
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

GOAL = 0.1  # of the consistent figures: issue 6
REPEATABILITY = {"offered_rate": 0.01, "clients": 0.1, "latency": 0.05, "throughput_ratio": 0.02, "watch_time": 0.05}
"""Relative standard deviations of a repeat beside the rounding, by quantity: guesses, since nothing was repeated. The
number of clients is read off a chart of a few numbers of clients."""
_SEVENFOLD = 7.5
"""Relative error of the time of 300 clients for one of the throughput: 7.5 ms of a cycle at 40,000 per second, of which
1.0 ms is the response."""

_OFFERED_AT_PEAK_PER_S = 40_000.0  # evidence peak.rps
_OPTIMAL, _MANY = 30, 100  # clients: as the document has it, and enough for the highest throughput

_SAID: Mapping[str, Callable[[ArionScenario, Values], Number]] = {
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
"""What the model says of each figure, by its row."""


def _layout(row: Evidence) -> ArionScenario:
    told = row.layout
    rate = told.get("rps_per_client")
    return ArionScenario(clients=int(told.get("clients", LONG_QUEUE)), rps_per_client=float(rate) if rate else None)


def _droop(scenario: ArionScenario, values: Values) -> FloatArray:
    """Throughput with more offered than is carried over that at the peak, which is at most what was offered there."""
    at_peak = np.minimum(peak_per_s(scenario, values), _OFFERED_AT_PEAK_PER_S)
    return np.asarray(drooped_per_s(scenario, values) / at_peak)


def _growth(scenario: ArionScenario, values: Values) -> FloatArray:
    """Highest throughput over that of 30 clients that ask again at once."""
    carried = closed_per_s(scenario, values, range(_OPTIMAL, _MANY))
    return np.asarray(carried.max(axis=-1) / carried[:, 0])


class ArionObservations(Observations[ArionScenario]):
    """The load tests of `arion`."""

    goals_in_words = (
        "Goal: the figures that can be read without contradiction within 10 %, or inside the interval that their "
        "rounding allows."
    )

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[ArionScenario], ...]:
        """Return the tests whose figures can be compared: one for each, since each has a layout of its own."""
        del choice
        return tuple(
            LoadTest(row.id, row.fold, _layout(row), (row,))
            for row in self.system.evidence
            if row.use in ("fit", "check") and row.id in _SAID
        )

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a repeat of a figure's load test, beside the rounding."""
        return (
            _SEVENFOLD * REPEATABILITY["offered_rate"] if row.id == "clients300.mean" else REPEATABILITY[row.quantity]
        )

    def predicted(self, tests: Sequence[LoadTest[ArionScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the figures of some experiments by row id, in SI, arrays over draws (draws,)."""
        draws = np.broadcast_shapes((1,), *(np.shape(value) for value in values.values()))
        said = {row.id: _SAID[row.id](test.scenario, values) for test in tests for row in test.rows}
        return {name: np.broadcast_to(np.asarray(value, dtype=float), draws) for name, value in said.items()}

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return what meets the goal: 10 %, or inside the interval that the rounding allows (SI)."""
        if row.use != "fit":
            return None
        return min((1 - GOAL) * row.value, row.low), max((1 + GOAL) * row.value, row.high)

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return what a left-out figure tells of.

        The number of clients that fill a master, over the rate that they make, is the time of a request. The throughput
        of 300 clients decides their time: an error of the rate comes out sevenfold there, so that figure tells of
        neither. Watches have parameters of their own that nothing else speaks of: left out, they are at their priors.
        """
        if row.id in ("peak.rps", "clients1000.peak"):
            return "rate"
        return "time" if row.id in ("peak.clients", "clients1000.r30000.mean") else None

    def scored(self, row: Evidence) -> Scored | None:
        """Return nothing: no figure has another of its kind at another layout that a simple rule could learn from.

        The two tests of the highest rate are of one master alike, so each would say the other without any rule.
        """
        del row
        return None

    def not_scored(self, row: Evidence) -> str:
        """Return why a row is not scored; empty where it is."""
        return "nothing else speaks of the time of a record in a watch" if row.id.startswith("watch.") else ""
