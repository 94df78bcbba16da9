"""Requests about clusters that were fitted to load tests: the server is started with their files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.testclient import TestClient
from tests.planner.serve.conftest import HERE, Inline
from tests.systems.prior_draws import prior_draws

from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import write
from capplan.planner.serve.app import create_app
from capplan.planner.serve.requests import Limits, Processes, answer, read_layout
from capplan.systems.cassandra import SYSTEM

ROW = LoadTestRow(cass_nodes=6, rf=3, read_fraction=0.0, clients=8, load_kind="closed", throughput_tps=1000.0)
FILES = {"mine.json": prior_draws(SYSTEM, [ROW])}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(work=Inline(FILES), files=FILES), base_url=HERE) as found:
        yield found


@pytest.mark.parametrize(
    ("path", "body", "command"),
    [
        pytest.param(
            "/predict",
            {"scenario": {"tps": 20000, "rf": 2, "slo": ["write.p99<50ms"]}, "engine": "analytic"},
            "predict mine.json --tps 20000 --rf 2 --slo write.p99<50ms --engine analytic --json",
            marks=pytest.mark.slow,
        ),
        (
            "/predict",
            {"scenario": {"system": "cassandra", "clients": 64}},
            "predict mine.json --clients 64 --json",
        ),
        (
            "/simulate",
            {"scenario": {"clients": 4}, "duration": "200ms"},
            "simulate mine.json --clients 4 --duration 200ms --json",
        ),
        pytest.param(
            "/size",
            {"scenario": {"tps": 20000}, "sized": {"cass_nodes": [3, 5]}, "survive": ["node"], "engine": "analytic"},
            "size mine.json --tps 20000 --cass-nodes 3..5 --survive node --engine analytic --json",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_answers_are_those_of_the_command_line(
    client: TestClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    path: str,
    body: Any,
    command: str,
) -> None:
    """Keys of the scenario take the place of those of the layout with most rows."""
    monkeypatch.chdir(tmp_path)
    write(FILES["mine.json"], Path("mine.json"))
    assert main(command.split()) in (0, 1)
    printed = json.loads(capsys.readouterr().out)
    found = client.post(path, json={"fitted": "mine.json", **body})
    assert found.status_code == 200
    assert _without_names(found.json()) == _without_names(printed)


def _without_names(content: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the name of its target, which the command line knows as a file."""
    return {name: value for name, value in content.items() if name != "target"}


def test_the_only_file_of_a_system_need_not_be_named() -> None:
    body = {"system": "cassandra", "clients": 64}
    found = read_layout(body, None, FILES)
    assert found == read_layout(body, "mine.json", FILES)
    assert found.fitted is FILES["mine.json"]


def test_systems_name_their_files(client: TestClient) -> None:
    found = client.get("/systems").json()
    assert {each["name"]: each["fitted"] for each in found if each["fitted"]} == {"cassandra": ["mine.json"]}
    schema = client.get("/openapi.json").json()
    jsonschema.validate(found, {"$ref": "#/components/schemas/Systems", "components": schema["components"]})


@pytest.mark.parametrize(
    "body",
    [
        {"fitted": "yours.json", "scenario": {"tps": 10}},
        {"fitted": "mine.json", "scenario": {"system": "fedora4"}},
        {"fitted": "mine.json", "scenario": {"nodes": 3}},
        {"fitted": "mine.json", "scenario": {"rf": 9}},
        {"fitted": "mine.json", "scenario": {"tps": 10, "clients": 4}},
        {"fitted": "mine.json", "network": {}},
        {"scenario": {"system": "two-tier", "tps": 10}},
    ],
)
def test_bad_input_is_one_sentence(client: TestClient, body: Any) -> None:
    found = client.post("/predict", json=body)
    assert found.status_code == 422
    assert list(found.json()) == ["error"]
    assert "\n" not in found.json()["error"]


def test_two_files_of_a_system_are_told_apart() -> None:
    files = {**FILES, "yours.json": FILES["mine.json"]}
    body = {"scenario": {"system": "cassandra", "clients": 4}}
    with pytest.raises(InputError, match=r"mine\.json"):
        answer("predict", body, files)


@pytest.mark.slow
def test_processes_have_the_files() -> None:
    """Processes of their own, as `capplan serve` has them."""
    work = Processes(Limits(processes=1), FILES)
    try:
        body = {"fitted": "mine.json", "scenario": {"clients": 4}}
        assert json.loads(asyncio.run(work.run("predict", body))) == json.loads(answer("predict", body, FILES))
    finally:
        work.close()
