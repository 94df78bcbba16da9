"""Text with units gives exactly the number that the same decimal in SI gives."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from capplan.models.errors import InputError
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
        ("2", 2.0),
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


def test_a_bare_duration_is_in_the_default_unit() -> None:
    assert parse_duration_s("150", default="ms") == 0.15


@pytest.mark.parametrize(("text", "rate"), [("7000", 7000.0), ("7000/s", 7000.0), ("90/min", 1.5), ("36/h", 0.01)])
def test_rates(text: str, rate: float) -> None:
    assert parse_rate_per_s(text) == rate


@pytest.mark.parametrize(
    ("text", "size"),
    [("300", 300), ("300B", 300), ("16KiB", 16384), ("1.5MiB", 1572864), ("8GB", 8e9), ("2TB", 2e12), ("1TiB", 2**40)],
)
def test_sizes(text: str, size: float) -> None:
    assert parse_size_bytes(text) == size


@pytest.mark.parametrize(("text", "metres"), [("150", 150e3), ("150km", 150e3), ("20m", 20.0)])
def test_lengths(text: str, metres: float) -> None:
    assert parse_length_m(text) == metres


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3parsecs", "'parsecs'"),
        ("3Ms", "'ms'"),
        ("fast", "'fast'"),
        ("", "''"),
        ("1,5s", "',5s'"),
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
