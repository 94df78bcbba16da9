"""The notebooks run as scripts, and follow their controls."""

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import capplan

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
LAYOUT = {
    "dcs": 2,
    "cass_nodes": 4,
    "front_nodes": 2,
    "rtt_ms": 20,
    "consistency_read": "LOCAL_QUORUM",
    "consistency_write": "LOCAL_QUORUM",
    "encryption": "none",
    "data_factor": 1.3,
    "tps": 6000,
    "latency": "acct.p99",
    "objective_ms": 20,
}
SUBSCRIBERS = {
    "subscribers": 1.0,
    "sessions": 0.6,
    "length_min": 50,
    "interim_min": 10,
    "storm": 100,
    "growth_low": 10,
    "growth_high": 20,
    "years": 2,
    "row_bytes": 700,
    "retention_days": 30,
    "disk_gib": 1000,
    "dcs": 1,
    "latency": "acct.mean",
    "objective_ms": 50,
    "survive": [],
    "confidence": 90,
    "currency": "EUR",
    "period": "year",
    "node": 9000,
    "front": 6500,
}
CLUSTER = {
    "replicas": 3,
    "needed": 2,
    "load": 0.4,
    "pause_ms": 0,
    "pauses_per_s": 0.5,
    "timeout_ms": 50,
    "attempts": 1,
}


def ran(notebook: str, **defs: Any) -> dict[str, Any]:
    """Run a notebook with definitions in place of those of its controls, and return what it defines."""
    spec = importlib.util.spec_from_file_location(notebook, NOTEBOOKS / f"{notebook}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, found = module.app.run(defs=defs)
    return dict(found)


def test_every_notebook_is_tested() -> None:
    tested = {"what_if_layout", "tail_latency", "documented_systems", "sizing_proposal", "calibrate_your_own"}
    assert {path.stem for path in NOTEBOOKS.glob("*.py")} == tested


def test_what_if_follows_its_controls() -> None:
    plain = {**LAYOUT, "latency": "acct.mean"}
    small = ran("what_if_layout", chosen=plain, simulated=False)
    large = ran("what_if_layout", chosen={**plain, "cass_nodes": 8}, simulated=False)
    assert small["found"].offered_tps == 6000
    assert large["found"].capacity.value > 1.5 * small["found"].capacity.value
    assert small["figure"].data != large["figure"].data
    assert len(small["losses"]) >= 3


@pytest.mark.slow
def test_what_if_simulates_when_it_is_asked() -> None:
    found = ran("what_if_layout", chosen=LAYOUT, simulated=True)
    solved, simulated = found["found"].latency, found["prediction"].latency_ms["acct"].p99
    assert simulated.low < solved.value < simulated.high
    assert set(found["latencies"]["class"]) == {"auth", "acct"}


@pytest.mark.slow
def test_a_sizing_follows_its_subscribers_and_prices_and_becomes_a_proposal() -> None:
    """The layout that is proposed is small, so that the analytic solver's word is enough."""
    few, many = (
        ran("sizing_proposal", asked={**SUBSCRIBERS, **changed}, wanted=False)
        for changed in ({}, {"subscribers": 2.0, "node": 18_000})
    )
    assert many["forecast"].busy_hour.total_per_s == pytest.approx(2 * few["forecast"].busy_hour.total_per_s)
    assert few["sizing"].chosen.cost < many["sizing"].chosen.cost
    assert capplan.sentences(few["sizing"]) != capplan.sentences(many["sizing"])
    assert (few["layouts"]["regret"] == "proposed").sum() == 1
    whole = few["whole"]
    solved = replace(whole, sizing=replace(whole.sizing, engine="analytic"))
    found = ran("sizing_proposal", asked=SUBSCRIBERS, wanted=True, whole=solved)
    assert found["proposal"].sizing.chosen == found["sizing"].chosen
    assert {ending: content[:4] for ending, content in found["files"].items()} == {
        ".html": b"<!do",
        ".pdf": b"%PDF",
        ".xlsx": b"PK\x03\x04",
        ".json": b'{\n "',
    }


def test_tails_grow_with_answers_pauses_and_retries() -> None:
    def p999_s(**chosen: Any) -> float:
        return float(ran("tail_latency", chosen={**CLUSTER, **chosen})["run"].latency_quantile_s(0.999))

    plain = p999_s()
    assert p999_s(needed=3) > plain
    assert p999_s(pause_ms=50) > 3 * plain


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedora4", "openprovider"])
def test_documented_systems_shows_every_figure(name: str) -> None:
    found = ran("documented_systems", name=name)
    rows = found["rows"]
    assert set(rows["system"]) == {name}
    assert len(found["figure"].data[0].x) == rows["predicted"].notna().sum()


THREE_ROWS = (
    "run_id,cass_nodes,rf,consistency_write,read_fraction,load_kind,clients,request_class,throughput_tps,"
    "latency_mean_ms,latency_p50_ms,latency_p99_ms\n"
    "a,3,3,LOCAL_QUORUM,0,closed,4,write,3941,1.0,,\n"
    "b,3,3,LOCAL_QUORUM,0,closed,16,write,12754,1.2,,\n"
    "c,3,3,LOCAL_QUORUM,0,closed,81,write,33986,2.4,,\n"
)
REFUSED_ROW = "d,3,3,LOCAL_QUORUM,0,closed,40,write,20000,2.0,9.0,2.0\n"  # a 99th percentile below the median


@pytest.mark.slow
def test_own_measurements_are_audited_backtested_and_fitted() -> None:
    dropped = {"mine.csv": (THREE_ROWS + REFUSED_ROW).encode()}
    found = ran("calibrate_your_own", dropped=dropped, columns="", kept="clients <= 16", asked=ASKED)
    larger = ran("calibrate_your_own", dropped=dropped, columns="", kept="clients <= 16", asked={**ASKED, **SIX_NODES})
    assert (len(found["table"]), len(found["believed"])) == (4, 3)
    assert found["backtest"].unseen_rows == 1
    assert found["capacity"].low > 20_000
    assert larger["capacity"].value > 1.3 * found["capacity"].value
    assert found["found"].offered_tps == pytest.approx(0.6 * found["capacity"].value)


ASKED, SIX_NODES = {"cass_nodes": 3, "load": 60}, {"cass_nodes": 6}


def test_a_file_that_cannot_be_imported_stops_in_one_sentence() -> None:
    found = ran("calibrate_your_own", dropped={"letter.txt": b"Dear reader\n"}, columns="")
    assert "table" not in found or found["table"] is None
    assert "audit" not in found
