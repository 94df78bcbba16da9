"""Whether a read finds a row that was written a moment before: the WARS model of replicas, by conditional simulation.

A write goes to all replicas at once: W is the way to one and its mutation, A the answer's way back. It is committed
when its level has its answers. A read that comes a gap later reaches a replica after R, looks the row up there, and
uses the answers of some replicas. It does not find the row when all of these apply the mutation after they were asked
(Bailis, Venkataraman, Franklin, Hellerstein & Stoica, PVLDB 5(8), 2012, section 3.4; VLDB Journal 23, 2014).

Nothing is counted here. A replica that applies the mutation after the read has not answered before the commit, so where
the read finds nothing the commit was made by the other replicas alone. Given their answers, what is asked of the
replicas that the read uses is independent, and its probability known: the mean of it over samples is the probability
wanted. That is exact, has far less variance than counting has, most of all where few reads fail, and is exactly 0 where
the other replicas cannot make up the level: where answers that are written and read always share a replica.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capplan.models.language.units import FloatArray

Survival = Callable[[FloatArray], FloatArray]
"""Probability that W takes longer than so many seconds; shape (..., used)."""


def without(answers_s: FloatArray, used: NDArray[np.intp]) -> FloatArray:
    """Return when replicas answer a write, those that the read uses left out (they never do).

    Parameters
    ----------
    answers_s : array (..., replicas)
        W + A of each replica, seconds from the start of the write.
    used : array of int (..., used)
        Replicas whose answers the read uses.

    Returns
    -------
    array (..., replicas)
        Infinite where a replica is used.
    """
    others = answers_s.copy()
    np.put_along_axis(others, np.broadcast_to(used, (*others.shape[:-1], used.shape[-1])), np.inf, axis=-1)
    return others


def committed_s(answers_s: FloatArray, needed: int) -> FloatArray:
    """Return when `needed` replicas have answered a write, of those along the last axis; infinite if never."""
    if needed > answers_s.shape[-1]:
        return np.full(answers_s.shape[:-1], np.inf)
    return np.asarray(np.partition(answers_s, needed - 1, axis=-1)[..., needed - 1])


def not_found(gaps_s: ArrayLike, commit_s: FloatArray, asked_s: FloatArray, survival: Survival) -> FloatArray:
    """Return the probability that a read finds nothing, given what was sampled.

    Parameters
    ----------
    gaps_s : array (gaps,)
        Seconds from the commit to the read, one result each.
    commit_s : array (...)
        When the replicas that the read does not use have made up the level; infinite where they cannot.
    asked_s : array (..., used)
        When the read looks the row up at each replica that it uses, seconds from the start of the read.
    survival : function
        Of the time that the mutation takes to be applied at each of these.

    Returns
    -------
    array (gaps, ...)
        Its mean over samples is the probability. It falls with the gap, sample by sample.
    """
    known = np.isfinite(commit_s)
    start = np.where(known, commit_s, 0.0)[..., None] + asked_s
    chances = [np.where(known, np.prod(survival(start + gap), axis=-1), 0.0) for gap in np.asarray(gaps_s).flat]
    return np.stack(chances)
