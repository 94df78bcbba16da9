"""The data factor: measured work of Cassandra on a user's data over that on the data of the load tests."""

from __future__ import annotations

import math
from typing import Annotated

from capplan.errors import InputError
from capplan.layout.situations import Factor
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Option
from capplan.models.language.units import Number, check_number

DATA_FACTOR = "data_factor"
"""Name of the factor among the parameter values of a layout whose scenario gives it as a range."""
Stated = float | str | None
_LEAST, _MOST = 0.2, 20.0
_STREAM = 2026


def normal_form(stated: Stated) -> Stated:
    """Return a data factor, or a range of it, in its usual form: a number, or `1.2..1.6`; None if none is stated.

    Raises
    ------
    InputError
        If it cannot be read, goes down or is out of range.
    """
    if stated is None:
        return None
    low, high = factors(stated)
    return low if low == high else f"{low:g}..{high:g}"


def factors(stated: Stated) -> tuple[float, float]:
    """Return the ends of a stated data factor; 1 if none is stated."""
    if stated is None:
        return 1.0, 1.0
    text = str(stated)
    try:
        ends = [float(check_number(float(each), "data factor", bounded=True)) for each in text.split("..")]
        low, high = ends if len(ends) == 2 else ends * 2
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is no data factor: write one such as 1.3, or a range such as 1.2..1.6") from None
    if low > high:
        raise InputError(f"data factor {text} goes down: write {high:g}..{low:g}")
    if not _LEAST <= low <= high <= _MOST:
        raise InputError(
            f"data factor {text} is out of range: it must be from {_LEAST:g} to {_MOST:g}, such as "
            f"{min(max(low, _LEAST), _MOST):g}"
        )
    return low, high


def in_words(stated: Stated) -> str:
    """Return a stated data factor in words."""
    low, high = factors(stated)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def with_draws(stated: Stated, count: int) -> dict[str, Number]:
    """Return draws of a data factor that is a range (count,), 90 % of them in it, by its name; for one, its median."""
    low, high = factors(stated)
    if low == high:
        return {}
    spread = Factor(math.sqrt(low * high), math.log(high / low) / 2 / 1.645)
    return {DATA_FACTOR: spread.draws(count, _STREAM) if count > 1 else spread.median}


def of_values(stated: Stated, values: Values) -> Number:
    """Return a stated data factor: of a range, the one among the parameter values."""
    low, high = factors(stated)
    return low if low == high else values[DATA_FACTOR]


DataFactor = Annotated[
    Stated,
    Option(
        "Measured work of Cassandra on your data relative to the test's fresh data, such as 1.3 or 1.2..1.6; as "
        "tested if left out.",
        "times the test's work of Cassandra",
        "X",
        read=normal_form,
    ),
]
