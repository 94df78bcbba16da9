"""Scenarios: the layout of a system and the traffic on it, from a TOML file, options or Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, get_type_hints

from capplan.models.language.construct import Construct
from capplan.models.language.units import Number

S = TypeVar("S", bound="Scenario")
LARGEST = 64  # data centres or nodes; a larger number is a typing error


@dataclass(frozen=True)
class Option:
    """How people give a field of a scenario and read it; stands in the field's `Annotated` type.

    Attributes
    ----------
    help : str
        What it means, in one sentence: the help of its option.
    label : str
        What its values count or name, such as `Cassandra nodes per data centre`: headings of tables, axes of plots.
    unit : str
        Unit in texts such as `3ms`, `ms` or `km`: of a bare number, of the steps of a range and of columns in tables.
    metavar : str
        What stands for a value in the help, such as `RATE`; empty: the kind of the field says it.
    name : str
        The option's own name, with underscores, where it is not that of the field.
    read : function or None
        Reads the text of the option; None: the text, number or flag is taken as it is.
    measured : bool
        Whether load tests measured a range of it, so that a value outside is an extrapolation.
    replaces : tuple of str
        Fields that it takes the place of: they are emptied where it is given, and refused beside it.
    """

    help: str
    label: str = ""
    metavar: str = ""
    unit: str = ""
    name: str = ""
    read: Callable[[str], Any] | None = None
    measured: bool = False
    replaces: tuple[str, ...] = ()


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

    @classmethod
    def implied(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields that follow from the given ones if they are not given themselves; none by default.

        Parameters
        ----------
        fields : mapping
            Fields as they were given, not yet validated.

        Returns
        -------
        dict
            Values by field.
        """
        del fields
        return {}

    def offered_per_s(self) -> Number | None:
        """Return the offered rate in requests per second, or None if none is given."""
        return self.tps

    def given(self) -> dict[str, Any]:
        """Return the fields that have a value, by name; None and empty tuples are left out."""
        return {name: value for name, value in vars(self).items() if value is not None and value != ()}


@lru_cache(maxsize=64)
def fields_of(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the field names of a scenario class."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return tuple(found)


def defaults_of(scenario: type[Scenario]) -> dict[str, Any]:
    """Return the field defaults of a scenario class, by name."""
    found: dict[str, Any] = vars(scenario)["__dataclass_fields__"]
    return {name: each.default for name, each in found.items()}


@lru_cache(maxsize=64)
def options_of(scenario: type[Scenario]) -> dict[str, Option]:
    """Return the options of the fields of a kind of scenario, by field; fields without one are not asked for."""
    hints = get_type_hints(scenario, include_extras=True)
    found = {
        name: [each for each in getattr(hints[name], "__metadata__", ()) if isinstance(each, Option)]
        for name in fields_of(scenario)
    }
    return {name: each[-1] for name, each in found.items() if each}


def axes_of(scenario: type[Scenario]) -> dict[str, str]:
    """Return the fields whose measured range bounds what is interpolated, with their labels."""
    return {name: option.label for name, option in options_of(scenario).items() if option.measured}


def changed(scenario: S, **fields: Any) -> S:
    """Return the scenario with some fields replaced, and those that they imply; the result is validated."""
    kind = type(scenario)
    return kind(**{**vars(scenario), **kind.implied(fields), **fields})
