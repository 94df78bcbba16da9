"""JSON schemas of what verbs answer, from their dataclasses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from capplan.calibration.tables.backtest import SCHEMA as BACKTEST
from capplan.calibration.tables.backtest import Backtest
from capplan.evidence.audit.audit import SCHEMA as AUDIT
from capplan.evidence.audit.audit import Audit
from capplan.evidence.import_files import SCHEMA as IMPORT
from capplan.evidence.import_files import ImportReport
from capplan.lab.cluster import SCHEMA as LAB
from capplan.lab.cluster import LabStatus
from capplan.lab.collectors.collector import SCHEMA as COLLECTION
from capplan.lab.collectors.collector import Collection
from capplan.models.language.document import schema
from capplan.planner.check import SCHEMA as CHECK
from capplan.planner.check import Checked
from capplan.planner.compare import SCHEMA as COMPARISON
from capplan.planner.compare import Comparison
from capplan.planner.demand.forecast import SCHEMA as DEMAND
from capplan.planner.demand.forecast import Forecast
from capplan.planner.drift import SCHEMA as DRIFT
from capplan.planner.drift import Drift
from capplan.planner.live.answer import SCHEMA as LIVE
from capplan.planner.live.answer import LiveValidation
from capplan.planner.next_test import SCHEMA as NEXT_TEST
from capplan.planner.next_test import NextTest
from capplan.planner.outages.answer import SCHEMA as OUTAGES
from capplan.planner.outages.answer import OutagesAnswer
from capplan.planner.predict.prediction import SCHEMA as PREDICTION
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.proposal import SCHEMA as PROPOSAL
from capplan.planner.proposal.proposal import Proposal
from capplan.planner.simulate.simulation import SCHEMA as SIMULATION
from capplan.planner.simulate.simulation import Simulation
from capplan.planner.size.sizing import SCHEMA as SIZING
from capplan.planner.size.sizing import Sizing

_UNBOUNDED = [("Band", number) for number in ("value", "low", "high")]
_UNSEEN = [("Estimate", "value"), ("PrecisionReached", "relative")]


def prediction_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Prediction.to_json`."""
    return _strict(Prediction, PREDICTION, _UNBOUNDED)


def simulation_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Simulation.to_json`."""
    return _strict(Simulation, SIMULATION, _UNSEEN)


def sizing_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Sizing.to_json`."""
    return _strict(Sizing, SIZING, [])


def proposal_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Proposal.to_json`."""
    published = _strict(Proposal, PROPOSAL, _UNBOUNDED)
    published["properties"]["digest"] = {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "SHA-256 of the rest, as JSON with sorted keys and without blanks.",
    }
    published["required"].append("digest")
    return published


def demand_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Forecast.to_json`."""
    return _strict(Forecast, DEMAND, _UNBOUNDED)


def outages_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `OutagesAnswer.to_json`."""
    return _strict(OutagesAnswer, OUTAGES, _UNBOUNDED)


def check_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Checked.to_json`."""
    return _strict(Checked, CHECK, [])


def comparison_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Comparison.to_json`."""
    return _strict(Comparison, COMPARISON, [("Interval", number) for number in ("value", "low", "high")])


def audit_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Audit.to_json`."""
    return _strict(Audit, AUDIT, [("Interval", number) for number in ("value", "low", "high")])


def drift_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Drift.to_json`."""
    return _strict(Drift, DRIFT, [])


def backtest_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `Backtest.to_json`."""
    unbounded = [("PredictedFigure", number) for number in ("value", "low", "high")]
    return _strict(Backtest, BACKTEST, [*unbounded, ("BacktestRow", "error")])


def next_test_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `NextTest.to_json`."""
    return _strict(NextTest, NEXT_TEST, [])


def lab_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `lab status --json`."""
    return _strict(LabStatus, LAB, [])


def live_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `LiveValidation.to_json`."""
    return _strict(LiveValidation, LIVE, [])


def collection_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `collect --json`."""
    return _strict(Collection, COLLECTION, [])


def import_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of `evidence import --json`."""
    return _strict(ImportReport, IMPORT, [])


def _strict(result: type, name: str, nullable: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the schema of a result in which every key is required, and some numbers may be null."""
    published: dict[str, Any] = schema(result)
    published["properties"] = {"schema": {"const": name, "type": "string"}, **published["properties"]}
    for part in (published, *published["$defs"].values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
        for field in part["properties"].values():
            field.pop("default", None)  # what Python may leave out stands in the document
    for part, number in nullable:
        published["$defs"][part]["properties"][number]["type"] = ["number", "null"]  # JSON has no infinity
    return published
