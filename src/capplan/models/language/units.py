"""Parse quantities such as `1.5ms` or `16KiB` into SI numbers, and validate the numeric fields of the language.

All numbers inside capplan are SI: seconds, per second, bytes. A field of the language accepts a number in SI, a string
with a unit, or, from Python and for the analytic solver, an array of parameter draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from capplan.errors import InputError, nearest, one_of

FloatArray = NDArray[np.float64]
Number = float | FloatArray

# Fractions round only once, so '1.1ms' is the same double as 0.0011.
DURATIONS_S = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86_400),
}
MULTIPLES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6}
"""What `10k` and `1.5M` mean where a rate or a count is read."""
RATES_PER_S = {"/s": Fraction(1), "/min": Fraction(1, 60), "/h": Fraction(1, 3600)}
SIZES_BYTES = {
    "B": Fraction(1),
    "kB": Fraction(10**3),
    "MB": Fraction(10**6),
    "GB": Fraction(10**9),
    "TB": Fraction(10**12),
    "KiB": Fraction(2**10),
    "MiB": Fraction(2**20),
    "GiB": Fraction(2**30),
    "TiB": Fraction(2**40),
}
LENGTHS_M = {"m": Fraction(1), "km": Fraction(1000)}

# Thousands may be separated: 10,000 and 10_000.
_WRITTEN = re.compile(
    r"\s*([-+]?(?:\d{1,3}(?:[,_]\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan))\s*(\S*)\s*"
)
_SEPARATORS = str.maketrans("", "", ",_")
_DECIMAL_COMMA = re.compile(r"\s*([-+]?\d+),(\d+)([^\d,]*)")
_LONGEST = 400  # characters of a number; the longest double has 309 digits before its point
_LARGEST_COUNT = 10**15  # a double still counts exactly


def _split(text: str, what: str, example: str) -> tuple[str, str]:
    """Split a text into a number, without separators of thousands, and what follows it."""
    if len(text) > _LONGEST:
        raise InputError(f"a text of {len(text):,} characters is not a {what}: write a number such as {example}")
    if match := _WRITTEN.fullmatch(text):
        if match[2].startswith(",") and (decimal := _DECIMAL_COMMA.fullmatch(text)):
            raise InputError(f"{text!r} is not a {what}: write '{decimal[1]}.{decimal[2]}{decimal[3]}' with a point")
        return match[1].translate(_SEPARATORS), match[2]
    raise InputError(f"{text!r} is not a {what}: write a number such as {example}")


def _si(text: str, what: str, number: str, size: Fraction) -> float:
    """Return a number of units; rounded only once."""
    plain = float(number)
    if not math.isfinite(plain) or plain == 0:
        return plain  # a fraction of '1e-999999999' would have that many digits
    try:
        return float(Fraction(number) * size)
    except OverflowError:
        raise InputError(f"{text!r} is not a {what}: it is too large") from None


def _parse(text: str, units: dict[str, Fraction], what: str, usual: str, bare: bool = False) -> float:
    """Parse a number and one of `units`; a bare number is in the `usual` one, or refused unless it is 0."""
    number, unit = _split(text, what, f"'1.5{usual}', with its unit")
    if not unit and not bare and math.isfinite(float(number)) and float(number) != 0:
        raise InputError(f"{text!r} is not a {what}: it has no unit, write '{text.strip()}{usual}'")
    if unit:
        one_of(units, unit, f"{text!r} is not a {what}: unit {unit!r} is unknown")
    return _si(text, what, number, units[unit or usual])


def duration_text(seconds: float) -> str:
    """Return a duration in the largest unit of which it has a whole number: `20 d`, `90 min`, `0.5 s`."""
    unit, size = next((each for each in (("d", 86_400), ("h", 3600), ("min", 60)) if seconds % each[1] == 0), ("s", 1))
    return f"{seconds / size:g} {unit}"


def parse_duration_s(text: str, usual: str = "s") -> float:
    """Parse a duration such as `1.5ms`, `2s` or `15m`.

    Parameters
    ----------
    text : str
        A number and a unit of `DURATIONS_S`; 0 needs none.
    usual : str
        Unit to suggest for a number without one.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    InputError
        If the text is not a number with a known unit of time.

    Examples
    --------
    >>> parse_duration_s("1.5ms")
    0.0015
    """
    return _parse(text, DURATIONS_S, "duration", usual)


def parse_rate_per_s(text: str) -> float:
    """Parse a rate such as `7000`, `10k`, `10,000`, `7000/s` or `90/min`.

    Parameters
    ----------
    text : str
        A number, one of `MULTIPLES`, and a unit of `RATES_PER_S`; a number without a unit is per second.

    Returns
    -------
    float
        Per second.

    Raises
    ------
    InputError
        If the text is not a number with a known unit of rate.
    """
    number, unit = _split(text, "rate", "'7000', '10k' or '90/min'")
    multiple = unit[:1] if unit[:1] in MULTIPLES else ""
    per = unit.removeprefix(multiple) or "/s"
    if per not in RATES_PER_S:
        known = nearest(unit, ("k", "M", *RATES_PER_S))
        raise InputError(f"{text!r} is not a rate: unit {unit!r} is unknown{known}")
    return _si(text, "rate", number, MULTIPLES[multiple] * RATES_PER_S[per])


def parse_count(text: str) -> int:
    """Parse a whole number such as `6`, `10k` or `10,000`.

    Parameters
    ----------
    text : str
        A number and one of `MULTIPLES`.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If the text is not a whole number.
    """
    number, multiple = _split(text, "whole number", "'3', '10000' or '10k'")
    if multiple not in MULTIPLES:
        raise InputError(f"{text!r} is not a whole number: {multiple!r} is unknown, write digits, or 'k' for thousands")
    count = _si(text, "whole number", number, Fraction(MULTIPLES[multiple]))
    if not abs(count) <= _LARGEST_COUNT:
        raise InputError(f"{text!r} is not a whole number: give one of at most {_LARGEST_COUNT:,}")
    if count != int(count):
        raise InputError(f"{text!r} is not a whole number: the nearest is {round(count)}")
    return int(count)


def parse_size_bytes(text: str) -> float:
    """Parse a size such as `300B`, `16KiB` or `8GB`.

    Parameters
    ----------
    text : str
        A number and a unit of `SIZES_BYTES`; a bare number is in bytes.

    Returns
    -------
    float
        Bytes.

    Raises
    ------
    InputError
        If the text is not a number with a known unit of size.
    """
    return _parse(text, SIZES_BYTES, "size", "B", bare=True)


def parse_share(text: str) -> float:
    """Parse a share such as `5%` or `0.05`.

    Parameters
    ----------
    text : str
        A percentage or a number.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    InputError
        If the text is neither a percentage nor a number, or is above 100 %.
    """
    found = re.fullmatch(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%?)", text[: _LONGEST + 1])
    if found is None or len(text) > _LONGEST:
        raise InputError(f"{text!r} is not a share: write a percentage, such as '80%', or a number from 0 to 1")
    share = float(found[1]) / (100 if found[2] else 1)
    if share > 1:
        near = f"; did you mean '{found[1]}%'?" if share <= 100 and not found[2] else ""
        raise InputError(f"{text!r} is not a share: it must be at most 100%{near}")
    return share


def parse_length_m(text: str) -> float:
    """Parse a distance such as `150km`.

    Parameters
    ----------
    text : str
        A number and a unit of `LENGTHS_M`; 0 needs none.

    Returns
    -------
    float
        Metres.

    Raises
    ------
    InputError
        If the text is not a number with a known unit of length.
    """
    return _parse(text, LENGTHS_M, "distance", "km")


def plain(value: Any) -> Number:
    """Convert a scalar to a float, and anything else to an array of float64."""
    array = np.asarray(value, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def check_number(
    value: Any,
    what: str,
    at_least: float = 0.0,
    above: float | None = None,
    at_most: float = math.inf,
    bounded: bool = False,
) -> Number:
    """Check that a number, or every element of an array, is within bounds; NaN never is.

    Parameters
    ----------
    value : Any
        The number, or an array of parameter draws.
    what : str
        What the value should be, for the message: `duration in seconds`.
    at_least, at_most : float
        Inclusive bounds.
    above : float, optional
        Strict lower bound instead of `at_least`.
    bounded : bool
        Whether infinity is refused.

    Returns
    -------
    float or array
        The value; an array is a read-only copy.

    Raises
    ------
    InputError
        If the value is not a number or is out of bounds.
    """
    array = _array(value, what)
    if np.isnan(array).any():
        raise InputError(f"nan is not a {what}: give a number")
    lowest, highest = float(array.min()), float(array.max())
    if above is not None and lowest <= above:
        raise InputError(f"{lowest:g} is not a {what}: it must be above {above:g}")
    if above is None and lowest < at_least:
        raise InputError(f"{lowest:g} is not a {what}: it must be at least {at_least:g}")
    if highest > at_most:
        raise InputError(f"{highest:g} is not a {what}: it must be at most {at_most:g}")
    if bounded and highest == math.inf:
        raise InputError(f"inf is not a {what}: it must be finite")
    return plain(array)


def _array(value: Any, what: str) -> FloatArray:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.ndarray, np.floating, np.integer)):
        raise InputError(f"{value!r} is not a {what}: give a number")
    if isinstance(value, np.ndarray) and (value.size == 0 or value.dtype.kind not in "iuf"):
        raise InputError(f"an array of {value.size} {value.dtype} values is not a {what}: give an array of numbers")
    try:
        array = np.array(value, dtype=np.float64)
    except OverflowError:
        raise InputError(f"a number of {len(str(value))} digits is not a {what}: it is too large") from None
    array.setflags(write=False)  # constructs are frozen; the caller's own array stays writable
    return array


def check_count(value: Any, what: str, at_least: int) -> int:
    """Check that a value is an integer (not 3.0 and not True) of at least `at_least`.

    Parameters
    ----------
    value : Any
        The value.
    what : str
        What the value should be, for the message.
    at_least : int
        Lower bound.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If it is not.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{value!r} is not a {what}: give a whole number, without quotes or a decimal point")
    if value < at_least:
        raise InputError(f"{value} is not a {what}: it must be at least {at_least}")
    return int(value)


def _field(
    what: str,
    parse: Callable[[str], float] | None = None,
    above: float | None = None,
    at_most: float = math.inf,
    unit: str = "",
) -> Any:
    """Return annotations that validate a field, parse its unit, and describe it in the JSON schema."""

    def validate(value: Any) -> Number:
        if isinstance(value, str) and parse is not None:
            value = parse(value)
        return check_number(value, what, above=above, at_most=at_most, bounded=True)

    number: dict[str, Any] = {"type": "number", **({"minimum": 0} if above is None else {"exclusiveMinimum": above})}
    if at_most < math.inf:
        number["maximum"] = at_most
    schema = {"anyOf": [number, {"type": "string"}], "unit": unit} if parse else number
    return PlainValidator(validate), PlainSerializer(_written), WithJsonSchema({**schema, "description": what})


def _written(value: Number) -> float:
    if isinstance(value, np.ndarray):
        raise InputError(f"an array of {value.size} parameter draws cannot be written to a file: give a single number")
    return value


def _count(what: str, at_least: int) -> Any:
    schema = {"type": "integer", "minimum": at_least, "description": what}
    return PlainValidator(lambda value: check_count(value, what, at_least)), WithJsonSchema(schema)


def _share(value: Any) -> float:
    if isinstance(value, np.ndarray):
        raise InputError("an array of parameter draws is not a share: give a single number")
    return float(check_number(value, "share", above=0.0, at_most=1.0))


def _with_unit(usual: str) -> BeforeValidator:
    """Return a field validator that keeps a text with a unit; it refuses numbers without quotes, except 0."""

    def checked(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [checked(each) for each in value]
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if value == 0:
                return f"0{usual}"
            raise InputError(f"{value:.15g} has no unit: write '{value:.15g}{usual}', in quotes")
        raise InputError(f"{value!r} is not a text with a unit: write one such as '3{usual}', in quotes")

    return BeforeValidator(checked)


MILLISECONDS_TEXT, KILOMETRES_TEXT = _with_unit("ms"), _with_unit("km")
"""Annotations of fields that keep texts such as `3ms` and `150km`."""
READ_SHARE = BeforeValidator(lambda value: parse_share(value) if isinstance(value, str) else value)
"""Annotation of a field that takes a share as a number or as a text such as `5%`."""
Seconds = Annotated[Number, *_field("duration in seconds", parse_duration_s, unit="seconds")]
PositiveSeconds = Annotated[Number, *_field("duration in seconds", parse_duration_s, above=0.0, unit="seconds")]
HIGHEST_RATE = 1e9
"""Per second: one in each tick of the clock."""
PerSecond = Annotated[Number, *_field("rate per second", parse_rate_per_s, at_most=HIGHEST_RATE, unit="per second")]
PositivePerSecond = Annotated[
    Number, *_field("rate per second", parse_rate_per_s, above=0.0, at_most=HIGHEST_RATE, unit="per second")
]
Positive = Annotated[Number, *_field("positive number", above=0.0)]
Weight = Annotated[float, *_field("weight", at_most=1e9)]
Probability = Annotated[Number, *_field("positive probability", above=0.0, at_most=1.0)]
Share = Annotated[
    float,
    PlainValidator(_share),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": "share"}),
]
Count = Annotated[int, *_count("whole number", 0)]
AtLeastOne = Annotated[int, *_count("positive whole number", 1)]


def is_scalar(value: Number) -> bool:
    """Whether a value is a single number, not an array of draws."""
    return not isinstance(value, np.ndarray)


def finite(value: Number) -> bool:
    """Whether every element is finite."""
    return bool(np.isfinite(value).all()) if isinstance(value, np.ndarray) else math.isfinite(value)
