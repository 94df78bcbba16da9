"""Numbers with units at the edge of the house: text such as `1.5ms` or `16KiB` in, SI out.

Inside capplan every number is SI (seconds, per second, bytes). A field of the language takes a number in SI, a
text with a unit, or (from Python, for the analytic solver) an array of parameter draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from capplan.models.errors import InputError, nearest

FloatArray = NDArray[np.float64]
Number = float | FloatArray

DURATIONS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}
RATES_PER_S = {"/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600}
SIZES_BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "TiB": 2.0**40,
}
LENGTHS_M = {"m": 1.0, "km": 1e3}

_WRITTEN = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|nan))\s*(\S*)\s*")


def _parse(text: str, units: dict[str, float], what: str, default: str) -> float:
    """Read `text` as a number and one of `units`; a bare number is in the unit `default`."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise InputError(f"{text!r} is not a {what}: write a number and a unit, such as '1.5{default}'")
    unit = match[2] or default
    if unit not in units:
        raise InputError(f"{text!r} is not a {what}: unit {unit!r} is unknown{nearest(unit, units)}")
    return float(match[1]) * units[unit]


def parse_duration_s(text: str, default: str = "s") -> float:
    """Read a duration such as `1.5ms`, `2s`, `15m`; in seconds."""
    return _parse(text, DURATIONS_S, "duration", default)


def parse_rate_per_s(text: str) -> float:
    """Read a rate such as `7000`, `7000/s` or `90/min`; per second."""
    return _parse(text, RATES_PER_S, "rate", "/s")


def parse_size_bytes(text: str) -> float:
    """Read a size such as `300B`, `16KiB`, `8GB`; in bytes."""
    return _parse(text, SIZES_BYTES, "size", "B")


def parse_length_m(text: str, default: str = "km") -> float:
    """Read a distance such as `150km`; in metres. A bare number is in kilometres."""
    return _parse(text, LENGTHS_M, "distance", default)


def check_number(value: Any, what: str, at_least: float = 0.0, above: float | None = None) -> Number:
    """Check that every element of `value` is a number within bounds (infinity is allowed, NaN is not)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.ndarray, np.floating, np.integer)):
        raise InputError(f"{value!r} is not a number: {what} takes a number or a text with a unit")
    array = np.asarray(value, dtype=np.float64)
    if np.isnan(array).any():
        raise InputError(f"nan is not a {what}: give a number")
    if above is not None and bool((array <= above).any()):
        raise InputError(f"{np.min(array):g} is not a {what}: it must be above {above:g}")
    if bool((array < at_least).any()):
        raise InputError(f"{np.min(array):g} is not a {what}: it must be at least {at_least:g}")
    return float(array) if array.ndim == 0 else array


def _field(parse: Callable[[str], float] | None, what: str, above: float | None = None) -> Any:
    """Annotations that validate a field in SI, read text with units, and describe it in the JSON schema."""

    def validate(value: Any) -> Number:
        if isinstance(value, str) and parse is not None:
            value = parse(value)
        return check_number(value, what, above=above)

    def serialize(value: Number) -> float:
        if isinstance(value, np.ndarray):
            raise InputError(f"a {what} that holds {value.size} parameter draws cannot be written to a file")
        return value

    bound: dict[str, Any] = {"minimum": 0} if above is None else {"exclusiveMinimum": above}
    number: dict[str, Any] = {"type": "number", **bound}
    schema = number if parse is None else {"anyOf": [number, {"type": "string"}]}
    return PlainValidator(validate), PlainSerializer(serialize), WithJsonSchema({**schema, "description": what})


Seconds = Annotated[Number, *_field(parse_duration_s, "duration in seconds")]
PerSecond = Annotated[Number, *_field(parse_rate_per_s, "rate per second")]
Bytes = Annotated[Number, *_field(parse_size_bytes, "size in bytes")]
Positive = Annotated[Number, *_field(None, "positive number", above=0.0)]
NonNegative = Annotated[Number, *_field(None, "number")]


def is_scalar(value: Number) -> bool:
    """Tell a plain number from an array of draws."""
    return not isinstance(value, np.ndarray)


def finite(value: Number) -> bool:
    """Whether every element is finite."""
    return bool(np.isfinite(value).all()) if isinstance(value, np.ndarray) else math.isfinite(value)
