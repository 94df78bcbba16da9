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

from capplan.planner.serve.app import create_app
from capplan.planner.serve.work import Limits

HERE = {"Host": "127.0.0.1"}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def described() -> Iterator[Any]:
    app = create_app(Limits(processes=1, time_s=1))
    with TestClient(app):  # starts its processes
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers=HERE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/systems"), ("POST", "/predict"), ("POST", "/simulate"), ("POST", "/size")]
)
def test_no_request_fails(described: Any, method: str, path: str) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(described[path][method].as_strategy())
    def asked(case: Any) -> None:
        answer = case.call(headers=HERE)
        assert answer.status_code != 500, answer.text  # 503 and 504 say that a limit was reached
        case.validate_response(answer, checks=CHECKS)
        seen.append(answer.status_code)

    seen: list[int] = []
    asked()
    assert seen
