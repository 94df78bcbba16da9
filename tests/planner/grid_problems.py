"""Random problems of `size` over small grids, and their best layouts by evaluating every layout of the grid.

`python -m tests.planner.grid_problems 200 FILE` solves 200 of them and goes on where FILE ends.
"""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.fit_table import fit_table
from capplan.errors import InputError
from capplan.layout.fitted_file import Fitted
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.size.search import Search, SizingTarget
from capplan.planner.size.size import SizingQuestion, families, size, sizing_target
from capplan.simulator.workers import in_process
from capplan.systems.registry import scenario
from capplan.systems.two_tier import SYSTEM as TWO_TIER

SEED = 32
MOST = 100  # layouts of a grid


@cache
def fitted_store(scatter: float) -> Fitted:
    """Return a store fitted to made-up load tests with a scatter: the standard deviation of logarithms."""
    rows = [layout(clients=each, read_fraction=reads) for reads in (0.5, 1.0) for each in (8, 64, 256, 512)]
    return fit_table(TWO_TIER, measured(rows, scatter=scatter))


@dataclass(frozen=True)
class Outcome:
    """What `size` and the exhaustive evaluation found: costs in machines, None where nothing is safe."""

    number: int
    found: float | None
    best: float | None
    evaluated: int
    layouts: int

    @property
    def false_no(self) -> bool:
        return self.found is None and self.best is not None

    @property
    def false_yes(self) -> bool:
        return self.found is not None and (self.best is None or self.found < self.best)

    @property
    def machines_more(self) -> float:
        return 0.0 if self.found is None or self.best is None else self.found - self.best


@dataclass(frozen=True)
class GridProblem:
    """A problem by its number; the same number always asks the same."""

    number: int

    @cached_property
    def _asked(self) -> tuple[Scenario, SizingQuestion, Fitted | None]:
        random = np.random.default_rng([SEED, self.number])
        return _openprovider(random) if random.random() < 0.7 else _two_tier(random)

    @property
    def base(self) -> Scenario:
        return self._asked[0]

    @property
    def question(self) -> SizingQuestion:
        return self._asked[1]

    @property
    def fitted(self) -> Fitted | None:
        return self._asked[2]

    def outcome(self) -> Outcome:
        """Return what `size` finds, and what there is."""
        with in_process() as workers:
            answer = size(self.base, self.question, workers, self.fitted)
        target: SizingTarget = sizing_target(self.base, self.question, self.fitted)
        safe = list[float]()
        for family in families(self.base, self.question):
            search = Search(target, family)
            ranges = (range(low, high + 1) for low, high in family.sized.values())
            every = (search.at(numbers) for numbers in itertools.product(*ranges))
            safe += [each.cost for each in every if search.safe(each)]
        found = None if answer.chosen is None else answer.chosen.cost
        return Outcome(self.number, found, min(safe, default=None), answer.solved, answer.layouts)

    def __str__(self) -> str:
        return f"{self.number}: {self.base}, {self.question.survive}, {self.question.sized}"


def _range(random: np.random.Generator, middle: float, width: int) -> tuple[int, int]:
    low = max(1, round(middle * random.uniform(0.4, 1.2)))
    return low, low + width - 1


def _grid(random: np.random.Generator, first: str, second: str, most: tuple[float, float]) -> dict[str, Any]:
    wide = int(random.integers(5, 17))
    widths = (wide, max(2, min(MOST // wide, int(random.integers(3, 9)))))
    return {
        name: _range(random, middle, width) for name, middle, width in zip((first, second), most, widths, strict=True)
    }


def _openprovider(random: np.random.Generator) -> tuple[Scenario, SizingQuestion, None]:
    dcs = int(random.integers(2, 5))
    while True:
        fields: dict[str, Any] = {
            "dcs": dcs,
            "rtt": f"{float(random.choice([0.1, 1, 5, 15, 20, 40, 100])):g}ms",
            "front_workers": int(random.choice([8, 16, 32, 64, 128])),
            "consistency_write": str(random.choice(["QUORUM", "LOCAL_QUORUM", "ONE", "ALL", "EACH_QUORUM", "TWO"])),
            "consistency_read": str(random.choice(["LOCAL_QUORUM", "QUORUM", "ONE", "LOCAL_ONE"])),
            "data_factor": float(random.choice([1.0, 1.0, 2.5])),
            "tps": float(f"{np.exp(random.uniform(np.log(3e3), np.log(6e4))):.3g}"),
        }
        if random.random() < 0.4:
            fields["slo"] = (f"acct.p99<{float(random.choice([30, 60, 200, 500])):g}ms",)
        survive = ((), ("dc",), ("node",), ("node", "dc"), ("node", "front"), ("compaction",))[int(random.integers(6))]
        nodes = fields["tps"] / 2_500 / dcs * 1.5
        sized = _grid(random, "cass_nodes", "front_nodes", (max(nodes, 2.0), max(2.0, fields["tps"] / 9_000 / dcs)))
        try:
            base = changed(scenario("openprovider"), **fields, cass_nodes=max(3, sized["cass_nodes"][1]))
        except InputError:
            continue
        return base, SizingQuestion(survive, families={"dcs": (dcs,)}, sized=sized, engine="analytic"), None


def _two_tier(random: np.random.Generator) -> tuple[Scenario, SizingQuestion, Fitted]:
    fields: dict[str, Any] = {
        "tps": float(f"{np.exp(random.uniform(np.log(1e4), np.log(1e6))):.3g}"),
        "write_waits": str(random.choice(["one", "majority", "all"])),
        "front_cores": int(random.choice([4, 8, 16, 32])),
        "node_cores": int(random.choice([8, 16, 32])),
        "read_fraction": float(random.choice([0.5, 0.8, 1.0])),
    }
    cores = fields["tps"] / 3_000
    middles = (max(cores / fields["front_cores"], 1.5), max(cores / fields["node_cores"], 3.0))
    sized = _grid(random, "front_nodes", "store_nodes", middles)
    sized = {name: (min(low, 64 - 17), min(high, 64)) for name, (low, high) in sized.items()}
    survive = ((), ("node",), ("front",), ("node", "front"))[int(random.integers(4))]
    question = SizingQuestion(survive, sized=sized, engine="analytic")
    return changed(scenario("two-tier"), **fields), question, fitted_store(float(random.choice([0.02, 0.08])))


def main(count: int, path: Path) -> None:
    """Solve problems and append their outcomes to a file, one a line."""
    done = len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0
    for number in range(done, count):
        outcome = GridProblem(number).outcome()
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
