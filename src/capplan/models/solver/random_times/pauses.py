"""Pauses of whole nodes, such as garbage collection, and the percentiles of response times with them.

Nodes pause rarely and independently. A request that needs a paused node waits for the end of the pause and for the
requests before it. If lengths are exponential and the node drains its work at a constant rate, that wait is the one of
an M/G/1 queue whose services are the pauses: 0, or exponential.

References
----------
L. Kleinrock, *Queueing Systems*, vol. 1, Wiley, 1975, section 5.7; H. White and L. S. Christie, "Queuing with
preemptive priorities or with breakdown", *Operations Research* 6, 1958.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capplan.models.language.units import FloatArray, Number

_MOST = 0.9  # of the time: beyond that a node has hardly any steady state


class RareDelay(NamedTuple):
    """An exponential delay that some requests have: its probability and its mean (s), arrays (..., draws)."""

    chance: FloatArray
    mean_s: FloatArray


def pause_delay(
    share: Number, mean_s: Number, utilisation: FloatArray, nodes: Number, followed_per_s: Number = 0.0
) -> RareDelay:
    """Return the delay of requests by pauses of the nodes that they need.

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
    followed_per_s : number or array (draws,)
        Rate at which one session needs one node, for requests that follow others in their session; 0 for those that
        arrive at random. A session that waits for a paused node sends nothing more to it, so fewer of its requests
        arrive in a pause: 1 / (1 + rate * mean length) of them.

    Returns
    -------
    RareDelay
    """
    delayed = np.minimum(share / np.maximum(1 - utilisation, 1e-9), _MOST)
    chance = (1 - (1 - delayed) ** nodes) / (1 + followed_per_s * mean_s)
    return RareDelay(np.asarray(chance), np.asarray(mean_s / (1 - delayed)))
