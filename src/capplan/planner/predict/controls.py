"""Control variates of a simulation: what every run has measured, and theory knows exactly.

The mean offered rate of open traffic is given, and the utilisation of a station that does no more than the work that
it is given follows from the utilisation law. A run in which both happened to be high has high latencies, too. By how
much, the replications tell; so latencies at the known means are known better than by a plain mean over replications.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.language.network import Network
from capplan.models.language.traffic import Open, Trace
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.planner.simulate.figures import Controls, by_kind
from capplan.simulator.analysis.precision import FIRST
from capplan.simulator.analysis.sample import Sample
from capplan.simulator.results.run import Run

IMPOSSIBLE = 4.0  # standard errors: with ten replications that happens once in 300 samples
SMALLEST_LOAD = 0.05  # of a station that may tell anything about latencies
Control = tuple[str, FloatArray, float]


def controls_of(sample: Sample, network: Network) -> Controls | None:
    """Return the control variates of a sample; None where no mean is known exactly, or there are too few replications.

    It is one: the utilisation of the busiest kind of station that requests wait for, which has the offered rate in it
    and the work, or where the analytic solver does not know that exactly, the offered rate. A second one would cost a
    degree of freedom and tell next to nothing more.

    Nothing is known exactly where requests were lost or tried again, since a session ends with a lost request, where
    work was dropped that nobody waits for, where a timeline or a trace says what comes when, nor over a finite horizon,
    which begins empty. As a last resort a control is not used either when its own mean is impossibly far from what it
    should be, such as with sessions as long as the runs.
    """
    traffic = network.traffic
    if sample.horizon != "steady" or len(sample.runs) < FIRST or not _is_stationary(network):
        return None
    if _lost_anything(sample.together):
        return None
    rate = float(np.max(cast("Open", traffic).rate_per_s))
    name, each, expected = _utilisation(sample, network, rate) or _offered(sample, rate)
    error = float(each.std(ddof=1)) / len(each) ** 0.5
    if not abs(each.mean() - expected) <= IMPOSSIBLE * error:
        return None
    return Controls((name,), each[:, np.newaxis], np.array([expected]))


def _is_stationary(network: Network) -> bool:
    traffic = network.traffic
    return isinstance(traffic, Open) and not isinstance(traffic.arrivals, Trace) and not network.timeline.events


def _lost_anything(seen: Run) -> bool:
    requests = seen.report()
    drops = sum(each.drops for each in seen.stations.values()) + sum(each.drops for each in seen.pools.values())
    return requests.completed < requests.started or requests.retries > 0 or drops > 0


def _offered(sample: Sample, rate: float) -> Control:
    return "offered rate", sample.each(lambda run: run.report().started / run.window_s), rate


def _utilisation(sample: Sample, network: Network, rate: float) -> Control | None:
    try:
        analysis = Analysis(network)
        felt = [name for names, time in analysis.path_times_s.items() if np.median(time) > 0 for name in names]
    except RefusedError:
        return None
    kinds = by_kind(felt)
    known = {kind: float(np.mean([analysis.load(name) for name in names])) * rate for kind, names in kinds.items()}
    busiest = max(known, key=lambda kind: known[kind], default="")
    if not SMALLEST_LOAD < known.get(busiest, 0.0) < 1:
        return None

    def mean(run: Run) -> float:
        return float(np.mean([run.stations[name].utilisation for name in kinds[busiest]]))

    return f"utilisation of {busiest}", sample.each(mean), known[busiest]
