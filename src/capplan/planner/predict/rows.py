"""A prediction in tidy form: one statistic a row, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from capplan.models.results import STATISTICS, Band, plain, rounded
from capplan.planner.predict.prediction import Prediction


class Row(NamedTuple):
    """One line of the tidy form; the fields are its columns."""

    quantity: str
    request_class: str
    statistic: str
    value: float | None
    low: float | None
    high: float | None
    unit: str


def rows(prediction: Prediction) -> tuple[Row, ...]:
    """Return the figures of a prediction; an unbounded number is None, what is not modelled has no row."""
    return tuple(_figures(prediction))


def to_csv(prediction: Prediction) -> str:
    """Return the rows as CSV text with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows(rows(prediction))
    return text.getvalue()


def lost_in_words(lost: Mapping[str, int]) -> str:
    """Say what an outage takes: `1 DC`, `2 DCs`, `1 node per DC`, `1 DC and 1 node per DC`."""
    words = {"dc": ("DC", "DCs"), "node": ("node per DC", "nodes per DC")}
    names = ((count, *words.get(name, (name, f"{name}s"))) for name, count in lost.items())
    return " and ".join(f"{count} {one if count == 1 else many}" for count, one, many in names) or "nothing"


def _figures(prediction: Prediction) -> Iterator[Row]:
    if prediction.capacity_tps is not None:
        yield _row("capacity", "", "maximum", prediction.capacity_tps, "1/s")
    if prediction.offered_tps is not None:
        offered = prediction.offered_tps  # not rounded: it is what was asked for
        yield Row("offered", "", prediction.offered_source, offered, offered, offered, "1/s")
    if prediction.throughput_ratio is not None:
        yield _row("throughput_ratio", "", "mean", prediction.throughput_ratio, "1")
    for reference, band in prediction.throughput_ratios.items():
        yield _row(f"throughput_ratio.{reference}", "", "mean", band, "1")
    for name, latency in prediction.latency_ms.items():
        for statistic in STATISTICS:
            if (band := getattr(latency, statistic)) is not None:
                yield _row("latency", name, statistic, band, "ms")
    for resource, band in prediction.utilisation.items():
        yield _row(f"{resource}.utilisation", "", "mean", band, "1")
    for tier, band in prediction.busy_workers.items():
        yield _row(f"{tier}.busy_workers", "", "mean", band, "1")
    yield from _verdict_rows(prediction)


def _verdict_rows(prediction: Prediction) -> Iterator[Row]:
    """Yield outages, sessions and objectives: what they are stands in `statistic`, yes is 1 and no is 0."""
    for outage in prediction.outages:
        case = f"without {lost_in_words(outage.lost)}; {outage.assumed}"
        yield _row("outage.available", "", case, Band.exactly(outage.available), "1")
        if outage.capacity_tps is not None:
            yield _row("outage.capacity", "", case, outage.capacity_tps, "1/s")
        if outage.carries_offered is not None:
            yield _row("outage.carries_offered", "", case, Band.exactly(outage.carries_offered), "1")
    for session in prediction.session_not_found:
        levels = f"reads {session.consistency_read}, writes {session.consistency_write}"
        case = f"{levels}; gap {session.gap_ms:g} ms, RTT {session.rtt_ms:.3g} ms"
        yield _row("session_not_found", "", case, session.probability, "1")
    for objective in prediction.objectives:
        if objective.met is not None:
            yield _row("objective.met", "", objective.text, Band.exactly(objective.met), "1")


def _row(quantity: str, request_class: str, statistic: str, band: Band, unit: str) -> Row:
    value, low, high = (rounded(plain(float(number))) for number in (band.value, band.low, band.high))
    return Row(quantity, request_class, statistic, value, low, high, unit)
