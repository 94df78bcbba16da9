"""Throughput of closed clients whose nodes pause.

A node that stands holds the clients that need it, and after a while all. Of N clients, the share g is not held yet.
They send x times as many requests as all N send without pauses, and each request meets the paused node with the
probability k / M, if it needs k of M nodes. With the time in which a client runs into this node, tau = cycle M / k,

    dg/dt = -x(g) / tau.

After a pause of the length D, the node is full until it has done the work of those that it held: it completes 1 / u
times its usual rate, where u is its utilisation, and g grows by (1 / u - x(g)) / tau. Both phases lose 1 - x of the
throughput,

    D - tau (1 - g(D))  and  tau integral from g(D) to 1 of (1 - x) / (1 / u - x) dg,

the first in all that clients who are not at the node when it stops would send. Those who are there lose what they lose
at a slower node, by the share of the time that it pauses: a load test shows it as work of a request.

Few clients send x = a g, as each has its cycle without queues: a = cycle / (cycle - queueing). However many there are,
they send no more than the fullest station serves: x <= b = 1 / its utilisation. In between, x(g) is the hyperbola

    theta x^2 - (a g + b) x + a b g = 0,  theta = a + b - a b, so that x(1) = 1.

It is that of one machine with clients that think, theta = 0, if a request queues for the share u of its cycle; and both
asymptotes themselves, if it does not queue, as at a node of many cores. Then, with the length D of a pause,

    D >> tau: all of it is lost;
    D << tau: D^2 / (2 tau) is lost, so twice the nodes with twice the clients lose the same share.

Longer pauses hold more, so D is the mean E[D^2] / E[D] over the time that is paused. Pauses of several nodes that
overlap hold clients that others would hold: if each alone loses its part of L, 1 / (1 + L) of the throughput is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.pauses import NodePauses

_STEPS, _ENDLESS = 40, 700.0  # of the bisection for ln x
_FULL, _TINY = 1 - 1e-4, 1e-9
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(12)


class ClosedLoad(NamedTuple):
    """Clients at a cluster without pauses; numbers or arrays (..., draws).

    Attributes
    ----------
    nodes, needed
        Nodes, and how many of them a request needs in the mean.
    cycle_s
        Mean time from one request of a client to its next, seconds.
    queueing_s
        What of it a request waits for others, seconds.
    utilisation, fullest
        Utilisation of a node, and of the fullest station.
    at_nodes_s
        What of a cycle without queueing a request is at nodes, seconds.
    """

    nodes: Number
    needed: Number
    cycle_s: Number
    queueing_s: Number
    utilisation: Number
    fullest: Number
    at_nodes_s: Number


def lost_by_holding(pauses: NodePauses, load: ClosedLoad) -> FloatArray:
    """Return what closed clients send less as pauses hold them, over what they still send (..., draws).

    Parameters
    ----------
    pauses : NodePauses
        Pauses of each node.
    load : ClosedLoad
        The clients, without pauses.
    """
    tau_s = load.cycle_s * load.nodes / np.maximum(load.needed, _TINY)
    pause = np.maximum(pauses.mean_s * (1 + np.square(pauses.scatter)) / tau_s, _TINY)  # in units of tau
    most = np.clip(load.fullest, _TINY, _FULL)
    own = np.clip(load.utilisation, _TINY, most)
    queueing = np.clip(load.queueing_s / load.cycle_s, _TINY, most)
    few, many = 1 / (1 - queueing), 1 / most
    held, less = _at_the_end(pause, few, many)
    counted = few * (many - 1) / (few * (many - 1) + many * (few - 1))  # d ln x / d ln g, all clients sending
    there = (counted * load.at_nodes_s / (load.cycle_s - load.queueing_s) + 1 - counted) / load.nodes
    lost = (1 - there) * (1 - held / pause) + _in_recovery(less, few, many, 1 / own) / pause
    return np.asarray(np.maximum(load.nodes * pauses.share * lost, 0.0))


def _at_the_end(pause: Number, few: Number, many: Number) -> tuple[FloatArray, FloatArray]:
    """Return which share of the clients is held at the end of a pause, and how much less is sent than without: 1 - x.

    The time in units of tau is a function of y = -ln x, which is solved for y by bisection, from its largest value.
    """
    theta = 1 - (few - 1) * (many - 1)
    low, high = np.zeros(()), np.asarray(np.minimum(few * pause + np.zeros_like(many), _ENDLESS))
    for _ in range(_STEPS):
        y = (low + high) / 2
        less = -np.expm1(-y)
        time = (1 - theta) * (np.log1p(less / (many - 1)) + y) + theta * y
        time = (time + (few - 1) * many * less / (many - 1 + less)) / few
        low, high = np.where(time < pause, y, low), np.where(time < pause, high, y)
    less = -np.expm1(-high)
    held = less * (few + many - 2 * theta + theta * less) / (few * (many - 1 + less))
    return np.asarray(held), np.asarray(less)


def _in_recovery(less: FloatArray, few: Number, many: Number, own: Number) -> FloatArray:
    """Return the integral of (1 - x) / (own - x) over g, from where a pause ends to 1; `less` is 1 - x there.

    dg/dx has a constant part, and one of (many - x)^-2, for which the integral is over v = (many - 1) / (many - x).
    """
    theta = 1 - (few - 1) * (many - 1)
    constant = less - (own - 1) * np.log1p(less / (own - 1))
    range_of_v = less / (many - 1 + less)
    below = range_of_v[..., None] * (1 + _POINTS) / 2  # 1 - v
    beyond = np.asarray((own - many) / (many - 1))[..., None]
    curved = (below / (1 + beyond * (1 - below))) @ _WEIGHTS / 2 * range_of_v
    return np.asarray((theta * constant + np.square(many) * (few - 1) * curved) / few)
