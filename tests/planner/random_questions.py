"""Random questions about all systems: layouts, rates from a tenth to twice the capacity, and objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.models.language.scenario import Scenario, changed
from capplan.systems.registry import resolve, scenario, system

SEED = 16
FEW = 8  # draws of the cases that only say which rate to ask for, or in which direction a figure moves
SHARES = {"openprovider": 0.12, "fedora4": 0.28, "rhino-shcm": 0.24, "arion": 0.26, "vcider": 0.1}

Random = np.random.Generator
Fields = dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A question by its number: the scenario that asks it, and the layout without rate and objectives."""

    number: int
    scenario: Scenario
    layout: Scenario

    @property
    def name(self) -> str:
        return self.layout.system

    @cached_property
    def few(self) -> Case[Any]:
        """The layout with a few draws of its parameters."""
        return few_draws(self.layout)

    @property
    def capacity(self) -> float:
        return float(np.median(self.few.solution.capacity))

    def __str__(self) -> str:
        return f"{self.number}: {self.scenario}"


def few_draws(layout: Scenario) -> Case[Any]:
    """Return a case that solves a few draws of the calibration, and no others."""
    fitted = system(layout.system).fitted()
    return resolve(layout, replace(fitted, draws=fitted.draws[:: len(fitted.draws) // FEW]))


@lru_cache(maxsize=8)
def question(number: int) -> Question:
    """Return a question; the same number always asks the same."""
    random = np.random.default_rng([SEED, number])
    name = str(random.choice(list(SHARES), p=list(SHARES.values())))
    while True:  # until a layout breaks no rule
        try:
            layout = scenario(name, **LAYOUTS[name](random))
            capacity = (
                0.0 if system(name).component(Ratios).of is not None else Question(number, layout, layout).capacity
            )
        except InputError:
            continue
        break
    if system(name).component(Ratios).of is not None:
        return Question(number, layout, layout)
    asked: Fields = {}
    if random.random() < 0.6:
        asked["tps"] = float(f"{capacity * random.uniform(0.1, 2.0):.3g}")
    if random.random() < 0.5:
        asked["slo"] = (_objective(random, Question(number, layout, layout)),)
    return Question(number, changed(layout, **asked), layout)


def _objective(random: Random, of: Question) -> str:
    """Return an objective that is neither hopeless nor a matter of course, mostly."""
    its, kind = of.few, random.random()
    if kind < 0.15:
        return f"capacity>={of.capacity * random.uniform(0.5, 1.5):.3g}"
    if kind < 0.25 and its.solution.analysis.pool is not None:
        return f"drop_rate<{random.choice(['0.1%', '1%', '5%'])}"
    if kind < 0.35:
        return f"{its.solution.resources[0]}.utilisation<{random.uniform(0.3, 0.9):.0%}"
    figures = its.solution.at(0.5 * of.capacity)
    name, statistic = str(random.choice(figures.asked)), str(random.choice(["mean", "p50", "p95", "p99"]))
    usual = float(np.median(figures.latency_s(name, statistic)))
    return f"{name}.{statistic}<{1e3 * usual * random.uniform(0.9, 4.0):.3g}ms"


def _openprovider(random: Random) -> Fields:
    dcs = int(random.integers(1, 5))
    nodes = int(random.integers(1, 13))
    rf = int(random.integers(1, min(3, nodes) + 1))
    found: Fields = {
        "dcs": dcs,
        "cass_nodes": nodes,
        "rf": rf,
        "front_nodes": int(random.integers(1, 7)),
        "front_workers": int(random.choice([16, 32, 64, 128])),
        "consistency_read": str(random.choice(["ONE", "LOCAL_QUORUM", "QUORUM"])),
        "consistency_write": str(random.choice(["ONE", "LOCAL_QUORUM", "QUORUM", "EACH_QUORUM", "ALL"])),
        "proxy": bool(random.random() < 0.2),
        "ldap": bool(random.random() < 0.2),
        "data_factor": float(random.choice([1.0, 1.0, 2.5])),
        "burst_ratio": [None, 1.0, 1.5][int(random.integers(3))],
    }
    if dcs > 1:
        found["rtt"] = f"{10 ** random.uniform(-0.5, 2):.3g}ms"
    if random.random() < 0.2:
        found["encryption"] = str(random.choice(["client", "internode", "client+internode"]))
    if dcs > 1 and random.random() < 0.15:
        found["cass_nodes"] = "/".join(str(max(rf, int(random.integers(2, 9)))) for _ in range(dcs))
    return found


def _rhino(random: Random) -> Fields:
    nodes = int(random.integers(1, 10))
    return {
        "cass_nodes": nodes,
        "rf": int(random.integers(1, min(3, nodes) + 1)),
        "colocated": bool(nodes == 1 and random.random() < 0.5),
        "cache": bool(random.random() < 0.8),
    }


def _fedora4(random: Random) -> Fields:
    return {
        "nodes": int(random.integers(1, 11)),
        "write_share": str(random.choice(["0%", "5%", "20%", "50%"])),
        "region": str(random.choice(["us-east", "us-west", "eu", "asia"])),
    }


def _arion(random: Random) -> Fields:
    servers = int(random.integers(1, 17))
    return {
        "servers": servers,
        "clients": servers * int(10 ** random.uniform(0.5, 3.3)),
        "stream_messages": 1000 if random.random() < 0.2 else 1,
    }


def _vcider(random: Random) -> Fields:
    return {
        "rf": int(random.integers(1, 5)),
        "column_bytes": int(random.choice([32, 64, 128, 192, 256, 512])),
        "encryption": str(random.choice(["client+internode", "internode", "none"])),
    }


LAYOUTS: Mapping[str, Callable[[Random], Fields]] = {
    "openprovider": _openprovider,
    "rhino-shcm": _rhino,
    "fedora4": _fedora4,
    "arion": _arion,
    "vcider": _vcider,
}
