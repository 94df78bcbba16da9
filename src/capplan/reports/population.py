"""What an answer rests on where nobody has measured the cluster, in front of its description."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capplan.layout.fitted_file import Fitted
from capplan.layout.system import System
from capplan.layout.table_system import table_of
from capplan.models.language.scenario import Scenario
from capplan.planner.population import rests_on
from capplan.reports.document import Fact
from capplan.systems.registry import resolve

LABEL = "Rests on"


def is_of_others(system: System[Any]) -> bool:
    """Whether the load tests of a system with a calibration are those of other people's clusters."""
    table = table_of(system)
    return table is not None and table.table is not None and bool(table.table.clusters)


def rests(scenario: Scenario, fitted: Fitted | None) -> Iterator[Fact]:
    """Yield what answers about a layout rest on; nothing if somebody has measured the cluster."""
    for text in rests_on(resolve(scenario, fitted)):
        yield Fact(LABEL, text)
