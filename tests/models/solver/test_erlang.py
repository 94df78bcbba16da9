"""Erlang B and C against printed tables, exact rational arithmetic and their laws."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import InputError
from capplan.models.solver.single_station import erlang_b, erlang_c

LOADS = st.floats(min_value=0.5, max_value=120.0)
SERVERS = st.integers(min_value=1, max_value=120)


def exact_b(servers: int, load: Fraction) -> Fraction:
    terms = [load**n / factorial(n) for n in range(servers + 1)]
    return terms[-1] / sum(terms)


def exact_c(servers: int, load: Fraction) -> Fraction:
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**n / factorial(n) for n in range(servers)) + last)


@pytest.mark.parametrize(
    ("servers", "load", "blocking"),
    [(1, 0.0101, 0.01), (5, 1.36, 0.01), (10, 4.46, 0.01), (20, 12.0, 0.01), (50, 37.9, 0.01), (100, 84.1, 0.01)],
)
def test_erlang_b_table_of_one_percent_loads(servers: int, load: float, blocking: float) -> None:
    """The classical Erlang B table gives the load to three digits: half a unit of the last digit brackets 1 %."""
    half_digit = 0.5 * 10.0 ** (np.floor(np.log10(load)) - 2)
    assert erlang_b(servers, load - half_digit) < blocking < erlang_b(servers, load + half_digit)


@pytest.mark.parametrize(("servers", "load"), [(1, "1/2"), (2, "3/2"), (10, "893/200"), (64, "60"), (150, "1491/10")])
def test_b_and_c_equal_their_defining_sums_in_rational_arithmetic(servers: int, load: str) -> None:
    exact = Fraction(load)
    assert erlang_b(servers, float(exact)) == pytest.approx(float(exact_b(servers, exact)), rel=1e-12)
    assert erlang_c(servers, float(exact)) == pytest.approx(float(exact_c(servers, exact)), rel=1e-11)


def test_thousands_of_servers_near_saturation() -> None:
    term, total = Decimal(1), Decimal(0)  # 28 digits, outwards from the last term of the defining sum
    for n in range(5000, -1, -1):
        total, term = total + term, term * n / 4999
    assert erlang_b(5000, 4999.0) == pytest.approx(float(1 / total), rel=1e-12)
    assert 0.98 < float(erlang_c(5000, 4999.0)) < 1.0
    assert erlang_b(5000, 1e9) == pytest.approx(1 - 5000 / 1e9, rel=1e-9)
    assert erlang_b(5000, 1.0) == 0.0  # below the smallest float: 1/5000!


def test_waiting_is_certain_from_full_load_on_and_never_without_load() -> None:
    np.testing.assert_array_equal(erlang_c([3, 3, 3, 3], [3.0, 3.5, 1e6, 0.0]), [1.0, 1.0, 1.0, 0.0])
    assert float(erlang_c(8, 8 * (1 - 1e-12))) == pytest.approx(1.0, abs=1e-11)
    assert erlang_b(0, 2.0) == 1.0


def test_arguments_broadcast_element_by_element() -> None:
    servers, load = np.array([[1], [7], [40]]), np.array([0.5, 6.0, 39.0])
    table = erlang_b(servers, load)
    assert table.shape == (3, 3)
    for row in range(3):
        for column in range(3):
            assert table[row, column] == float(erlang_b(int(servers[row, 0]), float(load[column])))


@given(SERVERS, LOADS)
def test_more_servers_never_hurt_and_waiting_is_likelier_than_loss(servers: int, load: float) -> None:
    assert erlang_b(servers + 1, load) < erlang_b(servers, load)
    assert erlang_c(servers + 1, load) <= erlang_c(servers, load)
    assert erlang_b(servers, load) <= erlang_c(servers, load) <= 1


@given(SERVERS, LOADS, st.floats(min_value=1.001, max_value=2.0))
def test_more_load_never_helps(servers: int, load: float, factor: float) -> None:
    assert erlang_b(servers, load * factor) > erlang_b(servers, load)
    assert erlang_c(servers, load * factor) >= erlang_c(servers, load)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: erlang_b(2.5, 1.0), "2.5 is not a number of servers"),
        (lambda: erlang_b(-1, 1.0), "-1 is not a number of servers"),
        (lambda: erlang_c(0, 1.0), "0 is not a number of servers"),
        (lambda: erlang_b(2, [1.0, -3.0]), "-3 is not a load"),
        (lambda: erlang_b(2, np.nan), "nan is not a load"),
        (lambda: erlang_b(2, np.inf), "inf is not a load"),
        (lambda: erlang_b("two", 1.0), "'two' is not a number of servers"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
