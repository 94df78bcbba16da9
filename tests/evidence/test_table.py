"""The table of evidence: rules that documented rows follow, refused files, hashes, the arithmetic of intervals."""

import csv
import io
import json
import math
from collections import Counter
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.evidence.interval import Interval
from capplan.evidence.table import COLUMNS, UNITS, Evidence, by_id, layout_text, parse, rows_hash, select
from capplan.systems import registry

ROWS = registry.system("openprovider").evidence
HASH = registry.system("openprovider").data_hash
BY_ID = by_id(ROWS)


def test_words_are_facts_without_numbers() -> None:
    assert BY_ID["all.cass_version"].text == "3.11.8"
    assert math.isnan(BY_ID["all.cass_version"].value)


def _text() -> str:
    return files("capplan.systems").joinpath("openprovider", "evidence.csv").read_text(encoding="utf-8")


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
        ("dcs", "1.5", "it must be a whole number"),
        ("proxy", "maybe", "it must be 'yes' or 'no'"),
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
    with pytest.raises(InputError, match="column 'valeu' is unknown in a table of evidence; did you mean 'value'"):
        parse(_text().replace("value", "valeu", 1), "mine.csv")
    with pytest.raises(InputError, match="column 'locator' is missing"):
        parse(_text().replace(",locator", "", 1), "mine.csv")


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(InputError, match="line 2: the row must have exactly 28 cells"):
        parse("\n".join([_text().splitlines()[0], "ts1.incoming,openprovider"]), "mine.csv")


def test_an_unknown_system_and_an_unknown_criterion_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'openprovider'"):
        registry.system("openprovidr")
    with pytest.raises(InputError, match="did you mean 'scenario'"):
        select(ROWS, scenarios="TS1")


def test_the_hash_follows_the_data_and_neither_their_order_nor_their_prose() -> None:
    assert rows_hash(ROWS) == HASH == rows_hash(reversed(ROWS))
    first, *rest = ROWS
    assert rows_hash([replace(first, reason="told otherwise", written="7000.0/s"), *rest]) == HASH
    assert rows_hash([replace(first, value=7001.0), *rest]) != HASH
    assert len(HASH) == 64


KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
VALUES = st.from_regex(r"[a-zA-Z0-9_.-]{1,8}", fullmatch=True)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_a_layout_is_read_as_it_is_written(layout: dict[str, str]) -> None:
    (row, *_) = parse(_with("layout", layout_text(layout)), "mine.csv")
    assert row.layout == layout
    assert list(row.layout) == list(layout)


def test_a_layout_counts_in_the_hash_and_an_empty_one_does_not() -> None:
    # The file was fitted before the table had a column for layouts; without one, its rows have the hash they had.
    fitted = files("capplan.systems").joinpath("openprovider", "fitted.json").read_text(encoding="utf-8")
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


SI = {unit for unit, _ in UNITS.values()}
EVERY_ROW = [row for system in registry.documented_names() for row in registry.system(system).evidence]


def ids(rows: list[Evidence]) -> list[str]:
    """Return the ids of rows, each with its system."""
    return [f"{row.system} {row.id}" for row in rows]


@pytest.mark.parametrize("system", registry.documented_names())
def test_every_row_is_of_its_system_and_every_source_is_used(system: str) -> None:
    assert {row.system for row in registry.system(system).evidence} == {system}
    assert {row.source for row in registry.system(system).evidence} == {
        source.id for source in registry.system(system).sources
    }


@pytest.mark.parametrize("system", registry.documented_names())
def test_every_source_has_a_citation_its_dating_and_its_defects(system: str) -> None:
    for source in registry.system(system).sources:
        assert source.citation
        assert source.dating
        assert source.kind


def test_every_row_has_its_place_and_unit_and_is_named_for_its_scenario() -> None:
    assert not ids([row for row in EVERY_ROW if not row.locator or row.unit not in SI])
    assert not ids([row for row in EVERY_ROW if not row.id.startswith(f"{row.scenario.lower()}.")])


def test_a_figure_has_an_interval_with_its_rule_and_a_fact_in_words_has_neither() -> None:
    figures = [row for row in EVERY_ROW if not row.text]
    assert not ids([row for row in figures if not row.low <= row.value <= row.high or not row.rounding])
    assert all(math.isnan(row.value) for row in EVERY_ROW if row.text)


def test_what_is_printed_lies_within_its_interval_and_what_is_measured_has_one_of_its_size() -> None:
    measured = [row for row in EVERY_ROW if row.use == "fit" and not row.text]
    assert not ids([row for row in measured if row.high <= row.low])
    assert not ids([row for row in measured if row.value and (row.high - row.low) > 0.4 * abs(row.value)])


def test_rows_that_are_not_fitted_say_why() -> None:
    assert not ids([row for row in EVERY_ROW if row.use in ("check", "excluded") and not row.reason])


def test_what_is_fitted_is_a_number_of_a_fold_that_nothing_refutes() -> None:
    fitted = [row for row in EVERY_ROW if row.use == "fit"]
    assert {row.system for row in fitted} == set(registry.documented_names())
    assert not ids([row for row in fitted if row.text or not row.fold])
    assert not ids([row for row in fitted if row.status not in ("measured", "derived")])


def test_an_experiment_that_is_reported_twice_is_fitted_once() -> None:
    seen = Counter(
        (row.system, row.duplicate_group, row.quantity, row.request_class, row.statistic, tuple(row.layout.items()))
        for row in EVERY_ROW
        if row.use == "fit" and row.duplicate_group
    )
    assert [one for one, count in seen.items() if count > 1] == []


def test_what_the_document_lacks_is_named_and_has_no_figure() -> None:
    missing = [row for row in EVERY_ROW if row.status == "missing"]
    assert not ids([row for row in missing if not row.text or row.use != "excluded"])


def test_figures_that_are_read_from_words_are_not_measured() -> None:
    assert not ids([row for row in EVERY_ROW if row.status == "measured" and "read as" in row.rounding])
