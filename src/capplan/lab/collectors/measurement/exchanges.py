"""Repeated exchanges over one connection: their latencies, and figures of a list of values with their intervals."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Sequence
from math import sqrt
from statistics import fmean, stdev

import numpy as np
from scipy.stats import t as student

_TIMEOUT_S = 30.0
_CHUNK = 1 << 16
QUANTILES = {"minimum": 0.0, "p50": 0.5, "p99": 0.99, "maximum": 1.0}
"""Statistics of exchanges, as shares."""
_BEHIND = 10  # values beyond a quantile that is stated


def connect(address: str, port: int) -> socket.socket:
    """Connect without delaying small messages."""
    found = socket.create_connection((address, port), timeout=_TIMEOUT_S)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly so many bytes.

    Raises
    ------
    ConnectionError
        If the other end closes before.
    """
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(min(_CHUNK, size - len(found)))
        if not chunk:
            raise ConnectionError("the server closed the connection")
        found += chunk
    return bytes(found)


def echo_times_s(connection: socket.socket, message: bytes, count: int) -> list[float]:
    """Send a message and wait for its echo, so many times; return each time in seconds."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        connection.sendall(message)
        receive(connection, len(message))
        found.append(time.perf_counter() - began)
    return found


def quantiles(values: Sequence[float]) -> Iterable[tuple[str, float]]:
    """Yield statistics of values by name; none that rests on a few of them."""
    for name, share in QUANTILES.items():
        if name != "p99" or len(values) * (1 - share) >= _BEHIND:
            yield name, float(np.quantile(values, share))


def mean_interval(values: Sequence[float], error: float = 0.0) -> tuple[float, float, float]:
    """Return a mean and its 95 % interval: the scatter of the values, and an error that all of them may have."""
    mean, half = fmean(values), error
    if len(values) > 1:
        half += float(student.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half
