"""Inputs of a demand that are numbers, or lie between two ends, and where its defaults come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import PlainValidator, WithJsonSchema

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray, check_number, parse_share, parse_size_bytes
from capplan.models.results import Band, Parts

_Z95 = 1.6448536269514722  # 95th percentile of the normal distribution
_LEVELS = (0.05, 0.5, 0.95)
DRAWS = 2047
"""Draws of each uncertain input; odd, so that the median is one of them."""


class Between(NamedTuple):
    """A positive input: its 5th and 95th percentile, equal where it is exact. Its logarithm is normal between them."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The median."""
        return self.low if self.low == self.high else float(np.sqrt(self.low * self.high))

    def draws(self, seed: int, number: int, at_most: float = np.inf) -> FloatArray:
        """Return stratified draws, at most `at_most`; inputs with other numbers are independent.

        Parameters
        ----------
        seed : int
            Seed of all inputs.
        number : int
            Number of the input.
        at_most : float
            What the input cannot exceed.

        Returns
        -------
        array (DRAWS,)
        """
        if self.low == self.high:
            return np.full(DRAWS, self.low)
        from scipy import special  # slow to import

        levels = (np.random.default_rng([seed, number]).permutation(DRAWS) + 0.5) / DRAWS
        centre, spread = np.log(self.low * self.high) / 2, np.log(self.high / self.low) / (2 * _Z95)
        return np.asarray(np.minimum(np.exp(centre + spread * special.ndtri(levels)), at_most))


def band_of(draws: FloatArray) -> Band:
    """Return the median and the 90 % band of a figure over the draws of its inputs; they may be infinite."""
    low, value, high = (float(each) for each in np.quantile(draws, _LEVELS, method="inverted_cdf"))
    half = (high - low) / 2 if np.isfinite(high) else None
    return Band(value, low, high, Parts(parameter=half))


def _growth(text: str) -> float:
    number = text.strip().removesuffix("%").strip()
    try:
        return float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise InputError(f"{text!r} is not a growth per year: write a percentage such as '20%'") from None


def _between(what: str, parse: Callable[[str], float] | None, above: float | None, at_most: float) -> Any:
    """Return annotations of a field that takes a number, or a low and a high end in a list."""

    def one(value: Any) -> float:
        number = parse(value) if isinstance(value, str) and parse is not None else value
        return float(np.max(check_number(number, what, above=above, at_most=at_most, bounded=True)))

    def read(value: Any) -> Between:
        if not isinstance(value, (list, tuple)):
            return Between(one(value), one(value))
        if len(value) != 2:
            raise InputError(f"a list of {len(value)} is not a {what}: give one number, or its low and high end")
        low, high = one(value[0]), one(value[1])
        if low > high:
            raise InputError(f"[{value[0]}, {value[1]}] is not a {what}: give the low end first")
        return Between(low, high)

    item: dict[str, Any] = {"type": ["number", "string"]}
    schema = {"anyOf": [item, {"type": "array", "items": item, "minItems": 2, "maxItems": 2}], "description": what}
    return PlainValidator(read), WithJsonSchema(schema)


Sizes = Annotated[Between, *_between("size in bytes", parse_size_bytes, 0.0, np.inf)]
Shares = Annotated[Between, *_between("share above 0", parse_share, 0.0, 1.0)]
Counts = Annotated[Between, *_between("number above 0", None, 0.0, np.inf)]
Growth = Annotated[Between, *_between("growth per year", _growth, -1.0, 10.0)]


def growth_factors(growth: Between, seed: int, number: int) -> FloatArray:
    """Return draws of the factor of one year (DRAWS,)."""
    return Between(1 + growth.low, 1 + growth.high).draws(seed, number)


GUESS = "guess"


@dataclass(frozen=True)
class Assumption:
    """An input that the file leaves out.

    Attributes
    ----------
    key
        Its place in the file, such as `busy_hour.interim_s`.
    value
        The default, as it would be written in the file.
    source
        Where it comes from; `guess` where it has no source.
    """

    key: str
    value: str
    source: str


INTERIM_S = 600.0
BOOT_SHARES = ((5.0, 15.0, 0.2), (15.0, 45.0, 0.5), (45.0, 90.0, 0.3))
"""From, to (s) and share of the devices that have booted in between."""
HEADROOM = {"STCS": 0.5, "LCS": 0.1}
"""Share of the disk that compaction needs free, by strategy."""
COMPRESSION = Between(0.25, 0.75)
USABLE = Between(0.9, 0.9)
BUSY_SHARE = Between(0.08, 0.15)

SOURCES = {
    "busy_hour.interim_s": "RFC 2869, section 5.16: an interval should not be below 600 s",
    "busy_hour.authentication_requests": "RFC 2865: one Access-Request for PAP or CHAP; EAP takes several (RFC 3579)",
    "busy_hour.lengths": GUESS,
    "busy_hour.share_of_day": GUESS,
    "reattach.share": GUESS,
    "reattach.window_s": GUESS,
    "reattach.boot": "openRadius load test report, aa1f32b: its power-outage case, one AAA test",
    "connections.within_s": GUESS,
    "data.rows": GUESS,
    "data.compaction": "Apache Cassandra documentation: STCS is the default compaction strategy",
    "data.headroom.STCS": "DataStax support FAQ on STCS: half of the disk in the worst case",
    "data.headroom.LCS": "J. Ellis, Leveled compaction in Apache Cassandra (2011): at most 10 % of obsolete rows",
    "data.compression": "DataStax documentation: 2x to 4x smaller (Cassandra 2.2), 25 to 33 % smaller (DSE 5.1)",
    "data.usable": "DataStax documentation of Cassandra 1.2, usable disk capacity: formatting takes 10 %",
}


def assumed(key: str, value: Any, variant: str = "") -> Assumption:
    """Return a default with its source."""
    return Assumption(key, str(value), SOURCES[f"{key}.{variant}" if variant else key])
