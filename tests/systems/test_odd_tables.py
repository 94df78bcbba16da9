"""Load-test tables that lack something, or say something odd: they are predicted, or refused in one sentence."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import RowPrediction, predict_table
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.table_components import Rows
from capplan.systems.registry import table_system

USUAL: dict[str, Any] = {"dcs": 1, "rf": 3, "node_cores": 8, "read_fraction": 0.0, "request_class": "write"}
ROWS = {
    "cassandra": LoadTestRow(**USUAL, cass_nodes=6, consistency_write="LOCAL_QUORUM"),
    "two-tier": LoadTestRow(**USUAL, cass_nodes=3, front_nodes=2, front_cores=8),
}
CEILING = 40_000.0
SYSTEMS = pytest.mark.parametrize("system", ["cassandra", "two-tier"])


def closed(system: str, *figures: str, clients: Sequence[int] = (4, 16, 64), **fields: Any) -> list[LoadTestRow]:
    """Return rows of closed clients on a soft curve, with some of their figures."""
    found = []
    for count in clients:
        mean = 1.0 + count / CEILING * 1e3
        known = {
            "throughput_tps": count / mean * 1e3,
            "latency_mean_ms": mean,
            "latency_p50_ms": 0.8 * mean,
            "latency_p95_ms": 2 * mean,
            "latency_p99_ms": 4 * mean,
        }
        own: dict[str, Any] = {name: value for name, value in known.items() if name in figures}
        found.append(replace(ROWS[system], run_id=str(count), load_kind="closed", clients=count, **own, **fields))
    return found


def opened(system: str, *rates: float, **fields: Any) -> list[LoadTestRow]:
    """Return rows of open traffic on the same curve."""
    return [
        replace(
            ROWS[system],
            run_id=f"{rate:g}",
            load_kind="open",
            offered_tps=rate,
            latency_mean_ms=1 / (1 - rate / CEILING),
            **fields,
        )
        for rate in rates
    ]


def predicted(system: str, rows: Sequence[LoadTestRow], wanted: LoadTestRow) -> dict[str, RowPrediction]:
    """Return the figures of a row, predicted from others."""
    known = table_system(system)
    found = {each.quantity: each for each in predict_table(known, fit_table(known, rows), [wanted])}
    for each in found.values():
        band = each.predicted
        assert 0 < band.low <= band.value <= band.high < np.inf
        assert each.identifiable or "would decide" in each.reason
    return found


def beyond(system: str, **fields: Any) -> LoadTestRow:
    """Return a row with more clients than any other."""
    (row,) = closed(system, clients=(256,), **fields)
    return row


SPARSE = {
    "throughput": ("throughput_tps",),
    "means": ("latency_mean_ms",),
    "percentiles": ("latency_p50_ms", "latency_p95_ms", "latency_p99_ms"),
    "p99": ("latency_p99_ms",),
}


@pytest.mark.slow
def test_a_table_with_one_column_is_predicted() -> None:
    found = predicted("two-tier", closed("two-tier", *SPARSE["p99"]), beyond("two-tier"))
    assert not any(each.identifiable for each in found.values())


@pytest.mark.slow
@SYSTEMS
@pytest.mark.parametrize("figures", SPARSE)
@pytest.mark.parametrize("clients", [(64,), (4, 16, 64)])
def test_all_tables_with_few_columns_and_rows_are_predicted(system: str, figures: str, clients: Any) -> None:
    predicted(system, closed(system, *SPARSE[figures], clients=clients), beyond(system))


@pytest.mark.slow
@SYSTEMS
def test_open_traffic_that_was_too_much_says_what_the_ceiling_is_and_nothing_of_latency(system: str) -> None:
    """Its latency is that of a queue that grew for as long as the run lasted."""
    too_much = replace(opened(system, 1.0)[0], offered_tps=60_000.0, throughput_tps=38_000.0, latency_mean_ms=900.0)
    wanted = opened(system, 5_000.0)[0]
    with_it = predicted(system, [*opened(system, 10_000.0, 20_000.0), too_much], wanted)
    assert with_it["latency_mean_ms"].predicted.value == pytest.approx(1.14, rel=0.3)
    (read,) = table_system(system).read([too_much])
    assert (read.load.rate_per_s, dict(read.measured)) == (38_000.0, {"throughput_tps": 38_000.0})


@SYSTEMS
def test_clients_that_do_not_wait_for_their_answers_decide_nothing(system: str) -> None:
    """A producer with a million requests per second has many under way, whatever the table calls a client."""
    known = table_system(system)
    (usual,) = closed(system, "throughput_tps", clients=(16,))
    for seconds, waits in ((1e-6, False), (1e-3, True)):
        (row,) = known.read([replace(usual, throughput_tps=16 / seconds)])
        assert ("less than a round trip" in known.component(Rows).undecided(row, [row])) is not waits


@pytest.mark.slow
@SYSTEMS
@pytest.mark.parametrize(
    "fields",
    [
        {"errors": 500, "drops": 20},
        {"rf": 1, "cass_nodes": 1},
        {"node_cores": 0.5},
        {"node_cores": 1000},
        {"repeat": 2},
        {"think_time_ms": 0.1},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_unusual_layouts_and_runs_are_predicted(system: str, fields: Any) -> None:
    rows = closed(system, "throughput_tps", "latency_p95_ms", **fields)
    predicted(system, rows, beyond(system, **fields))


@pytest.mark.slow
@SYSTEMS
def test_one_number_of_clients_on_several_layouts_is_predicted(system: str) -> None:
    rows = [
        replace(row, cass_nodes=nodes, throughput_tps=nodes * 2000.0, run_id=str(nodes))
        for nodes in (6, 9, 12)
        for row in closed(system, "throughput_tps", clients=(64,))
    ]
    predicted(system, rows[:2], replace(rows[2], throughput_tps=None))  # no row is named where this one was measured


@SYSTEMS
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"think_time_ms": 1000.0}, "think_time_ms"),
        ({"latency_mean_ms": 1.1e-3}, "latency_mean_ms"),
        ({"latency_mean_ms": 1.1e3}, "latency_mean_ms"),
        ({"clients": None, "throughput_tps": None}, "clients"),
        ({"rf": 7}, "rf"),
        ({"read_fraction": None, "request_class": None, "consistency_write": None}, "read_fraction"),
        ({"read_fraction": 0.0, "request_class": "read"}, "request_class"),
    ],
)
def test_figures_that_cannot_be_are_refused_by_the_name_of_the_column(system: str, changed: Any, named: str) -> None:
    row = replace(closed(system, "throughput_tps")[0], **changed)
    with pytest.raises(InputError, match=named):
        fit_table(table_system(system), [row])


@SYSTEMS
def test_a_table_without_figures_is_refused(system: str) -> None:
    with pytest.raises(InputError, match="no figure"):
        fit_table(table_system(system), closed(system))


def test_two_data_centres_of_a_two_tier_system_are_refused_and_versions_are_fitted_apart() -> None:
    rows = closed("two-tier", "throughput_tps")
    with pytest.raises(InputError, match="dcs 2"):
        fit_table(table_system("two-tier"), [replace(row, dcs=2) for row in rows])
    with pytest.raises(InputError, match="one at a time"):
        fit_table(table_system("two-tier"), [replace(rows[0], version="1"), replace(rows[1], version="2")])


def test_another_version_and_a_level_that_waits_for_another_data_centre_are_not_decided() -> None:
    known = table_system("cassandra")
    (row,) = closed("cassandra", "throughput_tps", clients=(16,), version="4.1")
    two = replace(row, dcs=2)
    for changed, named in (
        (replace(row, version="5.0"), "version"),
        (replace(two, consistency_write="EACH_QUORUM"), "another data centre"),
        (two, ""),
    ):
        (asked,) = known.read([changed])
        assert named in known.component(Rows).undecided(asked, known.read([row]))
        assert bool(named) is bool(known.component(Rows).undecided(asked, known.read([row])))


@SYSTEMS
def test_sessions_of_a_live_validation_are_refused_as_a_table_of_another_kind(system: str) -> None:
    sessions = Path(__file__).parents[1] / "samples" / "live-sessions.csv"
    with pytest.raises(InputError, match=r"sessions.*small\.csv"):
        fit_table(table_system(system), list(LOAD_TESTS.rows(LOAD_TESTS.read(sessions))))
