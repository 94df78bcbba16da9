"""Each path answers with the document that its verb prints with `--json`, and refuses bad input in one sentence."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fastapi.testclient import TestClient

from capplan.cli.main import main
from capplan.models.language.document import read_toml
from capplan.systems.registry import names

ROOT = Path(__file__).parents[3]
SMALL = {"system": "fedora4", "nodes": 2}
SUBSCRIBERS = {"subscribers": 20_000, "busy_hour": {"sessions": 0.5, "length_s": "30min"}, "growth": "20%", "years": 2}
NETWORK = read_toml(ROOT / "docs" / "examples" / "pauses-and-a-lost-node.toml")


def printed(capsys: pytest.CaptureFixture[str], command: str) -> Any:
    main(command.split())
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("path", "body", "command"),
    [
        ("/predict", {"scenario": SMALL, "engine": "analytic"}, "predict fedora4 --nodes 2 --engine analytic --json"),
        (
            "/predict",
            {
                "scenario": {**SMALL, "tps": 40, "slo": ["read.p99<1s"]},
                "engine": "analytic",
                "confidence": "80%",
                "seed": 2,
            },
            "predict fedora4 --nodes 2 --tps 40 --slo read.p99<1s --engine analytic --confidence 80% --seed 2 --json",
        ),
        (
            "/simulate",
            {"scenario": SMALL, "duration": "2s", "warmup": 0.5, "seed": 3},
            "simulate fedora4 --nodes 2 --duration 2s --warmup 500ms --seed 3 --json",
        ),
        (
            "/size",
            {
                "scenario": {"system": "fedora4", "tps": 50},
                "sized": {"nodes": [1, 8]},
                "survive": ["node"],
                "engine": "analytic",
                "growth": "150%",
                "years": 2,
            },
            "size fedora4 --tps 50 --nodes 1..8 --survive node --engine analytic --growth 150%/y --years 2 --json",
        ),
    ],
)
def test_answers_are_those_of_the_command_line(
    client: TestClient, capsys: pytest.CaptureFixture[str], path: str, body: Any, command: str
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 200
    assert answer.json() == printed(capsys, command)


def test_a_layout_is_sized_for_subscribers(client: TestClient) -> None:
    body = {"scenario": {"system": "fedora4"}, "demand": SUBSCRIBERS, "sized": {"nodes": [1, 8]}, "engine": "analytic"}
    found = client.post("/size", json=body).json()
    assert found["planned_tps"] == pytest.approx(found["offered_tps"] * 1.2**2)
    assert found["years"] == 2
    assert found["answer"] == "yes"


@pytest.mark.parametrize("path", ["/predict", "/simulate"])
def test_a_network_is_answered_too(client: TestClient, path: str) -> None:
    few = {"engine": "compiled", "budget": "10ms"} if path == "/predict" else {"duration": "2s"}
    answer = client.post(path, json={"network": NETWORK, **few})
    assert answer.status_code == 200
    schema = client.get("/openapi.json").json()
    (name,) = {"/predict": ["Prediction"], "/simulate": ["Simulation"]}[path]
    jsonschema.validate(answer.json(), {"$ref": f"#/components/schemas/{name}", "components": schema["components"]})


def test_systems_come_with_the_schemas_of_their_scenarios(client: TestClient) -> None:
    found = {each["name"]: each for each in client.get("/systems").json()}
    assert tuple(found) == names()
    jsonschema.validate(SMALL, found["fedora4"]["scenario"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**SMALL, "nodes": 0}, found["fedora4"]["scenario"])


MANY = {"stations": [{**NETWORK["stations"][0], "count": 10**6}, *NETWORK["stations"][1:]]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/predict", []),
        ("/predict", {}),
        ("/predict", {"scenario": {}}),
        ("/predict", {"scenario": {"system": "fedora5"}}),
        ("/predict", {"scenario": SMALL, "network": NETWORK}),
        ("/predict", {"scenario": SMALL, "engin": "analytic"}),
        ("/predict", {"scenario": SMALL, "risk": 0}),
        ("/predict", {"scenario": SMALL, "tps": 40}),
        ("/predict", {"scenario": {"system": "fedora4", "nodes": 10**6}}),
        ("/predict", {"scenario": SMALL, "engine": "analytic", "budget": "1s"}),
        ("/predict", {"network": {**NETWORK, **MANY}}),
        ("/predict", {"scenario": {"system": "fedora4", "tps": 1e308}}),
        pytest.param(
            "/predict",
            {"scenario": {"system": "fedora4", "node_speed": 1e-308}, "engine": "analytic"},
            marks=pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of what is refused
        ),
        ("/simulate", {"network": {**NETWORK, **MANY}}),
        ("/simulate", {"scenario": SMALL, "duration": "1s", "warmup": "1s"}),
        ("/simulate", {"scenario": {**SMALL, "tps": 10**6}, "duration": "1h"}),
        ("/simulate", {"scenario": SMALL, "replications": 10**30}),
        ("/simulate", {"scenario": SMALL, "precision": "p98<2%"}),
        ("/size", {"scenario": {"system": "fedora4"}}),
        ("/size", {"scenario": {**SMALL, "tps": 50}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "sized": {"nodes": [8, 1]}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "sized": {"servers": [1, 8]}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "families": {"tps": [1]}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "families": {"region": ["mars"]}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "years": 2}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "demand": SUBSCRIBERS}),
        ("/size", {"scenario": {"system": "fedora4"}, "demand": {**SUBSCRIBERS, "subscribers": 1e15}}),
        ("/size", {"scenario": {"system": "fedora4"}, "demand": {"subscribers": 3}}),
        ("/size", {"scenario": {"system": "fedora4", "tps": 50}, "prices": {"machines": {"nodes": 3}}}),
    ],
)
def test_bad_input_is_one_sentence(client: TestClient, path: str, body: Any) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert "\n" not in answer.json()["error"]


_DEEP = b"[" * 100 + b"]" * 100
_WIDE = b"[" + b"1," * 100_000 + b"1]"


@pytest.mark.parametrize("body", [b"", b"{", b'{"seed": NaN}', b"\xff", b"[" * 90_000, b"1" * 5000, _DEEP, _WIDE])
def test_what_is_not_json_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/predict", content=body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/predict"), ("PUT", "/size"), ("DELETE", "/systems")])
def test_other_methods_are_named(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["Allow"] in ("GET", "POST")


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("path", ["//predict", "/nothing", "/predict/", "/docs/nothing", "/@file/100-NAME", "/@file/x"])
def test_unknown_paths_have_one_form_of_error(
    client: TestClient, method: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Also those that the notebook refuses, before or after it has begun to answer."""
    answer = client.request(method, f"http://127.0.0.1{path}")
    assert answer.status_code == (404 if method == "GET" else answer.status_code)
    assert answer.status_code in (404, 405)
    assert list(answer.json()) == ["error"]
    assert not caplog.records


@pytest.mark.parametrize(
    "body",
    [
        b'{"seed": 1, "scenario": {"system": "fedora4"}, "seed": 2}',
        b'{"scenario": {"system": "fedora4", "seed": 1, "seed": 1}}',
        b'{"network": {"stations": [{"seed": 1, "seed": 1}]}}',
    ],
)
def test_a_key_that_stands_twice_is_refused(client: TestClient, body: bytes) -> None:
    answer = client.post("/predict", content=body)
    assert answer.status_code == 422
    assert "'seed'" in answer.json()["error"]


@pytest.mark.parametrize("where", ["scenario", "families"])
def test_more_replicas_than_default_nodes_find_their_layout(client: TestClient, where: str) -> None:
    scenario: dict[str, Any] = {"system": "openprovider", "tps": 1000}
    body: dict[str, Any] = {"scenario": scenario, "sized": {"cass_nodes": [5, 6]}, "families": {"dcs": [1]}}
    body["engine"] = "analytic"
    body[where]["rf"] = 5 if where == "scenario" else [5]
    answer = client.post("/size", json=body).json()
    assert answer["chosen"]["fields"]["cass_nodes"] == 5


def test_a_list_is_no_name_of_a_system(client: TestClient) -> None:
    answer = client.post("/size", json={"scenario": {"system": [4, 8]}})
    assert answer.status_code == 422
    assert "system" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/systems", "/healthz", "/metrics"])
def test_what_a_get_answers_a_head_does(client: TestClient, path: str) -> None:
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")
