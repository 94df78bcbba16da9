"""The evidence about `vcider`: both published tables cell by cell, the averages, and the facts around them."""

import math

import pytest

from capplan.calibration.evidence.table import by_id, load, select, sources

ROWS = load("vcider")
BY_ID = by_id(ROWS)
COLUMNS = (32, 64, 128, 192, 256)

# Post on Cassandra on the vCider virtual network, summary tables: change in % by column width.
CELLS = {
    "r1.none": (-8.2, 0.8, -2.3, -2.3, -6.7),
    "r1.both": (63.8, 55.4, 60.0, 53.9, 61.7),
    "r1.internode": (-0.7, -5.0, 1.9, 5.4, 4.7),
    "r3.none": (-4.5, -4.7, -5.8, -4.5, -1.5),
    "r3.both": (31.5, 29.6, 31.4, 27.3, 29.9),
    "r3.internode": (3.8, 3.9, 6.1, 8.3, 4.0),
}
# The averages below them, in %, and half their last digit.
AVERAGES = {
    "r1.none": (-3.7, 0.05),
    "r1.both": (59, 0.5),
    "r1.internode": (1.3, 0.05),
    "r3.none": (-4.2, 0.05),
    "r3.both": (30, 0.5),
    "r3.internode": (5.2, 0.05),
}
ENCRYPTION = {"none": "none", "both": "client+internode", "internode": "internode"}


@pytest.mark.parametrize("comparison", CELLS)
def test_table_cell_by_cell(comparison: str) -> None:
    factor, reference = comparison.split(".")
    for column, printed in zip(COLUMNS, CELLS[comparison], strict=True):
        row = BY_ID[f"{comparison}.c{column}"]
        assert row.value == pytest.approx(1 + printed / 100, abs=1e-12)
        assert (row.high - row.value, row.value - row.low) == pytest.approx((5e-4, 5e-4))
        assert f"printed as {printed:.1f} %" in row.rounding  # the cells have a sign where it is minus
        assert row.layout == {
            "rf": factor[1],
            "column_bytes": str(column),
            "encryption": ENCRYPTION[reference],
        }
        assert (row.rf, row.cass_nodes, row.dcs, row.unit) == (int(factor[1]), 4, 1, "1")
        assert (row.quantity, row.status, row.use, row.fold) == ("throughput_ratio", "measured", "fit", comparison)


@pytest.mark.parametrize("comparison", AVERAGES)
def test_averages_are_compared_and_not_fitted(comparison: str) -> None:
    printed, half_width = AVERAGES[comparison]
    row = BY_ID[f"{comparison}.average"]
    assert row.value == pytest.approx(1 + printed / 100)
    assert (row.high - row.value, row.value - row.low) == pytest.approx((half_width / 100, half_width / 100))
    assert (row.statistic, row.status, row.use) == ("mean", "derived", "check")
    assert row.duplicate_group == row.fold == comparison


def test_nothing_but_the_thirty_cells_is_fitted() -> None:
    assert {row.id for row in select(ROWS, use="fit")} == {f"{name}.c{column}" for name in CELLS for column in COLUMNS}


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("all.nodes", 4, "1"),
        ("all.region", 1, "1"),
        ("all.trials", 10, "1"),
        *((f"all.column_{column}", column, "B") for column in COLUMNS),
        ("all.rf_1", 1, "1"),
        ("all.rf_3", 3, "1"),
        ("r1.both.nearly", 1.6, "1"),
        ("r3.both.repeated", 1.3, "1"),
        ("r1.none.repeated", 0.963, "1"),
        ("r3.none.repeated", 0.958, "1"),
        ("all.gain_from", 1.3, "1"),
        ("all.gain_to", 1.6, "1"),
    ],
)
def test_facts_and_claims_of_the_document(name: str, value: float, unit: str) -> None:
    assert (BY_ID[name].value, BY_ID[name].unit) == (value, unit)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.platform", "Amazon EC2"),
        ("all.tool", "Cassandra stress"),
        ("all.consistency", "ONE and QUORUM"),
        ("all.client_encryption", "OpenVPN"),
        ("all.virtual_network", "in the kernel"),
        ("all.third_party", "in user space"),
        ("all.variability", "tremendous"),
        ("all.kernel_faster", "faster in the kernel"),
        ("all.winner", "clear winner"),
        ("all.no_point_to_point", "no point-to-point configurations"),
    ],
)
def test_words_of_the_document(name: str, text: str) -> None:
    assert BY_ID[name].text == text
    assert math.isnan(BY_ID[name].value)


def test_gains_in_words_repeat_the_averages_and_are_left_out() -> None:
    judged = {"all.kernel_faster", "all.winner", "all.no_point_to_point"}
    repeated = [row for row in select(ROWS, use="excluded", status="claimed") if row.id not in judged]
    told = {"r1.both.nearly", "r3.both.repeated", "r1.none.repeated", "r3.none.repeated"}
    assert {row.id for row in repeated} == told | {"all.gain_from", "all.gain_to"}
    assert all("repeats" in row.reason for row in repeated)


def test_what_the_post_refers_to_and_does_not_hold_is_missing() -> None:
    assert {row.id for row in select(ROWS, status="missing")} == {"all.attachment", "all.analysis"}


def test_ids_are_unique_and_name_their_scenario() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(row.id.startswith(row.scenario + ".") for row in ROWS)


def test_the_source_says_what_it_lacks() -> None:
    (source,) = (each for each in sources("vcider"))
    assert "June 2011" in source.dating
    for lack in ("'Performance' is not defined", "ONE and QUORUM", "virtual network encrypted is not said"):
        assert any(lack in defect for defect in source.defects)
