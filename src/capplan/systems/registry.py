"""Find systems by name: the folders beside this file, and what installed packages add.

A package adds a system by an entry point of the group `capplan.systems` whose name is the system's and whose value
names its `SYSTEM`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from capplan.calibration.fit.fitted_file import Fitted, read_fitted
from capplan.calibration.system import Case, System
from capplan.models.errors import InputError, nearest
from capplan.models.language.document import load, read_toml
from capplan.models.language.scenario import Scenario

DEFAULT = "openprovider"
_NO_SYSTEMS = frozenset({"components"})
_ORDER = ("openprovider", "rhino-shcm", "fedora4", "vcider", "arion")  # of the documents; others follow by name


@lru_cache(maxsize=1)
def _homes() -> Mapping[str, str | EntryPoint]:
    """Return where each system stands: a module, or an entry point of another package."""
    own = [each.name for each in iter_modules([str(Path(__file__).parent)]) if each.ispkg]
    found: dict[str, str | EntryPoint] = {
        name.replace("_", "-"): f"capplan.systems.{name}" for name in own if name not in _NO_SYSTEMS
    }
    for point in entry_points(group="capplan.systems"):
        found.setdefault(point.name, point)
    first = {name: found[name] for name in _ORDER if name in found}
    return {**first, **{name: found[name] for name in sorted(found)}}


def names() -> tuple[str, ...]:
    """Return the name of every system, without importing any."""
    return tuple(_homes())


@lru_cache(maxsize=64)
def system(name: str) -> System[Any]:
    """Return a system.

    Raises
    ------
    InputError
        When there is none of this name.
    """
    home = _homes().get(name)
    if home is None:
        raise InputError(f"system {name!r} does not exist{nearest(name, names())}")
    found: System[Any] = home.load() if isinstance(home, EntryPoint) else import_module(home).SYSTEM
    return found


def every_system() -> tuple[System[Any], ...]:
    """Return every system."""
    return tuple(system(name) for name in names())


def scenario(name: str = DEFAULT, **layout: Any) -> Scenario:
    """Return a scenario of a system, such as `scenario("openprovider", dcs=3, cass_nodes=6)`.

    Parameters
    ----------
    name
        Name of the system.
    **layout
        Fields of its scenario; what is left out has its default.

    Raises
    ------
    InputError
        When there is no such system, or a field breaks a rule.
    """
    found: Scenario = system(name).scenario(**layout)
    return found


def read_scenario(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file; one without `system` is of `openprovider`.

    Raises
    ------
    InputError
        When the file cannot be read, is no TOML, or breaks a rule of the scenario.
    """
    tables = read_toml(Path(path))
    name = tables.get("system", DEFAULT)
    if not isinstance(name, str):
        raise InputError(f"{path}: system = {name!r} must be a text in quotes")
    try:
        wanted = system(name)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    found: Scenario = load(wanted.scenario, tables, str(path))
    return found


def read_calibration(path: str | Path) -> Fitted:
    """Read a fitted file and check that it belongs to its system as it is today.

    Raises
    ------
    InputError
        When it cannot be read, its system does not exist, or its evidence or parameters have changed.
    """
    fitted = read_fitted(Path(path))
    return system(fitted.system).checked(fitted, Path(path).name)


def resolve(scenario: Scenario, fitted: Fitted | None = None, seed: int = 1) -> Case[Any]:
    """Return a scenario with its system and its calibration: everything that an answer is made from.

    Parameters
    ----------
    scenario : Scenario
        What is asked about.
    fitted : Fitted, optional
        The calibration to use; the system's own when left out.
    seed : int
        Seed of every random number.

    Raises
    ------
    InputError
        When the system is not calibrated.
    """
    its = system(scenario.system)
    return Case(its, scenario, fitted or its.fitted(), seed)
