"""Load tests of several data centres: every level, mix, load and place of clients; the engine's figures; fits."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest

from capplan.calibration.tables.backtest import backtest
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.priors import closed
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import Level, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.layout.table_rows import MEAN, QUANTITIES, THROUGHPUT
from capplan.models.language.parameter import defaults
from capplan.models.language.scenario import changed
from capplan.models.language.units import Number
from capplan.planner.predict.predict import predict
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.rows import priors

TABLE = Path(__file__).parents[2] / "published" / "load_tests" / "cassandra_azure_two_dc.csv"
CLIENTS = "100%/0%"
VALUES: dict[str, Number] = {**defaults(SYSTEM.parameters), "wan_extra": 0.3, "generator_s": 0.02e-3}
LEVELS = get_args(Level)


def row(levels: tuple[str, str], reads: float, **cells: Any) -> LoadTestRow:
    """Return a row of two data centres 27 ms apart."""
    read, write = levels
    its: dict[str, Any] = {"run_id": "a", "dcs": 2, "cass_nodes": 6, "rf": 3, "rtt_ms": 27.0, "clients": 64, **cells}
    return LoadTestRow(
        consistency_read=cast("Level", read), consistency_write=cast("Level", write), read_fraction=reads, **its
    )


def random_row(random: np.random.Generator) -> LoadTestRow:
    """Return a valid row of two or three data centres that may differ."""
    dcs = int(random.integers(2, 4))
    nodes = random.integers(1, 13, dcs)
    rf = np.minimum(nodes, random.integers(1, 6, dcs))
    rf[0], nodes[0] = max(rf[0], 2), max(nodes[0], 2)  # so that there are three replicas
    weights = random.integers(0, 4, dcs) + np.eye(dcs, dtype=int)[0]
    shares = tuple((weights / weights.sum()).tolist())
    read, write = (str(each) for each in random.choice(LEVELS, 2))
    kind, reads = str(random.choice(["closed", "open", "throttled"])), float(random.choice([0.0, 0.1, 0.5, 1.0]))
    return row(
        (read, write),
        reads,
        dcs=dcs,
        cass_nodes=tuple(nodes.tolist()),
        rf=tuple(rf.tolist()),
        rtt_ms=float(random.choice([0.0, 1.0, 27.0])),
        client_share=None if random.random() < 0.3 else shares,
        load_kind=kind,
        clients=None if kind == "open" else int(random.choice([1, 16, 256, 4096])),
        offered_tps=None if kind == "closed" else float(random.choice([10.0, 3_000.0, 1e6])),
        request_class="all" if 0 < reads < 1 and random.random() < 0.5 else "read" if reads else "write",
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 24))])
def test_a_random_row_of_several_data_centres_has_figures(seed: int) -> None:
    """Finite ones, with percentiles in order; and no more clients inside than there are."""
    asked = random_row(np.random.default_rng(seed))
    (found,) = solved_rows(SYSTEM, SYSTEM.read([asked]), VALUES, [list(QUANTITIES)])
    figures = {name: float(each[0]) for name, each in found.figures.items()}
    percentiles = [each for name, each in figures.items() if name.startswith("latency_p")]
    assert all(np.isfinite(each) and each > 0 for each in figures.values())
    assert percentiles == sorted(percentiles)
    if asked.load_kind == "closed" and asked.request_class == "all":
        assert figures[THROUGHPUT] * figures[MEAN] / 1e3 <= 1.02 * cast("int", asked.clients)


@pytest.mark.parametrize(
    ("cells", "level", "within"),
    [
        ({"client_share": (1.0, 0.0)}, "LOCAL_QUORUM", 0.03),
        ({"client_share": (1.0, 0.0)}, "EACH_QUORUM", 0.03),
        ({}, "QUORUM", 0.03),
        ({"dcs": 3, "cass_nodes": (6, 4, 3), "rf": (3, 3, 1), "client_share": (0.5, 0.3, 0.2)}, "LOCAL_QUORUM", 0.03),
        # Dc3 is full with 51,000 writes per second. Quorums do without it; the solver counts on some of its answers.
        ({"dcs": 3, "cass_nodes": (6, 6, 1), "rf": (3, 3, 1), "rtt_ms": 2.0, "clients": 256}, "QUORUM", 0.06),
    ],
)
def test_the_engine_completes_as_many_writes_and_as_fast(cells: dict[str, Any], level: str, within: float) -> None:
    """Within 3 % of the throughput and the mean; 20,000 requests have a standard error below 1 %."""
    steady = {"gc": "none", "client_share": (0.5, 0.5, 0.0) if cells.get("dcs") else None}
    asked = row((level, level), 0.0, **{**steady, **cells})
    (read,) = SYSTEM.read([asked])
    (found,) = solved_rows(SYSTEM, [read], {**VALUES, "variation": 1e-9}, [[THROUGHPUT, MEAN]])
    rate = float(found.figures[THROUGHPUT][0])
    network = SYSTEM.network(read.layout, VALUES, 1.0)
    traffic = closed(read.load.clients, 0.0, VALUES, network.traffic.mix)
    duration_s = max(20_000 / rate, 0.2)
    run = simulate(replace(network, traffic=traffic), 1.2 * duration_s, warmup_s=0.2 * duration_s, seed=2)
    assert run.throughput_per_s() == pytest.approx(rate, rel=within)
    assert run.latency_mean_s() * 1e3 == pytest.approx(float(found.figures[MEAN][0]), rel=within)


def test_a_fit_of_two_data_centres_predicts_and_says_what_its_rows_do_not() -> None:
    """Two rows that do not say where clients were; the answer to other clients says so."""
    rows = [
        row(("LOCAL_QUORUM",) * 2, 0.0, run_id=str(clients), clients=clients, throughput_tps=rate)
        for clients, rate in ((16, 12_000.0), (64, 30_000.0))
    ]
    fitted = fit_table(SYSTEM, rows)
    other = replace(rows[0], clients=32, client_share=(1.0, 0.0))
    found = {each.quantity: each.predicted for each in predict_table(SYSTEM, fitted, [other])}
    assert 12_000 < found[THROUGHPUT].value < 30_000
    asked = changed(SYSTEM.read([other])[0].layout, clients=32)
    its = predict(asked, fitted=fitted)
    assert any("client_share" in each for each in its.evidence.cautions)
    assert its.peak_tps is not None
    assert its.peak_tps.value == pytest.approx(found[THROUGHPUT].value, rel=1e-6)


@pytest.mark.parametrize(
    ("cells", "median", "log_sd"),
    [
        ({"mean_ms": 51.0}, 1.0, 0.35),  # held
        ({"mean_ms": 29.0}, 0.03, 2.0),  # sent at once
        ({"mean_ms": 29.0, "clients": 16}, 1.0, 2.0),  # less than a message in a round trip on each of 36 connections
        ({"mean_ms": 29.0, "inter_dc_tcp_nodelay": True}, 1.0, 0.35),  # which the row says itself
        ({"mean_ms": 2.0, "level": "TWO"}, 1.0, 0.35),  # nothing waits for the other data centre
        ({"mean_ms": 2.0, "rf": (5, 1), "client_share": (1.0, 0.0)}, 1.0, 0.35),
        ({"mean_ms": 28.0, "reads": 0.5, "write": "LOCAL_QUORUM"}, 1.0, 0.35),  # one of two operations does
    ],
)
def test_an_answer_too_soon_for_a_held_message_moves_the_prior(
    cells: dict[str, Any], median: float, log_sd: float
) -> None:
    """At a round trip of 27 ms."""
    own = {"clients": 256, "level": "QUORUM", "reads": 0.0, **cells}
    mean_ms, level, reads = own.pop("mean_ms"), own.pop("level"), own.pop("reads")
    levels = (level, own.pop("write", level))
    asked = row(levels, reads, throughput_tps=1e3 * own["clients"] / mean_ms, request_class="all", **own)
    prior = {each.name: each for each in priors(SYSTEM.read([asked]))}["wan_extra"]
    assert prior.value == pytest.approx(median)
    assert prior.log_sd == log_sd


@pytest.mark.slow
def test_the_published_table_fits_and_its_answers_take_two_round_trips() -> None:
    """With all clients in one data centre: the rows decide what answers take, and the fit meets their throughput.

    Those of EACH_QUORUM writes and of QUORUM reads with 128 clients are 16 and 12 % too high. QUORUM and EACH_QUORUM
    reads took equally long; here the slower of two answers takes longer than one, as each varies for itself.
    """
    within = {"write-each_quorum-256": 0.17, "quorum_reads-128": 0.13}
    frame = LOAD_TESTS.read(TABLE).assign(client_share=CLIENTS)
    rows = [each for each in LOAD_TESTS.rows(frame) if each.clients is not None and each.clients <= 256]
    fitted = fit_table(SYSTEM, rows)
    low, high = np.quantile(np.asarray(fitted.values(SYSTEM.parameters)["wan_extra"]), [0.05, 0.95])
    assert 0.8 < low < high < 1.4
    for each in predict_table(SYSTEM, fitted, rows):
        if each.quantity == THROUGHPUT and each.measured is not None:
            assert each.predicted.value == pytest.approx(each.measured, rel=within.get(each.run_id, 0.1))


@pytest.mark.slow
def test_a_backtest_of_the_published_table_predicts_more_clients() -> None:
    """512 clients within 15 %; with 1,024 something is full that the others do not show (47 % too much)."""
    found = backtest(SYSTEM, LOAD_TESTS.read(TABLE).assign(client_share=CLIENTS), "clients <= 256")
    rates = {each.run_id: each.error for each in found.rows if each.quantity == THROUGHPUT}
    assert not found.assumed
    assert abs(rates["quorum_reads-512"]) < 0.15
    assert rates["quorum_reads-1024"] == pytest.approx(0.45, abs=0.15)
