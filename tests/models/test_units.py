"""Text with units gives exactly the number that the same decimal in SI gives."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from capplan.errors import InputError
from capplan.models.language.units import (
    AtLeastOne,
    Count,
    Probability,
    Seconds,
    Share,
    check_count,
    check_number,
    finite,
    is_scalar,
    parse_count,
    parse_duration_s,
    parse_length_m,
    parse_rate_per_s,
    parse_size_bytes,
    plain,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1.1ms", 0.0011),
        ("3 us", 0.000003),
        ("3µs", 0.000003),
        ("7ns", 0.000000007),
        ("0", 0.0),
        ("1,500ms", 1.5),
        ("15m", 900.0),
        ("15min", 900.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("1e3ms", 1.0),
        ("0ms", 0.0),
        ("1e-999999999ms", 0.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@given(st.decimals(min_value=0, max_value=10**6, places=7))
def test_milliseconds_are_rounded_once(value: Decimal) -> None:
    assert parse_duration_s(f"{value}ms") == float(value / 1000)


@pytest.mark.parametrize("text", ["150", "2.5", "1e3", "-3"])
def test_a_time_or_a_distance_without_a_unit_is_refused_with_the_unit_to_add(text: str) -> None:
    with pytest.raises(InputError, match=f"'{text}ms'"):
        parse_duration_s(text, "ms")
    with pytest.raises(InputError, match=f"'{text}km'"):
        parse_length_m(text)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("7000", 7000.0),
        ("7000/s", 7000.0),
        ("90/min", 1.5),
        ("36/h", 0.01),
        ("10k", 10_000.0),
        ("10K/s", 10_000.0),
        ("1.5M/h", 1.5e6 / 3600),
        ("10,000", 10_000.0),
        ("1_234_567.5", 1_234_567.5),
        ("1e3", 1000.0),
    ],
)
def test_rates(text: str, rate: float) -> None:
    assert parse_rate_per_s(text) == rate


@pytest.mark.parametrize(
    ("text", "message"), [("1,5", "'1.5'"), ("1,5k", "'1.5k'"), ("10,00", "'10.00'"), ("10m", "'M'"), ("lots", "'10k'")]
)
def test_no_rate(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_rate_per_s(text)
    assert message in str(caught.value)


@given(st.integers(0, 10**9))
def test_a_rate_and_a_count_are_read_with_separated_thousands(number: int) -> None:
    assert parse_rate_per_s(f"{number:,}") == parse_rate_per_s(f"{number:_}") == number
    assert parse_count(f"{number:,}") == parse_count(str(number)) == number


@pytest.mark.parametrize(("text", "count"), [("3", 3), ("10k", 10_000), ("1.5k", 1500), ("2M", 2_000_000), ("-2", -2)])
def test_counts_are_read(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["1.5", "x", "", "3x", "nan", "inf", "1e99", "1.5/s"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=f"'{text}'"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("300", 300), ("300B", 300), ("16KiB", 16384), ("1.5MiB", 1572864), ("8GB", 8e9), ("2TB", 2e12), ("1TiB", 2**40)],
)
def test_sizes(text: str, size: float) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(("text", "metres"), [("0", 0.0), ("150km", 150e3), ("20m", 20.0)])
def test_lengths(text: str, metres: float) -> None:
    assert parse_length_m(text) == metres


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3parsecs", "'parsecs'"),
        ("3Ms", "'ms'"),
        ("fast", "'fast'"),
        ("", "''"),
        ("1,5s", "'1.5s'"),
        ("1e308h", "'1e308h'"),
    ],
)
def test_no_duration(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_duration_s(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, "-1 is not a time"),
        (float("nan"), "nan is not a time"),
        (True, "True is not a time"),
        ("1", "'1' is not a time"),
        (None, "None is not a time"),
        (11, "11 is not a time"),
        (10**400, "401 digits"),
        (np.array([1.0, -2.0]), "-2 is not a time"),
        (np.array([]), "0 float64 values"),
        (np.array(["1"]), "1 <U1 values"),
    ],
)
def test_no_number(value: object, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_number(value, "time", at_most=10.0)
    assert message in str(caught.value)


def test_a_bound_that_is_excluded() -> None:
    with pytest.raises(InputError, match="above 1"):
        check_number(1, "shape", above=1.0)
    assert check_number(1.5, "shape", above=1.0) == 1.5
    assert check_number(-0.5, "shift", above=-1.0) == -0.5


def test_infinity_is_a_number_where_no_bound_forbids_it() -> None:
    assert check_number(float("inf"), "limit") == float("inf")
    with pytest.raises(InputError, match="inf"):
        check_number(float("inf"), "limit", bounded=True)


def test_draws_are_copied_and_frozen() -> None:
    mine = np.array([1, 2])
    held = check_number(mine, "time")
    mine[0] = 9
    assert isinstance(held, np.ndarray)
    assert held.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 5.0


@pytest.mark.parametrize("value", [2.0, "2", True, np.bool_(True), None])
def test_no_count(value: object) -> None:
    with pytest.raises(InputError, match="size"):
        check_count(value, "size", 0)


def test_counts() -> None:
    assert type(check_count(np.int64(3), "size", 1)) is int
    with pytest.raises(InputError, match="at least 1"):
        check_count(0, "size", 1)


def test_fields_read_text_with_units_and_keep_draws() -> None:
    assert TypeAdapter(Seconds).validate_python("1.5ms") == 0.0015
    draws = TypeAdapter(Seconds).validate_python(np.array([1.0, 2.0]))
    assert not is_scalar(draws)
    assert is_scalar(1.0)


def test_draws_are_not_serialised() -> None:
    adapter = TypeAdapter(Seconds)
    assert adapter.dump_json(0.25) == b"0.25"
    with pytest.raises(Exception, match="2 parameter draws"):
        adapter.dump_json(np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("type_", "value"),
    [(Share, 0.0), (Share, 1.5), (Share, np.array([0.5])), (Probability, 0.0), (Count, -1), (AtLeastOne, 0)],
)
def test_fields_refuse(type_: Any, value: object) -> None:
    adapter: TypeAdapter[object] = TypeAdapter(type_)
    with pytest.raises(ValidationError):
        adapter.validate_python(value)


def test_finite_and_plain() -> None:
    assert finite(np.array([1.0, 2.0]))
    assert not finite(np.array([1.0, np.inf]))
    assert not finite(float("inf"))
    assert type(plain(np.float64(2))) is float
    assert isinstance(plain([1, 2]), np.ndarray)
