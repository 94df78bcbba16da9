"""The floor of TLS's cost: CPU time at one side of a link, from a microbenchmark with hot caches (source `tls-netty`).

The measured time of a message grows linearly with its bytes. A regression by provider gives the cost of a message and
that of a byte, for sender and receiver together; each side gets half. The work of the same message without TLS is
subtracted first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np
import pandas as pd

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
    """Return a table of evidence beside this file."""
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
    """Return the measured CPU times of a handshake at one side, seconds; of a certificate and a protocol, or of all."""
    measured = table("handshakes")
    chosen = measured.provider == provider
    for column, wanted in (("certificate", certificate), ("protocol", protocol)):
        if wanted is not None:
            chosen &= measured[column] == wanted
    return measured[chosen].cpu_us * 1e-6 / SIDES
