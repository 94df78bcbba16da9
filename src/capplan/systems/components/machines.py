"""Scenario fields for machines: their cores and core speed."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capplan.models.language.scenario import Scenario, defaults_of
from capplan.models.language.units import AtLeastOne

Cores = Annotated[AtLeastOne, Field(le=1024)]
Speed = Annotated[float, Field(gt=0, le=100)]


def machines_in_words(scenario: Scenario, **machines: str) -> list[str]:
    """Return in words the machines that differ from the load tests', such as `nodes of 48 cores and 1.2 times as fast`.

    Parameters
    ----------
    scenario : Scenario
        The layout.
    **machines : str
        Their plural, by the first word of their fields: `node="nodes"` for `node_cores` and `node_speed`.
    """
    usual, found = defaults_of(type(scenario)), []
    for word, plural in machines.items():
        cores, speed = getattr(scenario, f"{word}_cores"), getattr(scenario, f"{word}_speed")
        many = f" of {cores} cores" if cores != usual[f"{word}_cores"] else ""
        fast = f" {speed:.3g} times as fast" if speed != 1 else ""
        found += [plural + " and".join(each for each in (many, fast) if each)] if many or fast else []
    return found
