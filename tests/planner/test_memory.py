"""What a process keeps of the questions that it has answered: no run, and not more after many than after few."""

import functools
import gc
import types
from typing import Any

import numpy as np
import pytest
from tests.planner.answered_questions import answer

from capplan.simulator.results.run import Run

SLO = "--slo auth.p99<100ms"
_NO_DATA = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def ask(line: str, seed: int) -> None:
    answered = answer((*line.split(), "--seed", str(seed), "--json"))
    assert answered.code in (0, 1), answered


def caches() -> list[Any]:
    """Return the caches of capplan."""
    gc.collect()
    found = [each for each in gc.get_objects() if isinstance(each, functools._lru_cache_wrapper)]
    return [each for each in found if each.__module__.startswith("capplan.")]


def kept_bytes() -> int:
    """Return the size of all arrays that the caches of capplan reach."""
    waiting = caches()
    seen: set[int] = set()
    total = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, _NO_DATA):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            total += one.nbytes if one.base is None else 0
        waiting += gc.get_referents(one)
    return total


def runs() -> int:
    """Return the number of runs in memory."""
    gc.collect()
    return sum(isinstance(each, Run) for each in gc.get_objects())


@pytest.mark.parametrize("system", ["openprovider", "fedora4"])
def test_no_run_is_kept(system: str) -> None:
    """The runs of a question hold megabytes for each part that an interval is made of."""
    before = runs()
    ask(f"simulate {system} --tps 20 --duration 2s --processes 1", 1)
    assert runs() <= before


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        f"predict openprovider --tps {{}} --engine analytic {SLO}",
        f"size openprovider --tps {{}} --survive node --data-factor 1 --processes 1 --engine analytic {SLO}",
        pytest.param(
            f"size openprovider --tps {{}} --survive node --processes 1 --engine analytic {SLO}",
            marks=pytest.mark.trust,
        ),
        f"sweep openprovider --front-nodes 2..7 --tps {{}} --processes 1 {SLO}",
    ],
)
def test_many_questions_leave_what_few_do(line: str) -> None:
    """Different questions share little: the third finds the caches full, and so does the fourth."""
    for each in caches():
        each.cache_clear()
    sizes = []
    for seed in range(1, 5):
        ask(line.format(1000 * seed), seed)
        sizes.append(kept_bytes())
    assert sizes[3] < 1.2 * sizes[2]
