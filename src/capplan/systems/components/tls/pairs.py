"""How much more TLS costs in a loaded server than in a microbenchmark with hot caches, from pairs with and without TLS.

A pair of throughputs and the number of cores behind them give the CPU time of TLS per request; divided by the floor of
BoringSSL for the same messages, this is the *load factor*. Each system gives one factor. `backtest` predicts every
pair by the factors of the other systems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from capplan.systems.components.tls.floor import BORINGSSL, floor, handshake_s, table

Kind = Literal["message", "handshake"]
TAIL = 0.95  # bands reach from the 5th to the 95th percentile


class Spread(NamedTuple):
    """A lognormal factor.

    Attributes
    ----------
    median : float
        Median.
    log_sd : float
        Standard deviation of the natural logarithm.
    """

    median: float
    log_sd: float

    def at(self, level: float) -> float:
        """Return a quantile."""
        return self.median * float(np.exp(self.log_sd * norm.ppf(level)))


@dataclass(frozen=True)
class Backtest:
    """One pair, predicted by the load factors of the other systems.

    Attributes
    ----------
    kind : {"message", "handshake"}
        What the pair measures.
    system, axis : str
        The pair, as in `pairs.csv`.
    floor_s, measured_s : float
        CPU time of TLS per request: by the floor of BoringSSL, and as measured; seconds.
    predicted_s : tuple of float
        The same as predicted, seconds: 5th percentile, median and 95th percentile.
    measured_ratio : float
        Throughput with TLS over that without; nan if only that with TLS is known.
    predicted_ratio : tuple of float
        The ratio as predicted: 5th percentile, median and 95th percentile.
    fitted : bool
        Whether the pair enters the prior.
    reason : str
        Why it does not.
    """

    kind: Kind
    system: str
    axis: str
    floor_s: float
    measured_s: float
    predicted_s: tuple[float, float, float]
    measured_ratio: float
    predicted_ratio: tuple[float, float, float]
    fitted: bool
    reason: str

    @property
    def inside(self) -> bool:
        """Whether the measured time is in the predicted band."""
        return self.predicted_s[0] <= self.measured_s <= self.predicted_s[2]


@lru_cache
def load_factor(kind: Kind, without: str | None = None) -> Spread:
    """Return the load factor of messages or handshakes, without that of one system if it is named.

    The width is such that 90 % of the lognormal lie in the band of a further system by Student's t.
    """
    rows = _pairs()
    used = rows[(rows.kind == kind) & (rows.use == "fit") & (rows.system != without)]
    return spread(list(used.measured_s / used.floor_s))


def spread(factors: Sequence[float]) -> Spread:
    """Return the lognormal that predicts one more of some factors, given at least two."""
    logs, count = np.log(factors), len(factors)
    width = np.std(logs, ddof=1) * np.sqrt(1 + 1 / count)
    return Spread(float(np.exp(logs.mean())), float(width * t.ppf(TAIL, count - 1) / norm.ppf(TAIL)))


def backtest() -> list[Backtest]:
    """Return every comparable pair with its prediction, in the order of `readings.csv`."""
    return [_predicted(row) for _, row in _pairs().iterrows()]


def _predicted(row: pd.Series) -> Backtest:
    factor = load_factor(row.kind, row.system)
    low, middle, high = (row.floor_s * factor.at(level) for level in (1 - TAIL, 0.5, TAIL))
    most, ratio, least = (1 / (1 + row.plain * each / row.cores) for each in (low, middle, high))
    return Backtest(
        row.kind,
        row.system,
        row.axis,
        row.floor_s,
        row.measured_s,
        (low, middle, high),
        row.encrypted / row.plain,
        (least, ratio, most),
        row.use == "fit",
        "" if pd.isna(row.reason) else row.reason,
    )


@lru_cache(maxsize=1)
def _pairs() -> pd.DataFrame:
    """Return the readings with the pairs that they are about, and their times per request."""
    rows = table("readings").merge(table("pairs"), on=["system", "axis"], validate="one_to_one")
    plain_s = (row_cores := rows.cores) / rows.plain
    rows["measured_s"] = row_cores / rows.encrypted - plain_s.fillna(0.0)
    rows["floor_s"] = [_floor_s(row) for _, row in rows.iterrows()]
    return rows


def _floor_s(row: pd.Series) -> float:
    if row.kind == "handshake":
        (modern,) = handshake_s(BORINGSSL, row.certificate, "TLSv1.3")
        return float(row.ends * modern)
    own = floor(BORINGSSL)
    return float(row.ends * (own.message_s + row.bytes * own.byte_s))
