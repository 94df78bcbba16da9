"""Pauses of whole nodes, such as garbage collection, and the percentiles of response times with them.

Nodes pause rarely and independently. A request that needs a paused node waits for the end of the pause, and then shares
the node with those that have waited, too. Sessions that wait send nothing more, so less work than usual may arrive
during a pause: the share i of it. At the utilisation u without pauses, a pause of the length X leaves the work a X,
where a = u i, and the node has done it after a X / (1 - u). While it works on it, each request gets its part of the
node. Visits in the queue need c on average until they end. A request that needs an exponential time with the mean s c
waits for about the share s of the work in front of it, and as the queue falls, with z = (1 - u) / a,

    P(wait > y after the pause) = (1 - z y / X) ^ (1 / (s (1 - u))).

What is left of a visit is E[S²] / (2 E[S]) in a shared node. At the end of a pause, the visits in the queue have not
begun, and with what follows them they need more, so s is smaller for those who waited in the pause: they leave before
the queue has changed much.

A request that arrives at random meets the pause itself with the probability that the node pauses, and waits for what is
left of it besides; it meets the rest of the work with a / (1 - u) times this probability. A longer pause meets more
requests, so its X has the density x f(x) / L, where lengths have the density f and the mean L. Lengths are
gamma-distributed, and so is nearly each part of the wait; the parts have the exact means and variances. The mean over
all requests is that of any order of service.

Pauses that begin in a delay lengthen it.

References
----------
L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, sections 5.2 and 5.7; H. White and L. S. Christie, "Queuing with
preemptive priorities or with breakdown", *Operations Research* 6, 1958. The wait in a shared node is that of a fluid.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.models.language.units import FloatArray, Number

_ENDLESS_S, _CONSTANT = 1e6, 1e6  # a wait without bound; the shape of a constant delay
_MOST = 0.9  # of the time: beyond that a node has hardly any steady state
_SLICES = (0.0, 0.5, 1.0)  # bounds of the parts of a wait in a pause; twice as many move no percentile by 2 %


class RareDelay(NamedTuple):
    """A gamma-distributed delay that some requests have: its probability, mean (s), variance (s²), (..., draws)."""

    chance: FloatArray
    mean_s: FloatArray
    variance_s2: FloatArray

    def at_most(self, longest_s: FloatArray) -> RareDelay:
        """Return the delay, cut off after some time (s)."""
        mean_s, until_s = np.maximum(self.mean_s, 1e-12), np.minimum(longest_s, _ENDLESS_S)
        shape = np.minimum(mean_s**2 / np.maximum(self.variance_s2, 1e-300), _CONSTANT)
        scaled, scale_s = shape * until_s / mean_s, mean_s / shape
        longer = 1 - special.gammainc(shape, scaled)
        mean = mean_s * special.gammainc(shape + 1, scaled) + until_s * longer
        square = shape * (shape + 1) * scale_s**2 * special.gammainc(shape + 2, scaled) + until_s**2 * longer
        return RareDelay(self.chance, mean, np.maximum(square - mean**2, 0.0))

    def over(self, factor: FloatArray) -> RareDelay:
        """Return the delay divided by a factor."""
        return RareDelay(self.chance, self.mean_s / factor, self.variance_s2 / factor**2)

    def at(self, places: tuple[NDArray[np.intp], ...], shape: tuple[int, ...]) -> RareDelay:
        """Return the delay at some places of arrays (..., draws) of this shape."""
        return RareDelay(*(np.broadcast_to(each, shape)[places] for each in self))


class NodePauses(NamedTuple):
    """Pauses of a node; numbers or arrays (..., draws).

    Attributes
    ----------
    share
        Share of the time in which the node pauses.
    mean_s
        Mean length, seconds.
    scatter
        Standard deviation of the lengths over their mean; 1 if they are exponential.
    """

    share: Number
    mean_s: Number
    scatter: Number


def sent_in_pauses(needs: Sequence[Number], between_s: Number, pauses: NodePauses) -> tuple[Number, ...]:
    """Return the relative number of a session's requests sent while a node pauses, by position in the session.

    A request is sent if none of those before it in its session has met the pause: none that was sent since it began.

    Parameters
    ----------
    needs : sequence of number or array (draws,)
        Probability that each request of a session needs the node, in their order.
    between_s : number or array (..., draws)
        Mean time from one request of a session to the next without pauses, in seconds; taken as constant.
    pauses : NodePauses
        The pauses.

    Returns
    -------
    tuple of number or array (..., draws)
        The share of each request.
    """
    begun = [_lasts(pauses, turns * between_s) for turns in range(len(needs))]  # before the request so many before
    found: list[Number] = []
    for place in range(len(needs)):
        share: Number = 1.0
        spared: Number = 1.0
        for back in range(1, place + 1):
            need = needs[place - back]
            share = share - begun[back] * need * spared
            spared = spared * (1 - need)
        found.append(share)
    return tuple(found)


def _lasts(pauses: NodePauses, time_s: Number) -> Number:
    """Return the probability that a pause has lasted longer than some time (s), when a request arrives in it."""
    shape = 1 / np.square(np.maximum(pauses.scatter, 1e-3))
    scaled = shape * time_s / pauses.mean_s
    found: Number = special.gammaincc(shape + 1, scaled) - time_s / pauses.mean_s * special.gammaincc(shape, scaled)
    return found


def sent_by_clients(cycle_s: Number, pauses: NodePauses) -> Number:
    """Return the requests that closed clients send while a node pauses, as a share of the usual.

    Each client meets a pause once, so their percentiles hide pauses.

    Parameters
    ----------
    cycle_s : number or array (..., draws)
        Mean time after which a client next needs the node, in seconds; exponential.
    pauses : NodePauses
        The pauses.
    """
    turns = np.maximum(pauses.mean_s / np.maximum(cycle_s, 1e-12), 1e-9)
    return -np.expm1(-turns) / turns


def pause_delays(
    pauses: NodePauses,
    utilisation: FloatArray,
    nodes: Number,
    work: Number = 1.0,
    sent: Number = 1.0,
    relative_need: tuple[Number, Number] = (1.0, 1.0),
    again_s: Number = np.inf,
) -> tuple[RareDelay, ...]:
    """Return the delays that node pauses cause; a request has at most one of them.

    Parameters
    ----------
    pauses : NodePauses
        Pauses of a node.
    utilisation : array (..., draws)
        Utilisation of a node without pauses.
    nodes : number or array
        Number of nodes of which each alone delays the request.
    work : number or array (..., draws)
        Work that arrives at a node in its pauses, as a share of the usual.
    sent : number or array (..., draws)
        Requests of this kind that are sent in the pauses of a node, as a share of the usual.
    relative_need : two numbers or arrays (draws,)
        What a request waits for at the node, divided by what a visit in the queue needs: at the end of a pause, and
        later.
    again_s : number or array (..., draws)
        Mean time after which a closed client next needs the node, in seconds; infinite for open traffic.

    Returns
    -------
    tuple of RareDelay

    Notes
    -----
    Where few requests are sent into a pause, they are sent early in it. If senders stop at a constant rate, so that the
    share s of the usual is sent, the mean of the time that has passed is nearly s (1 - s / 2) of the pause, with errors
    below 0.01, and waits are taken as uniform from (1 - s)² of it.
    """
    left = _spare(utilisation, pauses.mean_s / again_s)
    backlog = utilisation * work / left  # time to work it off, over the length of the pause
    longer = 1 / (1 - np.minimum(pauses.share * (1 + backlog), _MOST))  # by pauses that begin in a delay
    mean, square = _after(backlog, relative_need[1] * left)
    waits: list[tuple[FloatArray, Number, FloatArray, FloatArray]]  # how often, bias, moments over the pause
    waits = [(backlog, 1.0, mean / 2, square / 3)]
    mean, square = _after(backlog, relative_need[0] * left)
    least = np.square(1 - sent)  # few are sent: early in the pause
    often = sent / (len(_SLICES) - 1) + np.zeros_like(backlog)
    for low, high in pairwise(least + (1 - least) * each for each in _SLICES):
        middle, inside = (low + high) / 2, (low**2 + low * high + high**2) / 3
        waits.append((often, sent, middle + mean, inside + 2 * middle * mean + square))
    chances = [np.minimum(pauses.share * often, _MOST / len(waits)) for often, *_ in waits]
    total = np.asarray(sum(chances))
    any_node = 1 - (1 - total) ** nodes
    twice = np.maximum(any_node - nodes * total * (1 - total) ** (nodes - 1), 0.0)
    each = (any_node - twice) / np.maximum(total, 1e-300)
    lengths = pauses._replace(mean_s=pauses.mean_s * longer)
    once = [
        _delay(lengths, chance * each, bias, first, second)
        for chance, (_, bias, first, second) in zip(chances, waits, strict=True)
    ]
    return (*once, _sum_of_two(once, twice))


def _spare(utilisation: FloatArray, turns: Number) -> FloatArray:
    """Return what is left of a node for the work of a pause, where clients need it so many times in a pause.

    Open traffic leaves 1 - u. Closed clients that wait send nothing, so while the work w is there, less arrives, by w
    over the time between two requests of a client. With that time as the unit, w' = -w - (1 - u), from (1 - u) r, where
    r = u (1 - exp(-turns)) / (1 - u). It takes ln(1 + r) to 0, and its integral is (1 - u) (r - ln(1 + r)). A constant
    rate has the same integral if it is (1 - u) r² / (2 (r - ln(1 + r))).
    """
    left = np.maximum(1 - utilisation, 1e-9)
    ratio = utilisation * -np.expm1(-turns) / left
    return left * np.where(ratio > 1e-3, np.square(ratio) / (2 * np.maximum(ratio - np.log1p(ratio), 1e-300)), 1.0)


def _after(backlog: FloatArray, inverse: Number) -> tuple[FloatArray, FloatArray]:
    """Return mean and mean square of a wait after a pause over its length; its survival has the power 1 / `inverse`."""
    mean = backlog * inverse / (1 + inverse)
    return mean, 2 * mean**2 * (1 + inverse) / (1 + 2 * inverse)


def _delay(pauses: NodePauses, chance: FloatArray, bias: Number, mean: Number, square: Number) -> RareDelay:
    """Return the delay of requests whose wait, over the pause that they meet, has some mean and mean square.

    A longer pause meets more requests in proportion to its length, if `bias` is 1, and as many as a short one, if it
    is 0: few requests are sent into a pause because all who send wait after its begin.
    """
    scatter = np.square(pauses.scatter)
    mean_s = pauses.mean_s * np.maximum((1 + scatter * bias) * mean, 1e-9)
    second = np.square(pauses.mean_s) * (1 + scatter) * (1 + 2 * scatter * bias) * square
    return RareDelay(np.asarray(chance), np.asarray(mean_s), np.asarray(np.maximum(second - mean_s**2, 0.0)))


def _sum_of_two(delays: Sequence[RareDelay], chance: FloatArray) -> RareDelay:
    """Return the sum of two independent delays: of requests that meet pauses of two nodes, one after the other."""
    total = np.maximum(sum(each.chance for each in delays), 1e-300)
    mean_s = sum(each.chance * each.mean_s for each in delays) / total
    square = sum(each.chance * (each.variance_s2 + each.mean_s**2) for each in delays) / total
    return RareDelay(np.asarray(chance), np.asarray(2 * mean_s), np.asarray(2 * np.maximum(square - mean_s**2, 0.0)))
