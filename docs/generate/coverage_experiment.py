"""One experiment: simulate a system with known response times as a user would, and return the intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from coverage_truth import FORK_JOIN, Truth, farm, single

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import ForkJoin, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.planner.simulate.simulate import Design, observed
from capplan.planner.simulate.simulation import EVERY_CLASS, SampleEstimates, read_precision_target
from capplan.simulator.experiment import Configuration, Experiment, Rows
from capplan.simulator.replications import ReplicationPlan
from capplan.simulator.sample import Sample

CHUNK = 20  # experiments that run, and are saved, at a time
STATISTICS = ("mean", "p99")
COLUMNS = ("value", "half_width")


@dataclass(frozen=True)
class System:
    """A network with known response times; the mean service time is one second."""

    label: str
    network: Network
    rate_per_s: float
    truth: Truth


def _system(label: str, flow: Step, stations: Sequence[Station], rate_per_s: float, truth: Truth) -> System:
    traffic = Open(rate_per_s, {"job": 1.0})
    return System(label, Network(label, tuple(stations), (RequestClass("job", flow),), traffic), rate_per_s, truth)


def _systems() -> Iterator[System]:
    service, one, four = Exponential(1.0), Station("server", 1), Station("server", 4)
    yield _system("M/M/1, load 0.8", Visit("server", service), [one], 0.8, single(0.8))
    yield _system("M/M/4, load 0.9", Visit("server", service), [four], 3.6, farm(4, 0.9))
    nodes = [Station(f"node {number}", 1) for number in range(3)]
    answers = ForkJoin(tuple(Visit(node.name, service, name=node.name) for node in nodes), 2)
    yield _system("2 of 3 answers, load 0.7", answers, nodes, 0.7, FORK_JOIN)


SYSTEMS = {system.label: system for system in _systems()}  # one object each, so that its lowered network is cached


@dataclass(frozen=True)
class Trial:
    """A procedure that gives intervals, tried on a system in many experiments.

    Attributes
    ----------
    system
        Label of the system.
    requests
        Mean number of requests per replication.
    replications
        Number of replications; with a precision, the maximum.
    precision
        Precision that ends an experiment, such as `p99<2%`; empty if the number of replications is given.
    """

    system: str
    requests: int
    replications: int
    precision: str = ""

    def experiment(self, number: int) -> dict[str, float | None]:
        """Run an experiment and return its `figures`."""
        system = SYSTEMS[self.system]
        seed = int.from_bytes(blake2b(f"{self} {number}".encode(), digest_size=7).digest())
        plan = ReplicationPlan(system.network, self.requests / system.rate_per_s, 0.0, seed, self.replications)
        target = read_precision_target(self.precision, ["job"], [EVERY_CLASS]) if self.precision else None
        return figures(plan, Design(precision=target))


def figures(plan: ReplicationPlan, design: Design) -> dict[str, float | None]:
    """Return a row: the replications, and `COLUMNS` of each statistic, in seconds."""
    sample = Sample(tuple(observed(plan, design)), design.horizon)
    row: dict[str, float | None] = {"replications": len(sample.runs)}
    for statistic in STATISTICS:
        found = SampleEstimates(sample).latency(EVERY_CLASS, statistic)
        cells = found.value / 1e3, None if found.half_width is None else found.half_width / 1e3
        row |= {f"{statistic} {name}": cell for name, cell in zip(COLUMNS, cells, strict=True)}
    return row


@dataclass(frozen=True)
class Trials:
    """A trial with its number of experiments, a multiple of `CHUNK`."""

    trial: Trial
    experiments: int

    def chunk(self, number: int) -> Rows:
        """Run the experiments of this chunk."""
        return [self.trial.experiment(each) for each in range(number * CHUNK, (number + 1) * CHUNK)]

    def case(self) -> Configuration[Trials]:
        """Return the trials as a configuration of an experiment whose replications are chunks."""
        return Configuration(blake2b(repr(self.trial).encode(), digest_size=16).hexdigest(), self)


def _wanted(trials: Trials, _: Sequence[Rows]) -> int:
    return trials.experiments // CHUNK


EXPERIMENT: Experiment[Trials] = Experiment(Trials.chunk, _wanted)
