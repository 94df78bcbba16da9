"""What a request may contain: a scenario or a network, and the options of the verb."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.layout.fitted_file import Fitted
from capplan.models.errors import InputError, nearest
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.document import load
from capplan.models.language.network import Network
from capplan.models.language.scenario import Objectives, Scenario, fields_of, with_units
from capplan.models.language.units import READ_SHARE, AtLeastOne, Positive, PositivePerSecond, PositiveSeconds, Seconds
from capplan.models.language.units import Share as _Share
from capplan.models.verdict import CONFIDENCE
from capplan.planner.predict.predict import PredictionEngine
from capplan.planner.simulate.simulation import Horizon
from capplan.planner.size.confirm import SizingEngine
from capplan.simulator.engine import Engine
from capplan.systems.registry import scenario_of, system

Share = Annotated[_Share, READ_SHARE]
Growth = Annotated[float, READ_SHARE, Field(ge=0, le=1)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
UpTo1000 = Annotated[int, Field(strict=True, ge=1, le=1000)]
Tables = dict[str, Any]
HIGHEST_RATE = 1e9
"""Requests per second; solvers lose their digits far above."""


@dataclass(frozen=True, config=LANGUAGE)
class AboutOneLayout(Construct):
    """What a request about one layout is about.

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
        A price list: `currency`, and `machines` with a price for each kind.
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
    sized: dict[str, tuple[AtLeastOne, AtLeastOne]] = field(default_factory=dict)
    families: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = field(default_factory=dict)
    survive: tuple[str, ...] = ()
    confidence: Share = CONFIDENCE
    growth: Growth = 0.0
    years: Positive | None = None
    prices: Tables | None = None
    shapes: Tables | None = None
    cells: Annotated[tuple[UpTo1000, ...], Field(min_length=1)] = (1,)
    engine: SizingEngine = "compiled"
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
    """Return the fitted file of a request: the one that it names, or the only one of its system."""
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
    """Return the layout with most rows of a fitted file, with the keys of a scenario in place of its own."""
    usual = system(fitted.system).usual_scenario(fitted)
    if tables.get("system", fitted.system) != fitted.system:
        raise InputError(f"fitted = {name!r} is of system {fitted.system!r}, and the scenario of {tables['system']!r}")
    kind: type[Scenario] = type(usual)
    keys = with_units(kind, {key: value for key, value in tables.items() if key != "system"})
    fields = {field: getattr(usual, field) for field in fields_of(kind)}
    unknown = next((key for key in keys if key not in fields), None)
    if unknown is not None:
        raise InputError(f"the request: {unknown!r} is no field of {fitted.system}{nearest(unknown, fields)}")
    read: Scenario = load(kind, {**fields, **kind.implied(keys), **keys}, "the request")
    return read


def checked_rate(scenario: Scenario) -> Scenario:
    """Return a scenario whose rate a layout may carry.

    Raises
    ------
    InputError
        When it is too high to compute with.
    """
    rate = scenario.offered_per_s()
    if rate is not None and rate > HIGHEST_RATE:
        raise InputError(f"the request: tps = {rate:g} is above {HIGHEST_RATE:g}, more than any layout carries")
    return scenario
