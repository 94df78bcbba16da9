"""What a collector is: the figures that it measures, the model parameter that they are for, and its bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

from hdrh.histogram import HdrHistogram

from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.models.errors import InputError, nearest

SCHEMA = "capplan.collection/1"
Progress = Callable[[str, int, int], None]
"""Receives what is done, how much of it is finished, and how much there is."""


@dataclass(frozen=True)
class Settings:
    """What a measurement may take, and what it asks for.

    Attributes
    ----------
    duration_s : float
        Time of each run, without its warm-up.
    requests : int
        Most requests of a run.
    warm_up_s : float
        Most time to wait until the speed is steady.
    level : str
        Consistency level.
    row_bytes : int
        Bytes of a row's value.
    clients : tuple of int
        Clients of each closed run.
    shares : tuple of float
        Rate of each open run, as a share of what the closed run with most clients completes.
    repeats : int
        How often each run is made.
    seed : int
        Seed of arrivals and of keys.
    """

    duration_s: float = 5.0
    requests: int = 200_000
    warm_up_s: float = 40.0
    level: str = "LOCAL_ONE"
    row_bytes: int = 100
    clients: tuple[int, ...] = (1, 4, 16)
    shares: tuple[float, ...] = (0.2, 0.5, 0.8)
    repeats: int = 1
    seed: int = 1


@dataclass(frozen=True)
class Timed:
    """A histogram of latencies in ns, and the time that it is about, in seconds since 1970."""

    tag: str
    began_s: float
    ended_s: float
    histogram: HdrHistogram


@dataclass(frozen=True)
class Collected:
    """What a collector has measured.

    Attributes
    ----------
    load_tests : tuple of LoadTestRow
        What clients saw.
    microbenchmarks : tuple of MicrobenchRow
        What parts cost.
    histograms : tuple of Timed
        Every latency of the load tests.
    remarks : tuple of str
        What a reader must know, in sentences.
    """

    load_tests: tuple[LoadTestRow, ...] = ()
    microbenchmarks: tuple[MicrobenchRow, ...] = ()
    histograms: tuple[Timed, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Files:
    """Where a collection is.

    Attributes
    ----------
    load_tests
        Its load-test table, if it has load tests.
    microbenchmarks
        Its table of microbenchmarks, if it has any.
    histograms
        Its HdrHistogram log, if it has load tests.
    """

    load_tests: str | None = None
    microbenchmarks: str | None = None
    histograms: str | None = None


@dataclass(frozen=True)
class Collection:
    """What `collect --json` prints.

    Attributes
    ----------
    collector
        What measured.
    parameter
        The model parameter that the figures are for.
    files
        Where they are.
    remarks
        What a reader must know, in sentences.
    """

    collector: str
    parameter: str
    files: Files
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Collector:
    """A measurement.

    Attributes
    ----------
    about : str
        What it measures.
    parameter : str
        The model parameter that the figures are for, and how they give it.
    module : str
        Where its function `collect(settings, progress)` is.
    uses : frozenset of str
        The settings that it reads.
    """

    about: str
    parameter: str
    module: str
    uses: frozenset[str] = field(default_factory=frozenset)

    def collect(self, settings: Settings, progress: Progress) -> Collected:
        """Measure."""
        function: Callable[[Settings, Progress], Collected] = import_module(self.module).collect
        return function(settings, progress)


_LOAD = frozenset({"duration", "requests", "warm_up", "level", "row_bytes", "clients", "rates", "repeats", "seed"})
_SERVER = frozenset({"duration", "requests", "warm_up", "clients", "rates", "seed"})
_PACKAGE = __name__.rpartition(".")[0]
COLLECTORS = {
    "cassandra-write": Collector(
        "latency and CPU of writes at several loads, closed and open",
        "CPU of a node for one write: coordinator + RF x mutation + messages, with the share that no request waits for",
        f"{_PACKAGE}.cassandra_write",
        _LOAD,
    ),
    "cassandra-read": Collector(
        "latency and CPU of reads at several loads, closed and open",
        "CPU of a node for one read: coordinator + read + messages, with the share that no request waits for",
        f"{_PACKAGE}.cassandra_read",
        _LOAD,
    ),
    "client": Collector(
        "the ceiling of the load generator itself",
        "client: CPU of the generator for one request, and the rate at which its thread is busy",
        f"{_PACKAGE}.client",
        frozenset({"duration", "requests", "clients", "seed"}),
    ),
    "rtt": Collector(
        "the round trip between data centres, and within one",
        "rtt: the delay of an exchange between data centres",
        f"{_PACKAGE}.rtt",
        frozenset({"requests"}),
    ),
    "tls": Collector(
        "handshake, message and KiB with and without TLS",
        "encryption: CPU of a handshake, of a message and of a KiB at each end",
        f"{_PACKAGE}.tls",
    ),
    "worker-pool": Collector(
        "threads for clients when all of them wait for another data centre",
        "threads: how many requests a node has under way, and what a thread loses between two of them",
        f"{_PACKAGE}.worker_pool",
        frozenset({"duration", "requests", "warm_up", "row_bytes", "repeats", "seed"}),
    ),
    "grpc": Collector(
        "a single call against a message of an open stream, echoed by a server of its own",
        "front: what unary calls cost more than streams, in the masters of arion",
        f"{_PACKAGE}.servers.grpc",
        frozenset({"duration", "requests", "clients"}),
    ),
    "radius": Collector(
        "an authentication at a FreeRADIUS of its own, and one that it passes on to a second one",
        "front_s of openprovider: the least CPU of a front node for a message, and what a proxied one costs more",
        f"{_PACKAGE}.servers.radius",
        _SERVER,
    ),
    "ldap": Collector(
        "a search and a bind at a slapd of its own",
        "ldap_s of openprovider: its part without the network, and the CPU of a look-up at the LDAP server",
        f"{_PACKAGE}.servers.ldap",
        _SERVER,
    ),
    "hazelcast": Collector(
        "a lookup, and a hundred of them at once, at a member of its own",
        "service_s and hazelcast_record_s of arion: Hazelcast's share of a lookup, and its time for a record",
        f"{_PACKAGE}.servers.hazelcast",
        _SERVER,
    ),
    "cassandra-coordinator": Collector(
        "what nodes count of their own work: requests, thread pools, pauses of Java",
        "pauses: how often Java stops a node and for how long; threads: how full the pools of a node are",
        f"{_PACKAGE}.cassandra_coordinator",
    ),
}
"""The collectors by name."""


def find_collector(name: str) -> Collector:
    """Return a collector by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in COLLECTORS:
        raise InputError(f"{name!r} is not a collector{nearest(name, COLLECTORS)}")
    return COLLECTORS[name]
