"""The scorer: prediction errors, and how many bands contain the measured figure.

It takes figures (`Scored`) wherever they come from: rows of a table that a fit has not seen, and what simple rules say
of them. Live runs share its relative error.

Estimates by simple rules for rows of a load-test table, from the rows that a fit was trained on.

A rule knows one axis. It learns from a series: trained rows of the same request class that differ from the wanted row
along that axis only; a scale-out has more clients in proportion to its nodes. Where there is no such series, it learns
from the load curve of the nearest trained layout. A rule that has no answer says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from capplan.calibration.validation.backtest import IntervalEstimate
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.grouped import grouped
from capplan.layout.baselines import (
    affine,
    linear,
    mean_values_of_clients,
    power_law,
    scalability_of_clients,
    work_of_copies,
)
from capplan.models.language.units import FloatArray

if TYPE_CHECKING:
    from capplan.calibration.tables.row_predictions import RowPrediction


THROUGHPUT, MEAN = "throughput_tps", "latency_mean_ms"
_AXES = (
    "clients",
    "offered_tps",
    "rf",
    "cass_nodes",
    "node_cores",
    "front_nodes",
    "front_cores",
    "dcs",
    "read_fraction",
    "row_bytes",
    "data_gib",
    "rtt_ms",
    "think_time_ms",
)
"""Numeric conditions of a run, the loads first."""
_LOADS = ("clients", "offered_tps")
_SCALE_OUT = "cass_nodes with clients in proportion"
"""The axis of most published scale-outs: nodes, each with as many clients."""
_IN_PROPORTION = 0.05  # by how much clients per node may differ, as their number is whole
_WORDS = (
    "system",
    "version",
    "consistency_read",
    "consistency_write",
    "token_aware",
    "cache_state",
    "encryption_client",
    "encryption_internode",
    "inter_dc_tcp_nodelay",
    "client_share",
    "load_kind",
)


@dataclass(frozen=True)
class Estimate:
    """A rule's estimate of one figure.

    Attributes
    ----------
    value : float or None
        The estimate in the unit of the column; None: the rule has no answer.
    reason : str
        Why it has none; empty: it has one.
    """

    value: float | None
    reason: str = ""


def size_of(row: LoadTestRow, axis: str) -> float | None:
    """Return a row's value on a numeric axis; counts by data centre are added up."""
    value: Any = getattr(row, "cass_nodes" if axis == _SCALE_OUT else axis)
    if isinstance(value, tuple):
        return float(sum(value))
    if value is not None and axis in ("rf", "cass_nodes", "front_nodes", _SCALE_OUT):
        return float(value) * (row.dcs or 1)
    return None if value is None else float(value)


def table_estimates(row: LoadTestRow, quantity: str, trained: Sequence[LoadTestRow]) -> dict[str, Estimate]:
    """Estimate one figure of a row by each rule.

    Parameters
    ----------
    row : LoadTestRow
        The row; its own figures are not used.
    quantity : str
        The column of the figure.
    trained : sequence of LoadTestRow
        The rows that the rules may learn from.

    Returns
    -------
    dict of Estimate
        By rule: `persistence`, `linear`, `affine`, `power_law`, `c_plus_r_rf`, `usl` and `mean_values`.
    """
    measured = [
        each for each in trained if each.request_class == row.request_class and (getattr(each, quantity) or 0.0) > 0
    ]
    if not measured:
        return dict.fromkeys(RULES, Estimate(None, f"no trained row of this class has {quantity}"))
    return {name: rule(row, quantity, measured) for name, rule in RULES.items()}


def _persistence(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
    distances = [_distance(row, each) for each in measured]
    near = [getattr(each, quantity) for each, far in zip(measured, distances, strict=True) if far == min(distances)]
    return Estimate(float(np.mean(near)))


def _along(rule: Callable[[FloatArray, FloatArray, float], float], sizes: int, positive: bool) -> Any:
    """Return a rule that extrapolates along the axis with the longest series; it needs enough different sizes."""

    def estimate(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
        axis, series = _series(row, measured, sizes == 1 and quantity == THROUGHPUT)
        wanted = None if axis is None else size_of(row, axis)
        if axis is None or wanted is None:
            return Estimate(None, "no trained rows differ from this one along one axis only")
        x, y = _points(series, axis, quantity)
        if len(set(x)) < sizes:
            return Estimate(None, f"the trained rows of its series have one {axis}")
        if positive and min(*x, wanted) <= 0:
            return Estimate(None, f"a power of {axis} needs values above zero")
        return _finite(rule(x, y, wanted))

    return estimate


def _copies(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
    series, wanted = _alike(row, measured, "rf"), size_of(row, "rf")
    x, y = _points(series, "rf", quantity)
    if wanted is None or len(set(x)) < 2:
        return Estimate(None, "it needs trained rows that differ from this one in RF only, with two RFs")
    if quantity == THROUGHPUT:
        return _finite(1 / work_of_copies(x, 1 / y, wanted))
    if not quantity.startswith("latency_"):
        return Estimate(None, "the rule speaks of throughput and latency")
    return _finite(work_of_copies(x, y, wanted))


def _of_clients(law: Callable[[FloatArray, FloatArray, float], float], *axes: str) -> Rule:
    """Return a rule by a law of the throughput of closed clients, and of their mean latency by Little's law.

    The law is along the first axis with three sizes, or else along the load curve of the nearest layout.
    """

    def estimate(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
        if quantity not in (THROUGHPUT, MEAN):
            return Estimate(None, "the law speaks of throughput and, by Little's law, of the mean latency")
        if row.clients is None or row.load_kind in ("open", "throttled"):
            return Estimate(None, "the law needs closed clients")
        if quantity == MEAN and row.request_class not in (None, ALL) and row.read_fraction not in (None, 0.0, 1.0):
            return Estimate(None, "Little's law gives the mean over all classes of a run only")
        series = [(axis, _alike(row, measured, axis)) for axis in axes]
        for axis, rows in (*series, ("clients", _curve_of_nearest(row, measured))):
            x, y = _points([each for each in rows if each.throughput_tps], axis, THROUGHPUT)
            wanted = size_of(row, axis)
            if wanted is not None and len(set(x)) >= 3:
                break
        else:
            return Estimate(None, f"the law needs trained rows with three numbers of {' or of '.join(axes)}")
        throughput = law(x, y, wanted)
        if quantity == THROUGHPUT:
            return _finite(throughput)
        return _finite(1e3 * row.clients / throughput - (row.think_time_ms or 0.0))

    return estimate


Rule = Callable[[LoadTestRow, str, Sequence[LoadTestRow]], Estimate]
RULES: dict[str, Rule] = {
    "persistence": _persistence,
    "linear": _along(linear, 1, False),
    "affine": _along(affine, 2, False),
    "power_law": _along(power_law, 2, True),
    "c_plus_r_rf": _copies,
    "usl": _of_clients(scalability_of_clients, "clients", _SCALE_OUT),
    "mean_values": _of_clients(mean_values_of_clients, "clients"),
}


def _series(
    row: LoadTestRow, measured: Sequence[LoadTestRow], scaled: bool
) -> tuple[str | None, Sequence[LoadTestRow]]:
    """Return the axis with the most trained sizes among rows that otherwise equal this one, and those rows.

    The nearest load curve counts more than an axis with one size, unless that may be scaled out.
    """
    found = {axis: _alike(row, measured, axis) for axis in (*_AXES, _SCALE_OUT) if size_of(row, axis) is not None}
    sizes = {axis: len({size_of(each, axis) for each in rows}) for axis, rows in found.items()}
    axis = max(sizes, key=lambda name: sizes[name], default=None)
    if axis is not None and sizes[axis] >= 2:
        return axis, found[axis]
    if scaled and found.get(_SCALE_OUT):
        return _SCALE_OUT, found[_SCALE_OUT]
    load = next((name for name in _LOADS if size_of(row, name) is not None), None)
    curve = _curve_of_nearest(row, measured) if load == "clients" else []
    if load is not None and len({size_of(each, load) for each in curve}) >= 2:
        return load, curve
    return (axis, found[axis]) if axis is not None and sizes[axis] else (None, [])


def _alike(row: LoadTestRow, measured: Sequence[LoadTestRow], axis: str) -> list[LoadTestRow]:
    """Return the trained rows that differ from a row only along one axis and have a value on that axis."""
    differ = ("cass_nodes", "clients") if axis == _SCALE_OUT else (axis,)
    others = [name for name in (*_AXES, *_WORDS) if name not in differ]
    return [
        each
        for each in measured
        if size_of(each, axis) is not None
        and all(getattr(each, name) == getattr(row, name) for name in others)
        and (axis != _SCALE_OUT or _in_proportion(each, row))
    ]


def _in_proportion(one: LoadTestRow, other: LoadTestRow) -> bool:
    """Whether two layouts of different size have as many clients for each node."""
    here, there = (size_of(each, "cass_nodes") for each in (one, other))
    if not (here and there and one.clients and other.clients) or here == there:
        return False
    return math.isclose(one.clients / here, other.clients / there, rel_tol=_IN_PROPORTION)


def _curve_of_nearest(row: LoadTestRow, measured: Sequence[LoadTestRow]) -> list[LoadTestRow]:
    """Return the load curve of the trained layout nearest to a row."""
    nearest = min(measured, key=lambda each: _distance(row, each))
    return _alike(nearest, measured, "clients")


def _points(rows: Sequence[LoadTestRow], axis: str, quantity: str) -> tuple[FloatArray, FloatArray]:
    x = [size_of(each, axis) for each in rows]
    y = [getattr(each, quantity) for each in rows]
    return np.array(x, dtype=float), np.array(y, dtype=float)


def _distance(one: LoadTestRow, other: LoadTestRow) -> float:
    """Return the distance between two rows: ten per differing word, one per doubling; loads only break ties."""
    far: float = 10.0 * sum(getattr(one, name) != getattr(other, name) for name in _WORDS)
    for axis in _AXES:
        here, there = size_of(one, axis), size_of(other, axis)
        if here == there:
            continue
        apart = 10.0 if here is None or there is None else _doublings(axis, here, there)
        far += apart * (0.1 if axis in _LOADS else 1.0)
    return far


def _doublings(axis: str, here: float, there: float) -> float:
    if axis == "read_fraction":
        return 4.0 * abs(here - there)
    return float(abs(math.log2(max(here, 1e-3) / max(there, 1e-3))))


def _finite(value: float) -> Estimate:
    if math.isfinite(value) and value > 0:
        return Estimate(value)
    return Estimate(None, "its estimate is not a positive number")


MODEL = "capplan"


def relative_error(value: float, measured: float) -> float:
    """Return the signed relative error of an estimate."""
    return value / measured - 1


@dataclass(frozen=True)
class Scored:
    """An estimate and the measured figure.

    Attributes
    ----------
    measured, value : float
        The measured figure, above zero, and the estimate.
    band : tuple of float or None
        Ends of its 90 % band; None: it has none.
    """

    measured: float
    value: float
    band: tuple[float, float] | None = None

    @property
    def error(self) -> float:
        """Signed relative error."""
        return relative_error(self.value, self.measured)


@dataclass(frozen=True)
class PredictedFigure:
    """A prediction and its 90 % band, in the unit of the column; null where it is unbounded.

    Attributes
    ----------
    value
        The median.
    low
        The 5th percentile of what a repeat would measure.
    high
        The 95th percentile.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BacktestRow:
    """One figure of a row that the fit has not seen.

    Attributes
    ----------
    run_id
        Name of the run.
    request_class
        Its request class; null if the table has none.
    quantity
        Column of the table, such as `throughput_tps` or `latency_p99_ms`.
    measured
        What was measured, in the unit of the column.
    predicted
        What capplan predicts.
    error
        Signed relative error of the prediction; null if the prediction is unbounded.
    baselines
        What each simple rule says, in the unit of the column; null if it has no answer.
    baseline_reasons
        Why rules have no answer.
    identifiable
        Whether the trained rows decide the figure.
    reason
        Why they do not, and which row would; empty if they do.
    """

    run_id: str
    request_class: str | None
    quantity: str
    measured: float
    predicted: PredictedFigure
    error: float
    baselines: Mapping[str, float | None]
    baseline_reasons: Mapping[str, str]
    identifiable: bool
    reason: str


@dataclass(frozen=True)
class TableScore:
    """How well capplan or a rule predicts figures of one quantity.

    Attributes
    ----------
    figures
        Number of figures with an estimate.
    median_abs_error
        Median absolute relative error.
    p90_abs_error
        90th percentile of the absolute relative errors.
    worst_abs_error
        Largest absolute relative error; null if an estimate is unbounded.
    coverage
        Share of the figures inside the 90 % band; null for rules, which have no band.
    interval_score
        Mean interval score of the bands in the logarithm (Gneiting and Raftery 2007, equation 43): the width, plus
        twenty times the distance by which the band misses the figure; null for rules.
    high_over_low
        Median ratio of the ends of the band; null for rules.
    capplan_median_abs_error
        Median absolute relative error of capplan on the figures that the rule has an estimate of.
    """

    figures: int
    median_abs_error: float | None
    p90_abs_error: float | None
    worst_abs_error: float | None
    coverage: float | None
    interval_score: float | None
    high_over_low: float | None
    capplan_median_abs_error: float | None


Summary = Mapping[str, Mapping[str, TableScore]]


def backtest_row(row: LoadTestRow, run_id: str, figure: RowPrediction, trained: Sequence[LoadTestRow]) -> BacktestRow:
    """Return one scored figure, with the estimates of simple rules beside it.

    Parameters
    ----------
    row : LoadTestRow
        The row, which the fit has not seen.
    run_id : str
        Name of the run, or of the line if it has none.
    figure : RowPrediction
        The prediction; it has a measured figure above zero.
    trained : sequence of LoadTestRow
        The rows that the fit has seen.
    """
    measured, band = figure.measured, figure.predicted
    if measured is None or not measured > 0:
        raise ValueError(f"{figure.quantity} of {run_id} is {measured}: it has nothing to be scored by")
    rules = table_estimates(row, figure.quantity, trained)
    return BacktestRow(
        run_id=run_id,
        request_class=row.request_class,
        quantity=figure.quantity,
        measured=measured,
        predicted=PredictedFigure(band.value, band.low, band.high),
        error=relative_error(band.value, measured),
        baselines={name: each.value for name, each in rules.items()},
        baseline_reasons={name: each.reason for name, each in rules.items() if each.reason},
        identifiable=figure.identifiable,
        reason=figure.reason,
    )


def summary(rows: Iterable[BacktestRow]) -> Summary:
    """Score capplan and each rule on every quantity.

    Parameters
    ----------
    rows : iterable of BacktestRow
        The scored figures.

    Returns
    -------
    mapping of mappings of TableScore
        By quantity, then `capplan` and the rules.
    """
    found: dict[str, dict[str, TableScore]] = {}
    for name, each in grouped(rows, lambda row: row.quantity).items():
        own = [_own(row) for row in each]
        found[name] = {MODEL: score(own, own), **{rule: _of_rule(rule, each) for rule in each[0].baselines}}
    return found


def _own(row: BacktestRow) -> Scored:
    return Scored(row.measured, row.predicted.value, (row.predicted.low, row.predicted.high))


def _of_rule(rule: str, rows: Sequence[BacktestRow]) -> TableScore:
    known = [(Scored(row.measured, value), row) for row in rows if (value := row.baselines[rule]) is not None]
    return score([figure for figure, _ in known], [_own(row) for _, row in known])


def score(figures: Sequence[Scored], beside: Sequence[Scored]) -> TableScore:
    """Score estimates of some figures.

    Parameters
    ----------
    figures : sequence of Scored
        The estimates; all have a band or none has.
    beside : sequence of Scored
        What capplan says of the same figures.
    """
    bands = [(IntervalEstimate(each.value, *each.band), each.measured) for each in figures if each.band is not None]
    finite = [(band, at) for band, at in bands if math.isfinite(band.high) and band.low > 0]
    return TableScore(
        len(figures),
        *_errors([abs(each.error) for each in figures]),
        coverage=float(np.mean([band.holds(at) for band, at in bands])) if bands else None,
        interval_score=float(np.mean([band.interval_score(at) for band, at in finite])) if finite else None,
        high_over_low=median(band.high / band.low for band, _ in finite) if finite else None,
        capplan_median_abs_error=median(abs(each.error) for each in beside) if beside else None,
    )


def _errors(errors: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return median, 90th percentile and largest of absolute errors; None if there are none."""
    if not errors:
        return None, None, None
    ordered = sorted(errors)
    place = 0.9 * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    ninety = below if below == above else below + (place - math.floor(place)) * (above - below)
    return median(ordered), ninety, ordered[-1]
