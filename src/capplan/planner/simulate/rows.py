"""A simulation in tidy form: one statistic a row, for spreadsheets and data frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from capplan.planner.simulate.parts import (
    ClassFigures,
    Estimate,
    PoolFigures,
    PoolKind,
    StationFigures,
    StationKind,
)
from capplan.planner.simulate.simulation import Simulation

COUNTS = ("started", "completed", "dropped", "timed_out", "unfinished", "retries")
PER_SECOND = ("offered_per_s", "throughput_per_s")


class Row(NamedTuple):
    """One line of the tidy form; the fields are its columns.

    `kind` is `class`, `station`, `station_kind`, `pool` or `pool_kind`; `half_width` is empty where no interval is.
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
    for kind in ("station", "station_kind", "pool", "pool_kind"):
        for name, place in getattr(simulation, f"{kind}s").items():
            yield from _place(kind, name, place)


def _class(name: str, figures: ClassFigures) -> Iterator[Row]:
    for count in COUNTS:
        yield Row("class", name, "requests", count, getattr(figures, count), None, "1")
    for rate in PER_SECOND:
        yield _estimate(name, rate.removesuffix("_per_s"), "mean", getattr(figures, rate), "1/s")
    yield _estimate(name, "drop_rate", "mean", figures.drop_rate, "1")
    for clock in ("intended", "actual"):
        latency = getattr(figures.latency_ms, clock)
        for field in fields(latency):
            figure = getattr(latency, field.name)
            if isinstance(figure, Estimate):
                yield _estimate(name, f"latency_{clock}", field.name, figure, "ms")


def _estimate(name: str, quantity: str, statistic: str, estimate: Estimate, unit: str) -> Row:
    return Row("class", name, quantity, statistic, estimate.value, estimate.half_width, unit)


def _place(kind: str, name: str, figures: StationFigures | StationKind | PoolFigures | PoolKind) -> Iterator[Row]:
    for field in fields(figures):
        unit, figure = "ms" if field.name.endswith("_ms") else "1", getattr(figures, field.name)
        value, half_width = (figure.value, figure.half_width) if isinstance(figure, Estimate) else (figure, None)
        yield Row(kind, name, field.name.removesuffix("_ms"), "", value, half_width, unit)
