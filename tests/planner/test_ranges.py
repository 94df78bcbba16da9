"""Ranges of swept options give exactly the values that are written."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.language.units import parse_rate_per_s
from capplan.planner.ranges import (
    LOAD,
    MAX_POINTS,
    WHOLE,
    WORDS,
    YES_OR_NO,
    ValueType,
    numbers,
    parse_values,
    quantities,
    value_type,
)
from capplan.systems.registry import system

RATE, FACTOR, DURATION, LENGTH = numbers(parse_rate_per_s), numbers(), quantities("ms"), quantities("km")


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("3", WHOLE, (3,)),
        ("1..5", WHOLE, (1, 2, 3, 4, 5)),
        ("3..12:3", WHOLE, (3, 6, 9, 12)),
        ("3..11:3", WHOLE, (3, 6, 9)),
        ("4..4", WHOLE, (4,)),
        ("1, 3..9:3", WHOLE, (1, 3, 6, 9)),
        ("5,1..5", WHOLE, (5, 1, 2, 3, 4)),
        ("2000..8000:2000", RATE, (2000.0, 4000.0, 6000.0, 8000.0)),
        ("60/min..3/s:1", RATE, (1.0, 2.0, 3.0)),
        ("10%..30%:10%", LOAD, (0.1, 0.2, 0.3)),
        ("0.5,105%", LOAD, (0.5, 1.05)),
        ("1ms..9ms:2ms", DURATION, ("1ms", "3ms", "5ms", "7ms", "9ms")),
        ("800us..1ms:100us", DURATION, ("0.8ms", "0.9ms", "1ms")),
        ("0", DURATION, ("0ms",)),
        ("10k,12k", RATE, (10_000.0, 12_000.0)),
        ("10,000", RATE, (10_000.0,)),
        ("8,000,10,000", RATE, (8000.0, 10_000.0)),
        ("1,000,000", RATE, (1e6,)),
        ("10,000..20,000:5,000", RATE, (10_000.0, 15_000.0, 20_000.0)),
        ("10k..20k:5k", RATE, (10_000.0, 15_000.0, 20_000.0)),
        ("100,200,300", RATE, (100.0, 200.0, 300.0)),
        ("1, 500", RATE, (1.0, 500.0)),
        ("64,128", WHOLE, (64, 128)),
        ("1,000,10k", WHOLE, (1000, 10_000)),
        ("100km..300km:100km", LENGTH, ("100km", "200km", "300km")),
        ("500m", LENGTH, ("0.5km",)),
        ("1..2:0.5", FACTOR, (1.0, 1.5, 2.0)),
        ("QUORUM,LOCAL_QUORUM", WORDS, ("QUORUM", "LOCAL_QUORUM")),
        ("no,yes", YES_OR_NO, (False, True)),
    ],
)
def test_what_is_written_is_swept(text: str, kind: ValueType, values: tuple[object, ...]) -> None:
    assert parse_values(text, kind) == values


@pytest.mark.parametrize(
    ("system_name", "field", "text", "values"),
    [
        ("openprovider", "dcs", "1..3", (1, 2, 3)),
        ("openprovider", "rtt", "1ms..3ms:1ms", ("1ms", "2ms", "3ms")),
        ("openprovider", "distance", "50km,150km", ("50km", "150km")),
        ("openprovider", "ldap", "yes,no", (True, False)),
        ("openprovider", "encryption", "client,internode", ("client", "internode")),
        ("rhino-shcm", "cass_nodes", "3,5", (3, 5)),
        ("fedora4", "write_share", "0%..10%:5%", (0.0, 0.05, 0.1)),
        ("arion", "rps_per_client", "60/min", (1.0,)),
    ],
)
def test_a_field_decides_how_its_values_are_written(
    system_name: str, field: str, text: str, values: tuple[object, ...]
) -> None:
    assert parse_values(text, value_type(system(system_name).scenario, field)) == values


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *[
            (text, WHOLE)
            for text in ("", "1,,2", "x", "1.5", "5..1", "1..5:0", "1..5:-1", "1..", "..5", "1..2..3", "3:1")
        ],
        *[(text, WHOLE) for text in ("1..5:", "1..1000000000", "1..99999,100001..199999")],
        *[
            (text, RATE)
            for text in (
                "1000..2000",
                "1..inf:1",
                "1..5:nan",
                "1..2:1e-300",
                "1,500",
                "10,000,10,500",
                "100,000,200,000",
            )
        ],
        *[(text, DURATION) for text in ("3", "3,5", "3ms..9ms:2")],
        ("100..300:100", LENGTH),
        *[(text, LOAD) for text in ("80", "0%", "1/0", "x%")],
        ("1ms..9ms", DURATION),
        ("x", FACTOR),
        ("ONE..QUORUM", WORDS),
        ("maybe", YES_OR_NO),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, kind: ValueType) -> None:
    with pytest.raises(InputError):
        parse_values(text, kind)


@given(st.integers(-50, 50), st.integers(0, 200), st.integers(1, 20))
def test_a_range_of_whole_numbers_is_pythons(first: int, more: int, step: int) -> None:
    values = parse_values(f"{first}..{first + more}:{step}", WHOLE)

    assert values == tuple(range(first, first + more + 1, step))


@given(st.integers(0, 1000), st.integers(1, 60), st.integers(1, 999))
def test_a_range_of_decimals_has_the_decimals_that_one_would_write(first: int, count: int, step: int) -> None:
    texts = [f"{Fraction(first + number * step, 1000).limit_denominator(1000)}" for number in range(count + 1)]
    last = (first + count * step) / 1000

    values = parse_values(f"{first / 1000}..{last}:{step / 1000}", FACTOR)

    assert values == tuple(float(Fraction(text)) for text in texts)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_a_list_keeps_its_order_and_each_value_once(values: list[int]) -> None:
    assert parse_values(",".join(map(str, values)), WHOLE) == tuple(dict.fromkeys(values))


def test_the_longest_range_is_allowed() -> None:
    assert len(parse_values(f"1..{MAX_POINTS}", WHOLE)) == MAX_POINTS


def test_a_range_without_a_step_is_one_value_where_only_its_ends_are_known() -> None:
    its = value_type(system("openprovider").scenario, "data_factor")
    assert parse_values("1,1.2..1.6,2", its) == (1.0, "1.2..1.6", 2.0)
    assert parse_values("1..2:0.5", its) == (1.0, 1.5, 2.0)
