"""The table of evidence: the nine published tables figure by figure, and what the loader refuses."""

import csv
import io
import json
import math
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import (
    COLUMNS,
    by_id,
    data_hash,
    layout_text,
    load,
    parse,
    rows_hash,
    select,
    sources,
)
from capplan.models.errors import InputError

ROWS = load("openprovider")
BY_ID = by_id(ROWS)

# "OpenProvider performance tests: results", Tables 1 to 9: incoming, outgoing, workers, auth and acct in ms.
TABLES = {
    "ts1": ("Table 1", 7000, 7000, 32, 2.5, 4),
    "ts1.proxy": ("Table 2", 7000, 14000, 32, 2.5, 4),
    "ts2": ("Table 3", 7200, 7200, 28, 3.5, 4.5),
    "ts2.proxy": ("Table 4", 7200, 14400, 28, 3.5, 4.5),
    "ts3": ("Table 5", 10000, 10000, 20, 4, 6),
    "ts3.proxy": ("Table 6", 10000, 20000, 20, 4, 6),
    "ts4": ("Table 7", 10500, 10500, 15, 4, 6),
    "ts4.proxy": ("Table 8", 10500, 21000, 15, 4, 6),
    "ts4-ldap": ("Table 9", 10500, 21500, 15, 13, 7),
}
FIGURES = ("incoming", "outgoing", "busy_workers", "auth_mean", "acct_mean")


@pytest.mark.parametrize("table", TABLES)
def test_openprovider_tables_1_to_9_stand_figure_by_figure(table: str) -> None:
    locator, *figures = TABLES[table]
    for name, printed in zip(FIGURES, figures, strict=True):
        row = BY_ID[f"{table}.{name}"]
        assert row.value == (printed / 1000 if name.endswith("mean") else printed)
        assert row.locator == locator


def test_nine_tables_of_five_columns_and_nothing_else_are_load_test_rows() -> None:
    assert len([row for row in ROWS if row.duplicate_group]) == 9 * 5


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("all.front_vcpu", 32, "1"),
        ("all.front_ram", 16e9, "B"),
        ("all.front_workers", 64, "1"),
        ("all.cass_vcpu", 24, "1"),
        ("all.cass_ram", 64e9, "B"),
        ("all.heap", 31e9, "B"),
        ("all.vnodes", 16, "1"),
        ("all.rf", 3, "1"),
        ("all.cass_nodes", 3, "1"),
        ("all.test_length", 900, "s"),
        ("all.dc_distance", 150e3, "m"),
        ("all.session_auth", 1, "1"),
        ("all.session_start", 1, "1"),
        ("all.session_interim", 5, "1"),
        ("all.session_stop", 1, "1"),
        ("ts4.flow_time", 0.05, "s"),
        ("all.interim_gap_production", 900, "s"),
        ("all.interim_gap_client", 7200, "s"),
        ("ts3.rate_growth", 1.43, "1"),
        ("ts4-ldap.rate_rise", 500, "1/s"),
        ("all.front_busy", 0.5, "1"),
        ("all.max_rate", 21500, "1/s"),
    ],
)
def test_facts_and_claims_of_the_document(name: str, value: float, unit: str) -> None:
    assert (BY_ID[name].value, BY_ID[name].unit) == (value, unit)


def test_words_are_facts_without_numbers() -> None:
    assert BY_ID["all.cass_version"].text == "3.11.8"
    assert math.isnan(BY_ID["all.cass_version"].value)


def test_every_row_has_its_source_unit_and_interval() -> None:
    known = {source.id for source in sources("openprovider")}
    for row in ROWS:
        assert row.source in known
        assert row.unit
        assert row.locator
        if not row.text:
            assert row.low <= row.value <= row.high, row.id
            assert row.rounding, row.id


@pytest.mark.parametrize(
    ("name", "half_width"),
    [
        ("ts1.incoming", 100),
        ("ts2.incoming", 100),
        ("ts3.incoming", 250),
        ("ts4.incoming", 250),
        ("ts2.proxy.outgoing", 200),
        ("ts4.proxy.outgoing", 250),
        ("ts4-ldap.outgoing", 250),
        ("ts3.busy_workers", 0.5),
        ("ts3.acct_mean", 0.00025),
    ],
)
def test_roundings_are_half_the_step_the_figures_show(name: str, half_width: float) -> None:
    row = BY_ID[name]
    assert (row.high - row.value, row.value - row.low) == pytest.approx((half_width, half_width))


def test_ids_are_unique_and_name_their_scenario() -> None:
    assert len(BY_ID) == len(ROWS)
    assert all(row.id.startswith(row.scenario.lower() + ".") for row in ROWS)


def test_tables_with_and_without_proxying_are_one_experiment() -> None:
    for scenario in ("TS1", "TS2", "TS3", "TS4"):
        group = select(ROWS, duplicate_group=scenario)
        assert {row.proxy for row in group} == {True, False}
        for quantity in ("incoming_rate", "busy_workers", "latency"):
            for request_class in ("", "auth", "acct"):
                twins = select(group, quantity=quantity, request_class=request_class)
                assert len({row.value for row in twins}) <= 1
                assert sum(row.use == "fit" for row in twins) <= 1


def test_the_fit_sees_every_experiment_once_and_four_folds() -> None:
    fitted = select(ROWS, use="fit")
    assert len(fitted) == 5 * 3
    assert {row.fold for row in fitted} == {"TS1", "TS2", "TS3", "TS4"}
    assert {row.fold for row in select(ROWS, scenario="TS4-LDAP") if row.fold} == {"TS4"}


def test_rates_are_peaks_of_bursty_traffic_and_times_are_means() -> None:
    for row in ROWS:
        if row.duplicate_group:
            assert row.load_kind == "bursty"
            statistic = {"incoming_rate": "peak", "outgoing_rate": "peak", "latency": "mean"}
            assert row.statistic == statistic.get(row.quantity, "unspecified")


def test_rows_left_out_of_the_fit_say_why() -> None:
    assert all(row.reason for row in ROWS if row.use in ("check", "excluded"))


def test_the_source_is_cited_with_its_defects() -> None:
    (source,) = sources("openprovider")
    assert source.citation
    assert len(source.defects) > 3


def _text() -> str:
    return files("capplan.calibration").joinpath("evidence", "openprovider.csv").read_text(encoding="utf-8")


def _with(column: str, cell: str) -> str:
    """Return the published table with one cell of its first row changed."""
    return _with_cells({column: cell})


def _with_cells(cells: dict[str, str]) -> str:
    rows = list(csv.DictReader(io.StringIO(_text())))
    rows[0].update(cells)
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("column", "cell", "words"),
    [
        ("unit", "mss", "'mss'; did you mean 'ms'?"),
        ("status", "mesured", "'mesured'; did you mean 'measured'?"),
        ("statistic", "mode", "column 'statistic' has 'mode'"),
        ("use", "fitt", "did you mean 'fit'?"),
        ("load_kind", "bursting", "did you mean 'bursty'?"),
        ("value", "seven", "column 'value' has 'seven': it must be a number"),
        ("value", "nan", "column 'value' has 'nan': it must be a number"),
        ("value", "8000", "lie between low and high, 6900 and 7100"),
        ("low", "", "column 'low' has '': it must be a number"),
        ("text", "much", "takes numbers only"),
        ("dcs", "0", "a whole number above zero"),
        ("dcs", "1.5", "a whole number above zero"),
        ("proxy", "maybe", "'yes', 'no' or empty"),
        ("source", "", "column 'source' is empty"),
        ("use", "excluded", "column 'reason' is empty"),
        ("status", "missing", "status 'missing' must have unit 'name' and use 'excluded'"),
        ("id", "ts1.outgoing", "'ts1.outgoing' more than once"),
        ("unit", "name", "takes a 'text'"),
        ("layout", "nodes", "column 'layout' has 'nodes': it must be pairs key=value"),
        ("layout", "nodes=3 share=", "has 'share=': it must be pairs"),
        ("layout", "nodes=3=4", "has 'nodes=3=4': it must be pairs"),
        ("layout", "write share=5", "has 'write': it must be pairs"),
        ("layout", "nodes=3 nodes=4", "column 'layout' has 'nodes' more than once"),
    ],
)
def test_a_bad_cell_is_refused_in_one_sentence_that_names_it(column: str, cell: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse(_with(column, cell), "mine.csv")
    message = str(refused.value)
    assert message.startswith("mine.csv")
    assert words in message
    assert "\n" not in message


def test_an_unknown_or_missing_column_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="column 'valeu' is unknown; did you mean 'value'"):
        parse(_text().replace("value", "valeu", 1), "mine.csv")
    with pytest.raises(InputError, match="column 'locator' is missing"):
        parse(_text().replace(",locator", "", 1), "mine.csv")


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InputError, match="line 2: the row must have exactly 28 cells"):
        parse("\n".join([_text().splitlines()[0], "ts1.incoming,openprovider"]), "mine.csv")


def test_an_unknown_system_and_an_unknown_criterion_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'openprovider'"):
        load("openprovidr")
    with pytest.raises(InputError, match="did you mean 'scenario'"):
        select(ROWS, scenarios="TS1")


def test_the_hash_follows_the_data_and_neither_their_order_nor_their_prose() -> None:
    assert rows_hash(ROWS) == data_hash("openprovider") == rows_hash(reversed(ROWS))
    first, *rest = ROWS
    assert rows_hash([replace(first, reason="told otherwise", written="7000.0/s"), *rest]) == data_hash("openprovider")
    assert rows_hash([replace(first, value=7001.0), *rest]) != data_hash("openprovider")
    assert len(data_hash("openprovider")) == 64


KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[a-zA-Z0-9_.-]{1,8}", fullmatch=True)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_layout_is_read_as_it_is_written(layout: dict[str, str]) -> None:
    (row, *_) = parse(_with("layout", layout_text(layout)), "mine.csv")
    assert row.layout == layout
    assert list(row.layout) == list(layout)


def test_a_layout_counts_in_the_hash_and_an_empty_one_does_not() -> None:
    # The file was fitted before the table had a column for layouts; without one, its rows have the hash they had.
    fitted = files("capplan.calibration").joinpath("fitted", "openprovider.json").read_text(encoding="utf-8")
    assert rows_hash(ROWS) == json.loads(fitted)["data_hash"]
    first, *rest = ROWS
    assert rows_hash([replace(first, layout={"nodes": "3"}), *rest]) != rows_hash(ROWS)


@pytest.mark.parametrize(
    ("written", "unit", "si"),
    [("280", "%", 2.8), ("10000", "req", 10000), ("16", "GiB", 16 * 2**30), ("8", "GB", 8e9)],
)
def test_units_become_si(written: str, unit: str, si: float) -> None:
    figure = {"value": written, "low": written, "high": written, "unit": unit}
    (row, *_) = parse(_with_cells(figure), "mine.csv")
    assert (row.value, row.written) == (si, f"{written} {unit}")


def test_interval_arithmetic_is_exact_at_the_corners() -> None:
    left, right = Interval(2, 1, 3), Interval(4, 2, 5)
    assert left + right == Interval(6, 3, 8)
    assert left - right == Interval(-2, -4, 1)
    assert left * right == Interval(8, 2, 15)
    assert left / right == Interval(0.5, 0.2, 1.5)
    assert Interval(0, -1, 1) * 2.0 == Interval(0, -2, 2)


def test_touching_intervals_overlap_and_apart_ones_do_not() -> None:
    assert Interval(1, 0, 2).overlaps(Interval(3, 2, 4))
    assert not Interval(1, 0, 2).overlaps(Interval(3, 2.001, 4))


def test_dividing_by_an_interval_that_holds_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError, match="must be above zero"):
        _ = Interval.exactly(1.0) / Interval(0.5, 0.0, 1.0)
