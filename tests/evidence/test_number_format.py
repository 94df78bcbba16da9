"""What a number looks like in a file: decided from all of its numbers, or refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.evidence.importers.number_format import (
    COMMA,
    POINT,
    NumberFormat,
    number_format,
    quotient,
    rising,
    whole,
)

marks = st.sampled_from([POINT, COMMA])


def printed(value: float, decimals: int, mark: NumberFormat) -> str:
    """A number with groups of three digits, as a tool prints it in a locale."""
    return f"{value:,.{decimals}f}".translate(
        {ord(a): b for a, b in {",": mark.grouping[0], ".": mark.decimal}.items()}
    )


@given(
    marks,
    st.integers(0, 4),
    st.floats(1.0, 1e6),
    st.floats(1.0, 1e4),
    st.lists(st.floats(0.01, 1e5), min_size=3, max_size=3).map(sorted),
)
def test_a_number_is_read_right_or_the_file_is_refused(
    mark: NumberFormat, decimals: int, rate: float, seconds: float, latencies: list[float]
) -> None:
    """Its relations: the count by the time is the rate, the count is whole, minimum <= mean <= maximum."""
    count = printed(round(rate * seconds), 0, mark)
    figures = [printed(value, decimals, mark) for value in (rate, seconds, *latencies)]
    relations = [quotient(count, figures[1], figures[0]), whole(count), rising(*figures[2:])]
    try:
        read = number_format("run.txt", [count, *figures], relations)
    except InputError:
        return

    assert read.value(count) == round(rate * seconds)
    assert [read.value(text) for text in figures] == [
        float(f"{value:.{decimals}f}") for value in (rate, seconds, *latencies)
    ]


@given(marks, st.integers(1000, 999_999), st.integers(1000, 999_999))
def test_a_count_by_a_time_decides_where_every_number_has_two_readings(
    mark: NumberFormat, rate: int, milliseconds: int
) -> None:
    """A whole rate above 1,000/s, a time with three decimals: each may be a thousand times more or less."""
    count = max(round(rate * milliseconds / 1000), 1)
    texts = [printed(count, 0, mark), printed(milliseconds / 1000, 3, mark), printed(rate, 0, mark)]
    read = number_format("run.txt", texts, [quotient(*texts)])

    assert [read.value(text) for text in texts] == [count, milliseconds / 1000, rate]


@given(marks, st.lists(st.floats(0.0, 1e7), min_size=1), st.sampled_from([1, 2, 4, 5]))
def test_other_than_three_decimals_decide_alone(mark: NumberFormat, values: list[float], decimals: int) -> None:
    texts = [printed(value, decimals, mark) for value in values]

    assert number_format("run.txt", texts) == mark


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5\u202f358,7", 5358.7),
        ("5\u00a0358,7", 5358.7),
        ("5.358,7", 5358.7),
        ("-1.234.567,5e3", -1234567.5e3),
        ("0,000", 0),
    ],
)
def test_marks_between_thousands(text: str, value: float) -> None:
    read = number_format("run.txt", [text])

    assert read == COMMA
    assert read.value(text) == value
    assert len(read.remarks([text])) == 1


def test_an_apostrophe_stands_between_thousands_with_either_mark() -> None:
    assert number_format("run.txt", ["5'358", "2.8"]).value("5'358") == 5358
    assert number_format("run.txt", ["5\u2019358", "2,8"]).value("5\u2019358") == 5358


def test_numbers_without_a_fraction_are_the_same_in_every_locale() -> None:
    read = number_format("run.txt", ["5358", "NaN", "1.234.567"])

    assert (read.value("5358"), read.value("1.234.567")) == (5358, 1234567)
    assert number_format("run.txt", []) == POINT


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["5.358", "7"], "5.358 may be 5.358 or 5,358"),
        (["5.35", "2,8"], "5.35 has a decimal point and 2,8 a decimal comma"),
        (["5.35", "1,2,3"], "'1,2,3' must be a number"),
    ],
)
def test_what_cannot_be_decided_is_refused(texts: list[str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence.replace(".", r"\.")):
        number_format("run.txt", texts)
