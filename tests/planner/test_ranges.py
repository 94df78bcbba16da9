"""Values of swept options: what is written is what is swept, exactly; what cannot be meant is one sentence."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import InputError
from capplan.planner.explore.ranges import (
    DISTANCE,
    FACTOR,
    MOST_POINTS,
    RATE,
    ROUND_TRIP,
    SHARE,
    WHOLE,
    WORDS,
    YES_OR_NO,
    Kind,
    parse_values,
)


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("3", WHOLE, (3,)),
        ("1..5", WHOLE, (1, 2, 3, 4, 5)),
        ("3..12:3", WHOLE, (3, 6, 9, 12)),
        ("3..11:3", WHOLE, (3, 6, 9)),
        ("4..4", WHOLE, (4,)),
        ("1,2,4", WHOLE, (1, 2, 4)),
        ("1, 3..9:3", WHOLE, (1, 3, 6, 9)),
        ("5,1..5", WHOLE, (5, 1, 2, 3, 4)),
        ("2000..8000:2000", RATE, (2000.0, 4000.0, 6000.0, 8000.0)),
        ("60/min..3/s:1", RATE, (1.0, 2.0, 3.0)),
        ("10%..30%:10%", SHARE, (0.1, 0.2, 0.3)),
        ("0.5,105%", SHARE, (0.5, 1.05)),
        ("1ms..9ms:2ms", ROUND_TRIP, ("1ms", "3ms", "5ms", "7ms", "9ms")),
        ("800us..1ms:100us", ROUND_TRIP, ("0.8ms", "0.9ms", "1ms")),
        ("3", ROUND_TRIP, ("3ms",)),
        ("100..300:100", DISTANCE, ("100km", "200km", "300km")),
        ("500m", DISTANCE, ("0.5km",)),
        ("1..2:0.5", FACTOR, (1.0, 1.5, 2.0)),
        ("QUORUM,LOCAL_QUORUM", WORDS, ("QUORUM", "LOCAL_QUORUM")),
        ("no,yes", YES_OR_NO, (False, True)),
    ],
)
def test_what_is_written_is_swept(text: str, kind: Kind, values: tuple[object, ...]) -> None:
    assert parse_values(text, kind) == values


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("", WHOLE, ["comma", "3..12:3"]),
        ("1,,2", WHOLE, ["'1,,2'", "comma"]),
        ("x", WHOLE, ["'x' is not a whole number"]),
        ("1.5", WHOLE, ["'1.5' is not a whole number"]),
        ("5..1", WHOLE, ["'5..1' goes down", "smaller end first"]),
        ("1..5:0", WHOLE, ["step", "not above 0"]),
        ("1..5:-1", WHOLE, ["step", "not above 0"]),
        ("1..", WHOLE, ["'1..' is not a range"]),
        ("..5", WHOLE, ["'..5' is not a range"]),
        ("1..2..3", WHOLE, ["'1..2..3' is not a range"]),
        ("3:1", WHOLE, ["'3:1' has a step and no range"]),
        ("1..5:", WHOLE, ["'' is not a whole number"]),
        ("1..1000000000", WHOLE, ["100,000", "larger step"]),
        ("1..99999,100001..199999", WHOLE, ["100,000", "larger steps"]),
        ("1000..2000", RATE, ["has no step", "2000..20000:2000"]),
        ("1..inf:1", RATE, ["'inf'", "finite"]),
        ("1..5:nan", RATE, ["'nan'", "finite"]),
        ("1..2:1e-300", RATE, ["100,000"]),
        ("1k", RATE, ["'1k' is not a rate", "'k' is unknown"]),
        ("1ms..9ms", ROUND_TRIP, ["has no step", "1ms..9ms:2ms"]),
        ("80", SHARE, ["'80' is not a share", "1000%"]),
        ("0%", SHARE, ["more than 0"]),
        ("1/0", SHARE, ["'1/0' is not a share"]),
        ("x%", SHARE, ["'x%' is not a share"]),
        ("x", FACTOR, ["'x' is not a number"]),
        ("ONE..QUORUM", WORDS, ["range of words", "commas"]),
        ("maybe", YES_OR_NO, ["'maybe' is neither yes nor no"]),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(text: str, kind: Kind, parts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        parse_values(text, kind)

    for part in parts:
        assert part in str(caught.value)


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
    assert len(parse_values(f"1..{MOST_POINTS}", WHOLE)) == MOST_POINTS
