"""The target of a command: a system, a scenario file, a fitted file or a network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.errors import InputError, one_of
from capplan.layout.fitted_file import Fitted, read_fitted
from capplan.models.language.document import load, read_toml
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario
from capplan.systems.registry import DEFAULT, names, read_calibration, read_scenario, scenario, system

DEFAULT_TARGET = DEFAULT
TargetText = Annotated[str, typer.Argument(help="A system, a scenario (.toml) or a fitted file (.json).")]
TargetOrNetworkText = Annotated[
    str, typer.Argument(help="A system, a scenario or a network (.toml), or a fitted file (.json).")
]
_OF_A_NETWORK = {"stations", "classes", "traffic"}  # keys that no scenario has


@dataclass(frozen=True)
class Target:
    """A scenario, and the calibration to use for it (None: the system's own)."""

    scenario: Scenario
    fitted: Fitted | None = None


def scenario_type(target: str) -> type[Scenario]:
    """Return the scenario type of a system's name or an existing file; that of the default system otherwise."""
    name: Any = target
    if target.endswith(".toml"):
        name = read_toml(Path(target)).get("system", DEFAULT)
    elif target.endswith(".json"):
        name = read_fitted(Path(target)).system
    found: type[Scenario] = system(name if name in names() else DEFAULT).scenario
    return found


def is_network(target: str) -> bool:
    """Whether a file that exists holds a network."""
    return target.endswith(".toml") and bool(_OF_A_NETWORK & read_toml(Path(target)).keys())


def read_target(text: str) -> Target:
    """Read the target of a command.

    Raises
    ------
    InputError
        When it is neither a known system nor a file that can be read.
    """
    if is_network(text):
        raise InputError(f"{text} is a network, not a scenario: run `capplan simulate {text}`")
    if text.endswith(".toml"):
        return Target(read_scenario(text))
    if text.endswith(".json"):
        fitted = read_calibration(text)
        return Target(system(fitted.system).usual_scenario(fitted), fitted)
    one_of(names(), text, f"{text!r} is neither a system nor a .toml or .json file")
    return Target(scenario(text))


def read_target_or_network(text: str) -> Target | Network:
    """Read the target of a simulation: as `read_target`, or a network (.toml).

    Raises
    ------
    InputError
        When it is none of them.
    """
    return load(Network, read_toml(Path(text)), text) if is_network(text) else read_target(text)
