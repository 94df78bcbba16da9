"""The contract of a collector: the figures that it measures, the model parameter that they inform, and its bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol

from hdrh.histogram import HdrHistogram

from capplan.answers.verb_answer import VerbAnswer
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.files import replace_file

Progress = Callable[[str, int, int], None]
"""Receives what is done, how much of it is finished, and how much there is."""
_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Settings:
    """The limits and parameters of a measurement.

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

    duration_s: float = 15.0
    requests: int = 10_000_000
    warm_up_s: float = 120.0
    level: str = "LOCAL_ONE"
    row_bytes: int = 100
    clients: tuple[int, ...] = (1, 4, 16)
    shares: tuple[float, ...] = (0.2, 0.5, 0.8)
    repeats: int = 1
    seed: int = 1


@dataclass(frozen=True)
class Timed:
    """A histogram of latencies in ns, and its time span in seconds since 1970."""

    tag: str
    began_s: float
    ended_s: float
    histogram: HdrHistogram


@dataclass(frozen=True)
class Collected:
    """The measurements of a collector.

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
    """The paths of a collection's files.

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
class Collection(VerbAnswer):
    """The JSON that `collect --json` prints.

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

    SCHEMA = "capplan.collection/1"

    collector: str
    parameter: str
    files: Files
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class KnownCollector:
    """A collector.

    Attributes
    ----------
    name
        Its name.
    about
        What it measures.
    parameter
        The model parameter that the figures are for, and how they give it.
    """

    name: str
    about: str
    parameter: str


@dataclass(frozen=True)
class CollectorList(VerbAnswer):
    """The JSON that `collect --json` prints without the name of a collector.

    Attributes
    ----------
    collectors
        Every collector.
    """

    SCHEMA = "capplan.collectors/1"

    collectors: tuple[KnownCollector, ...]


def write_histograms(found: Sequence[Timed], path: Path) -> None:
    """Write one line per histogram, tagged with the name of the run."""
    lines = ["#[Histogram log format version 1.3]", "# latencies in ns, from the intended start in open runs"]
    start = min(each.began_s for each in found)
    lines.append(f"#[StartTime: {start:.3f} (seconds since epoch)]")
    lines.append('"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    for each in found:
        longest_ms = each.histogram.get_max_value() / _NS_PER_MS
        times = f"{each.began_s - start:.3f},{each.ended_s - each.began_s:.3f},{longest_ms:.3f}"
        lines.append(f"Tag={each.tag},{times},{each.histogram.encode().decode('ascii')}")
    replace_file(path, "\n".join(lines) + "\n")


@dataclass(frozen=True)
class Costs:
    """The time that one request takes at each place.

    Attributes
    ----------
    client_s : float
        CPU time of the generator's thread.
    server_s : float
        CPU time of all servers.
    other_s : float
        Time that needs neither.
    """

    client_s: float
    server_s: float
    other_s: float

    @property
    def total_s(self) -> float:
        """Latency of a request without queueing."""
        return self.client_s + self.server_s + self.other_s


class Forecast(Protocol):
    """Predicts the result of a load before it runs; the caller brings one, because the lab knows no model."""

    def throughput_per_s(self, costs: Costs, cores: int, clients: int) -> float:
        """Return the throughput of closed clients without think time, requests per second."""

    def latency_s(self, costs: Costs, cores: int, rate_per_s: float) -> float:
        """Return the mean latency of open traffic with Poisson arrivals."""


@dataclass(frozen=True)
class Collector:
    """A measurement.

    Attributes
    ----------
    about : str
        What it measures.
    parameter : str
        The model parameter that the figures are for, and how they give it.
    place : str
        Module of this package and function that measures, such as `link:collect_rtt`.
    uses : frozenset of str
        The settings that it reads.
    forecasts : bool
        Whether the function takes a forecast beside settings and progress.
    """

    about: str
    parameter: str
    place: str
    uses: frozenset[str] = field(default_factory=frozenset)
    forecasts: bool = False

    @property
    def function(self) -> Callable[..., Collected]:
        """The function that measures."""
        module, _, name = self.place.partition(":")
        found: Callable[..., Collected] = getattr(import_module(f"{_PACKAGE}.{module}"), name)
        return found

    def collect(self, settings: Settings, progress: Progress, forecast: Forecast) -> Collected:
        """Measure."""
        return self.function(settings, progress, *([forecast] if self.forecasts else []))


_LOAD = frozenset({"duration", "requests", "warm_up", "level", "row_bytes", "clients", "rates", "repeats", "seed"})
_SERVER = frozenset({"duration", "requests", "warm_up", "clients", "rates", "seed"})
_PACKAGE = __name__.rpartition(".")[0]
COLLECTORS = {
    "cassandra-write": Collector(
        "latency and CPU of writes at several loads, closed and open",
        "CPU of a node for one write: coordinator + RF x mutation + messages, with the share that no request waits for",
        "cassandra:collect_writes",
        _LOAD,
    ),
    "cassandra-read": Collector(
        "latency and CPU of reads at several loads, closed and open",
        "CPU of a node for one read: coordinator + read + messages, with the share that no request waits for",
        "cassandra:collect_reads",
        _LOAD,
    ),
    "client": Collector(
        "the ceiling of the load generator itself",
        "client: CPU of the generator for one request, and the rate at which its thread is busy",
        "cassandra:collect_client",
        frozenset({"duration", "requests", "clients", "seed"}),
    ),
    "rtt": Collector(
        "the round trip between data centres, and within one",
        "rtt: the delay of an exchange between data centres",
        "link:collect_rtt",
        frozenset({"requests"}),
    ),
    "tls": Collector(
        "handshake, message and KiB with and without TLS",
        "encryption: CPU of a handshake, of a message and of a KiB at each end",
        "link:collect_tls",
    ),
    "worker-pool": Collector(
        "threads for clients when all of them wait for another data centre",
        "threads: how many requests a node has under way, and what a thread loses between two of them",
        "cassandra:collect_pool",
        frozenset({"duration", "requests", "warm_up", "row_bytes", "repeats", "seed"}),
    ),
    "grpc": Collector(
        "a single call against a message of an open stream, echoed by a server of its own",
        "front: what unary calls cost more than streams, in the masters of arion",
        "grpc:collect",
        frozenset({"duration", "requests", "clients"}),
        forecasts=True,
    ),
    "radius": Collector(
        "an authentication at a FreeRADIUS of its own, and one that it passes on to a second one",
        "front_s of openprovider: the least CPU of a front node for a message, and what a proxied one costs more",
        "radius:collect",
        _SERVER,
        forecasts=True,
    ),
    "ldap": Collector(
        "a search and a bind at a slapd of its own",
        "ldap_s of openprovider: its part without the network, and the CPU of a look-up at the LDAP server",
        "ldap:collect",
        _SERVER,
        forecasts=True,
    ),
    "hazelcast": Collector(
        "a lookup, and a hundred of them at once, at a member of its own",
        "service_s and hazelcast_record_s of arion: Hazelcast's share of a lookup, and its time for a record",
        "hazelcast:collect",
        _SERVER,
        forecasts=True,
    ),
    "cassandra-coordinator": Collector(
        "what nodes count of their own work: requests, thread pools, pauses of Java",
        "pauses: how often Java stops a node and for how long; threads: how full the pools of a node are",
        "cassandra:collect_counts",
    ),
}
"""The collectors by name."""
