"""The request classes that a simulation reports: those of the documents, each made of classes of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache, reduce

from capplan.planner.simulate.simulation import EVERY_CLASS
from capplan.simulator.results.run import ClassReport, Run

_NO_SUMS = ("name", "window_ticks")
_SUMS = tuple(each.name for each in fields(ClassReport) if each.name not in _NO_SUMS)

Reported = Mapping[str, tuple[str, ...]]
"""By reported class, the classes of the network."""


def as_they_are(classes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Report the classes of a network by their own names."""
    return {name: (name,) for name in classes}


def report(run: Run, reported: Reported, name: str) -> ClassReport:
    """Return the report of a reported class (`*`: of all together)."""
    if name == EVERY_CLASS:
        return run.report()
    parts = reported[name]
    return run.report(parts[0]) if len(parts) == 1 else _merged(run, name, parts)


@lru_cache(maxsize=1000)  # every figure asks again
def _merged(run: Run, name: str, parts: tuple[str, ...]) -> ClassReport:
    return replace(reduce(_added, (run.report(part) for part in parts)), name=name)


def _added(one: ClassReport, other: ClassReport) -> ClassReport:
    return replace(one, **{field: getattr(one, field) + getattr(other, field) for field in _SUMS})
