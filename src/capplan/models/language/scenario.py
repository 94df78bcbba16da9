"""Scenarios: the layout of a system and the traffic on it, from a TOML file, options or Python."""

from __future__ import annotations

from typing import Any, TypeVar

from capplan.models.language.construct import Construct
from capplan.models.language.units import Number

S = TypeVar("S", bound="Scenario")
LARGEST = 64  # data centres or nodes; a larger number is a typing error


class Scenario(Construct):
    """A layout of a system and the traffic on it; each system subclasses it with the fields of its layout.

    Attributes
    ----------
    system
        Name of the system.
    tps
        Offered rate in requests per second over the whole layout; 80 % of the capacity if left out.
    slo
        Objectives, such as `acct.p99<20ms`.
    """

    system: str
    tps: Number | None
    slo: tuple[str, ...]

    def offered_per_s(self) -> Number | None:
        """Return the offered rate in requests per second, or None if none is given."""
        return self.tps

    def given(self) -> dict[str, Any]:
        """Return the fields that have a value, by name; None and empty tuples are left out."""
        return {name: value for name, value in vars(self).items() if value is not None and value != ()}


def fields_of(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the field names of a scenario class."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return tuple(found)


def defaults_of(scenario: type[Scenario]) -> dict[str, Any]:
    """Return the field defaults of a scenario class, by name."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return {name: each.default for name, each in found.items()}


def changed(scenario: S, **fields: Any) -> S:
    """Return the scenario with some fields replaced; the result is validated."""
    return type(scenario)(**{**vars(scenario), **fields})
