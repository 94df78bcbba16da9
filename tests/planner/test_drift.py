"""`drift`: each claim of an answer against measurements, by exact cases."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.planner.drift import Drift, drift, predicted, read_answer


def band(value: float, low: float, high: float | None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "basis": "measured"}


ANSWER: dict[str, Any] = {
    "schema": "capplan.prediction/5",
    "system": "orders",
    "layout": "3 nodes",
    "scenario": {"dcs": 1, "cass_nodes": 3},
    "capacity": {"peak_tps": band(1000, 900, 1100)},
    "offered": {"peak_tps": 500.0},
    "latency_ms": {"read": {"mean": band(2, 1, 3), "p99": band(10, 5, None)}},
}


def measured(**cells: Any) -> LoadTestRow:
    """A steady run at the answer's rate."""
    return LoadTestRow(
        **{
            **{"run_id": "a", "load_kind": "open", "offered_tps": 500.0, "throughput_tps": 500.0, "duration_s": 1000.0},
            **{"request_class": "read", "latency_mean_ms": 2.5},
            **cells,
        }
    )


def beyond(completed: float) -> LoadTestRow:
    """A run with twice the capacity on offer."""
    wait_ms = (1 - completed / 2000) * 1000 * 1000 / 2
    return measured(run_id="b", offered_tps=2000.0, throughput_tps=completed, latency_mean_ms=wait_ms)


def statuses(*rows: LoadTestRow, answer: dict[str, Any] = ANSWER) -> dict[str, str]:
    return {each.name: each.status for each in drift(predicted(answer), LOAD_TESTS.frame(rows)).claims}


@pytest.mark.parametrize(("mean", "status"), [(0.9, "better"), (1.0, "held"), (3.0, "held"), (3.1, "worse")])
def test_a_latency_is_compared_with_its_band(mean: float, status: str) -> None:
    assert statuses(measured(latency_mean_ms=mean)) == {
        "capacity": "untested",
        "read.mean": status,
        "read.p99": "untested",
    }


def test_a_band_without_an_end_cannot_be_exceeded() -> None:
    assert statuses(measured(latency_p99_ms=1e6, latency_mean_ms=None))["read.p99"] == "held"


@pytest.mark.parametrize(("rate", "status"), [(449, "untested"), (450, "worse"), (550, "worse"), (551, "untested")])
def test_only_runs_near_the_rate_of_the_answer_test_its_latencies(rate: float, status: str) -> None:
    near = measured(run_id="near", latency_mean_ms=None, latency_p99_ms=6.0)
    tested = statuses(near, measured(offered_tps=rate, throughput_tps=rate, latency_mean_ms=9.0))

    assert tested["read.mean"] == status


@pytest.mark.parametrize(
    ("means", "median", "status"),
    [
        ((2.0, 2.9, 9.0), 2.9, "held"),
        ((9.0, 2.0, 2.9), 2.9, "held"),  # whichever comes first
        ((0.1, 0.2, 2.0), 0.2, "better"),
        ((2.0, 3.4, 3.5), 3.4, "worse"),
        ((2.0, 3.0), 2.5, "held"),
    ],
)
def test_of_several_runs_the_median_counts(means: tuple[float, ...], median: float, status: str) -> None:
    rows = [measured(run_id=str(mean), latency_mean_ms=mean) for mean in means]
    found = {each.name: each for each in drift(predicted(ANSWER), LOAD_TESTS.frame(rows)).claims}["read.mean"]

    assert found.measured == pytest.approx(median)
    assert found.status == status
    assert found.runs == tuple(map(str, means))


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([beyond(890)], "worse"),
        ([beyond(950)], "held"),
        ([beyond(1150)], "better"),
        ([measured(offered_tps=950.0, throughput_tps=950.0)], "held"),
        ([measured(offered_tps=1200.0, throughput_tps=1200.0)], "better"),
        ([measured()], "untested"),
        ([beyond(890), measured(offered_tps=950.0, throughput_tps=950.0)], "held"),
    ],
)
def test_the_capacity_is_what_was_completed(rows: list[LoadTestRow], status: str) -> None:
    near = measured(run_id="near")

    assert statuses(near, *rows)["capacity"] == status


def test_classes_of_a_run_add_up_to_its_rate() -> None:
    parts = [measured(request_class=name, offered_tps=250.0, throughput_tps=250.0) for name in ("read", "write")]

    assert statuses(*parts)["read.mean"] == "held"


def classes(read: dict[str, Any], write: dict[str, Any], run: str = "mixed") -> list[LoadTestRow]:
    """Return a run of two request classes, each with half of the answer's rate unless something else is said."""
    half = {"run_id": run, "offered_tps": 250.0, "throughput_tps": 250.0}
    return [measured(**{**half, "request_class": name, **cells}) for name, cells in (("read", read), ("write", write))]


def test_latencies_of_an_overloaded_run_test_nothing_though_its_rate_is_near() -> None:
    """Its backlog grew: half as much was offered again as it completed, and requests waited for minutes."""
    tested = statuses(measured(run_id="near"), beyond(500))

    assert tested["read.mean"] == "held"
    assert statuses(measured(run_id="near", latency_mean_ms=None, latency_p99_ms=6.0), beyond(500))["read.mean"] == (
        "untested"
    )


def test_repeats_of_a_run_are_runs_of_their_own() -> None:
    rows = [measured(repeat=number + 1, latency_mean_ms=mean) for number, mean in enumerate((2.0, 2.2, 3.5))]
    claims = {each.name: each for each in drift(predicted(ANSWER), LOAD_TESTS.frame(rows)).claims}

    assert (claims["read.mean"].runs, claims["read.mean"].measured) == (("a", "a", "a"), 2.2)


def test_a_run_whose_backlog_grew_a_little_tests_no_latency() -> None:
    """Of 500,000 requests 3 % are missing: no noise, and less than an overload."""
    late = measured(run_id="late", throughput_tps=485.0, latency_mean_ms=9.0)

    assert statuses(measured(), late)["read.mean"] == "held"


def test_a_run_is_overloaded_if_one_of_its_classes_is() -> None:
    late_ms = (1 - 250 / 400) * 1000 * 1000 / 2
    run = classes({"latency_mean_ms": 9.0}, {"offered_tps": 400.0, "latency_mean_ms": late_ms})
    near = measured(run_id="near")

    assert statuses(near, *run) == {"capacity": "worse", "read.mean": "held", "read.p99": "untested"}
    assert statuses(near, *classes({"latency_mean_ms": 9.0}, {}))["read.mean"] == "worse"  # the median of 2.5 and 9


def test_the_rate_of_a_run_is_unknown_if_that_of_a_class_is() -> None:
    """Reads alone come near the rate of the answer, and nobody knows how many writes there were beside them."""
    run = classes(
        {"offered_tps": 500.0, "throughput_tps": 500.0, "latency_mean_ms": 9.0},
        {"offered_tps": None, "throughput_tps": None},
    )
    claims = {each.name: each for each in drift(predicted(ANSWER), LOAD_TESTS.frame([measured(), *run])).claims}

    assert (claims["read.mean"].runs, claims["read.mean"].measured) == (("a",), 2.5)


def test_a_row_of_all_requests_tests_a_class_only_where_it_is_the_only_one() -> None:
    """The mean of reads and writes together is that of neither."""
    both = {**ANSWER, "latency_ms": {name: {"mean": band(2, 1, 3)} for name in ("read", "write")}}
    row = measured(request_class="all")

    assert statuses(row)["read.mean"] == "held"
    assert statuses(*classes({}, {}), measured(run_id="all", request_class="all"), answer=both) == {
        "capacity": "untested",
        "read.mean": "held",
        "write.mean": "held",
    }
    with pytest.raises(InputError, match="no run tests a claim"):
        statuses(row, answer=both)


def test_refused_rows_and_other_layouts_test_nothing() -> None:
    refused = measured(run_id="b", load_kind="throttled", offered_tps=700.0, latency_mean_ms=90.0)
    other = measured(run_id="c", cass_nodes=6, latency_mean_ms=90.0)
    found = drift(predicted(ANSWER), LOAD_TESTS.frame([measured(), refused, other]))

    assert (found.answer, found.rows_refused, found.rows_of_other_layouts) == (True, 1, 1)


@pytest.mark.parametrize(
    ("scenario", "cells", "others"),
    [
        ({"dcs": 2, "cass_nodes": 3}, {"dcs": 2, "cass_nodes": (3, 3)}, 0),
        ({"dcs": 2, "cass_nodes": [3, 4]}, {"dcs": 2, "cass_nodes": (3, 4)}, 0),
        ({"dcs": 2, "cass_nodes": [3, 4]}, {"dcs": 2, "cass_nodes": 3}, 1),
        ({"store_nodes": 3}, {"cass_nodes": 9}, 1),
        ({"store_nodes": 3}, {"cass_nodes": 3}, 0),
    ],
)
def test_a_number_of_each_data_centre_may_stand_once(
    scenario: dict[str, Any], cells: dict[str, Any], others: int
) -> None:
    rows = [measured(), measured(run_id="b", **cells)]
    assert drift(predicted({**ANSWER, "scenario": scenario}), LOAD_TESTS.frame(rows)).rows_of_other_layouts == others


def test_nothing_tested_is_no_answer() -> None:
    with pytest.raises(InputError, match="no run tests a claim"):
        drift(predicted(ANSWER), LOAD_TESTS.frame([measured(throughput_tps=5.0, offered_tps=5.0)]))


def test_the_command_exits_with_1_if_a_claim_has_become_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, good, bad = (tmp_path / name for name in ("answer.json", "good.csv", "bad.csv"))
    answer.write_text(json.dumps(ANSWER))
    LOAD_TESTS.write(LOAD_TESTS.frame([measured()]), good)
    LOAD_TESTS.write(LOAD_TESTS.frame([measured(latency_mean_ms=30.0)]), bad)

    assert main(["drift", str(answer), str(good)]) == 0
    assert main(["drift", str(answer), str(bad)]) == 1
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert main(["drift", str(answer), str(bad), "--json"]) == 1
    jsonschema.validate(json.loads(capsys.readouterr().out), Drift.json_schema())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is not JSON"),
        ("[]", "has the schema None"),
        ('{"schema": "capplan.prediction/4"}', "data as tested"),
        ('{"schema": "capplan.network/1"}', "it must be 'capplan.prediction/5' or 'capplan.sizing/2'"),
        ('{"schema": "capplan.sizing/2"}', "lacks a part of its answer"),
        ('{"schema": "capplan.sizing/2", "chosen": null}', "^the sizing found no layout"),
        ('{"schema": "capplan.sizing/2", "chosen": {"cells": 2}}', "^the sizing has 2 cells"),
    ],
)
def test_only_a_saved_answer_is_read(content: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(content)

    with pytest.raises(InputError, match=sentence):
        read_answer(path)


SAFETY = {"conditions": "normal", "held_tps": 600.0, "reached_ms": {"read.p99": 10.0, "read.mean": None}}
SIZING = {
    "schema": "capplan.sizing/2",
    "system": "orders",
    "scenario": {"dcs": 1},
    "planned_tps": 500.0,
    "chosen": {"layout": "3 nodes", "fields": {"cass_nodes": 3}, "cells": 1, "safety": [SAFETY]},
}
OBJECTIVES = [
    {"objective": "no overload", "conditions": "normal", "answer": "yes"},
    {"objective": "read.p99<=10ms and drop_rate<1%", "conditions": "normal", "answer": "yes"},
    {"objective": "read.mean<1ms or read.p50<1ms", "conditions": "normal", "answer": "yes"},
    {"objective": "read.mean<1ms", "conditions": "node", "answer": "yes"},
    {"objective": "read.p50<1ms", "conditions": "normal", "answer": "no"},
    {"objective": "read.p90<1ms", "conditions": "normal", "answer": "uncertain"},
    {"objective": "all at once", "conditions": "normal", "answer": "yes"},
]
CHECK = {
    "schema": "capplan.check/3",
    "system": "orders",
    "layout": "3 nodes",
    "scenario": {"dcs": 1, "cass_nodes": 3},
    "offered_tps": 500.0,
    "objectives": OBJECTIVES,
}
PROPOSAL = {
    "schema": "capplan.proposal/2",
    "prediction": {key: each for key, each in ANSWER.items() if key != "schema"},
}


@pytest.mark.parametrize(("p99", "status"), [(9.0, "held"), (11.0, "worse")])
@pytest.mark.parametrize("content", [SIZING, CHECK])
def test_a_sizing_and_a_check_claim_what_latencies_do_not_exceed(
    content: dict[str, Any], p99: float, status: str, tmp_path: Path
) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(content))
    run = measured(latency_mean_ms=None, latency_p99_ms=p99)
    of_another = measured(run_id="six", latency_p99_ms=90.0, cass_nodes=6)
    found = {each.name: each.status for each in drift(read_answer(path), LOAD_TESTS.frame([run, of_another])).claims}

    assert found == {"capacity": "held" if content is CHECK else "untested", "read.p99": status}


@pytest.mark.parametrize(("completed", "status"), [(590, "worse"), (610, "held"), (2000, "held")])
def test_a_sizing_claims_the_rate_that_it_sustains(completed: float, status: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(SIZING))
    rows = [measured(latency_p99_ms=9.0), beyond(completed)]

    assert drift(read_answer(path), LOAD_TESTS.frame(rows)).claims[0].status == status


def test_a_proposal_claims_what_its_prediction_does(tmp_path: Path) -> None:
    path = tmp_path / "proposal.json"
    path.write_text(json.dumps(PROPOSAL))

    assert read_answer(path) == predicted(ANSWER)


def test_the_capacity_is_the_one_without_objectives() -> None:
    capacity = {"peak_tps": band(700, 600, 800), "overload_tps": band(1000, 900, 1100)}

    assert statuses(measured(), beyond(950), answer={**ANSWER, "capacity": capacity})["capacity"] == "held"


@pytest.mark.parametrize(("completed", "status"), [(890, "worse"), (950, "held"), (1150, "better")])
def test_clients_that_wait_claim_their_throughput(completed: float, status: str) -> None:
    closed = {**ANSWER, "offered": None, "scenario": {"clients": 8}}
    run = {"load_kind": "closed", "offered_tps": None, "clients": 8, "throughput_tps": completed}
    rows = [
        measured(**run, latency_mean_ms=8000 / completed),
        measured(**{**run, "clients": 16, "run_id": "b"}, latency_mean_ms=9.0),
    ]
    found = drift(predicted(closed), LOAD_TESTS.frame(rows))

    assert {each.name: each.status for each in found.claims}["throughput"] == status
    assert found.rows_of_other_layouts == 1
    assert {each.name: each.measured for each in found.claims}["read.mean"] == 8000 / completed


@pytest.mark.parametrize(
    ("completed", "median", "status"),
    [
        ((950.0, 1150.0, 890.0), 950.0, "held"),
        ((850.0, 1150.0, 890.0), 890.0, "worse"),
        ((1150.0, 890.0, 1250.0), 1150.0, "better"),
        ((880.0, 1000.0), 940.0, "held"),
    ],
)
def test_of_several_runs_of_clients_that_wait_the_median_throughput_counts(
    completed: tuple[float, ...], median: float, status: str
) -> None:
    """Each run measures it, as repeats do, so neither the best nor the last decides."""
    closed = {**ANSWER, "offered": None, "scenario": {"clients": 8}}
    rows = [
        measured(
            run_id=str(rate),
            load_kind="closed",
            offered_tps=None,
            clients=8,
            throughput_tps=rate,
            latency_mean_ms=8000 / rate,
        )
        for rate in completed
    ]
    found, *_ = drift(predicted(closed), LOAD_TESTS.frame(rows)).claims

    assert found.measured == pytest.approx(median)
    assert (found.name, found.status) == ("throughput", status)
    assert found.runs == tuple(map(str, completed))


def test_an_answer_beyond_the_capacity_claims_the_capacity_only() -> None:
    unbounded = {"value": None, "low": None, "high": None}
    overloaded = {**ANSWER, "latency_ms": {"auth": {"mean": unbounded, "p99": {**unbounded, "low": 3.0}}}}
    assert predicted(overloaded).latencies_ms == {}
    assert predicted(overloaded).capacity_tps == predicted(ANSWER).capacity_tps
