"""Requests made from the OpenAPI document never fail, and answers keep to their schemas."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from capplan.planner.serve.app import EXAMPLES, create_app
from capplan.planner.serve.requests import Limits

BODIES = {"/predict": "PredictRequest", "/simulate": "SimulateRequest", "/size": "SizeRequest"}
HERE = {"Host": "127.0.0.1"}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def described() -> Iterator[Any]:
    app = create_app(Limits(processes=1, time_s=1))
    with TestClient(app):  # starts its processes
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers=HERE)


@pytest.mark.slow
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "options"])
@pytest.mark.parametrize("path", ["/predict", "/simulate", "/size"])
def test_no_request_fails(described: Any, path: str, whole: bool) -> None:
    """Ask with bodies that are random as a whole, or in their options only: few random scenarios keep all rules."""

    most = 25 if whole else 8

    @settings(
        max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(described[path]["POST"].as_strategy())
    def asked(case: Any) -> None:
        if not whole:
            own = {name: value for name, value in case.body.items() if name not in ("network", "tps", "slo")}
            case.body = {**own, "scenario": EXAMPLES[BODIES[path]]["scenario"]}
        answer = case.call(headers=HERE)
        assert answer.status_code != 500, answer.text  # 503 and 504 say that a limit was reached
        case.validate_response(answer, checks=CHECKS)

    asked()


@pytest.mark.parametrize("path", ["/predict", "/simulate", "/size"])
def test_the_example_of_the_document_is_answered(client: TestClient, path: str) -> None:
    answer = client.post(path, json=EXAMPLES[BODIES[path]])
    assert answer.status_code == 200
