"""Fields of a scenario that say which machines a layout has: their cores, and how fast these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from capplan.models.language.scenario import Scenario, defaults_of, options_of
from capplan.models.language.units import AtLeastOne

Cores = Annotated[AtLeastOne, Field(le=1024)]
Speed = Annotated[float, Field(gt=0, le=100)]


def machines_in_words(scenario: Scenario, fields: Sequence[str]) -> list[str]:
    """Return the machines in words, such as `32 cores of a Cassandra node`, where they differ from the load tests'."""
    usual, options = defaults_of(type(scenario)), options_of(type(scenario))
    return [
        f"{value:g} {options[name].label}"
        for name in fields
        for value in [getattr(scenario, name)]
        if value != usual[name]
    ]
