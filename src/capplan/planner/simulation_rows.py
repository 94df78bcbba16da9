"""A simulation in tidy form: one statistic a row, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from capplan.planner.simulation import ClassFigures, Estimate, PoolFigures, Simulation, StationFigures

COUNTS = ("started", "completed", "dropped", "timed_out", "unfinished", "retries")
PER_SECOND = ("offered_per_s", "throughput_per_s")


class Row(NamedTuple):
    """One line of the tidy form; the fields are its columns.

    `kind` is `class`, `station` or `pool`; `half_width` is empty where there is no interval.
    """

    kind: str
    name: str
    quantity: str
    statistic: str
    value: float | None
    half_width: float | None
    unit: str


def rows(simulation: Simulation) -> tuple[Row, ...]:
    """Return the figures of a simulation; times are in milliseconds."""
    return tuple(_rows(simulation))


def _rows(simulation: Simulation) -> Iterator[Row]:
    for name, figures in simulation.classes.items():
        yield from _class(name, figures)
    for kind, places in (("station", simulation.stations), ("pool", simulation.pools)):
        for name, place in places.items():
            yield from _place(kind, name, place)


def _class(name: str, figures: ClassFigures) -> Iterator[Row]:
    for count in COUNTS:
        yield Row("class", name, "requests", count, getattr(figures, count), None, "1")
    for rate in PER_SECOND:
        yield _estimate(name, rate.removesuffix("_per_s"), "mean", getattr(figures, rate), "1/s")
    yield _estimate(name, "loss", "mean", figures.loss, "1")
    for clock in ("intended", "actual"):
        latency = getattr(figures.latency_ms, clock)
        for field in fields(latency):
            figure = getattr(latency, field.name)
            if isinstance(figure, Estimate):
                yield _estimate(name, f"latency_{clock}", field.name, figure, "ms")
        yield Row("class", name, f"latency_{clock}", "max", latency.max, None, "ms")


def _estimate(name: str, quantity: str, statistic: str, estimate: Estimate, unit: str) -> Row:
    return Row("class", name, quantity, statistic, estimate.value, estimate.half_width, unit)


def _place(kind: str, name: str, figures: StationFigures | PoolFigures) -> Iterator[Row]:
    for field in fields(figures):
        unit = "ms" if field.name.endswith("_ms") else "1"
        yield Row(kind, name, field.name.removesuffix("_ms"), "", getattr(figures, field.name), None, unit)
