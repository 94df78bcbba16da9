"""The evidence about `fedora4`: every published table figure by figure, and the facts around them."""

import pytest

from capplan.calibration.evidence.table import by_id, load, select, sources

ROWS = load("fedora4")
BY_ID = by_id(ROWS)

# "Fedora 4 clustering testing summary", objective 3: requests in 60 s -> ms by number of nodes.
THROTTLED = {
    1000: {1: 38, 3: 38, 4: 38},
    3000: {1: 21, 3: 27, 4: 26},
    6000: {1: 21, 3: 24, 4: 23},
    10000: {1: 21, 3: 23, 4: 21},
}
# Objective 5 and the last table of objective 7: requests per second by number of nodes.
CAPACITY = {"read": {1: 525, 2: 650, 3: 725, 4: 810}, "mixed": {1: 480, 2: 590, 3: 680, 4: 780}}
# Objective 6: ms at 100, 300, 600 and 1000 requests per second.
REGIONS = {
    "us-east": (5, 5, 5, 5),
    "us-west": (85, 88, 86, 90),
    "asia": (284, 278, 273.5, 271.5),
    "eu": (113, 109, 107, 112),
}
# Objective 7, first table: ms of reads, creates and deletes alone by number of nodes.
ALONE = {4: (5, 13, 190), 3: (5, 21, 66), 1: (4, 13, 63)}
# Objective 7, second table: ms of (reads, creates) and of (reads, deletes) by number of nodes.
MIXED = {4: ((4, 14), (5, 216)), 3: ((7, 29), (5, 61)), 1: ((4, 15), (4, 63))}


@pytest.mark.parametrize("requests", THROTTLED)
def test_response_times_of_objective_3(requests: int) -> None:
    for nodes, printed in THROTTLED[requests].items():
        row = BY_ID[f"throttled.n{nodes}.r{requests}.mean"]
        assert row.value == pytest.approx(printed / 1000)
        assert (row.request_class, row.load_kind, row.use) == ("read", "throttled", "fit")
        assert row.layout == {"nodes": str(nodes), "requests": str(requests), "users": "100", "duration_s": "60"}


@pytest.mark.parametrize("kind", CAPACITY)
def test_capacities_of_objectives_5_and_7(kind: str) -> None:
    for nodes, printed in CAPACITY[kind].items():
        row = BY_ID[f"capacity.n{nodes}.{kind}"]
        assert (row.value, row.unit, row.statistic, row.use) == (printed, "1/s", "peak", "fit")
        assert row.layout == {"nodes": str(nodes), "write_share": {"read": "0", "mixed": "0.05"}[kind]}
        assert row.fold == f"n{nodes}"


@pytest.mark.parametrize("region", REGIONS)
def test_regions_of_objective_6(region: str) -> None:
    for rate, printed in zip((100, 300, 600, 1000), REGIONS[region], strict=True):
        row = BY_ID[f"region.{region}.r{rate}.mean"]
        assert row.value == pytest.approx(printed / 1000)
        assert row.layout == {"region": region, "tps": str(rate)}
        assert row.fold == region
        assert row.use == ("check" if rate == 1000 else "fit")  # 1000/s is more than any cluster could answer


@pytest.mark.parametrize("nodes", ALONE)
def test_times_of_objective_7(nodes: int) -> None:
    (read_create, create), (read_delete, delete) = MIXED[nodes]
    printed = dict(zip(("read", "create", "delete"), ALONE[nodes], strict=True))
    mixed = {"read_create": read_create, "create": create, "read_delete": read_delete, "delete": delete}
    expected = {f"alone.n{nodes}.{name}": value for name, value in printed.items()}
    expected |= {f"mixed.n{nodes}.{name}": value for name, value in mixed.items()}
    for name, value in expected.items():
        row = BY_ID[name]
        assert row.value == pytest.approx(value / 1000)
        assert row.request_class == name.split(".")[2].split("_")[0]
        assert row.layout["nodes"] == str(nodes)
        assert (row.use, row.fold) == ("fit", f"n{nodes}")


def test_nothing_but_the_tables_is_fitted() -> None:
    assert len(select(ROWS, use="fit")) == 12 + 8 + 4 * 3 + 9 + 12
    assert len(select(ROWS, quantity="latency")) == 12 + 16 + 9 + 12


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("throttled.users", 100, "1"),
        ("throttled.users_at_once", 100, "1"),
        ("throttled.duration", 60, "s"),
        ("throttled.r1000.requests", 1000, "1"),
        ("throttled.r10000.requests", 10000, "1"),
        ("capacity.n1.limit_from", 525, "1/s"),
        ("capacity.n1.limit_to", 550, "1/s"),
        ("capacity.linear", 1, "1"),
        ("region.zones", 4, "1"),
        ("region.clients", 2, "1"),
        ("region.r100.offered", 100, "1/s"),
        ("region.r300.offered", 300, "1/s"),
        ("region.r600.offered", 600, "1/s"),
        ("region.r1000.offered", 1000, "1/s"),
        ("mixed.read_share", 0.95, "1"),
        ("mixed.write_share", 0.05, "1"),
        ("mixed.nodes", 3, "1"),
        ("mixed.clients", 1, "1"),
    ],
)
def test_facts_and_claims_of_the_document(name: str, value: float, unit: str) -> None:
    assert (BY_ID[name].value, BY_ID[name].unit) == (value, unit)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.software", "Fedora 4"),
        ("all.object_store", "Modeshape"),
        ("all.data_grid", "Infinispan"),
        ("all.platform", "AWS EC2"),
        ("all.tool", "JMeter"),
        ("all.confidence", "high"),
        ("all.acceptance_test", "2014-10-14"),
        ("region.home", "N. Virginia"),
    ],
)
def test_words_of_the_document(name: str, text: str) -> None:
    assert BY_ID[name].text == text


def test_525_to_550_is_the_interval_of_the_single_server() -> None:
    row = BY_ID["capacity.n1.read"]
    assert (row.low, row.high) == (BY_ID["capacity.n1.limit_from"].value, BY_ID["capacity.n1.limit_to"].value)
    assert {each.id for each in select(ROWS, duplicate_group=row.duplicate_group)} == {
        "capacity.n1.read",
        "capacity.n1.limit_from",
        "capacity.n1.limit_to",
    }


@pytest.mark.parametrize(
    ("name", "half_width"),
    [
        ("throttled.n3.r3000.mean", 5e-4),
        ("region.asia.r600.mean", 5e-4),
        ("capacity.n2.read", 12.5),
        ("capacity.n4.read", 5),
        ("capacity.n1.mixed", 5),
    ],
)
def test_roundings_are_half_the_step_the_figures_show(name: str, half_width: float) -> None:
    row = BY_ID[name]
    assert (row.high - row.value, row.value - row.low) == pytest.approx((half_width, half_width))


def test_ids_are_unique_and_name_their_scenario() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(row.id.startswith(row.scenario + ".") for row in ROWS)


def test_the_source_says_what_it_lacks() -> None:
    (source,) = (each for each in sources("fedora4"))
    assert "14 October 2014" in source.dating
    assert any("instance types" in defect for defect in source.defects)
