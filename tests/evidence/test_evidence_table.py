"""The table of evidence: units, hashes, layouts, refused files, and the arithmetic of intervals."""

import csv
import io
import json
import math
from dataclasses import replace
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.evidence.interval import Interval
from capplan.evidence.table import COLUMNS, by_id, layout_text, parse, rows_hash, select
from capplan.models.errors import InputError
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
