"""Rows of load-test tables as layouts of a Cassandra cluster, and what fitted rows leave open."""

from dataclasses import replace
from typing import Any

import pytest

from capplan.calibration.tables.fit_table import fit_table
from capplan.errors import InputError, RefusedError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.language.scenario import changed
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.rows import row_scenario, unstated
from capplan.systems.cassandra.rows import undecided as why_undecided

ROW = LoadTestRow(
    run_id="a", rf=3, cass_nodes=6, read_fraction=0.5, clients=64, throughput_tps=10_000.0, consistency_read="ONE"
)


def undecided(trained: LoadTestRow, **asked: Any) -> str:
    """Return what one row leaves open of another."""
    (row,) = SYSTEM.read([replace(trained, **asked)])
    return why_undecided(row, SYSTEM.read([trained]))


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (replace(ROW, rf=None), "rf"),
        (replace(ROW, clients=None, throughput_tps=None), "offered_tps"),
        (replace(ROW, clients=None, load_kind="closed"), "clients"),
        (LoadTestRow(rf=3, clients=8), "read_fraction"),
    ],
)
def test_a_missing_column_is_named(row: LoadTestRow, column: str) -> None:
    """With what to fill it with."""
    with pytest.raises(InputError, match=column):
        SYSTEM.row_scenario(row)


@pytest.mark.parametrize("name", ["lwt", "cas-update", "logged_batch", "counter_write"])
def test_what_is_not_modelled_is_refused_by_name(name: str) -> None:
    """Lightweight transactions, batches and counters do other work than reads and writes."""
    with pytest.raises(RefusedError, match=name):
        SYSTEM.row_scenario(replace(ROW, request_class=name))


def test_a_row_becomes_its_layout() -> None:
    """Data centres may differ; clients are where the row says, or else in proportion to nodes."""
    found = SYSTEM.row_scenario(replace(ROW, rf=(3, 2), cass_nodes=(6, 4), rtt_ms=20.0, encryption_client=True))
    assert (found.rf, found.cass_nodes, found.rtt, found.encryption) == ((3, 2), (6, 4), "20ms", "client")
    assert found.client_share == pytest.approx((0.6, 0.4))
    assert found.clients == 64
    assert SYSTEM.row_scenario(replace(ROW, dcs=2)).client_share is None
    assert SYSTEM.row_scenario(replace(ROW, dcs=2, client_share=(1.0, 0.0))).client_share == (1.0, 0.0)
    assert SYSTEM.row_scenario(replace(ROW, client_share=(0.2, 0.5, 0.3))).dcs == 3
    with pytest.raises(InputError, match=r"run 'a'.*client_share"):
        SYSTEM.row_scenario(replace(ROW, dcs=3, client_share=(1.0, 0.0)))


MIXED = replace(ROW, clients=None, load_kind="open", offered_tps=3000.0, throughput_tps=3000.0, request_class="all")
PARTS = [
    replace(MIXED, request_class=name, offered_tps=3000 * share, throughput_tps=3000 * share, read_fraction=None)
    for name, share in (("read", 0.25), ("write", 0.75))
]


def test_rows_of_classes_are_of_the_rate_of_their_run() -> None:
    """The rate that a class row states is that of its class."""
    read = SYSTEM.read([replace(MIXED, read_fraction=0.25), *PARTS])
    assert [row.request_class for row in read] == [None, "read", "write"]
    assert {row.layout for row in read} == {read[0].layout}
    assert [row.load.rate_per_s for row in read] == pytest.approx([3000.0] * 3)
    assert [row.load.rate_per_s for row in SYSTEM.read([replace(PARTS[0], offered_tps=None), PARTS[1]])] == (
        pytest.approx([3000.0] * 2)
    )


def test_the_cpu_of_a_run_is_read_once() -> None:
    read = SYSTEM.read([replace(row, node_cpu_percent=40.0) for row in PARTS])
    assert ["node_cpu_percent" in row.measured for row in read] == [True, False]


@pytest.mark.parametrize(("name", "meant"), [("READ", "read"), ("select", "read"), ("Update", "write"), ("all", None)])
def test_reads_and_writes_have_the_names_of_load_generators(name: str, meant: str | None) -> None:
    (row,) = SYSTEM.read([replace(ROW, request_class=name)])
    assert row.request_class == meant


def test_two_kinds_of_writes_of_one_run_are_refused() -> None:
    rows = [replace(ROW, request_class=name) for name in ("read", "update", "insert")]
    with pytest.raises(InputError, match=r"run 'a' has rows of insert and of update, and all are writes"):
        fit_table(SYSTEM, rows)


def test_clients_to_whom_a_rate_was_offered_are_throttled() -> None:
    stated, guessed = SYSTEM.read(
        [replace(ROW, offered_tps=5000.0, throughput_tps=5000.0, load_kind=kind) for kind in ("throttled", None)]
    )
    assert guessed == stated
    assert (guessed.load.kind, guessed.load.clients, guessed.load.rate_per_s) == ("throttled", 64, 5000.0)


def test_what_rows_do_not_say_of_their_clients_is_said() -> None:
    """Of several data centres only, and only where no row states it."""
    two, stated = replace(ROW, dcs=2), replace(ROW, dcs=2, client_share=(1.0, 0.0))
    assert not unstated([ROW, stated])
    (sentence,) = unstated([ROW, two, stated, replace(ROW, rf=(3, 3))])
    assert sentence.startswith("2 ")
    assert "client_share" in sentence


@pytest.mark.parametrize(
    "asked",
    [
        {"cache_state": "cold"},
        {"encryption_client": True},
        {"encryption_internode": True},
        {"version": "5.0"},
    ],
    ids=lambda asked: next(iter(asked)),
)
def test_what_did_not_vary_is_not_identifiable(asked: dict[str, Any]) -> None:
    """Cold caches, TLS and other versions; a row of it would decide."""
    assert "would decide" in undecided(ROW, **asked)
    assert not undecided(ROW)
    assert not undecided(replace(ROW, **asked))


@pytest.mark.parametrize(("trained", "asked"), [(0.0, 0.5), (1.0, 0.0)])
def test_reads_say_nothing_of_writes_nor_writes_of_reads(trained: float, asked: float) -> None:
    """Mixed rows speak of both."""
    assert "would decide" in undecided(replace(ROW, read_fraction=trained), read_fraction=asked)
    assert not undecided(ROW, read_fraction=asked)


def test_a_column_says_that_all_nodes_share_a_machine_and_no_sentence_does() -> None:
    row = LoadTestRow(rf=1, clients=1, request_class="read", source="wrk on one host", note="all on one host")
    assert not row_scenario(row).one_host
    assert row_scenario(replace(row, one_host=True)).one_host


def test_reads_and_writes_that_were_tested_apart_do_not_decide_a_mix() -> None:
    """They share caches, disks and compaction; a mixed row says what that costs."""
    reads, writes, mixed = SYSTEM.read([replace(ROW, read_fraction=share) for share in (1.0, 0.0, 0.5)])
    assert "would decide" in why_undecided(mixed, [reads, writes])
    assert not why_undecided(mixed, [reads, writes, mixed])


STATED = replace(ROW, data_gib=100.0)


@pytest.mark.parametrize(
    ("trained", "asked", "decides"),
    [
        (STATED, {"data_gib": 400.0}, "a row with 400 GiB"),
        (STATED, {"data_gib": 20.0}, "a row with 20 GiB"),
        (STATED, {"data_gib": 120.0}, ""),  # as much, with what was written since
        (STATED, {"data_gib": 400.0, "read_fraction": 0.0}, ""),
        (ROW, {"data_gib": 400.0}, ""),  # and no row says how much there was: its band has it
    ],
)
def test_other_data_than_the_rows_had_is_not_identifiable(
    trained: LoadTestRow, asked: dict[str, Any], decides: str
) -> None:
    """More of it is read from disk, or less; only reads care."""
    writes = replace(trained, read_fraction=0.0)
    (row,) = SYSTEM.read([replace(trained, **asked)])
    found = why_undecided(row, SYSTEM.read([trained, writes]))
    assert (decides in found) if decides else found == ""


@pytest.mark.parametrize(
    ("trained", "asked", "decides"),
    [
        (ROW, {"data_gib": 400.0}, "none states its data_gib; a row with 400 GiB"),
        (STATED, {"data_gib": 100.0, "cache_gib": 200.0}, ""),
        (replace(STATED, data_gib=20.0), {"data_gib": 100.0, "cache_gib": 50.0}, "cache_state cold"),
        (STATED, {"data_gib": 100.0, "cache_gib": 50.0}, "a row with at most 50 GiB"),
    ],
)
def test_misses_of_the_page_cache_are_identifiable_only_where_rows_show_them(
    trained: LoadTestRow, asked: dict[str, Any], decides: str
) -> None:
    """What is asked of a layout, as no table states a page cache."""
    (row,) = known = SYSTEM.read([trained])
    found = why_undecided(replace(row, layout=changed(row.layout, **asked)), known)
    assert (decides in found) if decides else found == ""


def test_cold_and_warm_rows_decide_what_a_miss_takes() -> None:
    """With the data of the fitted rows or as much."""
    known = SYSTEM.read([replace(ROW, data_gib=40.0), replace(ROW, data_gib=40.0, cache_state="cold")])
    asked = replace(known[0], layout=changed(known[0].layout, data_gib=50.0, cache_gib=45.0))
    assert not why_undecided(asked, known)


def test_data_of_a_row_is_no_part_of_its_layout() -> None:
    """It grows from run to run, and rows of one curve stay together."""
    one, other = SYSTEM.read([replace(ROW, data_gib=40.0), replace(ROW, data_gib=44.0)])
    assert one.layout == other.layout
