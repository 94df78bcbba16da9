"""The cost of TLS: the prior of its work from measured pairs, and the minimum cost of a cipher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm, t
from scipy.stats.qmc import LatinHypercube

from capplan.models.cassandra.encryption import End
from capplan.models.language.parameter import Parameter
from capplan.models.language.units import Number

SIDES = 2  # the measured process was sender and receiver
BORINGSSL, JDK = "BoringSSL", "JDK"
"""Providers of TLS: the ends of the band."""
_PLAIN = "none"


@dataclass(frozen=True)
class Floor:
    """CPU time of TLS at one side of a link, with its standard error.

    Attributes
    ----------
    message_s, message_error_s : float
        Per message, sent or received, seconds.
    byte_s, byte_error_s : float
        Per byte of a message, seconds.
    handshake_s : float
        Per full handshake, seconds: the geometric mean over protocols and certificates.
    handshakes_s : tuple of float
        The least and the most of these.
    """

    message_s: float
    message_error_s: float
    byte_s: float
    byte_error_s: float
    handshake_s: float
    handshakes_s: tuple[float, float]


def table(name: str) -> pd.DataFrame:
    """Return an evidence table from this folder."""
    with (files(__package__) / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, na_values=[""])


@lru_cache
def floor(provider: str) -> Floor:
    """Return the floor of a provider, TLS 1.2 and 1.3 together.

    Lines are fitted by least squares, weighted by the measured quartiles; standard errors come from the residuals.
    """
    measured = table("messages")
    plain = measured[measured.provider == _PLAIN].set_index("bytes").cpu_us
    own = measured[measured.provider == provider]
    extra_s = (own.cpu_us - own.bytes.map(plain)) * 1e-6 / SIDES
    (byte_s, message_s), errors = np.polyfit(own.bytes, extra_s, 1, w=1 / (own.q3_us - own.q1_us), cov=True)
    byte_error_s, message_error_s = np.sqrt(np.diag(errors))
    handshakes = handshake_s(provider)
    return Floor(
        float(message_s),
        float(message_error_s),
        float(byte_s),
        float(byte_error_s),
        float(np.exp(np.log(handshakes).mean())),
        (float(handshakes.min()), float(handshakes.max())),
    )


def handshake_s(provider: str, certificate: str | None = None, protocol: str | None = None) -> pd.Series[float]:
    """Return the measured CPU times of a handshake at one side, seconds; for one certificate and protocol, or all."""
    measured = table("handshakes")
    chosen = measured.provider == provider
    for column, wanted in (("certificate", certificate), ("protocol", protocol)):
        if wanted is not None:
            chosen &= measured[column] == wanted
    return measured[chosen].cpu_us * 1e-6 / SIDES


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


@lru_cache
def load_factor(kind: Kind, without: str | None = None) -> Spread:
    """Return the load factor of messages or handshakes, excluding one system if it is named.

    The width is such that 90 % of the lognormal lie in the band of a further system by Student's t.
    """
    rows = pairs()
    used = rows[(rows.kind == kind) & (rows.use == "fit") & (rows.system != without)]
    return spread(list(used.measured_s / used.floor_s))


def spread(factors: Sequence[float]) -> Spread:
    """Return the lognormal prediction for one more factor, given at least two factors."""
    logs, count = np.log(factors), len(factors)
    width = np.std(logs, ddof=1) * np.sqrt(1 + 1 / count)
    return Spread(float(np.exp(logs.mean())), float(width * t.ppf(TAIL, count - 1) / norm.ppf(TAIL)))


@lru_cache(maxsize=1)
def pairs() -> pd.DataFrame:
    """Return the readings with their pairs and times per request."""
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


LOAD, HANDSHAKE_LOAD, CORE, ROW, FRAMES = (
    "tls_load_factor",
    "tls_handshake_load_factor",
    "tls_core_factor",
    "tls_row_bytes",
    "tls_frame_bytes",
)


@dataclass(frozen=True)
class Work:
    """Work of encryption at one side of a link, in seconds of a core of the system.

    Attributes
    ----------
    message_s : number or array (draws,)
        Per message, sent or received.
    byte_s : number or array (draws,)
        Per byte.
    handshake_s : number or array (draws,)
        Per full handshake.
    data_bytes : number or array (draws,)
        Bytes of an exchange: a request and its answer, one of which carries a row.
    """

    message_s: Number
    byte_s: Number
    handshake_s: Number
    data_bytes: Number

    @property
    def exchange_s(self) -> Number:
        """The work of one exchange: two messages and their bytes."""
        return End(self.message_s, self.byte_s).exchange(self.data_bytes)


@lru_cache(maxsize=1)
def parameters() -> Mapping[str, Parameter]:
    """Return the parameters of TLS by name; the position between BoringSSL and JDK is uniform and not among them."""
    load, handshake = load_factor("message"), load_factor("handshake")
    all_parameters = (
        Parameter(
            LOAD,
            load.median,
            "1",
            "prior",
            load.log_sd,
            "work per message in loaded servers over that with hot caches: four public pairs with and without TLS",
        ),
        Parameter(
            HANDSHAKE_LOAD,
            handshake.median,
            "1",
            "prior",
            handshake.log_sd,
            "the same for full handshakes: three public pairs and rates",
        ),
        Parameter(
            CORE,
            2.0,
            "1",
            "guess",
            0.7,
            "time on a core of the system over that on the measured cores (2019 to 2026): 0.6 to 6 times, for older "
            "processors, hypervisors and JDKs; the service times of these systems are that much longer",
        ),
        Parameter(ROW, 1024.0, "B", "guess", 0.7, "data of a row: 0.3 to 3.2 KiB"),
        Parameter(
            FRAMES, 200.0, "B", "guess", 0.0, "a request and its answer without the row: headers, statement, key"
        ),
    )
    return {each.name: each for each in all_parameters}


def draws(count: int, *, kernel: bool = False) -> Work:
    """Draw the work of TLS, stratified in every dimension; the draws are the same for every system.

    Parameters
    ----------
    count : int
        Number of draws; the middle of the prior if 1.
    kernel : bool
        Whether a VPN in the kernel encrypts instead; see `work`.
    """
    seeded = np.random.default_rng(2026)
    unit = LatinHypercube(len(parameters()), scramble=False, rng=seeded).random(count).T
    free = (each for each in parameters().values() if each.free)
    values = {
        each.name: each.value * np.exp(each.log_sd * norm.ppf(level))
        for each, level in zip(free, unit[1:], strict=True)
    }
    return work(unit[0], values, kernel=kernel)


def bounds(*, kernel: bool = False) -> tuple[Work, Work]:
    """Return BoringSSL's measured floor, and JDK's cost with load and core factors at their 95th percentile."""
    of = parameters()

    def most(name: str) -> float:
        both = Spread(of[name].value * of[CORE].value, float(np.hypot(of[name].log_sd, of[CORE].log_sd)))
        return both.at(TAIL)

    low, high = {LOAD: 1.0, HANDSHAKE_LOAD: 1.0}, {LOAD: most(LOAD), HANDSHAKE_LOAD: most(HANDSHAKE_LOAD)}
    least, greatest = (
        work(position, {**factors, CORE: 1.0, ROW: of[ROW].value}, kernel=kernel)
        for position, factors in ((0.0, low), (1.0, high))
    )
    return least, greatest


def work(position: Number, values: Mapping[str, Number], *, kernel: bool = False) -> Work:
    """Return the work at one side.

    Parameters
    ----------
    position : number or array (draws,)
        Place between BoringSSL, 0, and JDK, 1, on a logarithmic scale.
    values : mapping
        Values of the free parameters.
    kernel : bool
        Whether a VPN in the kernel encrypts instead. Nothing recent was measured: a message costs between nothing and
        what it costs with BoringSSL, in proportion to `position`; a byte costs what it costs there; and clients that
        reconnect make no handshake.
    """
    low, high = floor(BORINGSSL), floor(JDK)
    factor, handshake = values[LOAD] * values[CORE], values[HANDSHAKE_LOAD] * values[CORE]
    data = values[ROW] + parameters()[FRAMES].value
    if kernel:
        return Work(low.message_s * position * factor, low.byte_s * factor, 0.0 * factor, data)
    return Work(
        _between(low, high, "message_s", position) * factor,
        _between(low, high, "byte_s", position) * factor,
        _between(low, high, "handshake_s", position) * handshake,
        data,
    )


def _between(low: Floor, high: Floor, name: str, position: Number) -> Number:
    least, most = float(getattr(low, name)), float(getattr(high, name))
    return least * (most / least) ** position
