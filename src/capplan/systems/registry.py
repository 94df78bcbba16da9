"""Every system that capplan knows, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capplan.calibration.system import System
from capplan.models.errors import InputError, nearest
from capplan.models.language.document import load, read_toml
from capplan.models.language.scenario import Scenario
from capplan.systems.arion import network as arion
from capplan.systems.fedora4 import network as fedora4
from capplan.systems.openprovider import network as openprovider
from capplan.systems.rhino_shcm import network as rhino_shcm
from capplan.systems.vcider import network as vcider

SYSTEMS: Mapping[str, System] = {
    each.name: each for each in (openprovider.SYSTEM, rhino_shcm.SYSTEM, fedora4.SYSTEM, vcider.SYSTEM, arion.SYSTEM)
}


def system(name: str) -> System:
    """Return a system.

    Raises
    ------
    InputError
        When there is none of this name.
    """
    if name not in SYSTEMS:
        raise InputError(f"system {name!r} does not exist{nearest(name, SYSTEMS)}")
    return SYSTEMS[name]


def scenario(name: str = "openprovider", **layout: Any) -> Scenario:
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
    return system(name).scenario(**layout)


def read_scenario(path: str | Path) -> Scenario:
    """Read a scenario from a TOML file; one without `system` is of `openprovider`.

    Raises
    ------
    InputError
        When the file cannot be read, is no TOML, or breaks a rule of the scenario.
    """
    tables = read_toml(Path(path))
    name = tables.get("system", "openprovider")
    if not isinstance(name, str):
        raise InputError(f"{path}: system = {name!r} must be a text in quotes")
    try:
        wanted = system(name)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return load(wanted.scenario, tables, str(path))
