"""A sized layout in a few words, for tables and plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capplan.calibration.system import System
from capplan.planner.size.sizing import SizedLayout


def in_words(layout: SizedLayout, its: System[Any]) -> str:
    """Return the fields that a family shares, and the machines: `3 DCs: 27 nodes, 6 fronts`.

    Parameters
    ----------
    layout : SizedLayout
        The layout.
    its : System
        Its system.
    """
    hidden = {*its.sized, *(name for kind in layout.shapes for name in _of_shape(its, kind))}
    fixed = fields_in_words({name: value for name, value in layout.fields.items() if name not in hidden})
    fixed = " of ".join([f"{layout.cells} cells"] * (layout.cells > 1) + [fixed] * bool(fixed))
    machines = ", ".join(
        f"{count} {layout.shapes.get(kind) or plural(kind, count)}" for kind, count in layout.machines.items()
    )
    return f"{fixed}: {machines}" if fixed else machines


def fields_in_words(fields: Mapping[str, Any]) -> str:
    """Return fields in words, such as `3 DCs, consistency_write LOCAL_QUORUM`."""
    words = [f"{value} {plural('DC', value)}" if name == "dcs" else f"{name} {value}" for name, value in fields.items()]
    return ", ".join(words)


def plural(name: str, count: int) -> str:
    """Return a noun in the number of its count."""
    return f"{name}{'s' * (count != 1)}"


def _of_shape(its: System[Any], kind: str) -> list[str]:
    """Return the fields that a shape decides."""
    machine = its.machines[kind]
    return [name for name in (machine.cores, machine.speed) if name is not None]
