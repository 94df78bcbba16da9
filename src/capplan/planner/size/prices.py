"""What machines cost: a price list, or one for each machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.layout.system import System
from capplan.models.errors import InputError, nearest
from capplan.models.language.document import read_toml
from capplan.models.language.scenario import Scenario

MACHINES = "machines"
"""The currency where no price list is given."""


@dataclass(frozen=True)
class Prices:
    """Prices of machines.

    Attributes
    ----------
    currency : str
        The currency; `machines` where each counts as one.
    each : mapping of float
        Price by kind of machine, as in `System.machines`; a kind that is missing costs nothing.
    """

    currency: str = MACHINES
    each: Mapping[str, float] | None = None

    def of(self, scenario: Scenario) -> float:
        """Return what the machines of a layout cost."""
        from capplan.systems.registry import system  # reads the systems

        counts = system(scenario.system).machine_counts(scenario)
        return float(
            sum(count * (1.0 if self.each is None else self.each.get(kind, 0.0)) for kind, count in counts.items())
        )


def read_prices(path: Path, system: System[Any]) -> Prices:
    """Read a price list: `currency = "EUR"` and a table `[machines]` with a price for each kind of machine.

    Raises
    ------
    InputError
        If it cannot be read, a kind is unknown or missing, or a price is not a number of at least 0.
    """
    return prices_of(read_toml(path), system, str(path))


def prices_of(content: Mapping[str, Any], system: System[Any], path: str) -> Prices:
    """Return the price list of some tables; `path` is its name in messages.

    Raises
    ------
    InputError
        As for `read_prices`.
    """
    for key in content:
        if key not in ("currency", "machines"):
            raise InputError(f"{path}: {key!r} is unknown{nearest(key, ('currency', 'machines'))}")
    currency, listed = content.get("currency", ""), content.get("machines", {})
    if not isinstance(currency, str) or not isinstance(listed, dict):
        raise InputError(f'{path}: a price list has currency = "EUR" and a table [machines]')
    for kind, price in listed.items():
        if kind not in system.machines:
            raise InputError(f"{path}: {system.name} has no {kind!r}{nearest(kind, system.machines)}")
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < float("inf"):
            raise InputError(f"{path}: {kind} = {price!r} is not a price: give a number of at least 0")
    if missing := [kind for kind in system.machines if kind not in listed]:
        raise InputError(
            f"{path}: no price of {missing[0]} ({system.machines[missing[0]].name}): add {missing[0]} = 1000"
        )
    return Prices(currency, {kind: float(price) for kind, price in listed.items()})
