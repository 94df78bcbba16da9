"""Published clusters as a population: what another cluster may be like, from those that were measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from capplan.calibration.tables.population import FREEDOM, Cluster, Population, population, without_prior
from capplan.models.language.units import FloatArray

PRIOR = np.zeros(2), np.ones(2), np.full(2, 0.25)
NO_SLOPE = (0.0, 1e-6)
ENDS = (0.05, 0.5, 0.95)


def cluster(
    effects: Sequence[float], error: float = 0.1, *, name: str = "", study: str = "", size: float = 0.0
) -> Cluster:
    """A cluster whose effects are known with a standard error."""
    information = np.eye(len(effects)) / error**2
    return Cluster(name, study or name, information, information @ np.array(effects), size)


def ends(found: Population) -> FloatArray:
    effects, _ = found.drawn(1)
    return np.asarray(np.quantile(effects, ENDS, axis=0))


def test_bands_hold_new_clusters_of_made_up_populations() -> None:
    """In 60 populations of seven clusters, 90 % bands hold a further one.

    Of 60 correct bands fewer than 46 hold in one of 1,500 cases, and all 60 in one of 560. Bands of half the width hold
    0.6 of such clusters, and pass once in 200 cases; bands without end always hold, which the upper limit refuses.
    """
    random, held = np.random.default_rng(7), 0
    centre, spread, scales = (each[:1] for each in PRIOR)
    for _ in range(60):
        scatter = abs(random.normal(0, 0.25))
        effects = 0.5 + scatter * random.standard_t(FREEDOM, 8)
        seen = [cluster([value + 0.1 * random.standard_normal()], name=str(at)) for at, value in enumerate(effects[1:])]
        low, _, high = ends(population(seen, centre, spread, scales, NO_SLOPE))[:, 0]
        held += bool(low <= effects[0] <= high)
    assert 46 <= held <= 59


def test_the_clusters_of_a_study_count_as_one() -> None:
    others = [cluster([0.0, 0.0], name="a"), cluster([0.6, 0.0], name="b")]
    once = ends(population([*others, cluster([0.6, 0.0], name="c")], *PRIOR, NO_SLOPE))
    four = [cluster([0.6, 0.0], name=f"c{at}", study="c") for at in range(4)]
    assert ends(population([*others, *four], *PRIOR, NO_SLOPE)) == pytest.approx(once, abs=0.15)


def test_a_cluster_that_says_nothing_changes_nothing() -> None:
    seen = [cluster([0.3, -0.2], name=str(at)) for at in range(4)]
    silent = Cluster("silent", "silent", np.zeros((2, 2)), np.zeros(2))
    told, with_silent = (ends(population(each, *PRIOR, NO_SLOPE)) for each in (seen, [*seen, silent]))
    assert with_silent == pytest.approx(told, abs=0.1)


def test_the_first_effect_follows_the_size() -> None:
    seen = [cluster([0.5 * size, 0.0], name=str(size), size=size) for size in (-1.0, 0.0, 1.0, 2.0)]
    _, slopes = population(seen, *PRIOR, (0.0, 1.0)).drawn(1)
    assert np.median(slopes) == pytest.approx(0.5, abs=0.1)


def test_a_posterior_without_its_prior_is_what_the_rows_say() -> None:
    """The standard errors of 20,000 draws are 1 %, and the tolerances five of them."""
    prior, rows = np.array([[1.0, 0.5], [0.5, 2.0]]), np.diag([4.0, 0.0])
    covariance = np.linalg.inv(np.linalg.inv(prior) + rows)
    middle = covariance @ (rows @ [0.8, 0.0])
    drawn = np.random.default_rng(3).multivariate_normal(middle, covariance, 20_000)
    information, score = without_prior(drawn, np.zeros(2), prior)
    assert information == pytest.approx(rows, abs=0.25)
    assert score == pytest.approx(rows @ [0.8, 0.0], abs=0.25)
