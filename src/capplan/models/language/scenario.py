"""What a user asks about: a system, its layout and the traffic on it, as a TOML file, options or a Python object."""

from __future__ import annotations

from typing import Any, TypeVar

from capplan.models.language.construct import Construct
from capplan.models.language.units import Number

S = TypeVar("S", bound="Scenario")
LARGEST = 64  # data centres, nodes: far beyond what anybody sizes, so that a typing error is one sentence


class Scenario(Construct):
    """A layout of a system and the traffic on it; each system has a subclass with the fields of its layout.

    Attributes
    ----------
    system
        Name of the system.
    tps
        Offered rate, requests per second over the whole layout; 80 % of the capacity when left out.
    slo
        Objectives, such as `acct.p99<20ms`.
    """

    system: str
    tps: Number | None
    slo: tuple[str, ...]

    def offered_per_s(self) -> Number | None:
        """Return the offered rate, requests per second; None where none is given."""
        return self.tps

    def given(self) -> dict[str, Any]:
        """Return the fields that say something, by name: what is not given and has no default is left out."""
        return {name: value for name, value in vars(self).items() if value is not None and value != ()}


def fields_of(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the fields of a kind of scenario."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return tuple(found)


def defaults_of(scenario: type[Scenario]) -> dict[str, Any]:
    """Return the defaults of the fields of a kind of scenario."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return {name: each.default for name, each in found.items()}


def changed(scenario: S, **fields: Any) -> S:
    """Return the scenario with some fields replaced, checked anew."""
    return type(scenario)(**{**vars(scenario), **fields})
