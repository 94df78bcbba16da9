"""Write docs/reference/priors.md: what the fits owe to the medians of their priors.

`uv run just priors` refits every system with its prior medians moved (up to half an hour on two cores), keeps the
predictions in docs/reference/priors.json, and writes the page. It resumes if it was interrupted. With `--page`, the
script only writes the page from the kept predictions.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from capplan.answers.number_words import share
from capplan.calibration.fit.posterior import Maximum, maximum, problem, start_of
from capplan.calibration.fit.refits import folds
from capplan.calibration.fit.stages import Stages, digest
from capplan.calibration.validation.backtest import left_out
from capplan.calibration.validation.nearness import nearness
from capplan.files import replace_file
from capplan.layout.components import Ratios
from capplan.layout.fitted_file import Fitted, rounded
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
from capplan.models.language.parameter import Parameter, from_log, log_values
from capplan.models.language.units import FloatArray
from capplan.systems.registry import documented_names, system

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
KEPT, PAGE = REFERENCE / "priors.json", REFERENCE / "priors.md"
SEED = 1
PATTERNS = 2  # sign patterns; each also runs with all signs reversed
WORKERS = 2
WIDTH = 120
TEXT = """# What the fits owe to their priors

`uv run just priors` makes this page. The predictions behind it are in `priors.json`.

## Prior medians lie nearer to the fits than their widths allow

The median of a prior should not know the fit. The most probable values are then one standard deviation away (root mean
square), and the probability of being as near by chance lies anywhere between 0 and 1.

{nearness}

So the medians are not independent of the figures. The model and its priors were written with all figures in view, and
most wide priors are centred near the value that already described them. Priors that a source supports are marked
`prior` in the code; the others say `wide prior` or `guess`. We have not moved the medians: a median that is chosen
again, by someone who knows the fit, is no more independent. The widths are honest: they say what was known without
the figures. The table below shows how much depends on the medians.

## What moves if the medians had been others

Each median is moved by its own standard deviation, up or down at random; {patterns} patterns of signs, each with its
reverse. Every run refits the system, as a whole and without each scenario. All figures are those of the most probable
parameters.

{moves}

*Figures as fitted* and *left-out figures* are the scored ones; a move is the absolute change of a prediction, as a
median and as the largest over all figures and runs. *Left-out error* is the median absolute error, without the move and
from the smallest to the largest of the runs. *Capacity* is the largest move of that of the default layout (of vcider:
its ratio).

A small move says that the figures decide; a large one, that the median does. Left-out figures that move by more than
10 %: {far}. Their left-out errors are as much a judgement of the prior as of the model.

Bands of predictions contain the spread of
the posterior, and with it what the priors leave open around their medians.
"""


def displaced(parameters: Sequence[Parameter], signs: Sequence[int]) -> tuple[Parameter, ...]:
    """Return the parameters with each free prior median moved up or down by its standard deviation.

    Parameters
    ----------
    parameters : sequence of Parameter
        The parameters.
    signs : sequence of int (free,)
        1: up; -1: down; 0: not moved.
    """
    remaining = iter(signs)
    return tuple(
        replace(each, value=each.value * float(np.exp(next(remaining) * each.log_sd))) if each.free else each
        for each in parameters
    )


def sign_patterns(parameters: Sequence[Parameter], seed: int) -> list[list[int]]:
    """Return no move, then `PATTERNS` random patterns of signs, each followed by its reverse."""
    free = sum(parameter.free for parameter in parameters)
    drawn = np.random.default_rng(seed).choice([-1, 1], (PATTERNS, free))
    return [[0] * free, *(row.tolist() for pattern in drawn for row in (pattern, -pattern))]


def scored(system: System[Any], fitted: Fitted) -> dict[str, float]:
    """Return the documented figures that are scored when left out, by row id, SI."""
    return {each.id: each.documented for each in left_out(system, fitted) if each.counts}


def refitted_from(system: System[Any], fitted: Fitted, signs: Sequence[int]) -> dict[str, Any]:
    """Refit a system, as a whole and without each scenario, with every prior median moved by its standard deviation.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted
        Its calibration, near which the searches start.
    signs : sequence of int (free,)
        Directions of the moves; see `displaced`.

    Returns
    -------
    dict
        Predictions at the most probable parameters, as JSON types, SI: `fitted` and `left_out` by row id, and the
        `capacity` of the default layout (its first ratio, if the system has only these).
    """
    parameters = displaced(system.parameters, signs)
    tests, near, given = system.observations.load_tests(), np.log(fitted.most_probable), start_of(system)
    starts = (near, log_values(parameters) if given is None else given)
    best = min((_fit(system, parameters, tests, start) for start in starts), key=lambda fit: fit.deviance)
    without: dict[str, float] = {}
    for fold in folds(tests):
        fit = _fit(system, parameters, [test for test in tests if test.fold != fold], best.log_point)
        without |= _predicted(system, [test for test in tests if test.fold == fold], fit.log_point)
    return {
        "fitted": _predicted(system, tests, best.log_point),
        "left_out": without,
        "capacity": _capacity(system, best.log_point),
    }


def _fit(
    system: System[Any], parameters: tuple[Parameter, ...], tests: Sequence[LoadTest[Any]], start: FloatArray
) -> Maximum:
    own = replace(problem(system, tests), parameters=parameters)
    limits = own.centre - 3.9 * own.spread, own.centre + 3.9 * own.spread  # the search stays within four
    return maximum(own, np.clip(start, *limits))


def _predicted(system: System[Any], tests: Sequence[LoadTest[Any]], log_point: FloatArray) -> dict[str, float]:
    values = system.observations.predicted(tests, from_log(system.parameters, log_point[None]))
    return {row.id: rounded(float(np.ravel(values[row.id])[0])) for test in tests for row in test.rows}


def _capacity(system: System[Any], log_point: FloatArray) -> float:
    scenario, values = system.scenario(), from_log(system.parameters, log_point[None])
    ratios = system.component(Ratios).of
    if ratios is not None:
        return rounded(float(np.ravel(next(iter(ratios(scenario, values).values())))[0]))
    return rounded(float(np.ravel(system.solution(scenario, values).capacity)[0]))


def runs_of(name: str) -> list[list[int]]:
    """Return the signs of the runs of a system, first without a move."""
    return sign_patterns(system(name).parameters, SEED)


def stages_of(name: str, number: int) -> Stages:
    """Return the only stage of a run, which is kept beside the result until all runs are finished."""
    its = system(name)
    key = digest(its, its.data_hash, its.fitted().most_probable, runs_of(name)[number])
    return Stages(key, output=KEPT.with_name(f"priors-{name}-{number}"))


def run(job: tuple[str, int]) -> dict[str, Any]:
    """Return the predictions of one run of a system, unless they are kept."""
    (name, number), its = job, system(job[0])
    made = partial(refitted_from, its, its.fitted(), runs_of(name)[number])
    found: dict[str, Any] = stages_of(name, number).of("run", made)
    print(f"{name}: run {number}", file=sys.stderr, flush=True)
    return found


def results() -> dict[str, Any]:
    """Return the scored figures and the runs of each system."""
    jobs = [(name, number) for name in documented_names() for number in range(len(runs_of(name)))]
    with ProcessPoolExecutor(WORKERS) as workers:
        made = dict(zip(jobs, workers.map(run, jobs), strict=True))
    found = {
        name: {
            "documented": scored(system(name), system(name).fitted()),
            "runs": [each for (its, _), each in made.items() if its == name],
        }
        for name in documented_names()
    }
    replace_file(KEPT, json.dumps(found, indent=1) + "\n")
    for job in jobs:
        stages_of(*job).end()
    return found


def page(found: dict[str, Any]) -> str:
    """Return the text of the page."""
    text = TEXT.format(nearness=_nearness(), moves=_moves(found), far=_far(found), patterns=PATTERNS).replace(
        " %", "\u00a0%"
    )
    parts = (part if part.startswith(("|", "#")) else textwrap.fill(part, WIDTH) for part in text.strip().split("\n\n"))
    return "\n\n".join(parts) + "\n"


def _nearness() -> str:
    found = {
        name: nearness(system(name).parameters, system(name).fitted().most_probable) for name in documented_names()
    }
    found["**all**"] = reduce(add, found.values())
    rows = [
        (name, f"{each.parameters}", f"{each.root_mean_square:.2f}", f"{each.probability:.1g}")
        for name, each in found.items()
    ]
    return _table(("system", "free parameters", "distance, standard deviations", "probability"), rows)


def _moves(found: dict[str, Any]) -> str:
    heads = ("system", "figures as fitted", "left-out figures", "left-out error", "capacity")
    return _table(heads, [(name, *_cells(each)) for name, each in found.items()])


def _cells(result: dict[str, Any]) -> tuple[str, ...]:
    documented, (plain, *moved) = result["documented"], result["runs"]
    named = list(documented)
    errors = [_error(run, documented) for run in (plain, *moved)]
    rates = [run["capacity"] / plain["capacity"] - 1 for run in moved]
    return (
        *(_move(_array(plain[what], named), [_array(run[what], named) for run in moved]) for what in WHAT),
        f"{share(errors[0])} ({share(min(errors[1:]))} to {share(max(errors[1:]))})",
        f"at most {share(max(map(abs, rates)))}",
    )


_FAR = 0.1
WHAT = ("fitted", "left_out")


def _far(found: dict[str, Any]) -> str:
    """Return the left-out figures that move by more than a tenth, by system, with their largest move."""
    parts = []
    for name, result in found.items():
        named, (plain, *moved) = list(result["documented"]), result["runs"]
        runs = np.array([_array(run["left_out"], named) for run in moved])
        largest = np.abs(runs / _array(plain["left_out"], named) - 1).max(axis=0)
        far = [f"`{each}` ({share(move)})" for each, move in zip(named, largest, strict=True) if move > _FAR]
        parts += [f"{', '.join(far)} of {name}"] if far else []
    return "; ".join(parts) or "none"


def _array(predicted: dict[str, float], named: list[str]) -> FloatArray:
    return np.array([predicted[name] for name in named])


def _move(plain: FloatArray, moved: list[FloatArray]) -> str:
    changes = np.abs(np.array(moved) / plain - 1)
    return f"{share(float(np.median(changes)))}, at most {share(float(changes.max()))}"


def _error(run: dict[str, Any], documented: dict[str, float]) -> float:
    return float(np.median([abs(run["left_out"][name] / value - 1) for name, value in documented.items()]))


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    ruler = (":---", *["---:"] * (len(heads) - 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ruler, *rows))


def main() -> int:
    """Refit, keep the predictions, and write the page."""
    made = json.loads(KEPT.read_text(encoding="utf-8")) if "--page" in sys.argv[1:] else results()
    replace_file(PAGE, page(made))
    return 0


if __name__ == "__main__":
    sys.exit(main())
