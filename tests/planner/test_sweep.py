"""Sweeps: the figures of `predict`, a row for each point whatever becomes of it."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from capplan.systems.components.encryption_costs import values_of

from capplan.calibration.fit.fitted_file import load
from capplan.models.cassandra.encryption import INTERNODE_SHARE
from capplan.models.errors import InputError
from capplan.planner.explore.sweep import DEFAULT_DRAWS, Layout, Rates, Sweep, experiment, layouts, rows_of_task
from capplan.planner.explore.sweep_table import COLUMNS, Row, band_columns, table_schema, write_table
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import STATISTICS, Band, Prediction, rounded
from capplan.planner.predict.representatives import representatives
from capplan.simulator.experiments.experiment import perform
from capplan.simulator.experiments.workers import in_process
from capplan.systems.openprovider.scenario import OpenproviderScenario

POINTS = [
    (OpenproviderScenario(), 6000.0),
    (OpenproviderScenario(dcs=1, front_workers=16), 2500.0),
    (OpenproviderScenario(dcs=2, cass_nodes=6, ldap=True, rtt="4ms"), 12000.0),
    (OpenproviderScenario(cass_nodes=4, slo=("acct.p99<7ms",)), 9000.0),
]
ENCRYPTED = [
    (OpenproviderScenario(encryption="client+internode"), 6000.0),
    (OpenproviderScenario(encryption="client"), 7000.0),
    (OpenproviderScenario(dcs=1, encryption="client+internode", vpn="kernel"), 2500.0),
]


def rows_of(sweep: Sweep) -> list[Row]:
    with in_process() as used:
        return sweep.rows({case.key: rows for case, (rows,) in perform(experiment(), sweep.cases(), used)})


def one(scenario: OpenproviderScenario, rate: float, draws: int = DEFAULT_DRAWS, seed: int = 1) -> Row:
    found = rows_of(Sweep(layouts(scenario, [{}]), Rates("given", (rate,)), draws=draws, seed=seed))
    assert len(found) == 1
    return found[0]


def bands(row: Row) -> dict[str, tuple[float, float, float]]:
    names = ["capacity_tps", *(f"{name}_{each}_ms" for name in ("auth", "acct") for each in STATISTICS)]
    return {name: tuple(row[column] for column in band_columns(name)) for name in names}


def predicted(prediction: Prediction) -> dict[str, tuple[float, float, float]]:
    def three(band: Band) -> tuple[float, float, float]:
        return rounded(band.value), rounded(band.low), rounded(band.high)

    assert prediction.capacity_tps is not None
    found = {"capacity_tps": three(prediction.capacity_tps)}
    for name, latency in prediction.latency_ms.items():
        found |= {f"{name}_{each}_ms": three(getattr(latency, each)) for each in STATISTICS}
    return found


@pytest.mark.parametrize(("scenario", "rate"), [*POINTS, *ENCRYPTED])
def test_with_all_draws_the_figures_are_those_of_predict(scenario: OpenproviderScenario, rate: float) -> None:
    prediction = predict(replace(scenario, tps=rate), engine="analytic", seed=3)

    row = one(scenario, rate, draws=1000, seed=3)

    assert bands(row) == {name: pytest.approx(value, rel=2e-3) for name, value in predicted(prediction).items()}
    same = [bands(row)[name] == value for name, value in predicted(prediction).items()]
    assert np.mean(same) > 0.9  # the rest differs in the last of four digits, by the start of a percentile's search
    assert row["bottleneck"] == prediction.bottleneck
    assert row["extrapolation"] == prediction.evidence.extrapolation
    assert (row["encryption"], row["vpn"]) == (scenario.encryption, scenario.vpn)


@pytest.mark.parametrize(("scenario", "rate"), POINTS)
def test_with_few_draws_the_figures_are_those_of_predict_with_stand_ins(
    scenario: OpenproviderScenario, rate: float
) -> None:
    fitted = load("openprovider")
    few = representatives(fitted.values(), DEFAULT_DRAWS)
    thinned = replace(fitted, draws=tuple(fitted.draws[few.chosen[place]] for place in few.place))
    prediction = predict(replace(scenario, tps=rate), engine="analytic", fitted=thinned)

    assert bands(one(scenario, rate)) == {
        name: pytest.approx(value, rel=2e-3) for name, value in predicted(prediction).items()
    }


@pytest.mark.parametrize(("scenario", "rate"), [*POINTS, *ENCRYPTED])
def test_few_draws_are_near_all_draws(scenario: OpenproviderScenario, rate: float) -> None:
    few, every = bands(one(scenario, rate)), bands(one(scenario, rate, draws=1000))

    for name, (value, low, high) in every.items():
        wide = scenario.encryption is not None and name != "capacity_tps"  # times with it differ by half between draws
        assert few[name][0] == pytest.approx(value, rel=0.04 if wide else 0.01)
        assert few[name][1:] == pytest.approx((low, high), rel=0.05)


def test_representatives_stand_for_their_neighbours() -> None:
    fitted = load("openprovider")
    few, fewer = representatives(fitted.values(), 40), representatives(fitted.values(), 10)
    logs = np.log(np.array(fitted.draws))
    points = logs / logs.std(axis=0)
    apart = np.linalg.norm(points[:, None] - points[few.chosen][None], axis=-1)

    assert len(set(few.chosen.tolist())) == 40
    assert list(few.chosen[:10]) == list(fewer.chosen)
    assert apart[np.arange(len(points)), few.place] == pytest.approx(apart.min(axis=1))
    every = representatives(fitted.values(), 10**6)
    assert list(every.chosen) == list(every.place) == list(range(len(fitted.draws)))


def test_draws_are_told_apart_by_what_encryption_costs_too() -> None:
    """Beside it the parameters hardly matter: without it the capacity differs by 1 % between draws."""
    values = values_of(load("openprovider"), OpenproviderScenario(encryption="internode"))
    few = representatives(values, 40)
    share = np.log(np.asarray(values[INTERNODE_SHARE]))

    assert np.corrcoef(share, share[few.chosen][few.place])[0, 1] > 0.8


def test_shares_of_the_capacity_are_rates_of_it() -> None:
    rows = rows_of(Sweep(layouts(OpenproviderScenario(), [{}]), Rates("load", (0.2, 0.8, 1.0))))
    given = rows_of(
        Sweep(layouts(OpenproviderScenario(), [{}]), Rates("given", tuple(row["offered_tps"] for row in rows)))
    )

    assert [row["load"] for row in rows] == pytest.approx([0.2, 0.8, 1.0], abs=1e-3)
    assert rows[2]["acct_p99_ms"] is not None
    assert [{**row, "offered_source": None} for row in rows] == [{**row, "offered_source": None} for row in given]


def test_beyond_capacity_there_is_no_latency() -> None:
    inside, beyond = rows_of(Sweep(layouts(OpenproviderScenario(), [{}]), Rates("load", (0.9, 1.1))))

    assert inside["auth_mean_ms"] < inside["auth_p999_ms"]
    assert (beyond["carries"], beyond["auth_mean_ms"], beyond["acct_p99_ms_high"]) == (False, None, None)
    assert beyond["bottleneck_utilisation"] == 1.0


def test_an_objective_lowers_the_capacity_and_keeps_the_latencies_above_it() -> None:
    free = one(OpenproviderScenario(dcs=1), 6500.0)
    bound = one(OpenproviderScenario(dcs=1, slo=("acct.p99<7ms",)), 6500.0)

    assert bound["capacity_tps"] < free["capacity_tps"]
    assert bound["acct_p99_ms"] == free["acct_p99_ms"]
    assert (free["carries"], bound["carries"]) == (True, False)


def test_a_combination_that_breaks_a_rule_is_a_row_with_the_reason() -> None:
    found = layouts(OpenproviderScenario(), [{"cass_nodes": 2}, {"cass_nodes": 3}, {"consistency_read": "SOME"}])
    rows = rows_of(Sweep(found, Rates("given", (1000.0, 2000.0))))

    assert [(row["cass_nodes"], row["offered_tps"]) for row in rows] == [
        (nodes, rate) for nodes in (2, 3, 3) for rate in (1000.0, 2000.0)
    ]
    assert ["rf = 3 needs at least 3" in (row["refused"] or "") for row in rows] == [True, True, *[False] * 4]
    assert ["'SOME'" in (row["refused"] or "") for row in rows] == [*[False] * 4, True, True]
    assert rows[0]["capacity_tps"] is None


def test_what_the_solver_refuses_is_a_row_with_the_reason() -> None:
    found = layouts(OpenproviderScenario(consistency_write="ALL", slo=("nobody.p99<1ms",)), [{}])

    rows = rows_of(Sweep(found, Rates("given", (1000.0,))))

    assert "'nobody' is not a request class" in rows[0]["refused"]


def test_a_layout_with_many_rates_is_several_tasks_with_the_same_rows() -> None:
    few = Sweep(layouts(OpenproviderScenario(), [{}]), Rates("given", (100.0, 300.0)))
    many = Sweep(few.layouts, Rates("given", tuple(float(rate) for rate in range(100, 351))))
    every = rows_of(many)

    assert len(many.cases()) == 2
    assert [row["offered_tps"] for row in every] == list(many.rates.values)
    assert [every[0], every[200]] == rows_of(few)


def test_what_is_not_there_yet_is_left_out_and_the_order_is_that_of_the_sweep() -> None:
    sweep = Sweep(layouts(OpenproviderScenario(), [{"dcs": dcs} for dcs in (1, 2, 3)]), Rates("default", (0.8,)))
    last = sweep.cases()[2]

    assert [row["dcs"] for row in sweep.rows({last.key: rows_of_task(last.subject, 0)})] == [3]


def test_a_key_tells_apart_what_has_other_rows() -> None:
    plain, own = Sweep(layouts(OpenproviderScenario(), [{}]), Rates("given", (1000.0,))), load("openprovider")
    others = [
        replace(plain, rates=Rates("given", (1001.0,))),
        replace(plain, rates=Rates("load", (1000.0,))),
        replace(plain, seed=2),
        replace(plain, draws=5),
        replace(plain, fitted=replace(own, seed=own.seed + 1)),
        replace(plain, layouts=layouts(OpenproviderScenario(rtt="1ms"), [{}])),
        replace(plain, layouts=layouts(OpenproviderScenario(slo=("auth.p50<1s",)), [{}])),
    ]

    keys = [sweep.cases()[0].key for sweep in (plain, *others)]

    assert len(set(keys)) == len(keys)
    assert plain.cases()[0].key == replace(plain, fitted=own).cases()[0].key  # the system's own, named


def test_too_many_points_are_refused() -> None:
    found = (Layout({}, OpenproviderScenario()),) * 1001

    with pytest.raises(InputError, match="1,001 layouts at 100 rates are 100,100 points"):
        Sweep(found, Rates("given", tuple(map(float, range(1, 101)))))


def test_both_files_hold_the_same_table(tmp_path: Path) -> None:
    found = layouts(OpenproviderScenario(rtt="2ms"), [{"cass_nodes": 2}, {"cass_nodes": 3}, {"rtt": "x"}])
    rows = rows_of(Sweep(found, Rates("load", (0.5, 1.2))))
    for name in ("table.csv", "table.parquet"):
        write_table(rows, tmp_path / name)

    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as text:
        lines = list(csv.DictReader(text))
    table = pq.read_table(tmp_path / "table.parquet")

    assert table.schema.equals(table_schema())
    assert table.to_pylist() == rows
    assert list(lines[0]) == list(COLUMNS)
    for line, row in zip(lines, rows, strict=True):
        for name, value in row.items():
            text_of = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            assert line[name] == text_of
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.parquet"]


def test_a_matrix_of_round_trips_is_told_by_its_longest() -> None:
    matrix = (("0", "2ms", "8ms"), ("2ms", "0", "3ms"), ("8ms", "3ms", "0"))

    row = one(OpenproviderScenario(rtt=matrix), 1000.0)

    assert (row["rtt_ms"], row["distance_km"]) == (8.0, None)
