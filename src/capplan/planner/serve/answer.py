"""What the server answers to a request, and which work it accepts at a time."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from pebble import ProcessExpired, ProcessPool

from capplan.models.errors import InputError, nearest
from capplan.models.language.document import load
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario, changed, fields_of
from capplan.models.results import plain
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.forecast import contradicted, with_demand
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.predict.predict import predict
from capplan.planner.predict_network import predict_network
from capplan.planner.serve.request import (
    FittedFiles,
    PredictRequest,
    SimulateRequest,
    SizeRequest,
    asked,
    checked_rate,
    read_layout,
)
from capplan.planner.simulate.simulate import (
    MOST_REPLICATIONS,
    Subject,
    design_of,
    observed,
    of_network,
    of_scenario,
    summed_up,
)
from capplan.planner.size.machines import Prices, Shapes, checked_shapes, prices_of
from capplan.planner.size.size import SizingQuestion, size
from capplan.simulator.experiments.replications import ReplicationPlan
from capplan.systems.registry import system

MOST_MACHINES = 10_000
"""Machines of a network that a request may ask about."""
MOST_REQUESTS = 5_000_000
"""Simulated requests of a replication: their records must fit in memory."""


def answer(verb: str, body: Any, files: FittedFiles = MappingProxyType({})) -> str:
    """Answer the body of a request.

    Parameters
    ----------
    verb : str
        `predict`, `simulate` or `size`.
    body : Any
        JSON values.
    files : mapping of Fitted
        The fitted files that requests may name.

    Returns
    -------
    str
        The document as JSON.

    Raises
    ------
    InputError
        When the body breaks a rule.
    """
    if not isinstance(body, dict):
        raise InputError('the body must be a JSON object, such as {"scenario": {"system": "fedora4"}}')
    try:
        found = {"predict": _predicted, "simulate": _simulated, "size": _sized}[verb](body, files)
    except ArithmeticError:  # a rule of each field cannot know what the figures of all of them come to
        raise InputError("a number in the request is too large or too small to compute with: check its unit") from None
    return json.dumps(plain(found), ensure_ascii=False)


def _predicted(body: Mapping[str, Any], files: FittedFiles) -> dict[str, Any]:
    request = load(PredictRequest, body, "the request")
    if request.engine == "analytic" and request.budget is not None:
        raise InputError('budget is for a simulation: leave it out, or choose "engine": "compiled"')
    budget_s = None if request.budget is None else float(request.budget)
    subject = asked(request, files)
    if isinstance(subject, Network):
        if request.lose:
            raise InputError("lose is for systems: give the timeline of the network an event with action 'down'")
        return predict_network(
            _checked(subject),
            file=subject.name,
            question=NetworkQuestion(tps=request.tps, slo=request.slo),
            seed=request.seed,
            engine=request.engine,
            budget_s=budget_s,
            confidence=request.confidence,
        ).to_json()
    return predict(
        subject.scenario,
        fitted=subject.fitted,
        seed=request.seed,
        engine=request.engine,
        budget_s=budget_s,
        confidence=request.confidence,
        lose=request.lose,
    ).to_json()


def _simulated(body: Mapping[str, Any], files: FittedFiles) -> dict[str, Any]:
    request = load(SimulateRequest, body, "the request")
    subject, target = _subject(request, files)
    duration_s, warmup_s = float(request.duration), float(request.warmup or 0.0)
    if warmup_s >= duration_s:
        raise InputError(
            f"warmup = {warmup_s:g} s is not shorter than duration = {duration_s:g} s: nothing is left to measure"
        )
    _check_length(subject, duration_s)
    design = design_of(subject, request.horizon, request.warmup is not None, request.precision)
    most = request.replications or (1 if request.precision is None else MOST_REPLICATIONS)
    plan = ReplicationPlan(subject.network, duration_s, warmup_s, request.seed, most, request.engine)
    seen = observed(plan, design, reported=subject.reported)
    return summed_up(target, subject, plan, design, seen).to_json()


def _subject(request: SimulateRequest, files: FittedFiles) -> tuple[Subject, str]:
    """Return what is simulated, and its name."""
    found = asked(request, files)
    if isinstance(found, Network):
        rate = None if request.tps is None else float(request.tps)
        return of_network(_checked(found), rate), found.name
    return of_scenario(found.scenario, found.fitted), found.scenario.system


def _check_length(subject: Subject, duration_s: float) -> None:
    """Refuse a simulation of too many requests."""
    requests = (subject.offered_tps or 0.0) * duration_s
    if requests > MOST_REQUESTS:
        raise InputError(
            f"a duration of {duration_s:g} s is {requests:,.0f} requests, and a replication has at most "
            f"{MOST_REQUESTS:,} here: shorten it, or run `capplan simulate` on your machine"
        )


def _checked(network: Network) -> Network:
    """Return a network that is not too large to be solved here."""
    machines = sum(each.count or 1 for each in network.stations) + sum(each.count or 1 for each in network.hosts)
    units = sum(float(np.max(each.servers)) for each in network.stations)
    for number, what in ((machines, "stations and hosts"), (units, "servers")):
        if number > MOST_MACHINES:
            raise InputError(
                f"network {network.name!r} has {number:,.0f} {what}, and at most {MOST_MACHINES:,} are solved here: "
                "describe fewer, or run capplan on your machine"
            )
    return network


def _sized(body: Mapping[str, Any], files: FittedFiles) -> dict[str, Any]:
    request = load(SizeRequest, body, "the request")
    demand = None if request.demand is None else load(Demand, request.demand, "demand")
    layout = read_layout(request.scenario, request.fitted, files)
    base = _offered(layout.scenario, demand, request.growth)
    its = system(base.system)
    searched = {**its.sized, **its.families, **request.families}
    if given := [name for name in request.scenario if name in searched]:
        where = "families" if given[0] in its.families or given[0] in request.families else "sized"
        raise InputError(f"{given[0]} is searched: leave it out of the scenario, and give its numbers in {where!r}")
    for name, (low, high) in request.sized.items():
        if name not in its.sized:
            raise InputError(f"{name!r} in sized is not a number of machines{nearest(name, its.sized)}")
        if low > high:
            raise InputError(f"{name} = [{low}, {high}] in sized is empty: give the lowest number first")
    _check_families(base, request)
    if request.prices is not None and request.shapes is not None:
        raise InputError("prices have no effect beside shapes, which have prices of their own: give one of them")
    if request.years is not None and not request.growth:
        raise InputError('years have no effect without growth: add one such as "growth": "30%"')
    question = SizingQuestion(
        survive=request.survive,
        confidence=request.confidence,
        growth_per_year=request.growth,
        years=(1.0 if request.growth else 0.0) if request.years is None else float(request.years),
        sized=request.sized,
        families=request.families,
        prices=Prices() if request.prices is None else prices_of(request.prices, its, "prices"),
        shapes=None
        if request.shapes is None
        else checked_shapes(load(Shapes, request.shapes, "shapes"), its, "shapes"),
        cells=request.cells,
        demand=demand,
        engine=request.engine,
        seed=request.seed,
    )
    return size(base, question, fitted=layout.fitted).to_json()


def _offered(base: Scenario, demand: Demand | None, growth: float) -> Scenario:
    """Return a scenario with the rate and the mix of a demand."""
    if demand is None:
        return base
    given = [name for name in contradicted(demand, type(base)) if getattr(base, name) is not None]
    given += ["growth"] if growth and demand.years else []
    if given:
        raise InputError(f"{given[0]} and a demand exclude each other: the demand has it, so leave {given[0]} out")
    return checked_rate(with_demand(base, demand))


def _check_families(base: Scenario, request: SizeRequest) -> None:
    """Check the values of fields to choose from, each on its own."""
    fixed = {*system(base.system).sized, "system", "tps", "slo"}
    known = [name for name in fields_of(type(base)) if name not in fixed]
    for name, values in request.families.items():
        if name not in known:
            raise InputError(f"{name!r} in families is not a field to choose from{nearest(name, known)}")
        for value in values:
            changed(base, **{name: value})


GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """What the server takes on.

    Attributes
    ----------
    processes : int
        Requests that are answered at the same time.
    queue : int
        Requests that wait beside them; more are refused.
    time_s : float
        Time of a request, in seconds, from when a process takes it.
    body_bytes : int
        Size of the body of a request.
    memory_gib : int
        Address space of a process, where the platform limits it.
    """

    processes: int = 2
    queue: int = 8
    time_s: float = 30.0
    body_bytes: int = 10**6
    memory_gib: int = 4

    def __post_init__(self) -> None:
        if self.processes < 1 or self.queue < 0 or self.time_s <= 0 or self.body_bytes < 1:
            raise InputError(
                f"{self.processes} processes, a queue of {self.queue}, {self.time_s:g} s and {self.body_bytes} B "
                "are no limits: give at least 1 process, and a time and a size above 0"
            )


class RefusedRequestError(Exception):
    """A request that gets no answer: an HTTP status, and a sentence that says why."""

    def __init__(self, status: int, sentence: str, retry_s: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_s = status, sentence, retry_s


class Work(Protocol):
    """Answers requests elsewhere."""

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON."""

    def close(self) -> None:
        """End what runs."""


class Processes:
    """Worker processes that end in the middle of a request when its time is over."""

    def __init__(self, limits: Limits, files: FittedFiles = MappingProxyType({})) -> None:
        self._limits, self._files = limits, dict(files)
        spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self._pool = ProcessPool(limits.processes, context=spawn, initializer=_begin, initargs=(limits.memory_gib,))

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON.

        Raises
        ------
        InputError
            When the body breaks a rule.
        RefusedRequestError
            When the time is over, or the process or the server ends before its request.
        """
        from capplan.planner.serve.answer import answer

        future = self._pool.schedule(answer, args=(verb, body, self._files), timeout=self._limits.time_s)
        try:
            return await asyncio.wrap_future(future)
        except TimeoutError:
            raise RefusedRequestError(
                504,
                f"the answer takes longer than {self._limits.time_s:g} s, the limit of this server: ask for less, such "
                'as "engine": "analytic", a smaller range or a shorter duration',
            ) from None
        except asyncio.CancelledError:
            raise RefusedRequestError(503, "the server ends: ask again when it is back") from None
        except (ProcessExpired, MemoryError):
            raise RefusedRequestError(
                503, "the process that worked on the answer ended, probably for want of memory: ask for less"
            ) from None

    def close(self) -> None:
        """End the processes, in the middle of a request too."""
        self._pool.stop()  # type: ignore[no-untyped-call]  # pebble types its pools in part
        self._pool.join()


class Queue:
    """Counts requests that wait or are answered, and refuses those that are too many."""

    def __init__(self, work: Work, limits: Limits) -> None:
        self._work, self._limits, self._count = work, limits, 0

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON.

        Raises
        ------
        RefusedRequestError
            When too many requests wait.
        """
        most = self._limits.processes + self._limits.queue
        if self._count >= most:
            raise RefusedRequestError(
                429,
                f"{most} requests wait or are answered already: try again later",
                max(1, round(self._limits.time_s)),
            )
        self._count += 1
        try:
            return await self._work.run(verb, body)
        finally:
            self._count -= 1


def _begin(memory_gib: int) -> None:
    """Prepare a worker process: limit its memory, and import what answers need."""
    with suppress(ImportError, ValueError, OSError):  # Windows and macOS have no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_gib * GIB, memory_gib * GIB))
    import capplan.planner.serve.answer  # noqa: F401  # so that the first request does not wait for it
