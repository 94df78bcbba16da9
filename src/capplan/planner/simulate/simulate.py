"""`simulate`: replications of a system at one offered rate with one set of parameters, and their estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.calibration.tables.priors import closed
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Ratios, ResponseTimes, Simulations
from capplan.layout.fitted_file import Fitted
from capplan.layout.system import System
from capplan.layout.table_components import Contention
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.traffic import Closed, Throttled
from capplan.models.language.units import check_number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.planner.predict.capacity import default_rate
from capplan.planner.simulate.simulation import (
    EVERY_CLASS,
    Backlog,
    Estimate,
    Horizon,
    OfferedSource,
    PrecisionReached,
    PrecisionTarget,
    Reported,
    SampleEstimates,
    Simulation,
    WarmupSource,
    as_they_are,
    read_precision_target,
)
from capplan.simulator.engine import Progress
from capplan.simulator.output import ConfidenceInterval, Truncation
from capplan.simulator.replications import ReplicationPlan, WriteRequests, replicate
from capplan.simulator.results.run import Run
from capplan.simulator.sample import (
    ENOUGH,
    FIRST,
    NOTHING,
    Observation,
    Sample,
    observe,
    replications_needed,
    warmup_of,
)
from capplan.systems.registry import resolve

MOST_REPLICATIONS = 200
"""Replications to reach a precision, where no other limit is given."""


@dataclass(frozen=True)
class Subject:
    """The subject of a simulation.

    Attributes
    ----------
    network
        The network, at the offered rate.
    scenario
        The layout as a scenario file has it; None when a network was given.
    offered_tps, offered_source
        As in `Simulation`.
    reported
        The request classes of the result, each with its classes of the network; None: those of the network.
    """

    network: Network
    scenario: dict[str, Any] | None
    offered_tps: float | None
    offered_source: OfferedSource
    reported: Reported | None = None

    @property
    def classes(self) -> Reported:
        """The request classes of the result, each with its classes of the network."""
        return self.reported or as_they_are(each.name for each in self.network.classes)


def of_scenario(scenario: Scenario, fitted: Fitted | None = None) -> Subject:
    """Return a layout as a subject at its offered peak rate, or else at 80 % of its predicted capacity.

    Parameters are those of the draw nearest to the median of the calibrated ensemble. Beyond the capacity, clients that
    wait for their answers fall behind the offered rate.

    Raises
    ------
    InputError
        When an objective cannot be read, the system is not calibrated, or it is documented as ratios only.
    """
    case = resolve(scenario, fitted)
    case.system.component(Ratios).refuse(
        f"{scenario.system} is documented as ratios of throughput only, so there is no rate to simulate: "
        f"run `capplan predict {scenario.system}` instead"
    )
    if case.closed_clients is not None:
        return _of_closed_clients(case)
    given = case.given_per_s
    offered = default_rate(case) if given is None else given
    network = paused_network(case, case.system.median_values(case.fitted, scenario), offered)
    clients = case.system.component(ResponseTimes).waiting_clients(scenario)
    if clients is not None and offered > float(np.median(case.solution.capacity)):
        network = replace(network, traffic=Throttled(clients, offered, network.traffic.mix))
    source: OfferedSource = "default" if given is None else "given"
    return Subject(network, scenario.given(), offered, source, _made(case.system, network))


def paused_network(case: Case[Any], values: Values, rate_per_s: float) -> Network:
    """Return the network for a simulation at an offered rate, whose nodes pause if the system knows pauses."""
    compose = case.system.component(Simulations).paused_network or case.system.network
    return compose(case.scenario, values, rate_per_s)


def _made(its: System[Any], network: Network) -> Reported:
    """Return the reported classes whose classes all exist in a network."""
    made = {each.name for each in network.classes}
    return {name: parts for name, parts in its.reported.items() if made.issuperset(parts)}


def _of_closed_clients(case: Case[Any]) -> Subject:
    """Return a layout as a subject with closed clients, like those of a load generator."""
    its, scenario = case.system, case.scenario
    values = its.median_values(case.fitted, scenario)
    contention = its.component(Contention)
    if contention.matters(values, False):
        slower = contention.at_clients(values, np.array(float(scenario.clients)), False)
        values = {name: float(np.asarray(value)) for name, value in slower.items()}
    network = its.network(scenario, values, 1.0)
    traffic = closed(scenario.clients, 0.0, values, network.traffic.mix)
    point = solve_clients(Analysis(replace(network, traffic=traffic)), [scenario.clients], clock="actual")
    network = replace(paused_network(case, values, float(point.rate_per_s.squeeze())), traffic=traffic)
    return Subject(network, scenario.given(), None, "network", _made(its, network))


def of_network(network: Network, rate_per_s: float | None = None) -> Subject:
    """Return a network as a subject with its own traffic, or at another mean rate if one is given.

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
                f"--tps does not apply to {network.name!r}: its traffic is closed, so clients and think time set the "
                "rate"
            )
        return Subject(network, None, None, "network")
    if rate_per_s is None:
        return Subject(network, None, float(np.max(traffic.rate_per_s)), "network")
    rate = float(np.max(check_number(rate_per_s, "rate per second", above=0.0, bounded=True)))
    return Subject(replace(network, traffic=replace(traffic, rate_per_s=rate)), None, rate, "given")


@dataclass(frozen=True)
class Design:
    """How to turn runs into a sample.

    Attributes
    ----------
    horizon
        What is estimated: the `steady` state, or means over a `finite` time.
    warmup
        Where the end of the warm-up comes from.
    precision
        The precision that decides how many replications there are; None where their number is given.
    """

    horizon: Horizon = "steady"
    warmup: WarmupSource = "mser"
    precision: PrecisionTarget | None = None

    def warmup_of(self, network: Network, runs: Sequence[Run]) -> Truncation:
        """Return the warm-up of all replications of a network, determined from the first ones.

        Closed clients may all begin at once, and a timeline may change anything; else a network fills from empty.
        """
        if self.warmup != "mser":
            return NOTHING
        return warmup_of(runs, rising=not isinstance(network.traffic, Closed) and not network.timeline.events)


def design_of(
    subject: Subject, horizon: Horizon | None = None, warmup_given: bool = False, precision: str | None = None
) -> Design:
    """Return the design for a subject; a network with events on its timeline has no steady state by default.

    Raises
    ------
    InputError
        When the precision cannot be read.
    """
    chosen: Horizon = horizon or ("finite" if subject.network.timeline.events else "steady")
    classes = list(subject.classes)
    target = None if precision is None else read_precision_target(precision, classes, classes)
    unsaid: WarmupSource = "none" if chosen == "finite" else "mser"
    return Design(chosen, "given" if warmup_given else unsaid, target)


def observed(
    plan: ReplicationPlan,
    design: Design,
    *,
    reported: Reported | None = None,
    processes: int = 1,
    progress: Progress | None = None,
    write: WriteRequests | None = None,
) -> list[Observation]:
    """Run as many replications of a plan as the design needs.

    `reported` are the classes that a precision is about; the other arguments are those of `replicate`.

    The first ones, ten at most, tell the warm-up that all leave out; so only they are ever in memory as a whole.

    Raises
    ------
    InputError
        When the plan or `processes` is invalid.
    """
    before = now = (0.0, 0)

    def tell(simulated_s: float, requests: int) -> None:
        nonlocal now
        now = before[0] + simulated_s, before[1] + requests
        if progress is not None:
            progress(*now)

    numbers = range(min(FIRST, plan.replications))
    first = replicate(plan, numbers=numbers, processes=processes, progress=tell, write=write)
    keep = partial(_observe, left_out=design.warmup_of(plan.network, first), replications=plan.replications)
    seen: list[Observation] = [keep(each) for each in first]
    del first
    while (wanted := enough(plan, design, seen, reported)) > len(seen):
        before = now
        numbers = range(len(seen), wanted)
        seen += replicate(plan, keep, numbers=numbers, processes=processes, progress=tell, write=write)
    return seen


def _observe(run: Run, left_out: Truncation, replications: int) -> Observation:
    """Choose the window of a run; the first replication keeps its parts, for a plot over time."""
    return observe(run, left_out, parts=run.replication == 0 or replications < ENOUGH)


def enough(plan: ReplicationPlan, design: Design, seen: Sequence[Observation], reported: Reported | None = None) -> int:
    """Return the total number of replications to run, given the finished ones; see `replications_needed`.

    An overloaded network gets no more: there is no steady state to be precise about.
    """
    if design.precision is None:
        return plan.replications
    if len(seen) < FIRST:
        return min(FIRST, plan.replications)
    sample = Sample(tuple(seen), design.horizon)
    backlog = _backlog(plan, sample)
    if backlog is not None and backlog.verdict == "overloaded":
        return len(seen)
    found = _widest(SampleEstimates(sample, reported), design.precision)
    return replications_needed(found, len(seen), design.precision.relative, plan.replications)


def _widest(figures: SampleEstimates, target: PrecisionTarget) -> ConfidenceInterval:
    """Return the widest interval of a precision target."""
    found = [figures.latency(name, target.statistic) for name in target.classes]
    return max((ConfidenceInterval(each.value, each.half_width) for each in found), key=lambda each: each.relative)


def _backlog(plan: ReplicationPlan, sample: Sample) -> Backlog | None:
    traffic = plan.network.traffic
    if sample.horizon == "finite" or isinstance(traffic, Closed):
        return None
    drift = sample.drift(float(np.max(traffic.rate_per_s)))
    return Backlog(drift.verdict, Estimate.of(drift.growth))


def summed_up(
    target: str, subject: Subject, plan: ReplicationPlan, design: Design, seen: Sequence[Observation]
) -> Simulation:
    """Return the estimates from a plan's replications.

    Parameters
    ----------
    target
        What was asked for, in the user's words.
    subject, plan, design
        What was run, and what is estimated.
    seen
        The runs.
    """
    sample, traffic = Sample(tuple(seen), design.horizon), plan.network.traffic
    figures = SampleEstimates(sample, subject.reported)
    together = sample.together
    return Simulation(
        target=target,
        network=plan.network.name,
        scenario=subject.scenario,
        offered_tps=subject.offered_tps,
        mean_tps=None if isinstance(traffic, Closed) else float(np.max(traffic.rate_per_s)),
        offered_source=subject.offered_source,
        duration_s=plan.duration_s,
        horizon=design.horizon,
        warmup_s=seen[0].warmup_s,
        warmup_source=design.warmup,
        settled=sample.settled,
        backlog=_backlog(plan, sample),
        precision=_precision(figures, design.precision),
        seed=plan.seed,
        replications=len(seen),
        classes={name: figures.of_class(name) for name in (*subject.classes, EVERY_CLASS)},
        reported={name: parts for name, parts in subject.classes.items() if parts != (name,)},
        stations={name: figures.of_station(name) for name in together.stations},
        station_kinds=figures.station_kinds(),
        pools={name: figures.of_pool(name) for name in together.pools},
        pool_kinds=figures.pool_kinds(),
        version=version("capplan"),
    )


def _precision(figures: SampleEstimates, target: PrecisionTarget | None) -> PrecisionReached | None:
    if target is None:
        return None
    relative = _widest(figures, target).relative
    return PrecisionReached(target.text, relative, relative <= target.relative)
