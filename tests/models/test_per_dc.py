"""Values per data centre: how they are read and written, their only form, and who takes over whose share."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from capplan.errors import InputError
from capplan.models.language.per_dc import (
    PerDc,
    PerDcOrNone,
    SharesByDc,
    by_dc,
    implied_dcs,
    is_per_dc,
    pairs_text,
    parse_pairs,
    per_dc_text,
    proportions,
    same_or_each,
)

COUNTS: TypeAdapter[Any] = TypeAdapter(PerDc)
COUNTS_OR_NONE: TypeAdapter[Any] = TypeAdapter(PerDcOrNone)
SHARES: TypeAdapter[Any] = TypeAdapter(SharesByDc)


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        (6, 6),
        ("6", 6),
        ("6/6/3", (6, 6, 3)),
        ([6, 6, 3], (6, 6, 3)),
        ((6,), (6,)),
        ("2/2", (2, 2)),
        (" 1 / 2 ", (1, 2)),
    ],
)
def test_counts_are_numbers_lists_and_texts(given_: Any, read: Any) -> None:
    assert COUNTS.validate_python(given_) == read


@pytest.mark.parametrize(
    "wrong", [0, -1, 2.0, True, "", "6/", "6//3", "six", "6,3", "1.5/2", "0/1", [], [1, 0], [[1]], None]
)
def test_other_counts_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"whole number|number per data centre"):
        COUNTS.validate_python(wrong)


def test_one_of_several_may_be_zero_where_the_field_allows_it() -> None:
    assert COUNTS_OR_NONE.validate_python("2/0") == (2, 0)
    with pytest.raises(ValueError, match="0 is not"):
        COUNTS_OR_NONE.validate_python(0)


@pytest.mark.parametrize(
    ("given_", "read"),
    [
        ("50%/30%/20%", (0.5, 0.3, 0.2)),
        ("0.5/0.3/0.2", (0.5, 0.3, 0.2)),
        ([0.5, 0.3, 0.2], (0.5, 0.3, 0.2)),
        ("100%/0%", (1.0, 0.0)),
        ([1, 0], (1.0, 0.0)),
    ],
)
def test_shares_are_percentages_or_numbers(given_: Any, read: Any) -> None:
    assert SHARES.validate_python(given_) == pytest.approx(read)


@pytest.mark.parametrize(
    "wrong", ["50%/30%", "60%/60%", "a/b", "50/50", [0.5], [1.5, -0.5], [], 0.5, [float("nan"), 1.0]]
)
def test_shares_that_do_not_add_up_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="share"):
        SHARES.validate_python(wrong)


@given(st.lists(st.integers(1, 99), min_size=1, max_size=9))
def test_counts_survive_the_way_to_text_and_back(counts: list[int]) -> None:
    one_form = same_or_each(tuple(counts), len(counts), "nodes")

    assert COUNTS.validate_python(per_dc_text(one_form)) == one_form
    assert by_dc(one_form, len(counts)) == tuple(counts)
    assert isinstance(one_form, int) == (len(set(counts)) == 1)


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match=r"nodes = 6/6/3 has 3 numbers and there are 2 data centres"):
        same_or_each((6, 6, 3), 2, "nodes")


def test_the_type_of_a_field_tells_whether_it_is_per_data_centre() -> None:
    assert is_per_dc(int | tuple[int, ...])
    assert not any(map(is_per_dc, (int, int | None, tuple[int, ...], str)))


@pytest.mark.parametrize(
    ("fields", "dcs"),
    [
        ({}, None),
        ({"nodes": 6}, None),
        ({"nodes": "6"}, None),
        ({"nodes": "6/6/3"}, 3),
        ({"nodes": (6, 3)}, 2),
        ({"nodes": [6, 3], "dcs": 3}, None),
        ({"nodes": 6, "rf": (3, 2)}, 2),
        ({"rtt": "dc1-dc2=3ms,dc1-dc4=3ms"}, 4),
        ({"rtt": (("0", "1"), ("1", "0"))}, 2),
        ({"rtt": "3ms"}, None),
        ({"nodes": (6, 3), "rtt": "dc1-dc3=3ms"}, 2),
    ],
)
def test_lists_imply_the_number_of_data_centres(fields: dict[str, Any], dcs: int | None) -> None:
    assert implied_dcs(fields, ("nodes", "rf"), "rtt") == ({} if dcs is None else {"dcs": dcs})


def test_pairs_make_a_symmetric_matrix_in_any_order() -> None:
    expected = (("0ms", "3ms", "20ms"), ("3ms", "0ms", "12ms"), ("20ms", "12ms", "0ms"))

    assert parse_pairs("dc1-dc2=3ms,dc1-dc3=20ms,dc2-dc3=12ms", 3) == expected
    assert parse_pairs(pairs_text(expected), 3) == expected
    assert parse_pairs(" DC3-dc2 = 12ms, dc3-dc1=20ms , dc2-dc1=3ms", 3) == expected


def test_a_pair_that_is_left_out_takes_the_shortest_way_through_the_others() -> None:
    assert parse_pairs("dc1-dc2=3ms,dc1-dc3=20ms", 3)[1][2] == "23ms"
    assert parse_pairs("dc1-dc2=0,dc2-dc3=1s,dc3-dc4=2.5ms,dc1-dc3=1.1s", 4)[0][3] == "1002.5ms"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dc1-dc2=3ms", r"leaves out dc1-dc3 and dc2-dc3, .*dc1-dc3=3ms"),
        ("dc1-dc2=3ms,dc2-dc1=3ms", "dc1-dc2 twice"),
        ("dc1-dc4=3ms", "dc4 and there are 3"),
        ("dc1-dc1=3ms", "'dc1-dc1=3ms' in rtt is not a pair"),
        ("dc1=3ms", "'dc1=3ms' in rtt is not a pair"),
        ("dc1-dc2=3ms,", "'' in rtt is not a pair"),
        ("dc0-dc2=3ms", "'dc0-dc2=3ms' in rtt is not a pair"),
        ("dc1-dc2=-3s,dc1-dc3=3ms", "'-3s' is not a round trip.*0 to 10s"),
        ("dc1-dc2=3ms,dc1-dc3=nan", "'nan' is not a round trip.*0 to 10s"),
    ],
)
def test_bad_pairs_are_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_pairs(text, 3)
    assert "\n" not in str(caught.value)


def test_survivors_take_over_in_proportion() -> None:
    assert proportions((0.5, 0.3, 0.2), (0, 1, 2)) == {0: 0.5, 1: 0.3, 2: 0.2}
    assert proportions((0.5, 0.3, 0.2), (1, 2)) == pytest.approx({1: 0.6, 2: 0.4})
    assert proportions((0.7, 0.3, 0.0), (0, 2)) == {0: 1.0}


def test_standbys_share_the_clients_if_nobody_else_is_left() -> None:
    assert proportions((1.0, 0.0, 0.0), (1, 2)) == {1: 0.5, 2: 0.5}
    assert proportions((1.0, 0.0), ()) == {}


@given(st.lists(st.integers(0, 9), min_size=2, max_size=6), st.data())
def test_what_is_left_adds_up_to_all(weights: list[int], data: st.DataObject) -> None:
    shares = [weight / max(sum(weights), 1) for weight in weights]
    left = data.draw(st.sets(st.sampled_from(range(len(weights))), min_size=1))
    found = proportions(shares, left)

    assert math.fsum(found.values()) == pytest.approx(1.0)
    assert set(found) <= left
    assert all(found.values())
