"""The OpenAPI document of the server: the published schemas under one roof."""

from __future__ import annotations

from typing import Any

from capplan.models.language.document import network_schema, schema
from capplan.planner.demand.demand import Demand
from capplan.planner.schemas import prediction_schema, simulation_schema, sizing_schema
from capplan.planner.serve.request import PredictRequest, SimulateRequest, SizeRequest
from capplan.planner.size.shapes import Shapes
from capplan.systems.registry import every_system

ERRORS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The host or the page that asks is not this server's.",
    413: "The body is too long.",
    422: "The request breaks a rule.",
    429: "Too many requests wait; `Retry-After` says when to try again.",
    503: "The process that worked on the answer ended.",
    504: "The answer takes too long.",
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "PredictRequest": {
        "scenario": {"system": "fedora4", "nodes": 3, "tps": 40, "slo": ["read.p99<1s"]},
        "engine": "analytic",
    },
    "SimulateRequest": {"scenario": {"system": "fedora4", "nodes": 3, "tps": 40}, "duration": "10s"},
    "SizeRequest": {
        "scenario": {"system": "fedora4", "tps": 50},
        "sized": {"nodes": [1, 16]},
        "survive": ["node"],
        "engine": "analytic",
    },
}
_SENTENCE = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "What is wrong and what to do, in one sentence."}},
    "required": ["error"],
    "additionalProperties": False,
}
_SYSTEMS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "summary": {"type": "string", "description": "What is modelled."},
            "figures": {"type": "integer", "description": "Documented figures that it rests on."},
            "scenario": {"type": "object", "description": "JSON schema of its scenarios."},
            "fitted": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Fitted files of it that requests may name.",
            },
        },
        "required": ["name", "summary", "figures", "scenario", "fitted"],
        "additionalProperties": False,
    },
}


def operation(answer: str, body: str | None = None) -> dict[str, Any]:
    """Return what FastAPI takes to describe an operation whose answer, and body if any, are named schemas."""
    responses = {200: _content("The answer.", answer)}
    errors = ERRORS if body is not None else {status: ERRORS[status] for status in (401, 403)}
    responses |= {status: _content(words, "Error") for status, words in errors.items()}
    if body is None:
        return {"responses": responses, "tags": ["answers"]}
    described: dict[str, Any] = {"required": True, **_content("The question.", body)}
    described["content"]["application/json"]["example"] = EXAMPLES[body]
    return {"responses": responses, "tags": ["answers"], "openapi_extra": {"requestBody": described}}


def components() -> dict[str, Any]:
    """Return the schemas that operations name."""
    found: dict[str, Any] = {"Error": _SENTENCE, "Systems": _SYSTEMS}
    for name, each in {
        "Prediction": prediction_schema(),
        "Simulation": simulation_schema(),
        "Sizing": sizing_schema(),
        "Network": network_schema(),
        "Shapes": schema(Shapes),
        "Demand": schema(Demand),
        **{each.scenario.__name__: schema(each.scenario) for each in every_system()},
    }.items():
        found |= _spread(name, each)
    scenarios = [each.scenario.__name__ for each in every_system()]
    for name in scenarios:  # a request names its system, though a file of the default system need not
        found[name].setdefault("required", []).append("system")
    found["Scenario"] = {"anyOf": [_reference(name) for name in scenarios]}
    for kind in (PredictRequest, SimulateRequest, SizeRequest):
        described = schema(kind)
        for name in ("scenario", "network"):
            if name in described["properties"]:
                described["properties"][name] = _reference(name.capitalize())
        for name in ("shapes", "demand"):
            if name in described["properties"]:
                described["properties"][name] = _reference(name.capitalize())
        if "network" in described["properties"]:
            described["oneOf"] = [{"required": ["scenario"]}, {"required": ["network"]}]
        found |= _spread(kind.__name__, described)
    return found


def _spread(name: str, described: dict[str, Any]) -> dict[str, Any]:
    """Return a schema and its definitions under names of their own: two schemas may define a `Band` each."""
    moved = _moved(described, name)
    parts = moved.pop("$defs", {})
    moved.pop("$schema", None)
    return {name: moved, **{f"{name}.{part}": each for part, each in parts.items()}}


def _moved(node: Any, name: str) -> Any:
    if isinstance(node, dict):
        return {key: _moved(value, name) for key, value in node.items()}
    if isinstance(node, list):
        return [_moved(each, name) for each in node]
    if isinstance(node, str) and node.startswith("#/$defs/"):
        return f"#/components/schemas/{name}.{node.removeprefix('#/$defs/')}"
    return node


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _content(words: str, name: str) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": _reference(name)}}}
