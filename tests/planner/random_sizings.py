"""Random small sizings of a service farm, and their risk by a simulation that shares no code with capplan.

A farm has some nodes, each with a few cores and one queue; requests go to the nodes at random or in turn. So a node is
a GI/G/c queue by itself: its waits follow the recursion of Kiefer and Wolfowitz (1955), which numpy runs for thousands
of parameter draws at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Annotated, Any, Literal, cast

import numpy as np
from pydantic.dataclasses import dataclass as language
from scipy import stats

from capplan.layout.case import Case
from capplan.layout.components import Machine, Machines
from capplan.layout.extrapolation import Extrapolation
from capplan.layout.fitted_file import DRAWS, Fitted, Posterior
from capplan.layout.situations import Factor, Loss, Losses, Remainder, Situation
from capplan.layout.system import System
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.distribution import Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Option, Scenario, changed
from capplan.models.language.station import Station
from capplan.models.language.step import Pick, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import AtLeastOne, FloatArray, Number, PositivePerSecond
from capplan.planner.size.size import SizingQuestion

SEED = 17
SURGE = Factor(1.4, 0.15)
_WARMUP = 0.1  # share of the requests that are not counted
_AT_ONCE = 1000  # draws


@language(frozen=True, config=LANGUAGE)
class FarmScenario(Scenario):
    """A farm: nodes with cores each, stages of the service's Erlang distribution, and how requests find a node."""

    system: Literal["farm"] = "farm"
    nodes: Annotated[AtLeastOne, Option("Nodes.", "nodes")] = 2
    cores: Annotated[AtLeastOne, Option("Cores of a node.", "cores")] = 1
    stages: Annotated[AtLeastOne, Option("Stages of the service time.", "stages")] = 1
    routing: Annotated[str, Option("random or round_robin.", "routing")] = "random"
    tps: Annotated[PositivePerSecond | None, Option("Offered rate.", "offered rate")] = None
    slo: Annotated[tuple[str, ...], Option("Objective.", "objectives")] = ()


def outages(case: Case[FarmScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return the farm with fewer nodes."""

    def without(lost: int) -> Remainder:
        left = case.scenario.nodes - lost
        solved = None if left < 1 else partial(case.system.solution, changed(case.scenario, nodes=left))
        return Remainder(name="1 node", lost={"node": lost}, assumed="" if left else "no node is left", solved=solved)

    return tuple(without(loss.counts["node"]) for loss in losses)


class Farm(System[FarmScenario]):
    """A farm whose model errors are given, as no load test measured it."""

    name = "farm"
    summary = "Nodes with a queue each."
    scenario = FarmScenario
    parameters = (Parameter("service_s", 0.01, "s", "fitted", 0.2, "made up"),)
    components = (
        Losses({"node": "a node"}, outages, {"surge": Situation(name="surge", meaning="more requests", rate=SURGE)}),
        Machines[FarmScenario](
            {"node": Machine("node")}, by_dc=lambda scenario: ({"node": scenario.nodes},), sized={"nodes": (1, 24)}
        ),
    )
    errors = Uncertainty(ModelError(0.04), ModelError(0.1), 1)

    def network(self, scenario: FarmScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the farm."""
        service = values["service_s"]
        demand = Exponential(service) if scenario.stages == 1 else Erlang(service, scenario.stages)
        work = Visit("node", demand, name="work", member="one")
        flow = Pick("one", "node", cast("Any", scenario.routing), work, name="to")
        return Network(
            name="farm",
            stations=(Station("node", scenario.cores, count=scenario.nodes),),
            classes=(RequestClass("request", flow),),
            traffic=Open(rate_per_s, {"request": 1.0}),
        )

    def uncertainty(self, fitted: Fitted, scenario: FarmScenario, seed: int) -> Uncertainty:
        """Return the given model errors."""
        del fitted, scenario
        return replace(self.errors, seed=seed)

    def extrapolation(self, scenario: Any, rate_per_s: Any = None, tests: Any = None) -> Extrapolation:
        """Return none: errors are as given everywhere."""
        del scenario, rate_per_s, tests
        return Extrapolation((), (), "measured", "")


SYSTEM = Farm()


@dataclass(frozen=True)
class Problem:
    """A sizing problem by its number."""

    number: int

    @cached_property
    def base(self) -> FarmScenario:
        """The farm, its rate and its objective."""
        random = np.random.default_rng([SEED, self.number])
        cores, stages = int(random.choice([1, 2, 4])), int(random.choice([1, 3]))
        routing = str(random.choice(["random", "round_robin"]))
        service_s = float(SYSTEM.parameters[0].value)
        rate = cores / service_s * float(random.uniform(1.2, 7.0))  # 2 to 15 nodes
        statistic = str(random.choice(["mean", "p99"]))
        limit_ms = 1e3 * service_s * float(random.uniform(*{"mean": (1.4, 3.0), "p99": (6.5, 14.0)}[statistic]))
        slo = (f"request.{statistic}<{limit_ms:.1f}ms",)
        return FarmScenario(cores=cores, stages=stages, routing=routing, tps=rate, slo=slo)

    @cached_property
    def question(self) -> SizingQuestion:
        """What it must survive, and how surely."""
        random = np.random.default_rng([SEED, self.number, 1])
        survive = ((), ("node",), ("surge",), ("node", "surge"))[int(random.integers(4))]
        return SizingQuestion(survive=survive, confidence=float(random.choice([0.8, 0.9, 0.95])))

    @cached_property
    def fitted(self) -> Fitted:
        """A calibration with an uncertain service time."""
        random = np.random.default_rng([SEED, self.number, 2])
        log_sd = float(random.uniform(0.05, 0.2))
        levels = (random.permutation(DRAWS) + 0.5) / DRAWS
        draws = float(SYSTEM.parameters[0].value) * np.exp(log_sd * stats.norm.ppf(levels))
        return Fitted(
            system="farm",
            version="",
            seed=1,
            data_hash="",
            code="",
            names=("service_s",),
            most_probable=(float(SYSTEM.parameters[0].value),),
            draws=tuple((float(each),) for each in draws),
            fitted_parameters=1,
            effective_parameters=1.0,
            posterior=Posterior(1.0, 0, 1.0, 0.0, 0.0),
            hypotheses=(),
            figures=(),
            left_out=(),
            nested=(),
        )

    @property
    def log_sd(self) -> float:
        """Spread of the service time, in the logarithm."""
        return float(np.std(np.log([each for (each,) in self.fitted.draws])))

    @property
    def limit(self) -> tuple[str, float]:
        """The statistic of the objective, and its limit in seconds."""
        figure, limit_ms = self.base.slo[0].removeprefix("request.").removesuffix("ms").split("<")
        return figure, float(limit_ms) * 1e-3

    @property
    def conditions(self) -> tuple[str, ...]:
        """Everything that the farm must survive."""
        return ("normal", *self.question.survive)

    def __str__(self) -> str:
        return f"{self.number}: {self.base}, {self.question.survive}, {self.question.confidence}"


@lru_cache(maxsize=4096)
def simulated_failures(problem: Problem, nodes: int, conditions: str, draws: int, requests: int) -> int:
    """Return at how many of `draws` random repeats a farm fails its objective; each simulates one node.

    A repeat has a service time, a model error of its rate and one of its times, and a surge of its own.
    """
    random = np.random.default_rng([SEED, problem.number, nodes, len(conditions), 3])
    left = nodes - (conditions == "node")
    if left < 1:
        return draws
    base, errors = problem.base, SYSTEM.errors
    service_s = float(SYSTEM.parameters[0].value) * np.exp(problem.log_sd * random.standard_normal(draws))
    factor = SURGE.median * np.exp(SURGE.log_sd * random.standard_normal(draws)) if conditions == "surge" else 1.0
    rate = float(np.max(base.tps or 0)) * factor / np.exp(errors.rate.log_sd * random.standard_normal(draws))
    noise = np.exp(errors.time.log_sd * random.standard_normal(draws))
    statistic, limit_s = problem.limit
    failed = np.asarray(rate * service_s >= left * base.cores)
    for start in range(0, draws, _AT_ONCE):
        part = np.flatnonzero(~failed[start : start + _AT_ONCE]) + start
        times = node_times_s(random, base, left, rate[part], service_s[part], requests)
        figure = times.mean(axis=0) if statistic == "mean" else np.quantile(times, 0.99, axis=0)
        failed[part] = figure * noise[part] > limit_s
    return int(failed.sum())


def node_times_s(
    random: np.random.Generator,
    farm: FarmScenario,
    nodes: int,
    rate: FloatArray,
    service_s: FloatArray,
    requests: int,
) -> FloatArray:
    """Return the response times of a node, seconds (requests, draws), those of the warm-up left out."""
    draws, gaps_of = len(rate), nodes if farm.routing == "round_robin" else 1
    mean_gap = nodes / rate / gaps_of
    free = np.zeros((farm.cores, draws))  # seconds until each core is free, sorted
    found = np.empty((requests, draws))
    for place in range(requests):
        service = service_s / farm.stages * random.standard_gamma(farm.stages, draws)
        found[place] = free[0] + service
        free[0] += service
        if farm.cores > 1:
            free.sort(axis=0)
        np.maximum(free - mean_gap * random.standard_gamma(gaps_of, draws), 0.0, out=free)
    return found[int(_WARMUP * requests) :]


def side(failures: int, draws: int, risk: float, error_rate: float) -> int:
    """Return 1 if the exact binomial interval (Clopper and Pearson 1934) lies above `risk`, -1 if below, else 0."""
    above, below = stats.binom.sf(failures - 1, draws, risk), stats.binom.cdf(failures, draws, risk)
    return int(above < error_rate / 2) - int(below < error_rate / 2)
