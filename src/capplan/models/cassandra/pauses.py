"""Garbage-collection pauses of a Cassandra node: by mechanism, or as its own collector reported them.

An operation leaves garbage at every node that takes part in it. A collection starts when the young generation is full
and stops the node, so the share of the time in pauses is

    operations at the node x garbage of an operation / young generation x mean length of a pause.

It grows with the rate and not with the utilisation, because operations that take more work do not leave more garbage.
The length follows from what is written, and neither from the heap nor from the cores (docs/reference/gc-pauses.md).
A node that coordinates an operation without being a replica leaves less than a replica does; this is neglected, and so
are full collections, which are rare, and collectors that run beside the work, such as ZGC.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from capplan.errors import InputError, nearest
from capplan.models.language.parameter import Values
from capplan.models.language.units import Number, parse_duration_s, parse_rate_per_s, parse_share
from capplan.models.solver.pauses import NodePauses

OF_PAUSES = frozenset({"garbage_bytes", "young_bytes", "pause_s", "pause_scatter", "pause_error"})
"""Names of the parameters; see `node_pauses`."""
NO_PAUSES = "none"
"""Text of nodes that never pause, to see what pauses cost."""
COLLECTORS = ("CMS", "G1")
"""Collectors whose pauses follow from the garbage of the operations."""

_USAGE = (
    "give the share of the time and the mean length, such as 0.6%@45ms; --gc on the command line takes a file, too, if "
    "it exists"
)
_RECORD = re.compile(r"(?P<share>[^@\s]+)\s*@\s*(?P<mean>[^@\s]+)(?P<rest>(?:\s+\w+=\S+)*)\s*")
_MOST_SCATTER = 20.0  # standard deviation over the mean
_MOST = 0.5  # share of the time; a node that pauses more is broken, or the text is
_LONGEST_S = 10.0  # mean length; the other nodes take one that stops longer for dead
_MOST_BY_MECHANISM = 0.3  # the collector cannot keep up beyond that


@dataclass(frozen=True)
class ReportedPauses:
    """Pauses of a node as its collector reported them.

    Attributes
    ----------
    share : float
        Share of the time in pauses.
    mean_s : float
        Mean length, seconds.
    sd_s : float or None
        Standard deviation of the lengths, seconds; None if not reported.
    count : int or None
        Pauses that were counted; None if not reported.
    rate_per_s : float or None
        Operations per second that clients sent meanwhile, over the number of nodes; None if not reported. With it, the
        share grows with the rate. Without it, the share is the same at any rate.
    """

    share: float
    mean_s: float
    sd_s: float | None = None
    count: int | None = None
    rate_per_s: float | None = None

    def __str__(self) -> str:
        if not self.share:
            return NO_PAUSES
        text = f"{100 * self.share:.4g}%@{1e3 * self.mean_s:.4g}ms"
        text += "" if self.sd_s is None else f" sd={1e3 * self.sd_s:.4g}ms"
        text += "" if self.count is None else f" n={self.count}"
        return text + ("" if self.rate_per_s is None else f" rate={self.rate_per_s:.6g}/s")


def recorded(lengths_s: Sequence[float], time_s: float, rate_per_s: float) -> ReportedPauses:
    """Return a record of pauses.

    Parameters
    ----------
    lengths_s : sequence of float
        Length of each pause.
    time_s : float
        Time in which they were counted, of all nodes together.
    rate_per_s : float
        Operations that clients sent per second and node.
    """
    if not len(lengths_s):
        return ReportedPauses(0.0, 1e-3)
    share = min(float(np.sum(lengths_s)) / time_s, _MOST)
    mean_s, sd_s = float(np.mean(lengths_s)), float(np.std(lengths_s))
    return ReportedPauses(share, mean_s, sd_s, len(lengths_s), rate_per_s or None)


def pooled(records: Sequence[ReportedPauses], times_s: Sequence[float], rates_per_s: Sequence[float]) -> ReportedPauses:
    """Return the record of all runs together.

    Parameters
    ----------
    records : sequence of ReportedPauses
        Each with a number and a standard deviation, unless there was no pause.
    times_s : sequence of float
        How long each was taken.
    rates_per_s : sequence of float
        Operations that clients sent per second and node in each.
    """
    counts = np.array([each.count or 0 for each in records], float)
    if not counts.sum():
        return ReportedPauses(0.0, 1e-3)
    means = np.array([each.mean_s for each in records])
    squares = means**2 + np.array([each.sd_s or 0.0 for each in records]) ** 2
    times = np.array(times_s)
    mean = float(np.average(means, weights=counts))
    sd = math.sqrt(max(float(np.average(squares, weights=counts)) - mean**2, 0.0))
    share = float(np.average([each.share for each in records], weights=times))
    return ReportedPauses(share, mean, sd, int(counts.sum()), float(np.average(rates_per_s, weights=times)))


def parse_pauses(text: str) -> ReportedPauses:
    """Parse pauses such as `0.6%@45ms` or `0.6%@45ms sd=20ms n=151 rate=3000/s`.

    Parameters
    ----------
    text : str
        Share of the time, mean length, and what else is known, in any order; `none` for nodes that never pause.

    Raises
    ------
    InputError
        If it is something else.

    Examples
    --------
    >>> parse_pauses("0.6%@45ms").mean_s
    0.045
    """
    if text.strip().lower() == NO_PAUSES:
        return ReportedPauses(0.0, 1e-3)
    found = _RECORD.fullmatch(text.strip())
    if found is None:
        raise InputError(f"gc = {text!r} is no record of pauses: {_USAGE}")
    share, mean_s = parse_share(found["share"]), parse_duration_s(found["mean"], "ms")
    if not 0 < share <= _MOST:
        raise InputError(f"gc = {text!r}: pauses must take more than 0 and at most {_MOST:.0%} of the time: {_USAGE}")
    if not 0 < mean_s <= _LONGEST_S:
        raise InputError(
            f"gc = {text!r}: the mean length of a pause must be more than 0 and at most {_LONGEST_S:g} s, because the "
            f"others take a node that stops longer for dead: {_USAGE}"
        )
    rest = dict(each.split("=", 1) for each in found["rest"].split())
    unknown = rest.keys() - {"sd", "n", "rate"}
    if unknown:
        raise InputError(f"gc = {text!r} has {min(unknown)!r}: only sd=, n= and rate= may follow the mean length")
    sd_s = parse_duration_s(rest["sd"], "ms") if "sd" in rest else None
    if sd_s is not None and not 0 <= sd_s <= _MOST_SCATTER * mean_s:
        raise InputError(f"gc = {text!r}: sd must be from 0 to {_MOST_SCATTER:g} times the mean length")
    rate_per_s = parse_rate_per_s(rest["rate"]) if "rate" in rest else None
    if rate_per_s is not None and not rate_per_s > 0:
        raise InputError(f"gc = {text!r}: rate must be positive: the operations of clients per second and node")
    count = rest.get("n")
    if count is not None and not (count.isdecimal() and int(count) > 0):
        raise InputError(f"gc = {text!r}: n = {count} must be a number of pauses")
    return ReportedPauses(
        share,
        mean_s,
        sd_s,
        int(count) if count is not None else None,
        rate_per_s,
    )


def check_collector(name: str) -> str:
    """Return the name of a collector whose pauses follow from garbage, in its usual form.

    Raises
    ------
    InputError
        If it is another one.
    """
    known = {each.lower(): each for each in COLLECTORS}
    if name.lower() in known:
        return known[name.lower()]
    if name.lower() in ("zgc", "shenandoah"):
        raise InputError(
            f"collector = {name!r} works beside the requests, so its pauses do not follow from garbage, and those of "
            "one node are too few for a prior: give those of your node instead, --gc gc.log or 0.3%@20ms"
        )
    raise InputError(f"collector = {name!r} is not known{nearest(name, COLLECTORS)}: the model has CMS and G1")


def young_bytes(heap_bytes: float, collector: str, cores: int) -> float:
    """Return the size of the young generation of a node's heap.

    CMS has the size that Cassandra computes by default: 100 MB for each core, at most a quarter of the heap. G1 takes
    up to 60 % of it; two loaded nodes had 56 and 55 % (`sperf68` and `sperf67` in docs/reference/gc-pauses.md).

    References
    ----------
    Apache Cassandra 3.11 and 4.0, `conf/cassandra-env.sh`, calculate_heap_sizes.
    """
    if collector == "G1":
        return 0.55 * heap_bytes
    return min(100 * 2**20 * cores, heap_bytes / 4)


def node_pauses(
    values: Values,
    sent_per_s: Number,
    nodes: Number,
    reported: ReportedPauses | None = None,
    young: float | None = None,
) -> NodePauses:
    """Return the pauses of a node.

    Parameters
    ----------
    values : mapping
        `garbage_bytes` of an operation at a node, `young_bytes` of the young generation, `pause_s` and `pause_scatter`;
        with reported pauses `pause_error`, the ratio of the share to the reported one, and `pause_scatter`.
    sent_per_s : number or array (..., draws)
        Operations per second that clients send, over the number of nodes.
    nodes : number or array
        Mean number of nodes that take part in an operation.
    reported : ReportedPauses, optional
        What the collector of a node reported. It replaces the mechanism.
    young : float, optional
        Bytes of the young generation, where its heap is known.
    """
    if reported is None:
        size = values["young_bytes"] if young is None else young
        full_per_s = sent_per_s * nodes * values["garbage_bytes"] / size
        share = np.minimum(full_per_s * values["pause_s"], _MOST_BY_MECHANISM)
        return NodePauses(share, values["pause_s"], values["pause_scatter"])
    growth = 1.0 if reported.rate_per_s is None else sent_per_s / reported.rate_per_s
    scatter = values["pause_scatter"] if reported.sd_s is None else reported.sd_s / reported.mean_s
    share = np.minimum(reported.share * growth * values["pause_error"], _MOST)
    return NodePauses(share + np.zeros_like(sent_per_s), reported.mean_s, scatter)
