"""Pauses of Cassandra nodes as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.cassandra.pauses import ReportedPauses, parse_pauses


def test_a_record_has_a_share_and_a_length_and_what_else_is_known() -> None:
    assert parse_pauses("0.6%@45ms") == ReportedPauses(0.006, 0.045)
    assert parse_pauses(" 0.006 @ 45ms rate=3k n=151 sd=20ms") == ReportedPauses(0.006, 0.045, 0.02, 151, 3000.0)


@given(
    st.integers(1, 4999),
    st.integers(1, 9999),
    st.none() | st.integers(0, 9999),
    st.none() | st.integers(1, 10**9),
    st.none() | st.integers(1, 10**5),
)
def test_a_record_is_read_as_it_is_written(
    share: int, mean: int, deviation: int | None, count: int | None, rate: int | None
) -> None:
    record = ReportedPauses(
        share / 1e4,
        mean / 1e3,
        None if deviation is None else min(deviation, 20 * mean) / 1e3,
        count,
        None if rate is None else 1.0 * rate,
    )

    assert str(parse_pauses(str(record))) == str(record)
    assert parse_pauses(str(record)).share == pytest.approx(record.share)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0.6%", "is no record of pauses"),
        ("60%@45ms", "at most 50%"),
        ("0%@45ms", "more than 0"),
        ("0.6%@0ms", "more than 0 and at most 10 s"),
        ("0.6%@45s", "more than 0 and at most 10 s"),
        ("0.6%@45", "write .45ms."),
        ("0.6%@45ms p99=3ms", "only sd=, n= and rate="),
        ("0.6%@45ms n=-1", "must be a number of pauses"),
        ("gc.log", "is no record of pauses"),
        ("0.6%@45ms rate=0/s", "rate must be positive"),
        ("0.6%@45ms rate=-3/s", "rate must be positive"),
        ("0.6%@45ms sd=-3ms", "sd must be from 0"),
        ("0.6%@45ms sd=45s", "sd must be from 0"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_pauses(text)
