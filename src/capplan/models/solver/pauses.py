"""Pauses of whole nodes, such as garbage collection, and the percentiles of response times with them.

Nodes pause rarely and independently. A request that needs a paused node waits for the end of the pause and for the
requests before it. Sessions that wait send nothing more, so less work than usual may arrive during a pause: the share
i of it. The node drains its work at a constant rate, at the utilisation u without pauses. Then the wait w falls at the
rate 1 - a in a pause, where a = u i, and at 1 - u after it, from a times the length of the pause. If lengths are
exponential with the mean L, a request that arrives at random waits longer than w with the probability

    share (exp(-w / L) / (1 - a) + a (1 / (1 - u) - 1 / (1 - a)) exp(-w / (a L))).

Pauses that begin in a delay lengthen it. With i = 1 the second part is 0, and the wait is that of an M/G/1 queue whose
services are the pauses. Where a part of the work follows only when requests have been served, a counts the rest of it
in a pause, and all of it after the pause.

References
----------
L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 5.7; H. White and L. S. Christie, "Queuing with
preemptive priorities or with breakdown", *Operations Research* 6, 1958.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from capplan.models.language.units import FloatArray, Number

_MOST = 0.9  # of the time: beyond that a node has hardly any steady state


class RareDelay(NamedTuple):
    """An exponential delay that some requests have: its probability and its mean (s), arrays (..., draws)."""

    chance: FloatArray
    mean_s: FloatArray


def sent_in_pauses(needs: Sequence[Number], between_s: Number, mean_s: Number) -> tuple[Number, ...]:
    """Return the relative number of a session's requests sent while a node pauses, by position in the session.

    A request is sent if none of those before it in its session has met the pause. How many of them fell into the time
    since the pause began is geometric, up to the first.

    Parameters
    ----------
    needs : sequence of number or array (draws,)
        Probability that each request of a session needs the node, in their order.
    between_s : number or array (..., draws)
        Mean time from one request of a session to the next without pauses, in seconds.
    mean_s : number or array (draws,)
        Mean length of a pause, in seconds; lengths are exponential.

    Returns
    -------
    tuple of number or array (..., draws)
        The share of each request.
    """
    longer = mean_s / (mean_s + between_s)  # probability that the pause began before the request before
    found: list[Number] = [1.0]
    for need in needs[:-1]:
        found.append(1 - longer + longer * (1 - need) * found[-1])
    return tuple(found)


def pause_delays(
    share: Number,
    mean_s: Number,
    utilisation: FloatArray,
    nodes: Number,
    work: Number = 1.0,
    seen: Number = 1.0,
    sent: Number = 1.0,
) -> tuple[RareDelay, RareDelay]:
    """Return the delays that node pauses cause; a request has at most one of them.

    Parameters
    ----------
    share : number or array (..., draws)
        Share of the time in which a node pauses.
    mean_s : number or array (draws,)
        Mean length of a pause, in seconds; lengths are exponential.
    utilisation : array (..., draws)
        Utilisation of a node without pauses.
    nodes : number or array
        Number of nodes of which each alone delays the request.
    work : number or array (..., draws)
        Work that arrives at a node in its pauses, as a share of the usual.
    seen : number or array (draws,)
        Share of this work that is in the queue before the pause ends. The rest follows when requests have been served.
    sent : number or array (..., draws)
        Requests of this kind that are sent in the pauses of a node, as a share of the usual.

    Returns
    -------
    tuple of RareDelay
    """
    arrived, left = utilisation * work, np.maximum(1 - utilisation, 1e-9)
    queued = arrived * seen
    in_pause = sent / (1 - queued)
    after = np.maximum(arrived / left - queued * in_pause, 0.0)
    longer = 1 / (1 - np.minimum(share * (1 + arrived / left), _MOST))  # by pauses that begin in a delay
    chances = [np.minimum(share * part, _MOST / 2) for part in (in_pause, after)]
    total = chances[0] + chances[1]
    any_node = (1 - (1 - total) ** nodes) / np.maximum(total, 1e-300)
    lengths = mean_s * longer, mean_s * np.maximum(arrived, 1e-9) * longer
    in_any, after_any = (
        RareDelay(np.asarray(chance * any_node), np.asarray(length))
        for chance, length in zip(chances, lengths, strict=True)
    )
    return in_any, after_any
