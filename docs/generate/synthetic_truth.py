"""Systems with known parameters, and load tests of them by the simulation engine: the truth that fits should find.

Parameters are drawn from the priors of the generic systems. Layouts and loads are what load tests usually have: curves
over clients, or rates below the ceiling, for one to four layouts that differ in replication, level, mix or nodes. The
rows to predict lie beyond them: more load, and another layout. Figures come from runs of the engine, with the scatter
of a repeat that a fit assumes.

Some systems have what the model has not (`ALTERATIONS`). Others pause for longer or shorter than published nodes do,
and closed clients test them before open ones come (`PAUSES_S`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from capplan.calibration.tables.figures import scatter_of
from capplan.calibration.tables.priors import closed
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.layout.components import Pauses
from capplan.layout.layout_factors import name_of
from capplan.layout.table_components import ClosedLoadTests, LayoutFactors
from capplan.layout.table_rows import LEVELS, MEAN, ON_CURVES, THROUGHPUT, TableRow
from capplan.layout.table_system import TableSystem
from capplan.models.language.distribution import Lognormal
from capplan.models.language.network import Network
from capplan.models.language.parameter import defaults
from capplan.models.language.station import Differs
from capplan.models.language.step import Visit, walk
from capplan.models.language.traffic import Open
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import Run
from capplan.systems.cassandra.network import GENERATOR, GENERATOR_LANES
from capplan.systems.registry import table_system

REQUESTS = 20_000  # of a simulated row, after the warm-up
_MOST_WARMUP = 15.0  # times the shortest run
_MOST_LOAD, _FEWEST_SERVICES = 0.98, 4.0  # of a queue that forgets its past
_MOST_LONGER, _WARMUP = 10.0, 0.3  # how much longer a run of open traffic is at most; its warm-up, over the run
_COPIES = (
    8  # of each latency, with delays of their own, so that pauses of 1 % of the requests do not decide a p99 by luck
)
PERCENTILES = ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms")
_TWO_TIER_SHARE = 0.2
_OPEN_SHARE = 0.25
_NOT_DRAWN = {"contention", "tls_factor", "wan_extra", "kib_share", "cold_s", "rounds", "generator_s"}
"""Parameters on which no row here depends, those that a table fixes, and the generator's, which has its own rule."""
_GENERATOR_OVER, _GENERATOR_SHARE, _GENERATOR_LOG_SD = 4.0, 0.1, 0.8
# The prior of a fit: its ceiling over the cluster's, or its work over an unloaded request, whichever means less work.
_SLOW_NODE, _HEAVY_SCV, _DRIFT = 0.7, 4.0, 0.2
_FEWEST_ROWS, _MOST_ROWS = 12, 20

Layout = Mapping[str, Any]


@dataclass(frozen=True)
class Design:
    """Layouts to fit, and others to predict, as cells of a load-test table that differ from the usual ones."""

    name: str
    trained: tuple[Layout, ...]
    unseen: tuple[Layout, ...]


@dataclass(frozen=True)
class Truth:
    """A system with its true parameters, and its load tests before they are measured.

    Attributes
    ----------
    number : int
        Its number, which is the seed of everything about it.
    system : str
        Name of the generic system.
    altered : str
        What it has and the model has not; empty if nothing.
    design : str
        What its layouts differ in.
    values : dict of float
        Parameter values by name, with the factors of each layout.
    trained, unseen : tuple of LoadTestRow
        The rows to fit and to predict, without figures.
    """

    number: int
    system: str
    altered: str
    design: str
    values: dict[str, float]
    trained: tuple[LoadTestRow, ...]
    unseen: tuple[LoadTestRow, ...]

    @property
    def of(self) -> TableSystem[Any]:
        """The generic system."""
        return table_system(self.system)

    @property
    def fitted_values(self) -> dict[str, float]:
        """The values that a fit should find: where all layouts share their factors, these are part of them."""
        layouts = [each.layout for each in self.of.read(self.trained)]
        if len(set(map(self.of.component(LayoutFactors).alike, layouts))) > 1:
            return self.values
        found = self.of.values_in(layouts[0], self.values)
        return {name: float(np.asarray(value)) for name, value in found.items()}


@dataclass(frozen=True)
class Measured:
    """A row with its figures, with and without the scatter of a repeat."""

    row: LoadTestRow
    exact: Mapping[str, float]


PAUSES_S: Mapping[str, float] = {f"pauses of {round(1e3 * each)} ms": each for each in (0.02, 0.06, 0.3)}
"""Mean length of the pauses of systems that closed clients test and open clients use, by name, seconds."""
_STEADY = 1e-9  # variation of a speed that hardly varies
_TESTED_CLIENTS, _OPEN_LOADS = (10, 30, 100, 300, 1_000), (0.3, 0.5, 0.8)


def drawn(number: int, altered: str = "") -> Truth:
    """Draw a system and the load tests of it."""
    if altered in PAUSES_S:
        return _paused(number, altered)
    random = np.random.default_rng([number, 20])
    name = "two-tier" if random.random() < _TWO_TIER_SHARE else "cassandra"
    usual, design = (_two_tier if name == "two-tier" else _cassandra)(random)
    system = table_system(name)
    values = parameters(system, random)
    if "generator_s" in values:
        values["generator_s"] = _generator_s(system, values, replace(usual, **design.trained[0], clients=1), random)
    loaded = _rates if random.random() < _OPEN_SHARE else _clients
    trained, unseen = loaded(system, values, usual, design, altered, random)
    for layout in dict.fromkeys(
        system.component(LayoutFactors).alike(each.layout) for each in system.read((*trained, *unseen))
    ):
        for effect, log_sd in system.component(LayoutFactors).log_sd.items():
            values[name_of(effect, layout)] = float(np.exp(log_sd * random.standard_normal()))
    return Truth(number, name, altered, design.name, values, tuple(trained), tuple(unseen))


def _paused(number: int, altered: str) -> Truth:
    """Draw a cluster with pauses of some length, tested by closed clients, whose figures for open ones are asked."""
    random = np.random.default_rng([number, 20])
    system, usual = table_system("cassandra"), replace(_cassandra(random)[0], cass_nodes=int(random.choice([3, 6, 12])))
    values = {**parameters(system, random), "pause_s": PAUSES_S[altered]}
    one = replace(usual, load_kind="closed", clients=1)
    values["generator_s"] = _generator_s(system, values, one, random)
    ceiling = _ceiling(system, values, one, "")
    trained = [replace(usual, load_kind="closed", clients=each) for each in _TESTED_CLIENTS]
    unseen = [replace(usual, load_kind="open", offered_tps=float(f"{each * ceiling:.3g}")) for each in _OPEN_LOADS]
    rows = _named(trained, unseen)
    return Truth(number, "cassandra", altered, "closed clients, then open ones", values, *map(tuple, rows))


def _generator_s(
    system: TableSystem[Any], values: Mapping[str, float], row: LoadTestRow, random: np.random.Generator
) -> float:
    """Return the work of a load generator that a fit expects, with the scatter of its prior."""
    alone = Analysis(system.network(system.read([row])[0].layout, {**values, "generator_s": 1e-9}, 1.0))
    ceiling_s = GENERATOR_LANES / (_GENERATOR_OVER * float(alone.drift_per_s[0]))
    work_s = min(ceiling_s, _GENERATOR_SHARE * float(alone.averaged(alone.unloaded)[0]))
    return work_s * float(np.exp(_GENERATOR_LOG_SD * random.standard_normal()))


def parameters(system: TableSystem[Any], random: np.random.Generator) -> dict[str, float]:
    """Return parameter values drawn from the priors of a system."""
    found = {name: float(np.asarray(value)) for name, value in defaults(system.parameters).items()}
    for each in system.parameters:
        if each.free and each.name not in _NOT_DRAWN:
            found[each.name] = each.value * float(np.exp(each.log_sd * random.standard_normal()))
    if "rounds" in found:
        found["rounds"] = float(random.choice([2, 4, 8]))
    return found


def estimated(system: TableSystem[Any]) -> set[str]:
    """Return the parameters that are drawn from a prior, and so should lie in the bands of a fit."""
    return {each.name for each in system.parameters if each.free} - (_NOT_DRAWN - {"generator_s"})


def _cassandra(random: np.random.Generator) -> tuple[LoadTestRow, Design]:
    nodes, level = int(random.choice([5, 6, 9])), str(random.choice(["LOCAL_ONE", "LOCAL_QUORUM"]))
    usual = LoadTestRow(
        cass_nodes=nodes,
        node_cores=int(random.choice([2, 4, 8])),
        rf=3,
        read_fraction=float(random.choice([0.0, 0.5, 0.9, 1.0])),
        token_aware=bool(random.random() < 0.5),
        consistency_read=cast("Any", level),
        consistency_write=cast("Any", level),
        request_class=ALL,
    )
    one, quorum, every = (_at_level(name) for name in ("LOCAL_ONE", "LOCAL_QUORUM", "ALL"))
    designs = (
        Design("clients", ({},), ({"cass_nodes": 2 * nodes},)),
        Design("replicas", ({"rf": 1}, {"rf": 3}), ({"rf": 5}, {"rf": 2})),
        Design("levels", (one, quorum), (every, {**quorum, "rf": 5})),
        Design("nodes", ({}, {"cass_nodes": 2 * nodes}), ({"cass_nodes": 4 * nodes},)),
        Design("mix", tuple({"read_fraction": each} for each in (0.0, 0.5, 1.0)), ({"read_fraction": 0.8},)),
        Design(
            "replicas and levels",
            ({"rf": 1, **one}, {"rf": 3, **one}, {"rf": 3, **quorum}),
            ({"rf": 5, **quorum}, {"rf": 3, **quorum, "cass_nodes": 2 * nodes}),
        ),
    )
    return usual, designs[int(random.integers(len(designs)))]


def _at_level(level: str) -> Layout:
    return {"consistency_read": level, "consistency_write": level}


def _two_tier(random: np.random.Generator) -> tuple[LoadTestRow, Design]:
    front, store = int(random.choice([2, 3, 4])), int(random.choice([3, 5]))
    usual = LoadTestRow(
        front_nodes=front,
        front_cores=int(random.choice([4, 8, 16])),
        cass_nodes=store,
        node_cores=int(random.choice([4, 8, 16])),
        rf=3,
        read_fraction=float(random.choice([0.0, 0.5, 0.9])),
        request_class=ALL,
    )
    designs = (
        Design("clients", ({},), ()),
        Design("front nodes", ({}, {"front_nodes": 2 * front}), ({"front_nodes": 3 * front},)),
        Design("replicas", ({"rf": 1}, {"rf": 3}), ({"rf": 2},)),
        Design("nodes", ({}, {"cass_nodes": 2 * store}), ({"cass_nodes": 3 * store},)),
        Design("mix", tuple({"read_fraction": each} for each in (0.0, 0.5, 1.0)), ({"read_fraction": 0.8},)),
    )
    return usual, designs[int(random.integers(len(designs)))]


Loaded = tuple[list[LoadTestRow], list[LoadTestRow]]


def _clients(
    system: TableSystem[Any],
    values: Mapping[str, float],
    usual: LoadTestRow,
    design: Design,
    altered: str,
    random: np.random.Generator,
) -> Loaded:
    """Return rows with closed clients, as many for each layout."""
    closed = replace(usual, load_kind="closed", clients=1)
    full = saturating(system, values, replace(closed, **design.trained[0]), altered)
    counts = growing(0.08 * full, random.uniform(0.7, 2.0) * full, _points(design, random))
    most = counts[-1]
    trained = [replace(closed, **layout, clients=each) for layout in design.trained for each in counts]
    beyond = [round(1.4 * most) + 1, 3 * most]
    unseen = [replace(closed, **layout, clients=each) for layout in design.trained for each in beyond]
    for layout in design.unseen:
        loads = growing(0.3 * most, 1.4 * most, 3)
        unseen += [replace(closed, **layout, clients=each) for each in loads]
    return _named(trained, unseen)


def _rates(
    system: TableSystem[Any],
    values: Mapping[str, float],
    usual: LoadTestRow,
    design: Design,
    altered: str,
    random: np.random.Generator,
) -> Loaded:
    """Return rows with open traffic below the ceiling of each layout."""
    opened = replace(usual, load_kind="open", offered_tps=1.0)
    shares = np.linspace(0.1, random.uniform(0.5, 0.72), _points(design, random)).tolist()

    def at(layout: Layout, levels: Sequence[float]) -> list[LoadTestRow]:
        row = replace(opened, **layout)
        ceiling = _ceiling(system, values, row, altered)
        return [replace(row, offered_tps=float(f"{each * ceiling:.3g}")) for each in levels]

    trained = [row for layout in design.trained for row in at(layout, shares)]
    unseen = [row for layout in design.trained for row in at(layout, (0.8,))]
    return _named(trained, unseen + [row for layout in design.unseen for row in at(layout, (0.3, 0.6, 0.8))])


def _named(trained: Sequence[LoadTestRow], unseen: Sequence[LoadTestRow]) -> Loaded:
    return (
        [replace(row, run_id=f"trained {at}") for at, row in enumerate(trained, 1)],
        [replace(row, run_id=f"unseen {at}") for at, row in enumerate(unseen, 1)],
    )


def _points(design: Design, random: np.random.Generator) -> int:
    """Return loads per layout, so that a table has 12 to 20 rows."""
    layouts = len(design.trained)
    return int(random.integers(-(-_FEWEST_ROWS // layouts), _MOST_ROWS // layouts + 1))


def growing(least: float, most: float, count: int) -> list[int]:
    """Return different numbers of clients that grow by about one factor."""
    found = [max(round(each), 1) for each in np.geomspace(max(least, 1.0), max(most, least, 2.0), count).tolist()]
    for at, (before, own) in enumerate(pairwise(found), 1):
        found[at] = max(own, found[at - 1] + 1) if own <= before or own <= found[at - 1] else own
    return found


def saturating(system: TableSystem[Any], values: Mapping[str, float], row: LoadTestRow, altered: str = "") -> float:
    """Return the number of clients that keep a layout full if none of them waits."""
    analysis = Analysis(_network(system, system.read([row])[0], values, altered))
    return float(analysis.drift_per_s[0] * analysis.averaged(analysis.unloaded)[0])


def _ceiling(system: TableSystem[Any], values: Mapping[str, float], row: LoadTestRow, altered: str) -> float:
    return float(Analysis(_network(system, system.read([row])[0], values, altered)).drift_per_s[0])


def _network(system: TableSystem[Any], row: TableRow, values: Mapping[str, float], altered: str) -> Network:
    composed = (system.component(ClosedLoadTests).network or system.network)(
        row.layout, system.values_in(row.layout, values), 1.0
    )
    return ALTERATIONS[altered](composed) if altered in ALTERATIONS else composed


def _more_lanes(network: Network) -> Network:
    return _stations(network, lambda each: replace(each, servers=2 * each.servers))


def _pooled(network: Network) -> Network:
    return _stations(network, lambda each: replace(each, assignment="pooled"))


def _slow_node(network: Network) -> Network:
    return _stations(
        network,
        lambda each: replace(each, exceptions=(Differs(1, speed=_SLOW_NODE),)) if (each.count or 1) > 1 else each,
    )


def _stations(network: Network, change: Callable[[Any], Any]) -> Network:
    found = tuple(each if each.name == GENERATOR else change(each) for each in network.stations)
    return replace(network, stations=found)


def _heavy_tails(network: Network) -> Network:
    return replace(network, classes=tuple(replace(each, flow=_heavy(each.flow)) for each in network.classes))


def _heavy(step: Any) -> Any:
    """Return a step whose service times are lognormal, with a squared coefficient of variation of 4."""
    if isinstance(step, Visit):
        mean = float(np.asarray(step.demand.mean).item())
        return replace(step, demand=Lognormal(mean, _HEAVY_SCV)) if mean else step
    if isinstance(step, tuple):
        return tuple(map(_heavy, step))
    if not is_dataclass(step) or isinstance(step, type):
        return step
    own = {each.name: getattr(step, each.name) for each in fields(step) if each.init}
    changed = {name: new for name, value in own.items() if (new := _heavy(value)) is not value and new != value}
    return replace(step, **changed) if changed else step


def _as_it_is(network: Network) -> Network:
    return network


ALTERATIONS: Mapping[str, Callable[[Network], Network]] = {
    "twice the lanes": _more_lanes,
    "heavy-tailed service times": _heavy_tails,
    "pooled lanes": _pooled,
    "a slow node": _slow_node,
    "speed that drifts": _as_it_is,
}
"""What a real cluster may have and the model has not: nodes work on twice as many requests at once, service times vary
more (SCV 4), no request waits while a lane is free, one node has 70 % of the speed, or everything slows by up to 20 %
from the first row to the last."""


def measured(truth: Truth) -> tuple[list[Measured], list[Measured]]:
    """Return the rows to fit and to predict with figures by the engine."""
    random, system = np.random.default_rng([truth.number, 21]), truth.of
    rows = (*truth.trained, *truth.unseen)
    read = system.read(rows)
    solved = solved_rows(system, read, truth.values, [[THROUGHPUT]] * len(read))
    scatter = scatter_of(read[: len(truth.trained)], ON_CURVES if system.component(LayoutFactors).log_sd else None)
    found = []
    for at, (row, each, expected) in enumerate(zip(rows, read, solved, strict=True)):
        slower = 1 + _DRIFT * at / (len(rows) - 1) if truth.altered == "speed that drifts" else 1.0
        rate = row.offered_tps * slower if row.offered_tps else float(expected.figures[THROUGHPUT].ravel()[0])
        exact = _simulated(truth, each, rate, slower, random)
        found.append(Measured(_noisy(row, exact, scatter, random), exact))
    return found[: len(truth.trained)], found[len(truth.trained) :]


def _simulated(
    truth: Truth, row: TableRow, rate: float, slower: float, random: np.random.Generator
) -> dict[str, float]:
    """Return the figures of a run; time is stretched for a system that is slower all over."""
    network = _network(truth.of, row, truth.values, truth.altered)
    mix, clients = network.traffic.mix, row.load.clients
    traffic = closed(clients, 0.0, truth.values, mix) if clients else Open(rate, mix)
    requests = REQUESTS if clients else REQUESTS * _longer(network, rate)
    warmup = max((1_000 + 10 * clients if clients else _WARMUP * requests) / rate, _settled_s(network, rate))
    seed = int(random.integers(1 << 30))
    run = simulate(replace(network, traffic=traffic), warmup + requests / rate, warmup_s=warmup, seed=seed, trace=True)
    latencies = _varied(run, truth, row, random)
    left, held_s = _held(run, truth, row) if clients else (1.0, 0.0)
    return {
        THROUGHPUT: run.throughput_per_s() * left / slower,
        MEAN: (run.latency_mean_s() + held_s) * 1e3 * slower,
        **{name: float(np.quantile(latencies, LEVELS[name])) * 1e3 * slower for name in PERCENTILES},
    }


def _settled_s(network: Network, rate: float) -> float:
    """Return how long the warm-up must be for work that goes on after answers, seconds.

    A queue forgets its past in a service over (1 - sqrt(load))², the slowest one of all stations last.
    """
    analysis = Analysis(network)
    times = [
        float(np.ravel(step.demand.mean)[0]) * _forgets(rate * float(np.ravel(analysis.load(step.station))[0]))
        for each in network.classes
        for step in walk(each.flow)
        if isinstance(step, Visit) and step.station != GENERATOR
    ]
    return min(max(times), _MOST_WARMUP * REQUESTS / rate)


def _forgets(load: float) -> float:
    """Return the time in which a queue forgets its past, in services."""
    return max(1 / (1 - math.sqrt(min(load, _MOST_LOAD))) ** 2, _FEWEST_SERVICES)


def _longer(network: Network, rate: float) -> float:
    """Return how much longer a run of open traffic is: queues forget their past in proportion to 1 / (1 - load)²."""
    load = rate / float(Analysis(network).drift_per_s[0])
    return float(np.clip(1 / (4 * (1 - load) ** 2), 1, _MOST_LONGER)) if load < 1 else _MOST_LONGER


def _varied(run: Run, truth: Truth, row: TableRow, random: np.random.Generator) -> FloatArray:
    """Return latencies of nodes whose speed varies in a run and that pause, which no network has."""
    system, values = truth.of, truth.of.values_in(row.layout, truth.values)
    analysis = Analysis(system.network(row.layout, values, 1.0))
    rate = np.array([run.throughput_per_s()])
    clients = row.load.clients
    pauses = system.component(Pauses)
    closed, opened = system.component(ClosedLoadTests).delays, pauses.of(row.layout, values, values)
    delays = (
        (closed(row.layout, values, analysis, rate, clients / rate) if closed else {})
        if clients
        else (opened(analysis, rate, None) if opened else {})
    )
    varying = pauses.varying(values)
    varies = None if varying is None else varying(np.minimum(rate / analysis.drift_per_s, 1.0))
    log_sd = 0.0 if varies is None else float(np.ravel(varies)[0])
    found = []
    for name in network_classes(run):
        own = np.tile(run.latencies_s(name), _COPIES)
        delay = np.minimum(own, analysis.delays[name][0, 0])  # which the speed of nodes does not stretch
        own = delay + (own - delay) * np.exp(log_sd * random.standard_normal(len(own)) - log_sd**2 / 2)
        for each in delays.get(name, ()):
            late = random.random(len(own)) < float(np.ravel(each.chance)[0])
            own = own + late * random.exponential(float(np.ravel(each.mean_s)[0]), len(own))
        found.append(own)
    return np.concatenate(found)


def _held(run: Run, truth: Truth, row: TableRow) -> tuple[float, float]:
    """Return what pauses and speeds that vary leave of the throughput of closed clients, and what they add to the mean.

    The mean is in seconds. Neither is in the simulated network.
    """
    values = truth.of.values_in(row.layout, truth.values)
    analysis, rate = Analysis(truth.of.network(row.layout, values, 1.0)), np.array([run.throughput_per_s()])
    cycle_s, mean_s = row.load.clients / rate, np.array([run.latency_mean_s()])
    left_by = truth.of.component(ClosedLoadTests).throughput_left
    left = np.ones(1) if left_by is None else left_by(row.layout, values, analysis, rate, cycle_s, mean_s)
    if "variation" in truth.values:
        varied, steady = (
            float(solved_rows(truth.of, [row], each, [[THROUGHPUT]])[0].figures[THROUGHPUT].ravel()[0])
            for each in (truth.values, {**truth.values, "variation": _STEADY})
        )
        left = left * varied / steady
    return float(left[0]), float((cycle_s * (1 / left - 1))[0])


def network_classes(run: Run) -> Sequence[str]:
    """Return the request classes of a run that have requests."""
    return [name for name, report in run.reports.items() if report.throughput_per_s]


def _noisy(
    row: LoadTestRow, exact: Mapping[str, float], scatter: Mapping[str, float], random: np.random.Generator
) -> LoadTestRow:
    """Return a row with the figures of a repeat; throughput and mean of closed clients agree (Little's law)."""
    speed = float(np.exp(scatter[THROUGHPUT] * random.standard_normal()))
    closed = row.load_kind == "closed"
    figures = {THROUGHPUT: exact[THROUGHPUT] / (speed if closed else 1.0), MEAN: exact[MEAN] * speed}
    for name in PERCENTILES:
        figures[name] = exact[name] * float(np.exp(scatter[name] * random.standard_normal()))
    return replace(row, **cast("dict[str, Any]", {name: float(f"{each:.6g}") for name, each in figures.items()}))
