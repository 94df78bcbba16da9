"""Values per data centre: one for all of them, or one for each, such as `6/6/3`.

A field of a scenario takes a number (the same in each data centre), a list, or a text with slashes. A list of equal
numbers is the same layout as that number; `same_or_each` turns it into the number, so that a layout has one form.
Pairs of data centres take a list such as `dc1-dc2=3ms,dc1-dc3=20ms`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import PlainValidator, WithJsonSchema

from capplan.errors import InputError
from capplan.models.language.units import check_count, check_number, parse_duration_s, parse_share

T = TypeVar("T", int, float)
SEPARATOR = "/"
_PAIR = re.compile(r"\s*dc([1-9]\d{0,5})-dc([1-9]\d{0,5})\s*=\s*(\S+)\s*", re.IGNORECASE)


def _counts(value: Any, what: str, least: int) -> int | tuple[int, ...]:
    if isinstance(value, str):
        value = _read_counts(value)
    if isinstance(value, (list, tuple)):
        if not value:
            raise InputError(f"an empty list is not a {what}: give one number, or one for each data centre")
        return tuple(check_count(each, what, least) for each in value)
    return check_count(value, what, 1)


def _read_counts(text: str) -> int | tuple[int, ...]:
    try:
        numbers = tuple(int(each) for each in text.split(SEPARATOR))
    except ValueError:
        raise InputError(
            f"{text!r} is not a number per data centre: write a whole number such as '3', or one for each such as "
            "'6/6/3'"
        ) from None
    return numbers if SEPARATOR in text else numbers[0]


def _schema(item: Mapping[str, Any], single: Mapping[str, Any] | None, pattern: str, what: str) -> WithJsonSchema:
    branches = [dict(single)] if single else []
    branches.append({"type": "array", "items": dict(item), "minItems": 1})
    branches.append({"type": "string", "pattern": pattern})
    return WithJsonSchema({"anyOf": branches, "description": what})


def _count_per_dc(what: str, least: int) -> Any:
    """Return annotations of a field that takes one count of at least 1, or one of at least `least` per DC."""
    return (
        PlainValidator(lambda value: _counts(value, what, least)),
        _schema(
            {"type": "integer", "minimum": least}, {"type": "integer", "minimum": 1}, r"^\d+(/\d+)*$", f"{what} per DC"
        ),
    )


PerDc = Annotated[int | tuple[int, ...], *_count_per_dc("positive whole number", 1)]
"""A count of at least 1 in each data centre."""
PerDcOrNone = Annotated[int | tuple[int, ...], *_count_per_dc("whole number", 0)]
"""A count in each data centre; in a list, some may be 0."""


def parse_shares(value: Any) -> tuple[float, ...]:
    """Return shares by data centre from a list of them, or from a text such as `50%/30%/20%`.

    Raises
    ------
    InputError
        If they are no shares, or do not add up to 1.
    """
    if isinstance(value, str):
        value = tuple(parse_share(each.strip()) for each in value.split(SEPARATOR))
    if not isinstance(value, (list, tuple)) or not value:
        raise InputError(
            f"{value!r} is not a list of shares: give one for each data centre, such as '50%/30%/20%' or "
            "[0.5, 0.3, 0.2]"
        )
    shares = tuple(float(check_number(each, "share", at_most=1.0)) for each in value)
    if not math.isclose(total := math.fsum(shares), 1.0, abs_tol=1e-9):
        equal = "; leave them out for equal shares" if len(set(shares)) == 1 else ""
        raise InputError(f"{per_dc_text(shares)} adds up to {100 * total:g}%: shares must add up to 100%{equal}")
    return shares


SharesByDc = Annotated[
    tuple[float, ...],
    PlainValidator(parse_shares),
    _schema({"type": "number", "minimum": 0, "maximum": 1}, None, r"^[^/]+(/[^/]+)*$", "shares by DC that add up to 1"),
]
"""A share for each data centre; they add up to 1."""


def by_dc(value: T | tuple[T, ...], dcs: int) -> tuple[T, ...]:
    """Return the value of each data centre.

    Parameters
    ----------
    value : number or tuple of number
        The same for all, or one for each.
    dcs : int
        Number of data centres.

    Returns
    -------
    tuple of number (dcs,)
    """
    return value if isinstance(value, tuple) else (value,) * dcs


def same_or_each(value: T | tuple[T, ...], dcs: int, name: str) -> T | tuple[T, ...]:
    """Return values per data centre in normal form: one value if all are equal.

    Parameters
    ----------
    value : number or tuple of number
        The same for all, or one for each.
    dcs : int
        Number of data centres.
    name : str
        Name of the field, for the message.

    Returns
    -------
    number or tuple of number (dcs,)

    Raises
    ------
    InputError
        If there are not as many values as data centres.
    """
    if not isinstance(value, tuple):
        return value
    if len(value) != dcs:
        raise InputError(
            f"{name} = {per_dc_text(value)} has {len(value)} {'number' if len(value) == 1 else 'numbers'} and there "
            f"{'is 1 data centre' if dcs == 1 else f'are {dcs} data centres'}: give one number for each, or one for all"
        )
    return value[0] if len(set(value)) == 1 else value


def per_dc_text(value: Any) -> str:
    """Return values per data centre as people write them: `6`, `6/6/3`, `50%/30%/20%`."""
    if not isinstance(value, (tuple, list)):
        return f"{100 * value:g}%" if isinstance(value, float) else str(value)
    return SEPARATOR.join(per_dc_text(each) for each in value)


def is_per_dc(hint: Any) -> bool:
    """Whether a field's type, without its annotations, is that of a count per data centre."""
    return bool(hint == int | tuple[int, ...])


def implied_dcs(fields: Mapping[str, Any], lists: Iterable[str], matrix: str = "") -> dict[str, int]:
    """Return the number of data centres implied by lists in fields; empty if it is given or no field is a list.

    Parameters
    ----------
    fields : mapping
        Fields as they were given, not yet validated.
    lists : iterable of str
        Names of fields that take one value per data centre.
    matrix : str
        Name of a field that takes a matrix over data centres, or pairs of them.

    Returns
    -------
    dict of int
        `dcs`, from the first list, otherwise from the matrix.
    """
    if "dcs" in fields:
        return {}
    lengths = [_length(fields.get(name)) for name in lists]
    lengths.append(_extent(fields.get(matrix)))
    return next(({"dcs": each} for each in lengths if each), {})


def _length(value: Any) -> int:
    if isinstance(value, str):
        return value.count(SEPARATOR) + 1 if SEPARATOR in value else 0
    return len(value) if isinstance(value, (list, tuple)) else 0


def _extent(value: Any) -> int:
    if isinstance(value, str):
        return max(
            (max(int(found[1]), int(found[2])) for found in map(_PAIR.fullmatch, value.split(",")) if found), default=0
        )
    return len(value) if isinstance(value, (list, tuple)) else 0


def names_pairs(text: str) -> bool:
    """Whether a text lists pairs of data centres, such as `dc1-dc2=3ms`."""
    return "=" in text


def parse_pairs(text: str, dcs: int) -> tuple[tuple[str, ...], ...]:
    """Parse round trips between data centres, such as `dc1-dc2=3ms,dc1-dc3=20ms`.

    A pair that is left out takes the shortest way through the pairs given: 23 ms for `dc2-dc3` here.

    Parameters
    ----------
    text : str
        The pairs in any order, each once.
    dcs : int
        Number of data centres.

    Returns
    -------
    tuple of tuples of str (dcs, dcs)
        A symmetric matrix of the values as they were written; 0ms from a data centre to itself.

    Raises
    ------
    InputError
        If a pair cannot be read, stands twice, names a data centre that is not there, or is left out and the pairs
        given lead nowhere.
    """
    found: dict[tuple[int, int], str] = {}
    for item in text.split(","):
        one, other, value = _read_pair(item, dcs)
        if (one, other) in found:
            raise InputError(f"rtt has dc{one + 1}-dc{other + 1} twice: give each pair of data centres once")
        found[one, other] = value
    if len(found) < dcs * (dcs - 1) // 2:
        _complete(found, dcs)
    return tuple(tuple("0ms" if a == b else found[min(a, b), max(a, b)] for b in range(dcs)) for a in range(dcs))


def _complete(found: dict[tuple[int, int], str], dcs: int) -> None:
    """Add the missing pairs: the shortest path through the given ones."""
    from scipy.sparse.csgraph import csgraph_from_dense, shortest_path  # rarely needed, and slow to import

    given = np.full((dcs, dcs), np.inf)
    for pair, value in found.items():
        given[pair] = round_trip_s(value)
    ways = shortest_path(csgraph_from_dense(given, null_value=np.inf), directed=False)
    missing = [pair for pair in combinations(range(dcs), 2) if pair not in found]
    apart = [f"dc{one + 1}-dc{other + 1}" for one, other in missing if not np.isfinite(ways[one, other])]
    if apart:
        raise InputError(
            f"rtt leaves out {_enumerated(apart)}, and no way leads there through the pairs given: add "
            f"{apart[0]}={next(iter(found.values()))}"
        )
    found |= {pair: f"{1e3 * ways[pair]:.10g}ms" for pair in missing}


def round_trip_s(text: str) -> float:
    """Parse a round trip between data centres, such as `3ms`, to seconds; refuse what is not from 0 to 10 s."""
    try:
        seconds = parse_duration_s(text, "ms")
    except InputError as error:
        raise InputError(f"rtt: {error}") from None
    if not 0 <= seconds <= 10:
        raise InputError(f"rtt {text!r} is not a round trip between data centres: give 0 to 10s")
    return seconds


def pairs_text(matrix: Sequence[Sequence[str]]) -> str:
    """Return a symmetric matrix over data centres as `parse_pairs` reads it; its diagonal is left out."""
    return ",".join(
        f"dc{one + 1}-dc{other + 1}={matrix[one][other]}" for one, other in combinations(range(len(matrix)), 2)
    )


def _read_pair(item: str, dcs: int) -> tuple[int, int, str]:
    match = _PAIR.fullmatch(item)
    if match is None or match[1] == match[2]:
        raise InputError(f"{item.strip()!r} in rtt is not a pair of data centres: write 'dc1-dc2=3ms'")
    one, other = sorted((int(match[1]) - 1, int(match[2]) - 1))
    if other >= dcs:
        raise InputError(f"rtt names dc{other + 1} and there are {dcs} data centres: give pairs of those only")
    return one, other, match[3]


def _enumerated(names: Sequence[str]) -> str:
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more pairs"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def proportions(shares: Sequence[float], among: Iterable[int]) -> dict[int, float]:
    """Return the shares of the remaining data centres after they take over the others' shares in proportion.

    Parameters
    ----------
    shares : sequence of float (dcs,)
        The share of each data centre.
    among : iterable of int
        The data centres that are left, from 0.

    Returns
    -------
    dict of float
        Positive shares by data centre that add up to 1; equal if none of those left had any.
    """
    left = list(among)
    kept = {dc: shares[dc] for dc in left if shares[dc] > 0} or dict.fromkeys(left, 1.0)
    total = math.fsum(kept.values())
    return {dc: share / total for dc, share in kept.items()}
