"""Published clusters as the population of which a user's cluster is one.

`published.json` has what the rows of each cluster say of it, as docs/generate/population.py fits it. From it the
population is made in a moment, also without the studies that rows to be fitted or predicted are from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np
from scipy.special import ndtri

from capplan.calibration.tables.population import Cluster, Population, population
from capplan.calibration.tables.priors import COMMON_LOG_SD, exponent, unseen
from capplan.layout.fitted_file import DRAWS, Fitted, FittedTable, Posterior, rounded
from capplan.layout.layout_factors import name_of
from capplan.layout.table_system import hash_of
from capplan.models.language.units import FloatArray
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.rows import TIMES

EFFECTS: Mapping[str, Mapping[str, float]] = {
    "work": {"coordinator_s": 1.0, "mutation_s": 1.0, "read_s": 1.0},
    "reads": {"mutation_s": -1 / 2, "read_s": 1 / 2},
    "replicas": {"coordinator_s": -2 / 3, "mutation_s": 1 / 3, "read_s": 1 / 3},
    "unseen": {"unseen_work": 1.0},
    "delay": {"delay_s": 1.0},
    "variation": {"variation": 1.0},
}
"""What clusters differ in, and how it moves the logarithm of each parameter.

Times of nodes are taken with the work that no client waits for, so that `work`, that of a mean operation, is the speed
of a core, and `unseen` only says how much of it clients wait for."""
SCALES: Mapping[str, float] = {each: 0.5 if each in ("unseen", "delay", "variation") else 0.25 for each in EFFECTS}
"""Scale of the half-normal prior of the scatter of each effect: small for what sets ceilings, larger for times.

With 0.3 and 0.5 for ceilings, clusters that are left out are predicted worse; with 0.25 for times, a left-out p99 over
p50 lies outside its band."""
MOVED = tuple(dict.fromkeys(name for moves in EFFECTS.values() for name in moves))
"""The parameters that effects move."""
_BY_NAME = {each.name: each for each in PARAMETERS}
_USUAL = np.log([_BY_NAME[name].value for name in MOVED])
_MOVES = np.array([[moves.get(name, 0.0) for name in MOVED] for moves in EFFECTS.values()])
_OF_PARAMETERS = np.linalg.inv(_MOVES)
_LANES = np.array([name in ("coordinator_s", "mutation_s", "read_s") for name in MOVED])
_UNSEEN = MOVED.index("unseen_work")
_DRAWN = 16384  # from the wide prior
_LEAST_EXPONENT = 0.05
CORES_LOG_SD = 0.7
"""Of the cores of a node where rows state none: 4 to 32 in nine of ten clusters."""
_NO_LIMIT_S = 1e-6  # work of the load generator on a request: its machines are enough for any cluster
PUBLISHED = "published.json"


def effects_of(log_values: FloatArray) -> FloatArray:
    """Return the effects (draws, effects) of logarithms of the parameters that they move (draws, parameters)."""
    return np.asarray((log_values + _with_unseen(log_values) - _USUAL) @ _OF_PARAMETERS)


def log_values_of(effects: FloatArray) -> FloatArray:
    """Return the logarithms of the parameters (draws, parameters) that effects (draws, effects) move."""
    found = _USUAL + effects @ _MOVES
    return np.asarray(found - _with_unseen(found))


def _with_unseen(log_values: FloatArray) -> FloatArray:
    """Return by how much unseen work lengthens the times of nodes, over that of the usual cluster, in logarithms."""
    unseen = np.log1p(np.exp(log_values[..., _UNSEEN])) - np.log1p(np.exp(_USUAL[_UNSEEN]))
    return np.asarray(unseen[..., None] * _LANES)


@cache
def wide_prior() -> tuple[FloatArray, FloatArray]:
    """Return the means (effects,) and the covariance (effects, effects) of the wide prior."""
    shared = np.array([COMMON_LOG_SD * (name in TIMES) for name in MOVED])
    own = np.diag([_BY_NAME[name].log_sd ** 2 for name in MOVED])
    drawn = np.random.default_rng(0).multivariate_normal(_USUAL, own + np.outer(shared, shared), _DRAWN)
    effects = effects_of(drawn)
    return effects.mean(axis=0), np.cov(effects.T)


@cache
def published() -> Mapping[str, Any]:
    """Return the contents of the file of published clusters."""
    found: Mapping[str, Any] = json.loads((files(__package__) / PUBLISHED).read_text(encoding="utf-8"))
    return found


def studies_of(sources: Iterable[str | None]) -> frozenset[str]:
    """Return the published studies that sources of rows are from."""
    stated = tuple(filter(None, sources))
    studies = {each["study"] for each in published()["clusters"]}
    return frozenset(study for study in studies if any(each.startswith(study) for each in stated))


@lru_cache(maxsize=32)
def population_without(studies: frozenset[str] = frozenset()) -> Population:
    """Return the population of the clusters of all but some studies."""
    clusters = [
        Cluster(each["name"], each["study"], np.array(each["information"]), np.array(each["score"]), each["size"])
        for each in published()["clusters"]
        if each["study"] not in studies
    ]
    centre, covariance = wide_prior()
    return population(clusters, centre, np.sqrt(np.diag(covariance)), np.array(list(SCALES.values())), _growth(studies))


def _growth(studies: frozenset[str]) -> tuple[float, float]:
    """Return the prior of how work grows with cores: what the exponents of other scale-outs leave of them."""
    (known,) = unseen([exponent("core_exponent")], studies)
    mean = known.value * math.exp(known.log_sd**2 / 2)
    return 1 - mean, mean * math.sqrt(math.expm1(known.log_sd**2))


def fitted_without(studies: frozenset[str] = frozenset(), seed: int = 1) -> Fitted:
    """Return the calibration of a cluster that nobody has measured, which has not seen some studies."""
    rows = tuple(row for row in published()["rows"] if not studies_of([row["source"]]) & studies)
    names = tuple(dict.fromkeys(each["name"] for each in published()["clusters"] if each["study"] not in studies))
    effects, growth = population_without(studies).drawn(seed)
    moved = {
        **dict(zip(MOVED, log_values_of(effects).T, strict=True)),
        "core_exponent": np.log(np.maximum(1 - growth, _LEAST_EXPONENT)),
    }
    random, levels = np.random.default_rng([seed, 1]), ndtri((np.arange(DRAWS) + 0.5) / DRAWS)
    draws, priors = [], {}
    for each in (parameter for parameter in PARAMETERS if parameter.free):
        value = _NO_LIMIT_S if each.name == "generator_s" else each.value
        logs = np.log(value) + each.log_sd * levels[random.permutation(DRAWS)]
        draws.append(moved.get(each.name, logs))
        priors[each.name] = (rounded(float(np.exp(np.median(draws[-1])))), rounded(float(np.std(draws[-1]))))
    scatter_of_layouts = {name_of(name): (1.0, sd) for name, sd in published()["of_layouts"].items()}
    return Fitted(
        system="cassandra",
        version=version("capplan"),
        seed=seed,
        data_hash=hash_of(rows),
        code="",
        names=tuple(priors),
        most_probable=tuple(value for value, _ in priors.values()),
        draws=tuple(tuple(rounded(float(x)) for x in row) for row in np.exp(np.stack(draws, axis=-1))),
        fitted_parameters=len(MOVED),
        effective_parameters=0.0,
        posterior=Posterior(float(DRAWS), 0, 0.0, 0.0, 0.0),
        hypotheses=(),
        figures=(),
        left_out=(),
        nested=(),
        table=FittedTable(rows, published()["scatter"], priors | scatter_of_layouts, names),
    )
