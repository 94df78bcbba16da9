"""Observations of `openprovider`: its load tests, and predictions of their figures.

The document gives the highest rate without drops, and mean times at that rate. Near saturation, one per cent of rate
changes times by ten per cent. Times are therefore predicted at the *model's* highest rate, not at the documented one,
so that an error of the rate is scored once, as a rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from capplan.errors import InputError
from capplan.evidence.table import Evidence, select
from capplan.layout.observations import Kind, LoadTest, Observations, Scored
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, peak_ratio, phases, solve
from capplan.systems.openprovider.network import REPORTED, network
from capplan.systems.openprovider.scenario import OpenproviderScenario

_COMPARED = ("incoming_rate", "latency", "busy_workers")


def _layout(base: OpenproviderScenario, row: Evidence) -> OpenproviderScenario:
    return changed(
        base,
        dcs=row.dcs,
        front_nodes=row.front_nodes,
        cass_nodes=row.cass_nodes,
        rf=row.rf,
        proxy=bool(row.proxy),
        ldap=bool(row.ldap),
    )


def predicted(experiment: LoadTest[OpenproviderScenario], values: Values) -> dict[str, FloatArray]:
    """Predict the figures of a load test; arrays (draws,) by row id, SI."""
    analysis = Analysis(network(experiment.scenario, values, 1.0))
    rate = capacity_per_s(analysis, MAX_DROP_RATE)
    point = solve(analysis, rate)
    nodes = sum(experiment.scenario.fronts_by_dc())
    known = {
        ("incoming_rate", ""): rate * peak_ratio(analysis),
        ("busy_workers", ""): point.busy_units / nodes,
        **{("latency", name): point.response_s(*classes) for name, classes in REPORTED.items()},
    }
    return {row.id: known[row.quantity, row.request_class] for row in experiment.rows}


def share_of_time_at_most(experiment: LoadTest[OpenproviderScenario], values: Values, workers: float) -> float:
    """Return the share of time during which a RADIUS server has at most `workers` busy workers.

    The rate is the model's highest one. Requests in the system are spread over the RADIUS servers at random
    (binomially). `values` must be single numbers.
    """
    analysis = Analysis(network(experiment.scenario, values, 1.0))
    rate, server = capacity_per_s(analysis, MAX_DROP_RATE), analysis.server
    if server is None:
        raise InputError(f"{experiment.name} has no pool of workers, so it has no number of busy workers")
    nodes = sum(experiment.scenario.fronts_by_dc())
    inside = np.minimum(server.states, server.pool)
    split = special.bdtr(workers, np.maximum(inside, workers).astype(int), 1 / nodes)
    below = np.where(inside <= workers, 1.0, split)
    return sum(time * float(server.chances(rate * ratio)[0] @ below) for time, ratio in phases(analysis))


CHOICES = tuple(
    {"consistency_read": read, "consistency_write": write}
    for read in ("LOCAL_QUORUM", "LOCAL_ONE")
    for write in ("QUORUM", "EACH_QUORUM")
)
"""Consistency levels that the document leaves open: it names none, but requires consistent data across data centres."""

REPEATABILITY = {"incoming_rate": 0.0025, "latency": 0.03}
"""Relative standard deviations between repeats of a load test, in addition to the rounding: guesses. They are small,
because rates are rounded to the step of the search for the highest rate, and times are means over fifteen minutes."""


_BOUND_BY_STORAGE = "TS4"  # the fold whose tests the storage path limits


class OpenproviderObservations(Observations[OpenproviderScenario]):
    """The load tests of `openprovider`."""

    goals_in_words = (
        "Goals: rates within 3 %; mean times within 0.5 ms or 10 %, whichever is wider. Times are compared at the "
        "model's highest rate."
    )
    choices = CHOICES

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[OpenproviderScenario], ...]:
        """Return the independent load tests; `choice` may set the consistency levels."""
        base = changed(OpenproviderScenario(data_factor=1.0), **(choice or {}))
        rows = [row for row in self.system.evidence if row.use in ("fit", "check") and row.scenario != "all"]
        names = dict.fromkeys(row.scenario for row in select(rows, use="fit", quantity="incoming_rate"))
        tests = []
        for name in names:
            own = [row for row in select(rows, scenario=name) if row.quantity in _COMPARED]
            own = [row for row in own if row.proxy == own[0].proxy]  # one load test with and without forwarding
            tests.append(LoadTest(name, own[0].fold, _layout(base, own[0]), tuple(own)))
        return tuple(tests)

    def predicted(self, tests: Sequence[LoadTest[OpenproviderScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the figures of load tests; arrays (draws,) by row id, SI."""
        return {name: value for test in tests for name, value in predicted(test, values).items()}

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a figure between repeats, without the rounding."""
        return REPEATABILITY[row.quantity]

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the goal: rates within 3 %, times within 0.5 ms or 10 %, whichever is wider.

        Busy workers have no goal, because Little's law refutes the documented ones.
        """
        if row.quantity not in ("incoming_rate", "latency"):
            return None
        error = 0.03 * row.value if row.quantity == "incoming_rate" else max(0.5e-3, 0.1 * row.value)
        return row.value - error, row.value + error

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return rate or time; None for busy workers, and for TS4, which is not scored."""
        if row.fold == _BOUND_BY_STORAGE or row.quantity == "busy_workers":
            return None
        return "rate" if row.quantity == "incoming_rate" else "time"

    def scored(self, row: Evidence) -> Scored | None:
        """Compare capacities and times with rules over the number of Cassandra nodes."""
        if row.ldap or row.quantity == "busy_workers" or row.dcs is None or row.cass_nodes is None:
            return None
        nodes = float(row.dcs * row.cass_nodes)
        if row.quantity == "incoming_rate":
            return Scored("capacity", nodes, "capacity")
        return Scored(f"{row.request_class} mean time", nodes, "times")

    def not_scored(self, row: Evidence) -> str:
        """Return why a row is not scored; empty if it is.

        The storage path limits TS4 and no other test. A fit without TS4 leaves its cost at the prior (the standard
        deviation does not shrink), and every figure of TS4 depends on it: the rate by 0.6 % for 1 % of cost, the times
        by 2 to 3 %. The test with LDAP repeats TS4, and its fold is the same.
        """
        if row.fold != _BOUND_BY_STORAGE:
            return ""
        return "no other test informs the cost of the storage path, nor that of LDAP"

    def share_of_time(self, test: LoadTest[OpenproviderScenario], row: Evidence, values: Values) -> float | None:
        """Return the share of time with at most the documented number of busy workers; None for other quantities."""
        return share_of_time_at_most(test, values, row.value) if row.quantity == "busy_workers" else None
