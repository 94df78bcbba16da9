"""Requests made from the OpenAPI document never fail, and answers keep to their schemas."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from capplan.planner.serve.app import create_app
from capplan.planner.serve.work import Limits

HERE = {"Host": "127.0.0.1"}
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]
schema = schemathesis.pytest.from_fixture("described")


@pytest.fixture(scope="module")
def described() -> Iterator[Any]:
    app = create_app(Limits(processes=1, time_s=1))
    with TestClient(app):  # starts its processes
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers=HERE)


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_fails(case: Any) -> None:
    answer = case.call(headers=HERE)
    assert answer.status_code != 500  # documents name no such answer; 503 and 504 say that a limit was reached
    case.validate_response(answer, checks=CHECKS)
