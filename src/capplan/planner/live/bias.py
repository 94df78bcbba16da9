"""Bias and calibration of live predictions, by kind of figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capplan.calibration.tables.bias import KindOfFigure, Outcome, scored
from capplan.planner.live.live_validation import LiveFigure, Quantity

TOLERATED: Mapping[Quantity, float] = {"capacity": 1.15, "p50": 1.18, "p99": 1.33, "added p50": 1.15, "not found": 1.33}
"""Factors within which the ratio of a kind is called unbiased."""
_MESSAGES = ("read", "write")


def kinds_of(figures: Sequence[LiveFigure], unmodelled: Sequence[str] = ()) -> tuple[KindOfFigure, ...]:
    """Return the score of each kind of figure.

    Parameters
    ----------
    figures : sequence of LiveFigure
        All figures; those that were not judged, or that are no positive number, do not count.
    unmodelled : sequence of str
        Clusters with something that the model is known not to have.
    """
    quantities = list(TOLERATED)
    found: dict[tuple[Quantity, str], list[Outcome]] = {}
    for each in sorted(figures, key=lambda figure: (quantities.index(figure.quantity), _kind(figure))):
        if each.verdict == "not judged" or each.stage in unmodelled or each.measured is None:
            continue
        if min(each.predicted, each.measured) > 0:
            outcome = Outcome(each.stage, each.predicted, each.low, each.high, each.measured)
            found.setdefault((each.quantity, _kind(each)), []).append(outcome)
    return tuple(scored(kind, own, TOLERATED[quantity]) for (quantity, kind), own in found.items())


def _kind(figure: LiveFigure) -> str:
    if figure.quantity == "added p50":
        return "added p50" if figure.rtt_ms else "added p50, no round trip"
    if figure.quantity in {"capacity", "not found"}:
        return figure.quantity
    if figure.operation not in _MESSAGES:
        return f"{figure.quantity}, sessions"
    return f"{figure.quantity}, {'open requests' if figure.clients is None else 'closed clients'}"
