"""Compare the analytic solver with the SimPy engine and write docs/reference/accuracy.md (about eight minutes).

Run from anywhere: `uv run python docs/generate/accuracy.py`. Seeds and sizes are fixed, so the page comes out the same.
Its part about intervals takes an hour to measure and is read from coverage.json (`coverage_of_intervals.py`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from accuracy_summary import DOCS, PAGE, filled
from coverage_table import tables as coverage_tables
from load_curves import table as load_curve_table
from random_layouts import client_errors, conditions, open_errors
from random_layouts import summary as errors_summary
from random_layouts import table as errors_table

from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Exponential, Hyperexponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import defaults
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Choice, Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Arrivals, Bursty, Open, Poisson, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, solve
from capplan.simulator.reference.engine import simulate
from capplan.simulator.results.run import Run
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.network import network as openprovider
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

COVERAGE = DOCS / "reference" / "coverage.json"
SEED, REPLICATIONS = 2026, 5
LEVELS = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
VALUES = {
    **defaults(PARAMETERS),
    "replica_read_s": 0.001214,
    "mutation_s": 0.000925,
    "unseen_work": 1.092,
    "storage_s": 0.0001169,
    "burst_excess": 1e-9,  # practically Poisson: bursts of a second would need hours
    "route_excess": 0.158,
    "coordinator_s": 0.000167,
    "ldap_s": 0.00948,
}
Discipline = Literal["fcfs", "ps"]
SERVICES: dict[str, Distribution] = {
    "D": Deterministic(1.0),
    "E2": Erlang(1.0, 2),
    "M": Exponential(1.0),
    "H2": Hyperexponential((0.8, 0.2), (0.5, 3.0)),  # SCV 3
}


@dataclass(frozen=True)
class Comparison:
    """A network at a rate, with the number of requests to simulate in each replication; times are shown in `unit_s`."""

    label: str
    network: Network
    rate_per_s: float
    requests: int
    warmup_s: float
    unit_s: float = 1.0

    def runs(self) -> list[Run]:
        """Return the replications."""
        duration_s = self.warmup_s + self.requests / self.rate_per_s
        return [
            simulate(self.network, duration_s, seed=SEED, replication=number, warmup_s=self.warmup_s)
            for number in range(REPLICATIONS)
        ]


def compared(case: Comparison, groups: dict[str, tuple[str, ...]], drops: bool) -> Iterator[str]:
    """Yield a row of the table for each group of request classes."""
    sys.stderr.write(f"{case.label}\n")
    runs, point = case.runs(), solve(Analysis(case.network), case.rate_per_s)
    for name, classes in groups.items():
        samples = [np.concatenate([run.latencies_s(each) for each in classes]) / case.unit_s for run in runs]
        figures = [([float(one.mean()) for one in samples], float(point.response_s(*classes)[0]) / case.unit_s)]
        for level in LEVELS.values():
            solved = float(point.quantile_s(level, *classes)[0]) / case.unit_s
            figures.append(([float(np.quantile(one, level)) for one in samples], solved))
        cells = [case.label, *([name] if len(groups) > 1 else []), *(_cell(*figure) for figure in figures)]
        if drops:
            cells.append(_drop_rate([run.drop_rate() for run in runs], float(point.drop_rate[0])))
        yield "| " + " | ".join(cells) + " |"


def _cell(simulated: list[float], solved: float) -> str:
    mean, error = float(np.mean(simulated)), _standard_error(simulated)
    return f"{mean:.3g} ± {error / mean:.1%} → {solved:.3g} (**{solved / mean - 1:+.1%}**)"


def _drop_rate(simulated: list[float], solved: float) -> str:
    return f"{np.mean(simulated):.2g} ± {_standard_error(simulated):.1g} → {solved:.2g}"


def _standard_error(simulated: list[float]) -> float:
    return float(np.std(simulated, ddof=1) / np.sqrt(len(simulated)))


def table(cases: list[Comparison], groups: dict[str, tuple[str, ...]] | None = None, drops: bool = False) -> str:
    """Return a table that compares simulation and solver case by case."""
    groups = groups or {"job": ("job",)}
    heads = ["case", *(["class"] if len(groups) > 1 else []), "mean", *LEVELS, *(["drop rate"] if drops else [])]
    rows = [row for case in cases for row in compared(case, groups, drops)]
    return "\n".join(["| " + " | ".join(heads) + " |", "| " + " | ".join("---" for _ in heads) + " |", *rows])


def job(
    flow: Step, rate: float, *stations: Station, pools: tuple[Pool, ...] = (), arrivals: Arrivals | None = None
) -> Network:
    """Return a network with one class of requests."""
    return Network(
        "small", stations, (RequestClass("job", flow),), Open(rate, {"job": 1.0}, arrivals or Poisson()), pools
    )


def queues() -> Iterator[Comparison]:
    """Yield one station: M/G/m, FCFS and PS."""
    chosen: list[tuple[str, Discipline, int, float]] = [
        ("M", "fcfs", 4, 0.8),
        ("D", "fcfs", 4, 0.8),
        ("H2", "fcfs", 4, 0.8),
        ("M", "ps", 4, 0.8),
        ("D", "ps", 4, 0.8),
        ("E2", "ps", 24, 0.9),
        ("H2", "ps", 4, 0.8),
    ]
    for service, discipline, servers, load in chosen:
        station = Station("server", servers, discipline)
        label = f"M/{service}/{servers} {discipline.upper()}, load {load}"
        rate = load * servers
        yield Comparison(label, job(Visit("server", SERVICES[service]), rate, station), rate, 40_000, 200.0)


def quorums() -> Iterator[Comparison]:
    """Yield replicas that share their arrivals: a read contacts 2 of 3, a write 3 of 3 or 9 of 9."""
    nodes: list[tuple[float, int, str, Discipline]] = [(0.8, 1, "M", "fcfs"), (0.9, 24, "E2", "ps")]
    for load, servers, service, discipline in nodes:
        kind = f"M/{service}/{servers} {discipline.upper()}, load {load}"
        for label, replicas, requests in (
            ("read 2 of 2", 3, 24_000),
            ("write 2 of 3", 3, 24_000),
            ("write 5 of 9", 9, 9_000),
        ):
            names = [f"node {number}" for number in range(replicas)]
            flow, visits = _quorum(label, [Visit(name, SERVICES[service], name=name) for name in names])
            rate = load * servers / visits
            stations = [Station(name, servers, discipline) for name in names]
            yield Comparison(f"{label}: {kind}", job(flow, rate, *stations), rate, requests, 100.0)


def _quorum(label: str, branches: list[Visit]) -> tuple[Step, float]:
    """Return the flow and how often it visits each replica."""
    if label.startswith("write"):
        return ForkJoin(tuple(branches), len(branches) // 2 + 1), 1.0
    pairs = tuple(ForkJoin((branches[one], branches[(one + 1) % 3]), 2) for one in range(3))
    return Choice((1 / 3,) * 3, pairs), 2 / 3


def pools() -> Iterator[Comparison]:
    """Yield pools of 12 units and a queue limit of 4, around a delay of 1 s and a station of 4 servers of 1 s."""
    cases: list[tuple[str, Discipline, float]] = [
        ("M", "ps", 3.2),
        ("M", "ps", 4.0),
        ("D", "ps", 3.2),
        ("H2", "ps", 3.2),
        ("M", "fcfs", 3.2),
        ("D", "fcfs", 3.2),
        ("H2", "fcfs", 3.2),
    ]
    for service, discipline, rate in cases:
        label = f"M/{service}/4 {discipline.upper()}, load {rate / 4}"
        yield Comparison(label, _pooled(service, discipline, rate, None), rate, 24_000, 50.0)
    for length_s in (1.0, 10.0, 100.0):
        bursts = Bursty(1.5, 0.2, length_s)
        label = f"M/M/4 PS, mean load 0.7, bursts 1.5 times as high for {length_s:g} s"
        yield Comparison(label, _pooled("M", "ps", 2.8, bursts), 2.8, 40_000, 50.0)


def _pooled(service: str, discipline: Discipline, rate: float, arrivals: Arrivals | None) -> Network:
    inside = Sequence((Delay(Exponential(1.0)), Visit("server", SERVICES[service])))
    station, pool = Station("server", 4, discipline), Pool("workers", 12, 4)
    return job(Acquire("workers", inside), rate, station, pools=(pool,), arrivals=arrivals)


def unlike_pools() -> Iterator[Comparison]:
    """Yield pools of 24 and 64 units that share a station of 8 servers, at 90 and 110 % of the solver's capacity."""
    for label, private in (("one shared station", False), ("and one of its own for each pool", True)):
        for in_turn in (False, True):
            plain = _unlike(private, in_turn, 1.0)
            capacity = float(capacity_per_s(Analysis(plain), MAX_DROP_RATE)[0])
            for share in (0.9, 1.1):
                way = "in turn" if in_turn else "at random"
                case, rate = f"{way}, {label}: {share:.0%} of {capacity:.3g}/s", share * capacity
                yield Comparison(case, _unlike(private, in_turn, rate), rate, 40_000, 50.0)


def _unlike(private: bool, in_turn: bool, rate: float) -> Network:
    stations, branches = [Station("shared", 8, "ps")], []
    for name, servers in (("small", 4), ("large", 6)):
        steps: tuple[Step, ...] = (Delay(Exponential(1.0)), Visit("shared", Exponential(1.0)))
        if private:
            stations.append(Station(name, servers, "ps"))
            steps = (*steps, Visit(name, Exponential(1.0)))
        branches.append(Acquire(name, Sequence(steps)))
    flow = Route("round_robin", tuple(branches)) if in_turn else Choice((0.5, 0.5), tuple(branches))
    return job(flow, rate, *stations, pools=(Pool("small", 24, 0), Pool("large", 64, 0)))


def layouts() -> Iterator[Comparison]:
    """Yield the documented layouts at shares of the solver's capacity."""
    sizes = (("TS1, one data centre", 1, (16_000, 30_000)), ("TS4, three data centres", 3, (9_000, 9_000)))
    for label, dcs, (few, many) in sizes:
        scenario = OpenproviderScenario(dcs=dcs)
        capacity = float(capacity_per_s(Analysis(openprovider(scenario, VALUES, 1.0)), 1e-3)[0])
        for share in (0.6, 0.85, 0.95, 1.0):
            requests, warmup_s = (many, 2.0 if dcs == 1 else 0.4) if share > 0.9 else (few, 0.4)
            case, rate = f"{label}: {share:.0%} of {capacity:,.0f}/s", share * capacity
            yield Comparison(case, openprovider(scenario, VALUES, rate), rate, requests, warmup_s, 1e-3)


def main() -> int:
    """Compare, and write the page."""
    random = [*open_errors(100), *client_errors(100)]
    parts = {
        "queues": table(list(queues())),
        "quorums": table(list(quorums())),
        "pools": table(list(pools()), drops=True),
        "layouts": table(list(layouts()), REPORTED, drops=True),
        "unlike": table(list(unlike_pools()), drops=True),
        "random": errors_table(random),
        "summary": errors_summary(random),
        "conditions": conditions(random),
        "curves": load_curve_table(),
        "setting": f"seed {SEED}, {REPLICATIONS} replications",
        **coverage_tables(json.loads(COVERAGE.read_text(encoding="utf-8"))),
    }
    PAGE.write_text(filled(parts), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
