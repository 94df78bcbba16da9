"""Results that several layers share: a figure with its band and basis, a latency, a capacity, an outage, a verdict.

Latencies are in milliseconds, rates per second, utilisations are shares from 0 to 1. Nothing heavy is imported, so that
a result can be read and shown fast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args

from capplan.answers.verdict import Answer

STATISTICS = ("mean", "p50", "p90", "p95", "p99", "p999")
STATISTIC_NAMES = {"p999": "p99.9"}  # as people write them, where that differs
SIGNIFICANT = 4  # significant digits of a figure in JSON; no load test is more precise

Basis = Literal["measured", "interpolated", "population", "extrapolated", "model only"]
"""What a figure rests on. `measured`: such a figure was measured in this layout at this load; `interpolated`: between
measured ones; `population`: other people's clusters had such a layout, and this one was not measured; `extrapolated`:
beyond them; `model only`: no such figure was ever measured."""
FIRMEST_FIRST: tuple[Basis, ...] = get_args(Basis)
Relief = Literal["lower levels", "fewer replicas", "nearer replicas"]
"""Why survivors may carry more or answer faster than the whole layout: requests wait for fewer replicas, as consistency
levels are lowered; they take less work, as lost replicas get none; or they wait less, as the farthest replicas are
lost."""


@dataclass(frozen=True)
class Parts:
    """Half-widths of a band by cause, in the unit of the figure; null means not modelled, never 0.

    Attributes
    ----------
    parameter
        Half-width due to parameter uncertainty.
    model_error
        Half-width due to the model error: what the best-fitting model still gets wrong.
    simulation
        Half-width due to the finite length of the simulation.
    """

    parameter: float | None = None
    model_error: float | None = None
    simulation: float | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            part = getattr(self, each.name)
            if part is not None and not part >= 0:
                raise ValueError(f"half-width {each.name} is {part}: it must be at least 0, or None if not modelled")


@dataclass(frozen=True)
class Band:
    """A figure with its 90 % band: the 5th to 95th percentile of what a repeat of the load test would measure.

    Attributes
    ----------
    value
        The median; null where it is unbounded (the load is beyond capacity).
    low
        The 5th percentile; null where it is unbounded.
    high
        The 95th percentile; null where it is unbounded.
    parts
        Half-widths of the band by their cause.
    basis
        What the figure rests on: `measured`, `interpolated`, `population`, `extrapolated` or `model only`; null where
        it is not a figure of a prediction, or is known exactly.
    """

    value: float
    low: float
    high: float
    parts: Parts = Parts()
    basis: Basis | None = None

    def __post_init__(self) -> None:
        if not self.low <= self.value <= self.high:
            raise ValueError(f"a band must have low <= value <= high, not {self.low}, {self.value}, {self.high}")

    @classmethod
    def exactly(cls, value: float) -> Band:
        """Take `value` as certain, such as the capacity of a cluster that refuses every request."""
        return cls(value, value, value)


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Requests per second over all data centres that the layout carries.

    Attributes
    ----------
    peak_tps
        The highest peak rate: the rate in bursts, while the mean is `mean_tps`. It meets the criterion.
    mean_tps
        The highest mean rate of the same traffic; the peak rate where traffic has no bursts.
    overload_tps
        The peak rate above which the layout is overloaded, whatever the objectives.
    burst_ratio
        Peak rate over mean rate; 1 where traffic has no bursts.
    criterion
        What "carries" means: limits on drop rate and backlog, and the objectives.
    """

    peak_tps: Band
    mean_tps: Band
    overload_tps: Band
    burst_ratio: Band
    criterion: str


@dataclass(frozen=True)
class Latency:
    """Response times of one request class in milliseconds, from the intended start; null means not modelled.

    Attributes
    ----------
    mean
        The mean.
    p50
        The median: half of the requests are faster.
    p90
        The 90th percentile.
    p95
        The 95th percentile.
    p99
        The 99th percentile.
    p999
        The 99.9th percentile.
    """

    mean: Band | None = None
    p50: Band | None = None
    p90: Band | None = None
    p95: Band | None = None
    p99: Band | None = None
    p999: Band | None = None


@dataclass(frozen=True, kw_only=True)
class Outage:
    """What remains when part of the layout is lost, under one assumption about the consistency levels.

    Attributes
    ----------
    name
        What is lost, in words, such as `1 node/DC`.
    lost
        How many of what: `dc` whole data centres; otherwise servers of a kind, in each data centre where there are
        several.
    lost_dcs
        The names of the lost data centres, such as `dc2`, where it matters which they are; else empty.
    available
        Whether requests can succeed at all: availability comes before capacity.
    lowered
        The consistency levels that this row assumes to be lower than asked, by operation (`read`, `write`): the least
        lowering that restores service. Empty where the row assumes the levels that were asked.
    assumed
        What this row assumes, or why no request succeeds, in words.
    cost
        What the lower levels cost; empty where there are none.
    eased
        Why a figure of this row is better than that of the whole layout, or may be, at lower levels; else empty.
    capacity_tps
        The peak rate that the survivors carry with the objectives met, requests per second over all data centres; 0
        when not available, null when not modelled.
    risk
        Probability that the survivors do not carry the offered rate with the objectives met; null when not modelled.
    answer
        Whether they do: `yes`, `uncertain` or `no`; null when not modelled.
    latency_ms
        Response times at the offered rate by request class; empty when not available, overloaded or not modelled.
    utilisation
        Share of each surviving resource that is busy at the offered rate, `workers` for the outermost pools; empty when
        not available or not modelled.
    """

    name: str
    lost: Mapping[str, int]
    lost_dcs: tuple[str, ...] = ()
    available: bool
    lowered: Mapping[str, str] = field(default_factory=dict)
    assumed: str
    cost: str = ""
    eased: tuple[Relief, ...] = ()
    capacity_tps: Band | None
    risk: float | None
    answer: Answer | None
    latency_ms: Mapping[str, Latency]
    utilisation: Mapping[str, Band]


LEAST_PROBABILITY = 1e-4
"""Lowest probability of a session not found that is reported: below it, causes that are not modelled dominate."""


@dataclass(frozen=True)
class SessionNotFound:
    """Probability that an interim message finds no session in a data centre other than that of the accounting start.

    Attributes
    ----------
    consistency_read
        The consistency level of reads.
    consistency_write
        The consistency level of writes.
    rtt_ms
        Round trip between two data centres, milliseconds; the mean over pairs.
    gap_ms
        Milliseconds from the answer to the start until the interim message reaches a RADIUS server of the other data
        centre, including the network between client and RADIUS servers.
    probability
        Probability that the row is not found. Below 0.0001 causes that are not modelled dominate, so no smaller figure
        is reported: a value, low end or part of 0 means less than that, and the high end is then at least 0.0001. A
        high end of 0 means never, as reads and writes always share a replica.
    """

    consistency_read: str
    consistency_write: str
    rtt_ms: float
    gap_ms: float
    probability: Band


@dataclass(frozen=True)
class ComparedFigure:
    """One comparison of an objective and the figure that it tests.

    Attributes
    ----------
    text
        The comparison as it was written.
    metric
        The figure that it is about, such as `acct.p99`.
    unit
        The unit of `value`.
    value
        The predicted figure; null means not modelled.
    """

    text: str
    metric: str
    unit: str
    value: Band | None


@dataclass(frozen=True)
class ObjectiveVerdict:
    """An objective, judged at the offered rate.

    Attributes
    ----------
    text
        The objective as it was written.
    answer
        `yes`, `uncertain` or `no`; null when that depends on a figure that is not modelled.
    risk
        Probability that a repeat of the load test does not meet it; null when not modelled.
    comparisons
        Each of its comparisons with the figure that decides it.
    """

    text: str
    answer: Answer | None
    risk: float | None
    comparisons: tuple[ComparedFigure, ...]


def plain(value: Any) -> Any:
    """Return frozen data as JSON values; an unbounded or missing number becomes None.

    Raises
    ------
    TypeError
        When a value has no JSON form.
    """
    if is_dataclass(value) and not isinstance(value, type):
        figure = isinstance(value, (Band, Parts))
        cells = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        return {name: rounded(cell) if figure else cell for name, cell in cells.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "item"):  # a scalar of numpy
        return plain(value.item())
    raise TypeError(f"{value!r} has no form in JSON")


def rounded(cell: Any) -> Any:
    """Round a float to the significant digits of a figure; return anything else unchanged."""
    return float(f"{cell:.{SIGNIFICANT}g}") if isinstance(cell, float) else cell
