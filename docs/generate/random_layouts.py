"""Random layouts for the accuracy page: nodes with replicas, with or without front nodes and their pools of workers.

Servers are pooled or lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Exponential, Hyperexponential
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment, Pool, Station
from capplan.models.language.step import Acquire, Delay, FanOut, Pick, ReplicaSet, Sequence, Step, Visit
from capplan.models.language.traffic import Bursty, Closed, Open, Poisson, RequestClass, Throttled, Traffic
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.known_errors import CONDITIONS, MEAN, P50, P99, KnownError, known_errors
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, peak_ratio, solve
from capplan.simulator.compiled.engine import simulate

SEED, REQUESTS, WARMUP_S = 15, 60_000, 60.0
SHARES = (0.2, 0.4, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
MIX = {"job": 1.0}
LEVELS = (0.5, 0.99)
GOALS = {"mean": MEAN, "p50": P50, "p99": P99}
ASSIGNMENTS: tuple[Assignment, ...] = ("pooled", "random", "round_robin", "least_loaded")
BANDS = ((0.0, 0.5), (0.5, 0.801), (0.801, 2.0))


@dataclass(frozen=True)
class Errors:
    """Signed relative errors of the solver for one layout, and what the solver says of them."""

    kind: str
    load: float
    mean: float
    p50: float
    p99: float
    known: tuple[KnownError, ...] = ()


def layout(random: np.random.Generator) -> Network:
    """Return a random layout with open traffic; a visit to a node takes a second."""
    nodes, cores = int(random.integers(1, 13)), int(random.choice([2, 4, 8, 16]))
    discipline = cast("Literal['fcfs', 'ps']", str(random.choice(["ps", "fcfs"])))
    services: tuple[Distribution, ...] = (
        Deterministic(1.0),
        Erlang(1.0, 2),
        Exponential(1.0),
        Hyperexponential((0.8, 0.2), (0.5, 3.0)),
        Hyperexponential((0.95, 0.05), (0.55, 9.55)),  # SCV 9
    )
    visit = Visit("node", services[int(random.integers(len(services)))], member="replica")
    rf = int(min(nodes, random.choice([1, 2, 3])))
    work: Step = Pick("replica", "node", "random", visit)
    if rf > 1:
        work = ReplicaSet(
            "replicas",
            "node",
            rf,
            FanOut("replicas", "replica", visit, needed=int(random.choice([1, rf // 2 + 1, rf]))),
        )
    flow: Step = Sequence((Delay(Erlang(float(random.uniform(0.1, 2)), 2)), work))
    stations, pools = [Station("node", cores, discipline, count=nodes, assignment=_assignment(random))], []
    saturation = cores * nodes / rf
    if fronts := int(random.choice([0, 1, 2, 3])):
        servers = int(random.choice([2, 4, 8]))
        demand_s = float(random.uniform(0.3, 0.95)) * fronts * servers / saturation
        stations.append(Station("front", servers, "ps", count=fronts, assignment=_assignment(random)))
        size = int(np.ceil(random.uniform(1.2, 3) * saturation * 3 / fronts))
        pools.append(Pool("workers", size, int(random.integers(0, size + 1)), count=fronts))
        inside = Sequence((Visit("front", Exponential(demand_s), member="door"), flow))
        flow = Pick("door", "front", "random", Acquire("workers", inside, member="door"))
    arrivals = Bursty(1.5, 0.2, float(random.choice([0.3, 3.0, 30.0]))) if random.integers(3) == 0 else Poisson()
    return Network("random", tuple(stations), (RequestClass("job", flow),), Open(1.0, MIX, arrivals), tuple(pools))


def _assignment(random: np.random.Generator) -> Assignment:
    return ASSIGNMENTS[int(random.integers(len(ASSIGNMENTS)))]


def open_errors(count: int, seed: int = SEED) -> Iterator[Errors]:
    """Yield the errors with open traffic at shares of capacity."""
    random = np.random.default_rng(seed)
    for number in range(count):
        plain, share = layout(random), float(random.choice(SHARES))
        rate = share * float((capacity_per_s(Analysis(plain), MAX_DROP_RATE) / peak_ratio(Analysis(plain)))[0])
        point = solve(Analysis(plain), rate)
        solved = [point.response_s("job")[0], *(point.quantile_s(level, "job")[0] for level in LEVELS)]
        errors = _errors(replace(plain, traffic=replace(plain.traffic, rate_per_s=rate)), number, rate, solved)
        yield Errors("open", share, *errors, known_errors(Analysis(plain), share))


def client_errors(count: int, seed: int = SEED) -> Iterator[Errors]:
    """Yield the errors with closed and throttled clients, from the actual start; the load is that of saturation."""
    random = np.random.default_rng(seed)
    for number in range(count):
        plain = layout(random)
        open_network = Analysis(plain)
        saturation = float(open_network.saturation_per_s[0])
        alone_s = float(open_network.averaged(open_network.unloaded)[0])
        share, kind = float(random.choice([0.3, 0.5, 0.7, 0.8, 0.9, 1.2])), str(random.choice(["closed", "throttled"]))
        think_s = alone_s * float(random.choice([0.0, 1.0, 10.0]))
        traffic: Traffic = Throttled(int(3 * saturation * alone_s) + 1, share * saturation, MIX)
        if kind == "closed":
            clients = max(1, int(share * saturation * (think_s + alone_s)))
            traffic = Closed(clients, Exponential(think_s) if think_s else Deterministic(0.0), MIX)
        network = replace(plain, traffic=traffic)
        analysis = Analysis(network)
        point = solve_clients(analysis, clock="actual")
        rate = float(point.rate_per_s[0, 0])
        solved = [point.response_s("job")[0, 0], *(point.quantile_s(level, "job")[0, 0] for level in LEVELS)]
        errors = _errors(network, number, rate, solved)
        yield Errors(kind, rate / saturation, *errors, known_errors(analysis, rate / saturation))


def _errors(network: Network, number: int, rate: float, solved: Iterable[float]) -> list[float]:
    """Return the errors of the mean and of the quantiles."""
    run = simulate(network, WARMUP_S + REQUESTS / rate, seed=number, warmup_s=WARMUP_S)
    latency = run.report("job").latency("actual")
    simulated = latency.mean_s, *map(latency.quantile_s, LEVELS)
    return [float(own / its - 1) for own, its in zip(solved, simulated, strict=True)]


def table(found: list[Errors]) -> str:
    """Return the errors by traffic and load: median, nine of ten, and the largest, without their sign."""
    cells = [f"{name}: median, 90 %, largest" for name in GOALS]
    lines = [_line("traffic", "load", "layouts", *cells), f"| --- | --- | ---: |{' --- |' * len(cells)}"]
    for kind in dict.fromkeys(each.kind for each in found):
        for low, high in BANDS:
            chosen = [each for each in found if each.kind == kind and low < each.load <= high]
            if chosen:
                cells = [_spread([abs(getattr(each, name)) for each in chosen]) for name in GOALS]
                band = f"{low:.0%} to {high:.0%}" if high < 1 else f"above {low:.0%}"
                lines.append(_line(kind, band, len(chosen), *cells))
    return "\n".join(lines)


def conditions(found: list[Errors]) -> str:
    """Return the errors under each condition that the solver names, and where it names none."""
    heads = [f"{name}: {what}" for name in GOALS for what in ("nine of ten", "misses")]
    lines = [_line("condition", "layouts", *heads), f"| --- | ---: |{' ---: |' * len(heads)}"]
    for known, _ in CONDITIONS:
        if chosen := [each for each in found if known in each.known]:
            lines.append(_condition(known.where, dict.fromkeys(GOALS, chosen)))
    elsewhere = {name: [each for each in found if not is_labelled(each, name)] for name in GOALS}
    lines.append(_condition("none of them", elsewhere))
    return "\n".join(lines)


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def is_labelled(errors: Errors, name: str) -> bool:
    """Whether the solver says that this figure is less accurate than elsewhere."""
    return any(getattr(known, name) is not None for known in errors.known)


def misses(found: list[Errors], name: str) -> int:
    """Return how many figures are off by more than the goal."""
    return sum(abs(getattr(each, name)) > GOALS[name] for each in found)


def _condition(where: str, found: Mapping[str, list[Errors]]) -> str:
    if not all(found.values()):
        return _line(where, 0, *[""] * 2 * len(found))
    cells = []
    for name, chosen in found.items():
        ninth = np.quantile([abs(getattr(each, name)) for each in chosen], 0.9)
        cells += [f"{ninth:.1%}", f"{misses(chosen, name)} of {len(chosen)}"]
    return _line(where, len(found["p99"]), *cells)


def summary(found: list[Errors]) -> str:
    """Return how many layouts up to 80 % load are as accurate as they should be."""
    usual = [each for each in found if each.load <= BANDS[1][1]]
    mean, p50, p99 = (sum(abs(getattr(each, name)) <= most for each in usual) for name, most in GOALS.items())
    return (
        f"Of the {len(usual)} layouts up to 80 %, {mean} have a mean within 5 %, {p50} a p50 within 12 % and "
        f"{p99} a p99 within 15 %."
    )


def _spread(errors: list[float]) -> str:
    return ", ".join(f"{value:.1%}" for value in (np.median(errors), np.quantile(errors, 0.9), np.max(errors)))
