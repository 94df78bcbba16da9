"""The server's answer to a request: request fields, their rules, and the amount of work accepted at a time."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import multiprocessing
from collections.abc import Mapping
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import field
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from pebble import ProcessExpired, ProcessPool
from pydantic import BeforeValidator, Field
from pydantic.dataclasses import dataclass

from capplan.answers.results import plain
from capplan.answers.verdict import CONFIDENCE
from capplan.errors import InputError, nearest, one_of
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.document import load
from capplan.models.language.network import Network
from capplan.models.language.scenario import Objectives, Scenario, changed, defaults_of, fields_of, with_units
from capplan.models.language.units import READ_SHARE, Count, Positive, PositivePerSecond, PositiveSeconds, Seconds
from capplan.models.language.units import Share as _Share
from capplan.planner.demand.demand import Demand, parse_growth
from capplan.planner.demand.forecast import contradicted, with_demand
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.predict.predict import MOST_GROWTH, PredictionEngine, predict
from capplan.planner.predict_network import predict_network
from capplan.planner.simulate.simulate import (
    MOST_REPLICATIONS,
    Subject,
    design_of,
    observed,
    of_network,
    of_scenario,
    summed_up,
)
from capplan.planner.simulate.simulation import Horizon
from capplan.planner.size.machines import Prices, Shapes, checked_shapes, prices_of
from capplan.planner.size.size import SizingQuestion, most_machines, size
from capplan.planner.sustained import JudgingEngine
from capplan.simulator.engine import Engine
from capplan.simulator.replications import ReplicationPlan
from capplan.systems.registry import scenario_of, system

Share = Annotated[_Share, READ_SHARE]
_READ_GROWTH = BeforeValidator(lambda value: parse_growth(value) if isinstance(value, str) else value)
Growth = Annotated[float, _READ_GROWTH, Field(ge=0, le=MOST_GROWTH)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
UpTo1000 = Annotated[int, Field(strict=True, ge=1, le=1000)]
Tables = dict[str, Any]
HIGHEST_RATE = 1e9
"""Requests per second; solvers lose their digits far above."""


@dataclass(frozen=True, config=LANGUAGE)
class AboutOneLayout(Construct):
    """The subject of a request about one layout.

    Attributes
    ----------
    scenario
        The layout and its traffic, as in a scenario file.
    fitted
        Name of a fitted file that the server was started with: the scenario then changes the layout with most of its
        rows. Left out, a system that is fitted to load tests has the only file of it.
    network
        A network of your own instead, as in a network file.
    tps
        Offered mean rate of the network; that of its traffic if left out. A scenario has its own `tps`.
    """

    scenario: Tables | None = None
    fitted: str | None = None
    network: Tables | None = None
    tps: PositivePerSecond | None = None


@dataclass(frozen=True, config=LANGUAGE)
class PredictRequest(AboutOneLayout):
    """The body of `POST /predict`.

    Attributes
    ----------
    slo
        Objectives of the network. A scenario has its own `slo`.
    engine
        How to obtain latencies: `compiled` or `simpy` simulate, `analytic` is fast.
    seed
        Seed of every random number.
    budget
        Simulation time on a nominal machine, such as `400ms`; the system's own if left out.
    confidence
        Probability with which the rate must be carried and the objectives must hold.
    lose
        What is lost at once, such as `node,dc2`: outages of your own, and no other.
    """

    slo: Objectives = ()
    engine: PredictionEngine = "compiled"
    seed: Seed = 1
    budget: PositiveSeconds | None = None
    confidence: Share = CONFIDENCE
    lose: tuple[str, ...] = ()


@dataclass(frozen=True, config=LANGUAGE)
class SimulateRequest(AboutOneLayout):
    """The body of `POST /simulate`.

    Attributes
    ----------
    duration
        Duration of the traffic, such as `60s`.
    warmup
        Warm-up to discard; detected (MSER) when not given.
    horizon
        Estimate the steady state, or means over the whole run from an empty start (`finite`).
    replications
        Independent runs (1); with a precision, their maximum (200).
    precision
        Run until each class (`p99<2%`) or one (`acct.mean<1%`) has this relative precision.
    engine
        `compiled`, or `simpy` as a cross-check.
    seed
        Seed of every random number.
    """

    duration: PositiveSeconds = 60.0
    warmup: Seconds | None = None
    horizon: Horizon | None = None
    replications: UpTo1000 | None = None
    precision: str | None = None
    engine: Engine = "compiled"
    seed: Seed = 1


@dataclass(frozen=True, config=LANGUAGE)
class SizeRequest(Construct):
    """The body of `POST /size`.

    Attributes
    ----------
    scenario
        The fields that are not searched, with the offered rate and the objectives, as in a scenario file.
    fitted
        Name of a fitted file, as for `/predict`.
    demand
        Subscribers and their sessions instead of a rate, as in a file of a demand.
    sized
        Lowest and highest numbers of machines by field, such as `{"cass_nodes": [3, 30]}`; the system's own if left
        out.
    families
        Values of other fields to choose from, such as `{"dcs": [2, 3]}`.
    survive
        Situations in which the objectives must hold, such as `dc` or `dc+compaction`.
    confidence
        Probability with which they must hold in each situation.
    growth
        Growth of the offered rate per year, such as 0.3 or `30%`.
    years
        Years to plan for; 1 if there is a growth.
    prices
        A price list: `currency`, `period`, and `machines` with a price for each kind.
    shapes
        Machines to choose from, as in a file of shapes.
    cells
        Numbers of equal cells that share the traffic, to choose from.
    engine
        `compiled` confirms the best layouts by simulation; `analytic` does not.
    seed
        Seed of every random number.
    """

    scenario: Tables
    fitted: str | None = None
    demand: Tables | None = None
    sized: dict[str, tuple[Count, Count]] = field(default_factory=dict)
    families: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = field(default_factory=dict)
    survive: tuple[str, ...] = ()
    confidence: Share = CONFIDENCE
    growth: Growth = 0.0
    years: Positive | None = None
    prices: Tables | None = None
    shapes: Tables | None = None
    cells: Annotated[tuple[UpTo1000, ...], Field(min_length=1)] = (1,)
    engine: JudgingEngine = "compiled"
    seed: Seed = 1


class Asked(NamedTuple):
    """A layout, and the calibration to use for it (None: the system's own)."""

    scenario: Scenario
    fitted: Fitted | None = None


FittedFiles = Mapping[str, Fitted]
"""The fitted files of a server, by name."""


def asked(request: PredictRequest | SimulateRequest, files: FittedFiles) -> Asked | Network:
    """Return the layout or the network of a request.

    Raises
    ------
    InputError
        When it has both or none of them, one breaks a rule, or an option of a network stands beside a scenario.
    """
    if (request.scenario is None) == (request.network is None):
        raise InputError('a request has a scenario or a network, and not both: give one, such as "scenario": {}')
    if request.network is not None:
        if request.fitted is not None:
            raise InputError("fitted beside a network has no effect: leave it out, or give a scenario instead")
        return load(Network, request.network, "network")
    for name in ("tps", "slo"):
        if getattr(request, name, None):
            raise InputError(
                f'{name} beside a scenario has no effect: give it inside, as "scenario": {{"{name}": ...}}'
            )
    return read_layout(request.scenario or {}, request.fitted, files)


def read_layout(tables: Mapping[str, Any], name: str | None, files: FittedFiles) -> Asked:
    """Return the layout of a request.

    Parameters
    ----------
    tables : mapping
        The keys of its scenario.
    name : str or None
        The fitted file that it names.
    files : mapping of Fitted
        The fitted files of this server.

    Raises
    ------
    InputError
        When it names no system or no file of this server, or breaks a rule of its scenario.
    """
    fitted = _fitted(tables, name, files)
    if fitted is not None:
        return Asked(checked_rate(_changed(fitted, tables, name)), fitted)
    if "system" not in tables:
        raise InputError(
            'the request: key \'system\' is missing: add one such as "system": "fedora4"; see GET /systems'
        )
    return Asked(checked_rate(scenario_of(tables, "the request")))


def _fitted(tables: Mapping[str, Any], name: str | None, files: FittedFiles) -> Fitted | None:
    """Return the fitted file of a request: the named one, or the only one of its system."""
    if name is None:
        own = [each for each, fitted in files.items() if fitted.system == tables.get("system")]
        if len(own) > 1:
            raise InputError(f'the request: several files are fitted to {tables["system"]}: add "fitted": "{own[0]}"')
        return files[own[0]] if own else None
    if name not in files:
        served = f"this server has {', '.join(files)}" if files else "start it with one: `capplan serve mine.json`"
        raise InputError(f"fitted = {name!r} is no file of this server{nearest(name, files)}; {served}")
    return files[name]


def _changed(fitted: Fitted, tables: Mapping[str, Any], name: str | None) -> Scenario:
    """Return the layout with the most rows of a fitted file, changed by the keys of a scenario."""
    usual = system(fitted.system).usual_scenario(fitted)
    if tables.get("system", fitted.system) != fitted.system:
        raise InputError(f"fitted = {name!r} is of system {fitted.system!r}, and the scenario of {tables['system']!r}")
    kind: type[Scenario] = type(usual)
    keys = with_units(kind, {key: value for key, value in tables.items() if key != "system"})
    fields = {field: getattr(usual, field) for field in fields_of(kind)}
    for key in keys:
        one_of(fields, key, f"the request: {key!r} is no field of {fitted.system}")
    read: Scenario = load(kind, {**fields, **kind.implied(keys), **keys}, "the request")
    return read


def checked_rate(scenario: Scenario) -> Scenario:
    """Return a scenario if its rate is not above what any layout carries; refuse it otherwise.

    Raises
    ------
    InputError
        When it is too high to compute with.
    """
    rate = scenario.offered_per_s()
    if rate is not None and rate > HIGHEST_RATE:
        raise InputError(f"the request: tps = {rate:g} is above {HIGHEST_RATE:g}, more than any layout carries")
    return scenario


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
    except ArithmeticError:  # rules of single fields cannot limit their combination
        raise InputError("a number in the request is too large or too small to compute with: check its unit") from None
    return json.dumps(plain(found), ensure_ascii=False)


def _predicted(body: Mapping[str, Any], files: FittedFiles) -> dict[str, Any]:
    request = load(PredictRequest, body, "the request")
    if request.engine == "analytic" and request.budget is not None:
        raise InputError('budget is for a simulation: leave it out, or choose "engine": "compiled"')
    shared: dict[str, Any] = {name: getattr(request, name) for name in ("seed", "engine", "confidence")}
    shared["budget_s"] = None if request.budget is None else float(request.budget)
    subject = asked(request, files)
    if isinstance(subject, Network):
        if request.lose:
            raise InputError("lose is for systems: give the timeline of the network an event with action 'down'")
        question = NetworkQuestion(tps=request.tps, slo=request.slo)
        return predict_network(_checked(subject), file=subject.name, question=question, **shared).to_json()
    return predict(subject.scenario, fitted=subject.fitted, lose=request.lose, **shared).to_json()


def _simulated(body: Mapping[str, Any], files: FittedFiles) -> dict[str, Any]:
    request = load(SimulateRequest, body, "the request")
    subject, target = _subject(request, files)
    duration_s, warmup_s = float(request.duration), float(request.warmup or 0.0)
    if warmup_s >= duration_s:
        raise InputError(
            f"warmup = {warmup_s:g} s is not shorter than duration = {duration_s:g} s: nothing is left to measure"
        )
    requests = (subject.offered_tps or 0.0) * duration_s
    if requests > MOST_REQUESTS:
        raise InputError(
            f"a duration of {duration_s:g} s is {requests:,.0f} requests, and a replication has at most "
            f"{MOST_REQUESTS:,} here: shorten it, or run `capplan simulate` on your machine"
        )
    design = design_of(subject, request.horizon, request.warmup is not None, request.precision)
    most = request.replications or (1 if request.precision is None else MOST_REPLICATIONS)
    plan = ReplicationPlan(subject.network, duration_s, warmup_s, request.seed, most, request.engine)
    seen = observed(plan, design, reported=subject.reported)
    return summed_up(target, subject, plan, design, seen).to_json()


def _subject(request: SimulateRequest, files: FittedFiles) -> tuple[Subject, str]:
    """Return the subject of a simulation and its name."""
    found = asked(request, files)
    if isinstance(found, Network):
        rate = None if request.tps is None else float(request.tps)
        return of_network(_checked(found), rate), found.name
    return of_scenario(found.scenario, found.fitted), found.scenario.system


def _checked(network: Network) -> Network:
    """Return a network if it is small enough to solve here; refuse it otherwise."""
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
    layout = _layout_to_size(request, files)
    base = _offered(layout.scenario, demand, request.growth)
    its = system(base.system)
    machines = its.component(Machines)
    searched = {**machines.sized, **machines.families, **request.families}
    if given := [name for name in request.scenario if name in searched]:
        where = "families" if given[0] in machines.families or given[0] in request.families else "sized"
        raise InputError(f"{given[0]} is searched: leave it out of the scenario, and give its numbers in {where!r}")
    for name, (low, high) in request.sized.items():
        one_of(machines.sized, name, f"{name!r} in sized is not a number of machines")
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


def _layout_to_size(request: SizeRequest, files: FittedFiles) -> Asked:
    """Return the layout of a request; with the most machines where it has more replicas than the default has nodes."""
    try:
        return read_layout(request.scenario, request.fitted, files)
    except InputError:
        name = {key: value for key, value in request.scenario.items() if key == "system"}
        start = read_layout(name, request.fitted, files).scenario
        return read_layout({**most_machines(start, request.sized), **request.scenario}, request.fitted, files)


def _offered(base: Scenario, demand: Demand | None, growth: float) -> Scenario:
    """Return a scenario with the rate and the mix of a demand."""
    if demand is None:
        return base
    usual = defaults_of(type(base))
    given = [name for name in contradicted(demand, type(base)) if getattr(base, name) != usual[name]]
    given += ["growth"] if growth and demand.years else []
    if given:
        raise InputError(f"{given[0]} and a demand exclude each other: the demand has it, so leave {given[0]} out")
    return checked_rate(with_demand(base, demand))


def _check_families(base: Scenario, request: SizeRequest) -> None:
    """Check each value of the fields to choose from on its own."""
    its = system(base.system)
    most, fixed = most_machines(base, request.sized), {*its.component(Machines).sized, "system", "tps", "slo"}
    known = [name for name in fields_of(type(base)) if name not in fixed]
    for name, values in request.families.items():
        one_of(known, name, f"{name!r} in families is not a field to choose from")
        for value in values:
            changed(base, **{**most, name: value})


GIB = 1024**3


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits on the work that the server accepts.

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
        if self.processes < 1 or self.queue < 0 or not 0 < self.time_s < math.inf or self.body_bytes < 1:
            raise InputError(
                f"{self.processes} processes, a queue of {self.queue}, {self.time_s:g} s and {self.body_bytes} B "
                "are no limits: give at least 1 process, a finite time and a size above 0"
            )


class RefusedRequestError(Exception):
    """A refused request: an HTTP status and a sentence with the reason."""

    def __init__(self, status: int, sentence: str, retry_s: int | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.retry_s = status, sentence, retry_s


class Work(Protocol):
    """Answers requests outside the event loop."""

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON."""

    def close(self) -> None:
        """Stop all running work."""


_TICK_S = 0.05  # between two looks at a process that is being stopped


class Processes:
    """Worker processes that are stopped in the middle of a request when its time is over, or nobody waits for it.

    The pool takes only what a process is free for: whatever it has taken, it begins, and a request that was cancelled
    in between costs a process.
    """

    def __init__(self, limits: Limits, files: FittedFiles = MappingProxyType({})) -> None:
        self._limits, self._files, self._free = limits, dict(files), asyncio.Semaphore(limits.processes)
        spawn = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self._pool = ProcessPool(limits.processes, context=spawn, initializer=_begin, initargs=(limits.memory_gib,))

    async def run(self, verb: str, body: Any) -> str:
        """Return the answer to the body of a request as JSON.

        Raises
        ------
        InputError
            When the body breaks a rule.
        RefusedRequestError
            When the time is over, or the process ends before its request.
        """
        async with self._free:
            future = self._pool.schedule(answer, args=(verb, body, self._files), timeout=self._limits.time_s)
            try:
                return await asyncio.wrap_future(future)
            except asyncio.CancelledError:
                while wait([future], 0).not_done:  # its process is not free yet
                    await asyncio.sleep(_TICK_S)
                raise
            except TimeoutError:
                raise RefusedRequestError(
                    504,
                    f"the answer takes longer than {self._limits.time_s:g} s, the limit of this server: ask for less, "
                    'such as "engine": "analytic", a smaller range or a shorter duration',
                ) from None
            except (ProcessExpired, MemoryError):
                raise RefusedRequestError(
                    503, "the process that worked on the answer ended, probably for want of memory: ask for less"
                ) from None

    def close(self) -> None:
        """Stop the processes, even in the middle of a request."""
        self._pool.stop()  # type: ignore[no-untyped-call]  # pebble types its pools in part
        self._pool.join()


class Queue:
    """Counts waiting and active requests, and refuses requests above a limit."""

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
    """Prepare a worker process: limit its memory; what answers need is imported with this module."""
    with suppress(ImportError, ValueError, OSError):  # Windows and macOS have no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_gib * GIB, memory_gib * GIB))
