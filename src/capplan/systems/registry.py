"""Finds systems by name: the folders beside this file, and systems of other installed packages.

A package adds a system by an entry point in the group `capplan.systems`: its name is the name of the system, and its
value refers to the `SYSTEM` object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError, look_up
from capplan.layout.case import Case
from capplan.layout.fitted_file import Fitted, read_fitted
from capplan.layout.system import System
from capplan.layout.table_system import TableSystem, table_of
from capplan.models.language.document import load, read_toml
from capplan.models.language.scenario import Scenario, with_units

DEFAULT = "openprovider"
_NO_SYSTEMS = frozenset({"components"})


@dataclass(frozen=True)
class KnownSystem:
    """A system, as `systems --json` prints it.

    Attributes
    ----------
    name
        Its name.
    models
        What it models.
    options
        The options of its layouts with their meaning.
    figures
        How many figures of evidence it has.
    sources
        Their titles.
    """

    name: str
    models: str
    options: Mapping[str, str]
    figures: int
    sources: tuple[str, ...]


@dataclass(frozen=True)
class KnownSystems(VerbAnswer):
    """The JSON that `systems --json` prints.

    Attributes
    ----------
    systems
        Every system.
    """

    SCHEMA = "capplan.systems/1"

    systems: tuple[KnownSystem, ...]


@lru_cache(maxsize=1)
def _locations() -> Mapping[str, str | EntryPoint]:
    """Return the location of each system: a module, or an entry point of another package.

    The names of capplan's own systems take precedence.
    """
    packages = [each.name for each in iter_modules([str(Path(__file__).parent)]) if each.ispkg]
    locations: dict[str, str | EntryPoint] = {
        name.replace("_", "-"): f"capplan.systems.{name}" for name in packages if name not in _NO_SYSTEMS
    }
    for point in entry_points(group="capplan.systems"):
        locations.setdefault(point.name, point)
    return {name: locations[name] for name in (DEFAULT, *sorted(locations))}


def names() -> tuple[str, ...]:
    """Return the names of all systems, without importing them."""
    return tuple(_locations())


@lru_cache(maxsize=64)
def system(name: str) -> System[Any]:
    """Return a system by name.

    Parameters
    ----------
    name : str
        Name of the system, such as `openprovider`.

    Raises
    ------
    InputError
        If there is no system of this name.
    """
    location = look_up(_locations(), name, f"system {name!r} does not exist")
    loaded: System[Any] = import_module(location).SYSTEM if isinstance(location, str) else _load(location)
    return loaded


def _load(point: EntryPoint) -> System[Any]:
    """Return the system at the entry point of another package."""
    whose = f"system {point.name!r}, which an installed package adds as {point.value!r},"
    try:
        found = point.load()
    except Exception as error:  # the module of another package may raise anything
        raise InputError(f"{whose} cannot be loaded: {error}") from error
    if not isinstance(found, System) or found.name != point.name:
        raise InputError(f"{whose} is not a System of that name: its entry point must name the SYSTEM of its package")
    return found


def every_system() -> tuple[System[Any], ...]:
    """Return all systems in the order of `names`."""
    return tuple(system(name) for name in names())


def documented_systems() -> tuple[System[Any], ...]:
    """Return the systems that have evidence of their own, in the order of `names`."""
    return tuple(each for each in every_system() if table_of(each) is None)


def documented_names() -> tuple[str, ...]:
    """Return the names of the systems that have evidence of their own."""
    return tuple(each.name for each in documented_systems())


def table_system(name: str) -> TableSystem[Any]:
    """Return a system that is fitted to load-test tables, by name.

    Raises
    ------
    InputError
        If there is no system of this name, or it has documents of its own.
    """
    found = table_of(system(name))
    if found is None:
        known = [each.name for each in every_system() if table_of(each) is not None]
        raise InputError(
            f"system {name!r} has documents of its own and is not fitted to load-test tables: give one of "
            f"{', '.join(known)}, or run `capplan validate {name}`"
        )
    return found


def scenario(name: str = DEFAULT, **layout: Any) -> Scenario:
    """Return a scenario of a system, such as `scenario("openprovider", dcs=3, cass_nodes=6)`.

    Parameters
    ----------
    name : str
        Name of the system.
    **layout
        Fields of its scenario; the others have their defaults.

    Raises
    ------
    InputError
        If there is no such system, or a field breaks a rule.
    """
    made: Scenario = system(name).scenario(**layout)
    return made


def read_scenario(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file; without a key `system`, it is a scenario of `openprovider`.

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, has no keys, or breaks a rule of the scenario.
    """
    return scenario_of(read_toml(Path(path)), path)


def scenario_of(tables: Mapping[str, Any], path: str | Path) -> Scenario:
    """Return the scenario in a TOML file's tables; `path` is its name in messages.

    Raises
    ------
    InputError
        As for `read_scenario`.
    """
    if not tables:
        raise InputError(f'{path} has no keys: write those of a scenario, such as system = "{DEFAULT}"')
    if "check" in tables:
        raise InputError(f"{path}: [check] is for `capplan check`: remove the table for other verbs")
    name = tables.get("system", DEFAULT)
    if not isinstance(name, str):
        raise InputError(f"{path}: system = {name!r} must be a text in quotes")
    try:
        owner = system(name)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    taken_for = f"{path}, read as a scenario of {name}{'' if 'system' in tables else ' because it has no key system'}"
    try:
        named = with_units(owner.scenario, tables)
    except InputError as error:
        raise InputError(f"{taken_for}: {error}") from None
    read: Scenario = load(owner.scenario, named, taken_for)
    return read


def read_calibration(path: str | Path) -> Fitted:
    """Read a fitted file and check that it matches its system.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    InputError
        If the file cannot be read, its system does not exist, or the evidence or the parameters differ.
    """
    fitted = read_fitted(Path(path))
    return system(fitted.system).checked(fitted, Path(path).name)


def resolve(scenario: Scenario, fitted: Fitted | None = None, seed: int = 1) -> Case[Any]:
    """Resolve a scenario to its system and calibration.

    Parameters
    ----------
    scenario : Scenario
        The layout and its traffic.
    fitted : Fitted, optional
        The calibration; the packaged one by default.
    seed : int
        Seed of all random numbers.

    Returns
    -------
    Case
        Everything that predictions need.

    Raises
    ------
    InputError
        If the system is not calibrated, or the scenario leaves out what figures follow from.
    """
    scenario.check_complete()
    owner = system(scenario.system)
    known = fitted or owner.fitted()
    return Case(owner.of(known), scenario, known, seed)
