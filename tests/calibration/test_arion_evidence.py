"""The evidence about `arion`: every figure of the text, and an entry for every picture that has figures no more."""

import math
from collections import Counter

import pytest

from capplan.calibration.evidence.table import by_id, load, select, sources

ROWS = load("arion")
BY_ID = by_id(ROWS)

# "Arion master performance": pictures by section.
PICTURES = {
    "Test setup": 1,
    "Test based on VPC and Neighbor rules": 3,
    "Arion master QPS test": 3,
    "Arion master clients number supporting test": 3,
    "1000 clients with RPS": 3,
    "Unary query compare to streaming query": 3,
    "30 clients performance": 1,
    "Write performance": 1,
}
# What is fitted: id, value, low and high (SI), and its test.
FITTED = [
    ("peak.rps", 40_000, 35_000, 45_000, "steps"),
    ("peak.droop", 0.95, 0.9, 1.0, "steps"),
    ("peak.clients", 30, 25, 35, "clients"),
    ("clients300.mean", 1e-3, 0.95e-3, 1.05e-3, "clients"),
    ("clients1000.peak", 40_000, 35_000, 45_000, "clients1000"),
    ("clients1000.r30000.mean", 0.6e-3, 0.55e-3, 0.65e-3, "clients1000"),
    ("watch.direct", 0.5, 0.45, 0.55, "watch"),
    ("watch.master", 1.2, 1.15, 1.25, "watch"),
]


@pytest.mark.parametrize(("name", "value", "low", "high", "test"), FITTED)
def test_figures_that_are_fitted(name: str, value: float, low: float, high: float, test: str) -> None:
    row = BY_ID[name]
    assert (row.value, row.low, row.high) == pytest.approx((value, low, high))
    status = "derived" if name == "peak.droop" else "measured"  # our reading of words
    assert (row.status, row.use, row.fold) == (status, "fit", test)


def test_nothing_else_is_fitted() -> None:
    assert {row.id for row in select(ROWS, use="fit")} == {name for name, *_ in FITTED}


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("all.servers", 1, "1"),
        ("all.hazelcast_nodes", 1, "1"),
        ("all.test_machines", 1, "1"),
        ("all.instances", 3, "1"),
        ("all.vcpu", 96, "1"),
        ("all.ram", 192e9, "B"),
        ("unary.requests", 1e6, "1"),
        ("unary.responses", 1e6, "1"),
        ("streaming.calls", 100, "1"),
        ("streaming.per_call", 1000, "1"),
        ("streaming.responses", 100, "1"),
        ("streaming.per_answer", 1000, "1"),
        ("write.requests", 1e6, "1"),
        ("write.responses", 1e6, "1"),
        ("write.records", 1e5, "1"),
        ("steps.from", 10_000, "1/s"),
        ("steps.to", 60_000, "1/s"),
        ("clients300.limit", 300, "1"),
        ("clients1000.clients", 1000, "1"),
        ("servers10.servers", 10, "1"),
        ("servers10.clients", 10_000, "1"),
        ("servers10.client_rps", 30, "1/s"),
        ("servers10.offered", 300_000, "1/s"),
        ("servers10.server_rps", 30_000, "1/s"),
        ("servers10.capacity", 300_000, "1/s"),
        ("servers10.mean", 0.6e-3, "s"),
        ("servers10.client_limit", 30, "1/s"),
        ("clients30.clients", 30, "1"),
        ("clients30.client_rps", 150, "1/s"),
        ("watch.records", 1e5, "1"),
        ("watch.size", 6e6, "B"),
    ],
)
def test_facts_and_claims_of_the_document(name: str, value: float, unit: str) -> None:
    assert (BY_ID[name].value, BY_ID[name].unit) == (value, unit)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.storage", "EBS"),
        ("all.platform", "AWS EC2"),
        ("all.load_generator", "ghz"),
        ("all.data_cache", "Hazelcast"),
        ("all.protocol", "gRPC"),
        ("peak.droop_cause", "queued requests"),
        ("clients1000.cause", "queued requests"),
        ("servers10.conclusion", "service on demand"),
    ],
)
def test_words_of_the_document(name: str, text: str) -> None:
    assert BY_ID[name].text == text


@pytest.mark.parametrize(("name", "most"), [("all.hazelcast_nodes", 2), ("all.test_machines", 3)])
def test_numbers_that_may_be_of_the_list_or_of_machines_span_both(name: str, most: float) -> None:
    """ "2 Hazelcast database" and "3 ghz test client" are the second and third of three instances."""
    assert (BY_ID[name].low, BY_ID[name].high, BY_ID["all.instances"].value) == (1, most, 3)


def test_words_that_are_read_as_numbers_are_not_measured() -> None:
    read = [row for row in ROWS if row.status == "measured" and "read as" in row.rounding]
    assert not read
    for name in ("peak.droop", "peak.time_growth", "clients.growth", "streaming.gain"):
        assert BY_ID[name].status == "derived"


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("peak.rps", {"servers": "1"}),
        ("clients300.mean", {"servers": "1", "clients": "300"}),
        ("clients1000.r30000.mean", {"servers": "1", "clients": "1000", "rps_per_client": "30"}),
        ("clients1000.peak", {"servers": "1", "clients": "1000", "rps_per_client": "40"}),
        ("servers10.capacity", {"servers": "10", "clients": "10000", "rps_per_client": "30"}),
        ("watch.direct", {"servers": "1", "records": "100000", "direct": "yes"}),
        ("watch.master", {"servers": "1", "records": "100000", "direct": "no"}),
    ],
)
def test_layouts(name: str, layout: dict[str, str]) -> None:
    assert BY_ID[name].layout == layout


def test_every_picture_has_an_entry_and_no_figure() -> None:
    missing = select(ROWS, status="missing")
    assert Counter(row.locator for row in missing) == PICTURES
    assert all(row.text and math.isnan(row.value) and row.use == "excluded" for row in missing)
    assert {row.quantity for row in missing} == {"table", "chart", "diagram", "picture"}


def test_ten_servers_are_a_claim_and_not_fitted() -> None:
    rows = [row for row in ROWS if row.layout.get("servers") == "10"]
    assert {row.id.split(".")[0] for row in rows} == {"servers10"}
    assert {row.status for row in rows} == {"claimed", "derived"}
    assert BY_ID["servers10.capacity"].high == float("inf")


def test_ids_are_unique_and_name_their_scenario() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(row.id.startswith(row.scenario + ".") for row in ROWS)


def test_the_source_says_what_it_lacks() -> None:
    (source,) = (each for each in sources("arion"))
    for lack in ("is a picture: 18 of them", "no throughput is printed", "closed reading", "no unit of the memory"):
        assert any(lack.lower() in defect.lower() for defect in source.defects)
    assert sum(PICTURES.values()) == 18
