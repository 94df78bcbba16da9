"""How a customer measures the inputs of a proposal himself: names of metrics, from `inputs.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from capplan.calibration.system import System
from capplan.models.language.scenario import Scenario
from capplan.planner.proposal.proposal import MeasuredInput, MetricName


def measured_inputs(its: System[Any], scenario: Scenario) -> tuple[MeasuredInput, ...]:
    """Return the inputs of a layout that a customer can measure, each with names of metrics and their sources.

    Parameters
    ----------
    its : System
        The system.
    scenario : Scenario
        The layout.
    """
    tables = _tables()
    in_cassandra = its.name == "cassandra" or "consistency_read" in vars(scenario) or "cass_nodes" in vars(scenario)
    return tuple(
        MeasuredInput(
            each["name"],
            each["how"],
            tuple(MetricName(one["name"], tables["sources"][one["source"]]) for one in each["metrics"]),
        )
        for each in tables["inputs"]
        if its.name in each.get("systems", (its.name,))
        and (in_cassandra or not each.get("cassandra", False))
        and _matters(each.get("fields", ()), scenario)
    )


def _matters(fields: list[str], scenario: Scenario) -> bool:
    """Whether an input says something about a layout: one of its fields is in use."""
    given = scenario.given()
    used = [name for name in fields if name == "rate" or given.get(name, False) is not False]
    between_dcs = set(fields) <= {"rtt", "distance"}
    return not fields or (bool(used) and not (between_dcs and getattr(scenario, "dcs", 1) == 1))


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("inputs.toml").read_text(encoding="utf-8"))
