"""Clients that time out and try again: what they do unless told otherwise, and a network with such clients.

A request whose client has given up still uses the servers that it queued for: nobody tells them. That is how retries
add load where there is too much of it already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.traffic import RequestClass, Retry


@dataclass(frozen=True)
class Clients:
    """When clients give up an attempt, and when they try again.

    Attributes
    ----------
    timeout_s
        Time until a client gives up an attempt, in seconds; null: never.
    attempts
        Number of attempts, the first one included.
    backoff_s
        Wait after the first timeout or drop, in seconds.
    backoff_factor
        Factor of the wait from each attempt to the next.
    """

    timeout_s: float | None
    attempts: int
    backoff_s: float = 0.0
    backoff_factor: float = 1.0

    @property
    def span_s(self) -> float:
        """Time from the first attempt until the client gives up for good, in seconds."""
        waits = sum(self.backoff_s * self.backoff_factor**number for number in range(self.attempts - 1))
        return (self.timeout_s or 0.0) * self.attempts + waits

    def starts_s(self) -> tuple[float, ...]:
        """Return when attempts start if all time out, in seconds from the first."""
        starts = [0.0]
        for number in range(self.attempts - 1):
            starts.append(starts[-1] + (self.timeout_s or 0.0) + self.backoff_s * self.backoff_factor**number)
        return tuple(starts)


RADIUS = Clients(timeout_s=2.0, attempts=4, backoff_s=0.6, backoff_factor=3.1)
"""Retransmission of RFC 5080, section 2.2.1, for Access-Request packets: first after 2 s (IRT), then each time twice as
long up to 16 s (MRT), at most 5 transmissions (MRC) and 30 s (MRD). That makes transmissions 0, 2, 6 and 14 s after the
first. Timeouts are equal here, so that they come 0, 2.6, 6.5 and 14.2 s after it."""
DRIVER = Clients(timeout_s=2.0, attempts=1)
"""Version 4 of the Java driver for Cassandra: a request times out after 2 s (`basic.request.timeout`), and the default
retry policy does not send it again then."""
PATIENT = Clients(timeout_s=None, attempts=1)
"""Clients that wait for every answer, as those of a network file that says nothing else."""


@dataclass(frozen=True)
class ClientOptions:
    """What is asked of clients; None where nothing is.

    Attributes
    ----------
    timeout_s, attempts, backoff_s, backoff_factor
        As in `Clients`.
    """

    timeout_s: float | None = None
    attempts: int | None = None
    backoff_s: float | None = None
    backoff_factor: float | None = None


def clients_of(network: Network, asked: ClientOptions, usual: Clients) -> Clients:
    """Return the clients of a network: as asked, else as its classes have them, else the usual ones.

    Classes may differ; the answer is that of the class with the most attempts, which can add the most load.

    Raises
    ------
    InputError
        If there is less than one attempt.
    """
    return max((_clients(each, asked, usual) for each in network.classes), key=lambda each: each.attempts)


def with_clients(network: Network, asked: ClientOptions, usual: Clients) -> Network:
    """Return a network in which each class has its clients; see `clients_of`."""
    return replace(network, classes=tuple(_with(each, _clients(each, asked, usual)) for each in network.classes))


def _clients(request: RequestClass, asked: ClientOptions, usual: Clients) -> Clients:
    retry = request.retry
    own = usual
    if request.timeout_s is not None or retry is not None:
        own = Clients(
            None if request.timeout_s is None else float(np.max(request.timeout_s)),
            1 if retry is None else int(retry.attempts),
            0.0 if retry is None else float(np.max(retry.backoff_s)),
            1.0 if retry is None else float(np.max(retry.factor)),
        )
    found = Clients(
        own.timeout_s if asked.timeout_s is None else asked.timeout_s,
        own.attempts if asked.attempts is None else asked.attempts,
        own.backoff_s if asked.backoff_s is None else asked.backoff_s,
        own.backoff_factor if asked.backoff_factor is None else asked.backoff_factor,
    )
    if found.attempts < 1:
        raise InputError(f"{found.attempts} attempts: there is at least the first, so give 1 or more")
    return found


def _with(request: RequestClass, clients: Clients) -> RequestClass:
    retry = None
    if clients.attempts > 1:
        retry = Retry(clients.attempts, clients.backoff_s, clients.backoff_factor)
    return replace(request, timeout_s=clients.timeout_s, retry=retry)
