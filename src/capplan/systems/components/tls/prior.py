"""The prior of TLS's cost on a system that was never measured with it.

Cost at one side = floor (between BoringSSL and JDK) x load factor (from public pairs) x core factor (a guess).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import norm
from scipy.stats.qmc import LatinHypercube

from capplan.models.cassandra.encryption import End
from capplan.models.language.parameter import Parameter
from capplan.models.language.units import Number
from capplan.systems.components.tls.floor import BORINGSSL, JDK, Floor, floor
from capplan.systems.components.tls.pairs import TAIL, Spread, load_factor

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
    """Draw the work of TLS, stratified in every dimension, the same for every system.

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
    """Return BoringSSL's floor as measured, and JDK's cost with the load and core factors at their 95th percentile."""
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
