"""Backtests on load-test tables of a two-tier system whose parameters are known."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.backtest import Backtest, accuracy, backtest, remarks, split_table
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.scores import BacktestRow, PredictedFigure, summary
from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.systems.two_tier import SYSTEM

TRAIN = "clients in (2, 16, 64, 256) and front_nodes <= 2"


@pytest.fixture(scope="session")
def table() -> pd.DataFrame:
    """Reads on one, two and four front nodes: the front binds first, and the store behind four."""
    rows = [layout(front_nodes=nodes, clients=clients) for nodes in (1, 2) for clients in (2, 16, 64, 256, 384)]
    return LOAD_TESTS.frame(measured([*rows, layout(front_nodes=4, clients=128)], {"rounds": 8.0}, scatter=0.02))


@pytest.fixture(scope="session")
def found(table: pd.DataFrame) -> Backtest:
    """The backtest of that table."""
    return backtest(SYSTEM, table, TRAIN, table="mine.csv")


@pytest.mark.slow
def test_every_figure_of_every_other_row_is_scored_once(table: pd.DataFrame, found: Backtest) -> None:
    trained, unseen = split_table(table, TRAIN)
    assert (found.trained_rows, found.unseen_rows) == (len(trained), len(unseen)) == (8, 3)
    keys = [(row.run_id, row.quantity) for row in found.rows]
    assert len(keys) == len(set(keys)) == 3 * 3
    assert {run for run, _ in keys} == {row.run_id for row in unseen}


def test_rows_of_a_known_system_are_predicted_within_the_scatter(found: Backtest) -> None:
    """The table scatters by 2 %; predictions further off than 10 % would be a defect."""
    errors = [abs(row.error) for row in found.rows if row.quantity == "throughput_tps"]
    assert max(errors) < 0.1
    assert all(row.predicted.low <= row.predicted.value <= row.predicted.high for row in found.rows)


def figure(measured: float, value: float, reason: str = "", **rules: float | None) -> BacktestRow:
    """Return a scored figure whose band reaches 10 % to both sides."""
    band = PredictedFigure(value, 0.9 * value, 1.1 * value)
    error = value / measured - 1
    return BacktestRow("run", None, "throughput_tps", measured, band, error, rules, {}, not reason, reason)


def test_the_answer_is_how_good_the_predictions_are_beside_the_best_rule_for_half_of_the_figures() -> None:
    rows = [
        figure(100.0, 80.0, usl=100.0, linear=150.0, affine=180.0),
        figure(100.0, 96.0, usl=None, linear=150.0, affine=180.0),
        figure(100.0, 104.0, usl=None, linear=None, affine=180.0),
        figure(100.0, 108.0, usl=None, linear=None, affine=180.0),
    ]
    assert vars(accuracy(summary(rows)["throughput_tps"], rows)) == {
        "figures": 4,
        "median_abs_error": pytest.approx(0.06),
        "bias": pytest.approx(1.0),
        "bands_held": 3,
        "hardest_rule": "linear",
        "rule_median_abs_error": 0.5,
        "median_abs_error_beside": pytest.approx(0.12),
    }


def test_without_a_rule_for_half_of_the_figures_none_is_the_hardest() -> None:
    rows = [figure(100.0, 90.0, usl=None), figure(100.0, 90.0, usl=None), figure(100.0, 90.0, usl=100.0)]
    assert accuracy(summary(rows)["throughput_tps"], rows).hardest_rule is None


def test_what_the_fitted_rows_do_not_determine_is_remarked_and_counted_once_for_each_reason() -> None:
    known, few, many = figure(1.0, 1.0), figure(1.0, 1.0, "few"), figure(1.0, 1.0, "many")
    assert not list(remarks([known]))
    assert ["few" in each for each in remarks([few, many, known, many])] == [False, True]
    assert ["2 of 4" in each for each in remarks([few, many, known, many])] == [True, False]


def test_a_measured_row_is_not_asked_for_and_neither_is_one_that_changes_nothing() -> None:
    """Reads do not wait for copies, so a row with more of them tells nothing of reads."""
    fitted = fit_table(SYSTEM, measured([layout(clients=each, front_nodes=1) for each in (2, 64, 512)]))
    rows = [layout(front_nodes=4, clients=64), layout(front_nodes=1, cass_nodes=3, rf=1, clients=64)]
    for known, advised in ((measured(rows), (False, False)), (rows, (True, False))):
        found = [predict_table(SYSTEM, fitted, [replace(each, run_id="wanted")])[0] for each in known]
        assert not any(each.identifiable for each in found)
        assert tuple("would decide" in each.reason for each in found) == advised


def test_every_rule_stands_beside_every_figure_or_says_why_not(found: Backtest) -> None:
    for row in found.rows:
        assert set(row.baselines) == {
            "persistence",
            "linear",
            "affine",
            "power_law",
            "c_plus_r_rf",
            "usl",
            "mean_values",
        }
        assert {name for name, value in row.baselines.items() if value is None} == set(row.baseline_reasons)


def test_the_answer_follows_its_schema(found: Backtest) -> None:
    document = json.loads(json.dumps(found.to_json()))
    jsonschema.Draft202012Validator.check_schema(Backtest.json_schema())
    jsonschema.validate(document, Backtest.json_schema())


@pytest.mark.parametrize(
    ("train", "named"), [("clients < 1", "none"), ("clients > 0", "all"), ("client > 0", "clients")]
)
def test_a_split_without_rows_on_both_sides_is_refused(table: pd.DataFrame, train: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        split_table(table, train)


def test_a_repeat_has_a_name_of_its_own() -> None:
    rows = [layout(run_id="a", throughput_tps=each, clients=2 * each) for each in (1, 1, 2)]
    trained, unseen = split_table(LOAD_TESTS.frame(rows), "clients == 2")
    assert [row.run_id for row in (*trained, *unseen)] == ["a", "a (2)", "a (3)"]


def test_a_row_that_is_predicted_alone_has_the_mix_of_its_run() -> None:
    rows = [
        layout(run_id=run, clients=clients, request_class=name, read_fraction=None, throughput_tps=share * rate)
        for run, clients, rate in (("a", 2, 100), ("b", 4, 200))
        for name, share in (("read", 0.75), ("write", 0.25))
    ]
    trained, unseen = split_table(LOAD_TESTS.frame(rows), "clients == 2")
    assert [row.read_fraction for row in (*trained, *unseen)] == [0.75] * 4


def test_rows_of_another_version_say_nothing(table: pd.DataFrame) -> None:
    other = table.assign(version="2.0", throughput_tps=table.throughput_tps * 10)
    both = pd.concat([table.assign(version="1.0"), other], ignore_index=True)
    both["run_id"] = both.version + both.run_id
    with pytest.raises(InputError, match=r"2\.0"):
        backtest(SYSTEM, both, f"({TRAIN}) and version == '1.0'")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fedora4", "TABLE", "--train", "clients < 9"], "two-tier"),
        (["two-tier", "TABLE", "--train", "clients <"], "cannot be read"),
        (["two-tier", "missing.csv", "--train", "clients < 9"], "missing.csv"),
    ],
)
def test_bad_input_ends_in_one_sentence(
    table: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    path = tmp_path / "table.csv"
    LOAD_TESTS.write(table, path)
    assert main(["backtest", *[str(path) if each == "TABLE" else each for each in arguments]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err
