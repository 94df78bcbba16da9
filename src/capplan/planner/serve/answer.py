"""The answer to a request: the document that the verb prints with `--json`. Worker processes run this."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from capplan.models.errors import InputError, nearest
from capplan.models.language.document import load
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario, changed, fields_of
from capplan.models.results import plain
from capplan.planner.demand.demand import Demand
from capplan.planner.demand.forecast import contradicted, with_demand
from capplan.planner.predict.predict import predict
from capplan.planner.predict_network.network import predict_network
from capplan.planner.predict_network.network_question import NetworkQuestion
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
from capplan.planner.size.prices import Prices, prices_of
from capplan.planner.size.shapes import Shapes, checked_shapes
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
