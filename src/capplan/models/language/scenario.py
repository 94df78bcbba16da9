"""Scenarios: the layout of a system and the traffic on it, from a TOML file, options or Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

from pydantic import BeforeValidator

from capplan.errors import InputError
from capplan.models.language.construct import Construct
from capplan.models.language.units import Number, parse_rate_per_s

S = TypeVar("S", bound="Scenario")
LARGEST = 64  # data centres or nodes; a larger number is a typing error
MOST_CLIENTS = 1_000_000
Objectives = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""Objectives of a scenario; a file may give a single one without a list."""


@dataclass(frozen=True)
class Option:
    """How people enter and read a scenario field; belongs in the field's `Annotated` type.

    Attributes
    ----------
    help : str
        What it means, in one sentence: the help of its option.
    label : str
        What its values count or name, such as `Cassandra nodes per data centre`: headings of tables, axes of plots.
    unit : str
        Usual unit of texts such as `3ms`: `ms` or `km`. Columns of tables are in it, and another key with the unit in
        its name takes a bare number: `distance_km = 150` for `distance = "150km"`.
    metavar : str
        What stands for a value in the help, such as `RATE`; empty: the kind of the field says it.
    read : function or None
        Reads the text of the option; None: the text, number or flag is taken as it is.
    measured : bool
        Whether load tests measured a range of it, so that a value outside is an extrapolation.
    replaces : tuple of str
        Fields that it takes the place of: they are emptied where it is given, and refused beside it.
    separator : str
        What separates several values of it; not a comma where a value contains commas.
    instead_of : tuple of str
        Options of other systems that people may look for in its place.
    shown : function or None
        Says a value as people write it; None: numbers and texts are shown as they are.
    """

    help: str
    label: str = ""
    metavar: str = ""
    unit: str = ""
    read: Callable[[str], Any] | None = None
    measured: bool = False
    replaces: tuple[str, ...] = ()
    separator: str = ","
    instead_of: tuple[str, ...] = ()
    shown: Callable[[Any], str] | None = None


def rate_option(help: str, label: str = "offered rate, TPS", replaces: str = "") -> Option:
    """Return the option of a rate; it takes the place of another field, if one is named."""
    return Option(help, label, "RATE", read=parse_rate_per_s, replaces=(replaces,) if replaces else ())


class Scenario(Construct):
    """A layout of a system and its traffic; each system subclasses it with its own layout fields.

    Attributes
    ----------
    system
        Name of the system.
    tps
        Offered rate in requests per second over the whole layout; 80 % of the capacity if left out.
    slo
        Objectives, such as `acct.p99<20ms`.
    """

    STATEMENT: ClassVar[Mapping[str, Option]] = MappingProxyType({})
    """Options and keys of files that people may give in place of fields; see `of_statement`."""

    system: str
    tps: Number | None
    slo: tuple[str, ...]

    @classmethod
    def of_statement(cls, given: Mapping[str, Any], shown: Callable[[str], str] = str) -> dict[str, Any]:
        """Return what was given, with the fields that follow in place of the names in `STATEMENT`.

        Parameters
        ----------
        given : mapping
            Values or texts by name.
        shown : function
            Returns a name as the user wrote it, for messages.

        Raises
        ------
        InputError
            If a value cannot be read, or a field is given, too.
        """
        del shown
        return dict(given)

    @classmethod
    def in_messages(cls) -> str:
        """Return nothing: people write options and files, and no name of a class."""
        return ""

    @classmethod
    def implied(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return defaults that follow from the given fields; none by default.

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

    def statements_per_request(self) -> float:
        """Return the mean number of Cassandra statements that a request makes; 1 by default, the least."""
        return 1.0

    def cassandra_nodes(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the number of Cassandra nodes and of replicas per row by data centre; None without a cluster."""
        return None

    def check_complete(self) -> None:
        """Refuse, with an `InputError`, a scenario that leaves out what its figures follow from."""

    def without_effect(self) -> tuple[str, ...]:
        """Return a sentence for each field that was set but has no effect; none by default."""
        return ()

    def given(self) -> dict[str, Any]:
        """Return the fields that have a value, by name; None and empty tuples are left out."""
        return {name: value for name, value in vars(self).items() if value is not None and value != ()}


@lru_cache(maxsize=64)
def fields_of(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the field names of a scenario class."""
    return tuple(defaults_of(scenario))


def defaults_of(scenario: type[Scenario]) -> dict[str, Any]:
    """Return the field defaults of a scenario class, by name."""
    declared: Any = scenario  # each kind of scenario is a dataclass
    return {each.name: each.default for each in fields(declared)}


@lru_cache(maxsize=64)
def options_of(scenario: type[Scenario]) -> dict[str, Option]:
    """Return the options of a scenario class by field; fields without an option are not offered to users."""
    hints = get_type_hints(scenario, include_extras=True)
    found = {
        name: [each for each in getattr(hints[name], "__metadata__", ()) if isinstance(each, Option)]
        for name in fields_of(scenario)
    }
    return {name: each[-1] for name, each in found.items() if each}


def axes_of(scenario: type[Scenario]) -> dict[str, str]:
    """Return the fields whose measured range separates interpolation from extrapolation, with their labels."""
    return {name: option.label for name, option in options_of(scenario).items() if option.measured}


def unit_keys(scenario: type[Scenario]) -> dict[str, tuple[str, str]]:
    """Return the keys with a unit in their name, which take bare numbers, with the field and unit of each."""
    return {
        f"{name}_{option.unit}": (name, option.unit) for name, option in options_of(scenario).items() if option.unit
    }


def with_units(scenario: type[Scenario], tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario file's keys, with those of `unit_keys` replaced by their fields, such as `distance`.

    Raises
    ------
    InputError
        If such a key has no number, a text cannot be read, or two keys exclude each other.
    """
    found, keys = scenario.of_statement(tables), unit_keys(scenario)
    for key, (field, unit) in keys.items():
        if key not in found:
            continue
        value = found.pop(key)
        if field in found:
            raise InputError(f"{key} and {field} exclude each other: give one of them")
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(
                f"{key} = {value!r} is not a number: give one in {unit}, without quotes, such as {key} = 3"
            )
        found[field] = f"{value:.15g}{unit}"
    for field, option in options_of(scenario).items():
        for other in option.replaces:
            if field in found and other in found:
                raise InputError(f"{field} and {other} exclude each other: give one of them")
        if option.read and isinstance(found.get(field), str):  # a text such as '2kB', as the option takes it
            try:
                found[field] = option.read(found[field])
            except InputError as error:
                raise InputError(f"{field}: {error}") from None
    return found


def check_at_most(most: int, **values: int | None) -> None:
    """Refuse numbers larger than in any real layout: they are typing errors.

    Raises
    ------
    InputError
        Names the first that is.
    """
    for name, value in values.items():
        if value is not None and value > most:
            raise InputError(f"{name} = {value} is more than the {most:,} that capplan sizes")


def check_load(clients: int | None, tps: Any) -> None:
    """Refuse too many closed clients, or closed clients together with a rate.

    Raises
    ------
    InputError
        If they are, or have.
    """
    check_at_most(MOST_CLIENTS, clients=clients)
    if clients is not None and tps is not None:
        raise InputError(
            f"clients = {clients} and tps = {tps:g} both give the load: closed clients determine their rate, so give "
            "one of them"
        )


def changed(scenario: S, **fields: Any) -> S:
    """Return the scenario with some fields replaced, together with the fields that follow; the result is validated."""
    kind = type(scenario)
    return kind(**{**vars(scenario), **kind.implied(fields), **fields})
