"""Published clusters as a population: what another cluster may be like, from the posteriors of those measured.

Each cluster has been fitted alone, and its posterior is kept without its prior, as information. The clusters scatter
around a mean in every effect, such as the speed of a core, with Student tails: some are unlike the others. Effects are
independent between clusters; within one, its own rows say how they go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from capplan.layout.fitted_file import DRAWS
from capplan.models.language.units import FloatArray, Number

FREEDOM = 4
"""Degrees of freedom of the scatter between clusters: one cluster in ten lies beyond two of its scales."""
_SCATTER = np.geomspace(0.02, 2.0, 64)
_CHAINS, _WARM_UP, _KEPT = 64, 60, 16  # of the Gibbs sampler; every fourth step of a chain is kept
_THINNED = 4
_ROUNDING = 1e-6  # a precision that rounded information may lack


@dataclass(frozen=True)
class Cluster:
    """What the rows of a published cluster say of it.

    Attributes
    ----------
    name, study : str
        The cluster and who measured it. The clusters of a study count as one together.
    information : array (effects, effects)
        Precision of the effects by the rows alone.
    score : array (effects,)
        The precision times the most probable effects.
    size : float
        Logarithm of the size on which the first effect depends, over the usual one.
    """

    name: str
    study: str
    information: FloatArray
    score: FloatArray
    size: float = 0.0


def without_prior(logs: FloatArray, centre: FloatArray, covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what a posterior says beyond its prior: information (effects, effects) and score (effects,).

    Parameters
    ----------
    logs : array (draws, effects)
        Draws from the posterior.
    centre : array (effects,)
        Means of the prior.
    covariance : array (effects, effects)
        Its covariance.
    """
    posterior, prior = np.linalg.inv(np.cov(logs.T)), np.linalg.inv(covariance)
    share, basis = np.linalg.eigh(posterior - prior)
    information = (basis * np.maximum(share, 0.0)) @ basis.T
    # Where rows said nothing, sampling noise would pull: the score has only what the information can tell.
    told = basis[:, share > 0]
    return information, told @ (told.T @ (posterior @ logs.mean(axis=0) - prior @ centre))


@dataclass(frozen=True)
class Population:
    """The distribution of clusters, as draws of what it may be.

    Attributes
    ----------
    means, scatters : array (draws, effects)
        Means of the effects in clusters of the usual size, and scales of their Student distributions.
    slopes : array (draws,)
        How the first effect grows with the size of a cluster.
    """

    means: FloatArray
    scatters: FloatArray
    slopes: FloatArray

    def drawn(self, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return the effects of other clusters of the usual size (DRAWS, effects), and their slopes (DRAWS,)."""
        random, levels = np.random.default_rng(seed), (np.arange(DRAWS) + 0.5) / DRAWS
        at = np.linspace(0, len(self.means) - 1, DRAWS).round().astype(int)
        far = [stdtrit(FREEDOM, levels)[random.permutation(DRAWS)] for _ in range(self.means.shape[1])]
        return self.means[at] + self.scatters[at] * np.stack(far, axis=-1), self.slopes[at]


def population(
    clusters: Sequence[Cluster],
    centre: FloatArray,
    spread: FloatArray,
    scales: FloatArray,
    slope: tuple[float, float],
    seed: int = 1,
) -> Population:
    """Return the population of clusters, by Gibbs sampling.

    Parameters
    ----------
    clusters : sequence of Cluster
        The published clusters.
    centre, spread : array (effects,)
        Mean and standard deviation of the wide prior of each population mean.
    scales : array (effects,)
        Scale of the half-normal prior of each scatter between clusters.
    slope : (float, float)
        Mean and standard deviation of how the first effect grows with the size of a cluster.
    seed : int
        Random seed.

    References
    ----------
    A. Gelman et al., Bayesian Data Analysis, 3rd ed., 2013, sections 5.4 and 17.2.
    """
    random, count = np.random.default_rng(seed), len(centre)
    information = np.stack([each.information for each in clusters])
    score = np.stack([each.score for each in clusters])
    size = np.array([each.size for each in clusters])
    studies = [each.study for each in clusters]
    weight = np.array([1 / studies.count(each) for each in studies])[:, None]  # a study counts once
    shape = (_CHAINS, len(clusters), count)
    mean, slopes = np.tile(centre, (_CHAINS, 1)), np.full(_CHAINS, slope[0])
    scatter, mixing, kept = np.tile(scales, (_CHAINS, 1)), np.ones(shape), []
    for step in range(_WARM_UP + _THINNED * _KEPT):
        by_size = np.multiply.outer(np.multiply.outer(slopes, size), np.arange(count) == 0)
        narrow = mixing / scatter[:, None] ** 2 + _ROUNDING
        root = np.linalg.cholesky(information + narrow[..., None] * np.eye(count))
        around = np.linalg.solve(root, (score + narrow * (mean[:, None] + by_size))[..., None])
        noise = around + random.standard_normal((*shape, 1))
        effects = np.linalg.solve(np.swapaxes(root, -1, -2), noise)[..., 0] - by_size
        scatter = _scatters(effects - mean[:, None], weight, scales, random)
        far = (effects - mean[:, None]) / scatter[:, None]
        mixing = random.gamma((FREEDOM + 1) / 2, 2 / (FREEDOM + far**2))
        pull = weight * mixing / scatter[:, None] ** 2
        mean = _drawn(pull, effects, 1.0, (centre, spread), random)
        left = (effects + by_size - mean[:, None])[..., 0]
        slopes = _drawn(pull[..., 0], left, size, slope, random)
        if step >= _WARM_UP and step % _THINNED == 0:
            kept.append((mean, scatter, slopes))
    return Population(*(np.concatenate(each) for each in zip(*kept, strict=True)))


def _drawn(
    pull: FloatArray, of: FloatArray, over: Number, prior: tuple[Number, Number], random: np.random.Generator
) -> FloatArray:
    """Return draws of a coefficient (chains, ...) of `over`, from clusters on the second axis with a precision each."""
    turned = np.moveaxis(pull, 1, -1), np.moveaxis(of, 1, -1)
    precision = (turned[0] * over**2).sum(axis=-1) + np.asarray(prior[1]) ** -2.0
    middle = ((turned[0] * over * turned[1]).sum(axis=-1) + prior[0] / np.asarray(prior[1]) ** 2) / precision
    return np.asarray(middle + random.standard_normal(precision.shape) / np.sqrt(precision))


def _scatters(away: FloatArray, weight: FloatArray, scales: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return draws of the scatters (chains, effects) given the distances from the means (chains, clusters, effects)."""
    far = away[..., None] / _SCATTER
    logs = -(FREEDOM + 1) / 2 * np.log1p(far**2 / FREEDOM) - np.log(_SCATTER)
    logs = (
        (weight[..., None] * logs).sum(axis=1) - (_SCATTER / scales[:, None]) ** 2 / 2 + np.log(_SCATTER)
    )  # a log grid
    share = np.exp(logs - logs.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    at = (share < random.random((*share.shape[:-1], 1)) * share[..., -1:]).sum(axis=-1)
    return np.asarray(_SCATTER[at])
