"""A component: an optional part of a system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Component:
    """An optional part of a system, such as its losses or its machines; see `capplan.layout.system.System.component`.

    Every field of a component has a default, and all defaults together are the component of a system without this part.
    """
