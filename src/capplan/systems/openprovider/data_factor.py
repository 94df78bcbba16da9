"""How much longer Cassandra's service times are in production than in the load tests, which had fresh data.

The document expects mean times in production to be 2 to 3 times those of the tests, from more data and more SSTables
(row `all.production_factor` of the evidence). It measured none.
"""

from __future__ import annotations

import math

from capplan.calibration.situation import Factor
from capplan.models.language.units import FloatArray

DATA_FACTOR = "data_factor"
"""Name of the factor among the parameter values of a layout whose scenario gives none."""
_LOW, _HIGH = 2.0, 3.0
_PRODUCTION = Factor(math.sqrt(_LOW * _HIGH), math.log(_HIGH / _LOW) / 2 / 1.645)  # 90 % of it between the two ends
_STREAM = 2026
EXPECTED = f"{_LOW:g} to {_HIGH:g}"
DOUBLINGS = math.log2(_PRODUCTION.median)
"""How far production data are from those of the load tests, in doublings."""


def data_factors(count: int) -> FloatArray:
    """Return the factor by draw (count,); the median if there is one."""
    return _PRODUCTION.draws(count, _STREAM)
