"""Write the JSON schemas of the language and of results, and the page on the language.

Run from anywhere: `uv run python docs/generate/schemas.py`. With `--check` it writes nothing, and exits with 1 if a
file is out of date. The page comes from the template `language.md` and the docstrings of the constructs.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from capplan.answers.verb_answer import VerbAnswer
from capplan.calibration.tables.backtest import Backtest
from capplan.calibration.validation.validation import Validations
from capplan.evidence.audit.audit import Audit
from capplan.evidence.import_files import ImportReport
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.evidence.table import DocumentedFigures
from capplan.lab.cluster import LabStatus
from capplan.lab.collectors.collector import Collection, CollectorList
from capplan.models.language.document import network_schema, schema
from capplan.planner.check import Checked
from capplan.planner.compare import Comparison
from capplan.planner.data_factor import DataFactor
from capplan.planner.demand.forecast import Forecast
from capplan.planner.drift import Drift
from capplan.planner.live.live_validation import LiveValidation
from capplan.planner.next_test import NextTest
from capplan.planner.outages.outages_answer import OutagesAnswer
from capplan.planner.predict.prediction import Prediction
from capplan.planner.proposal.proposal import Proposal
from capplan.planner.proposal.verify import Verification
from capplan.planner.simulate.simulation import Simulation
from capplan.planner.size.sizing import Sizing
from capplan.planner.sweep import SweepTable
from capplan.systems.registry import KnownSystems, every_system

DOCS = Path(__file__).resolve().parents[1]
TEMPLATE = DOCS / "generate" / "language.md"
ANSWERS: tuple[type[VerbAnswer], ...] = (
    Prediction,
    Simulation,
    Proposal,
    Verification,
    Sizing,
    Audit,
    ImportReport,
    LabStatus,
    LiveValidation,
    Collection,
    Forecast,
    OutagesAnswer,
    Checked,
    Comparison,
    Drift,
    Backtest,
    NextTest,
    SweepTable,
    Validations,
    KnownSystems,
    DocumentedFigures,
    CollectorList,
    DataFactor,
)
UNIONS = {  # a kind that only this union has, and the page's word for the union
    "visit": "[step](#steps)",
    "exponential": "[distribution](#distributions-of-durations)",
    "poisson": "[arrivals](#arrivals)",
    "open": "[traffic](#traffic)",
}


def _name(answer: type[VerbAnswer]) -> str:
    return answer.SCHEMA.removeprefix("capplan.").partition("/")[0]


def generated() -> dict[Path, str]:
    """Return the text of every file that this script writes."""
    network = network_schema()
    return {
        DOCS / "reference" / "network.schema.json": _text(network),
        DOCS / "reference" / "scenario.schema.json": _text(_scenarios()),
        DOCS / "reference" / "load-tests.schema.json": _text(LOAD_TESTS.json_schema()),
        DOCS / "reference" / "microbench.schema.json": _text(MICROBENCHMARKS.json_schema()),
        **{DOCS / "reference" / f"{_name(each)}.schema.json": _text(each.json_schema()) for each in ANSWERS},
        DOCS / "reference" / "language.md": _page(TEMPLATE.read_text(encoding="utf-8"), network),
    }


def _scenarios() -> dict[str, Any]:
    """Return the schema of scenario files: that of any system."""
    known = {each.scenario.__name__: schema(each.scenario) for each in every_system()}
    dialect = {part.pop("$schema") for part in known.values()}
    (shared,) = dialect
    references = [{"$ref": f"#/$defs/{name}"} for name in known]
    return {"$schema": shared, "title": "Scenario", "anyOf": references, "$defs": known}


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _page(template: str, schema: dict[str, Any]) -> str:
    """Fill in each line `{{Construct}}` of the template."""
    constructs = {**schema["$defs"], schema["title"]: schema}
    return re.sub(r"^\{\{(\w+)\}\}$", lambda match: _construct(constructs[match[1]]), template, flags=re.MULTILINE)


def _construct(schema: dict[str, Any]) -> str:
    rows = [
        f"| `{name}` | {_value(field)} | {_default(name, field, schema)} | {field.get('description', '')} |"
        for name, field in schema["properties"].items()
        if name != "kind"
    ]
    table = ["| field | value | default | meaning |", "| --- | --- | --- | --- |", *rows]
    return "\n".join([schema["description"], "", *(table if rows else ["No fields."])])


def _default(name: str, field: dict[str, Any], schema: dict[str, Any]) -> str:
    if name in schema.get("required", []):
        return "required"
    default = field["default"]
    return "none" if default in (None, [], "") else f"`{json.dumps(default)}`"


def _value(node: dict[str, Any]) -> str:
    """Describe the value of a field."""
    if "unit" in node:
        return str(node["unit"])
    if "anyOf" in node:
        return _value(next(branch for branch in node["anyOf"] if branch.get("type") != "null"))
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "discriminator" in node:
        return next(text for kind, text in UNIONS.items() if kind in node["discriminator"]["mapping"])
    if "enum" in node:
        return ", ".join(f"`{each}`" for each in node["enum"])
    if node["type"] == "array":
        return f"list: {_value(node['items'])}"
    if node["type"] == "boolean":
        return "`true`, `false`"
    if node["type"] == "object":
        return f"table: {_value(node['additionalProperties'])} by name"
    return _number(node) if node["type"] in ("integer", "number") else "text"


def _number(node: dict[str, Any]) -> str:
    bounds = [
        *([f"≥ {node['minimum']:g}"] if "minimum" in node else []),
        *([f"> {node['exclusiveMinimum']:g}"] if "exclusiveMinimum" in node else []),
        *([f"≤ {node['maximum']:g}"] if "maximum" in node else []),
    ]
    return " ".join(["whole number" if node["type"] == "integer" else "number", ", ".join(bounds)])


def main() -> int:
    """Write the files, or check them."""
    stale = [path for path, text in generated().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(generated()[path], encoding="utf-8", newline="\n")
        sys.stderr.write(f"{path.relative_to(DOCS.parent)} was out of date\n")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
