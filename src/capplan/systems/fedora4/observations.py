"""Observations of `fedora4`: its load tests, and predictions of their figures.

The document's test objectives contradict each other about load, so each has its own kind of load test. They share the
costs of a read, of the cluster and of a write.

- *Capacity*: the highest rate at which every request is answered, with reads only and with 5 % writes.
- *Throttled* runs of a minute, and *regions*: load generators pace their requests evenly, and requests for similar
  objects have similar costs. Below capacity such a load hardly queues, so the prediction is the time of a request
  without contention (`tests/systems/fedora4` compares it with the compiled engine).
- *Reads, creates and deletes* at a rate that the document does not state: assumed to be low.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from capplan.evidence.table import Evidence
from capplan.layout.observations import Kind, LoadTest, Observations, Scored
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s
from capplan.systems.fedora4.network import network, round_trip_s
from capplan.systems.fedora4.scenario import REGIONS, Fedora4Scenario

REGION_NODES = 4
"""Nodes of the cluster in the test of regions: a guess, the largest documented one. A read takes as long on two or
three nodes."""
REPEATABILITY = {"capacity": 0.01, "throttled": 0.04, "region": 0.025, "alone": 0.12, "mixed": 0.12}
CREATE_REPEATABILITY = 0.3
"""Relative standard deviations between repeats, in addition to the rounding, by test objective. That of a capacity is a
guess. The others are the scatter of documented figures that should be equal: times on three and four nodes, of one
region at three rates, of one operation in two tables. Creates take 13, 21, 13 and 15, 29, 14 ms on 1, 3 and 4 nodes; no
scaling with the number of nodes explains this, so it counts as scatter."""


def _layout(row: Evidence) -> Fedora4Scenario:
    return Fedora4Scenario(
        nodes=int(row.layout.get("nodes", REGION_NODES)),
        write_share=float(row.layout.get("write_share", 0.0)),
        region=row.layout.get("region", "us-east"),
    )


def _name(objective: str, scenario: Fedora4Scenario) -> str:
    if objective == "region":
        return f"clients in {scenario.region}"
    writes = f", {100 * scenario.write_share:g} % writes" if scenario.write_share else ""
    return f"{objective}, {scenario.nodes} {'nodes' if scenario.nodes > 1 else 'node'}{writes}"


def _predicted(test: LoadTest[Fedora4Scenario], values: Values) -> dict[str, FloatArray]:
    analysis = Analysis(network(test.scenario, values, 1.0))
    predicted: dict[str, Number] = {}
    for row in test.rows:
        if row.quantity == "capacity":
            predicted[row.id] = capacity_per_s(analysis, MAX_DROP_RATE)
        else:
            unloaded_s = analysis.unloaded[row.request_class].total
            throttled = row.scenario == "throttled"
            predicted[row.id] = _throttled_s(row, test.scenario, values, unloaded_s) if throttled else unloaded_s
    return {
        name: np.broadcast_to(np.asarray(value, dtype=float), (analysis.draws,)) for name, value in predicted.items()
    }


def _throttled_s(row: Evidence, scenario: Fedora4Scenario, values: Values, unloaded_s: Number) -> Number:
    """Return the mean time of a throttled run, from the unloaded time of the region's clients."""
    inside = unloaded_s - round_trip_s(scenario, values)
    first = values["first_request_s"] if starts_cold(row) else 0.0
    return throttled_mean_s(
        inside + values["rtt_campus_s"], first, users=int(row.layout["users"]), requests=int(row.layout["requests"])
    )


def starts_cold(row: Evidence) -> bool:
    """Whether a throttled run starts cold: every run on a cluster does; on one node, only the run of 1,000 requests.

    The table shows this: the excess of the mean, times the number of requests, is the same in all runs on a cluster.
    """
    return row.layout["nodes"] != "1" or row.layout["requests"] == "1000"


def throttled_mean_s(response_s: Number, first_s: Number, *, users: int, requests: int) -> Number:
    """Return the mean response time of a paced run without queueing, including slower first requests, seconds.

    Parameters
    ----------
    response_s : number
        Response time of a request, seconds.
    first_s : number
        Additional time of each user's first request, seconds.
    users, requests : int
        Number of users, and of requests in the whole run.
    """
    return response_s + first_s * min(users / requests, 1.0)


_GOALS = {"capacity": 0.03, "region": 0.05}


class Fedora4Observations(Observations[Fedora4Scenario]):
    """The load tests of `fedora4`."""

    goals_in_words = (
        "Goals: capacities within 3 % and mean times of regions within 5 %, or inside the documented interval. The "
        "other times contradict each other, so they have no goal."
    )

    def load_tests(self, _choice: Mapping[str, str] | None = None) -> tuple[LoadTest[Fedora4Scenario], ...]:
        """Return one load test per test objective, fold and layout."""
        groups: dict[tuple[str, str, Fedora4Scenario], list[Evidence]] = {}
        for row in self.system.evidence:
            if row.use in ("fit", "check") and row.fold and row.scenario in REPEATABILITY:
                groups.setdefault((row.scenario, row.fold, _layout(row)), []).append(row)
        return tuple(
            LoadTest(_name(objective, scenario), fold, scenario, tuple(rows))
            for (objective, fold, scenario), rows in groups.items()
        )

    def predicted(self, tests: Sequence[LoadTest[Fedora4Scenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the figures of some load tests; arrays (draws,) by row id, SI."""
        return {name: value for test in tests for name, value in _predicted(test, values).items()}

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a figure between repeats, without the rounding."""
        return CREATE_REPEATABILITY if row.request_class == "create" else REPEATABILITY[row.scenario]

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the goal: capacities within 3 % and mean times of regions within 5 %, or inside their interval, SI.

        The document gives the capacity of one node as an interval, "525~550". The other objectives have no goal,
        because their figures contradict each other; nor have rates above every documented capacity.
        """
        if row.use != "fit" or row.scenario not in _GOALS:
            return None
        error = _GOALS[row.scenario] * row.value
        return min(row.value - error, row.low), max(row.value + error, row.high)

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return rate or time; None for throttled runs, regions, and deletes on four nodes.

        The wait of deletes on four nodes is a parameter that no other fold informs. A fit without this fold leaves it
        at its prior, so the error is that of the prior.
        """
        if row.scenario == "capacity":
            return "rate"
        if row.scenario not in ("alone", "mixed") or (row.request_class == "delete" and row.fold == "n4"):
            return None
        return "time"

    def not_scored(self, row: Evidence) -> str:
        """Return why a row is not scored; empty if it is."""
        if row.scenario == "region" and row.layout["region"] != REGIONS[0]:
            return "no other figure informs the round trip to a region"
        if row.request_class == "delete" and row.fold == "n4":
            return "no other figure informs the wait of deletes on four nodes"
        return ""

    def scored(self, row: Evidence) -> Scored | None:
        """Compare times and capacities with rules over the number of nodes.

        Throttled runs of one length are a family: their times share the first requests. Reads by clients of the
        servers' own region, below the capacity, are like reads alone.
        """
        nodes = float(_layout(row).nodes)
        if row.scenario == "throttled":
            return Scored(
                f"{row.request_class} mean time, throttled, {row.layout['requests']} requests", nodes, "times"
            )
        if row.scenario == "region":
            alike = row.use == "fit" and row.layout["region"] == REGIONS[0]
            return Scored(f"{row.request_class} mean time, alone", nodes, "times") if alike else None
        if row.scenario in ("alone", "mixed"):
            return Scored(f"{row.request_class} mean time, {row.scenario}", nodes, "times")
        family = "capacity with 5 % writes" if float(row.layout["write_share"]) else "capacity for reads"
        return Scored(family, nodes, family)

    def group_of(self, row: Evidence) -> str:
        """Return the request class; each has its own model error."""
        return row.request_class

    def group(self, _scenario: Fedora4Scenario, request_class: str) -> str:
        """Return the request class."""
        return request_class
