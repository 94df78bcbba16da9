"""The WARS model: whether a read finds a row that was written shortly before, by conditional simulation.

A write goes to all replicas at the same time. W is the time until a replica has applied the mutation, and A the time
until its answer is back. The write commits when its consistency level has enough answers. A read that starts some gap
later reaches a replica after R and uses the answers of some replicas. It misses the row if all of these apply the
mutation after the read arrives.

The simulation does not count misses. If a read misses, the replicas that it uses have not answered before the commit,
so the other replicas alone made the commit. Given their answers, the mutations at the replicas of the read are
independent, and the probability of a miss is known. Its mean over samples is unbiased, has far less variance than
counting, and is exactly 0 if the other replicas cannot make up the level: if write and read quorums always overlap.

References
----------
P. Bailis, S. Venkataraman, M. J. Franklin, J. M. Hellerstein and I. Stoica, "Probabilistically bounded staleness for
practical partial quorums", *PVLDB* 5(8), 2012, section 3.4; "Quantifying eventual consistency with PBS", *VLDB
Journal* 23, 2014.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capplan.models.language.units import FloatArray

Survival = Callable[[FloatArray], FloatArray]
"""Probability that W exceeds a time in seconds; shape (..., used)."""


def without(answers_s: FloatArray, used: NDArray[np.intp]) -> FloatArray:
    """Return the answer times of a write without the replicas that the read uses.

    Parameters
    ----------
    answers_s : array (..., replicas)
        W + A of each replica, in seconds from the start of the write.
    used : array of int (..., used)
        Replicas whose answers the read uses.

    Returns
    -------
    array (..., replicas)
        Answer times in seconds; infinite for the replicas that the read uses.
    """
    others = answers_s.copy()
    np.put_along_axis(others, np.broadcast_to(used, (*others.shape[:-1], used.shape[-1])), np.inf, axis=-1)
    return others


def committed_s(answers_s: FloatArray, needed: int) -> FloatArray:
    """Return the time when `needed` of the replicas along the last axis have answered a write; infinite if never."""
    if needed > answers_s.shape[-1]:
        return np.full(answers_s.shape[:-1], np.inf)
    return np.asarray(np.partition(answers_s, needed - 1, axis=-1)[..., needed - 1])


def not_found(gaps_s: ArrayLike, commit_s: FloatArray, asked_s: FloatArray, survival: Survival) -> FloatArray:
    """Return the conditional probability that a read misses the row, for each sample.

    Parameters
    ----------
    gaps_s : array (gaps,)
        Times from the commit to the start of the read, in seconds.
    commit_s : array (...)
        Commit time of a write that uses only the other replicas, in seconds; infinite if they cannot make up the level.
    asked_s : array (..., used)
        Time at which the read arrives at each replica that it uses, in seconds from its start.
    survival : callable
        Survival function of W at these replicas.

    Returns
    -------
    array (gaps, ...)
        Probabilities; their mean over samples is the probability of a miss. They fall with the gap in every sample.
    """
    known = np.isfinite(commit_s)
    start = np.where(known, commit_s, 0.0)[..., None] + asked_s
    chances = [np.where(known, np.prod(survival(start + gap), axis=-1), 0.0) for gap in np.asarray(gaps_s).flat]
    return np.stack(chances)
