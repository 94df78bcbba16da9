"""The option `--demand`: a file sets the rate, the mix and the reconnects of a layout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capplan.cli.shell.messages import say
from capplan.cli.shell.target import read_target
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario

if TYPE_CHECKING:
    from capplan.planner.demand.demand import Demand

HELP = "File with subscribers and their sessions (.toml), instead of a rate."
RATES = ("tps", "load", "growth")
"""Options of commands, beside those of scenarios, that contradict a demand."""


def with_demand(
    path: Path, demand: Demand, kind: type[Scenario], target: str, texts: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a scenario as they were typed, with those that a demand sets.

    Parameters
    ----------
    path : Path
        The file of the demand.
    demand : Demand
        The demand.
    kind : type
        The kind of the target's scenario.
    target : str
        The target.
    texts : mapping
        Options of the scenario, by field.
    own : mapping
        The command's own options.

    Raises
    ------
    InputError
        If another option contradicts the demand.
    """
    from capplan.planner.demand.forecast import contradicted

    given = [name for name in contradicted(demand, kind) if name in texts]
    given += [name for name in RATES if own.get(name) is not None and (name != "growth" or demand.years)]
    if given:
        flag = f"--{given[0].replace('_', '-')}"
        raise InputError(f"--demand {path} and {flag} exclude each other: the file has it, so give one of them")
    return {**texts, **demand_texts(path, demand, read_target(target).scenario, texts)}


def demand_texts(path: Path, demand: Demand, scenario: Scenario, texts: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that a demand sets of a scenario, which others may change, as they are typed."""
    from capplan.planner.demand.forecast import offered

    found = offered(demand, type(scenario), _has_tls(scenario, texts))
    _say_what_is_left_out(path, demand, found)
    return found


def _has_tls(scenario: Scenario, texts: Mapping[str, Any]) -> bool:
    """Whether each of the layouts has client links that take handshakes; an option may list several layouts."""
    from capplan.planner.demand.forecast import has_client_tls

    links = [texts["encryption"]] if "encryption" in texts else [getattr(scenario, "encryption", None)]
    places = [texts["vpn"]] if "vpn" in texts else [getattr(scenario, "vpn", None)]
    return all(has_client_tls(link, place) for link in _values(links[0]) for place in _values(places[0]))


def _values(text: str | None) -> list[str | None]:
    return [None] if text is None else [each.strip() for each in text.split(",")]


def _say_what_is_left_out(path: Path, demand: Demand, found: Mapping[str, Any]) -> None:
    """Say on stderr what in the file changes nothing."""
    if "mix" not in found:
        say(f"the mix of requests in {path} has no effect: this system has one kind of session")
    if demand.connections is not None and "reconnects" not in found:
        say(f"[connections] in {path} has no effect without client links that TLS encrypts")
