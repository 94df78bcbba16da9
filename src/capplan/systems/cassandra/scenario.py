"""The layout of `cassandra`, any Cassandra cluster, and the traffic on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.cassandra.encryption import check_encryption
from capplan.models.cassandra.node_traffic import NodeTraffic
from capplan.models.cassandra.storage import (
    COMPRESSION,
    GIB,
    HEAP_SHARE,
    MOST_HEAP_GIB,
    USABLE,
    NodeLoad,
    fullest,
    read_compaction,
)
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.per_dc import proportions
from capplan.models.language.scenario import LARGEST, Objectives, Option, check_at_most, check_load, rate_option
from capplan.models.language.units import (
    HIGHEST_RATE,
    MILLISECONDS_TEXT,
    READ_SHARE,
    AtLeastOne,
    Number,
    PositivePerSecond,
    PositiveSeconds,
    Share,
    check_number,
    duration_text,
    parse_duration_s,
    parse_rate_per_s,
    parse_share,
    parse_size_bytes,
)
from capplan.systems.cassandra.retries import has_spare, read_retry
from capplan.systems.components.data_centres import (
    ROUND_TRIP,
    CassNodes,
    ClientShare,
    ClusterScenario,
    ConsistencyOfReads,
    ConsistencyOfWrites,
    DataCentres,
    Replicas,
)
from capplan.systems.components.data_factor import DataFactor
from capplan.systems.components.data_factor import normal_form as normal_data_factor
from capplan.systems.components.machines import Cores
from capplan.systems.components.pauses.option import Collector, Heap, ReportedGc

USUAL_ROW_BYTES = 1024.0
USUAL_CONNECTIONS, USUAL_IN_FLIGHT = 1, 1024
"""Connections to each node, and requests at most under way on one, of the Java driver 4 by default."""
MOST_CONNECTIONS = 100_000
MOST_THREADS = 100_000
STREAMS = 32_768
"""Requests that the protocol can tell apart on one connection."""
Gibibytes = Annotated[float, Field(gt=0, le=1e6)]
NODE_LIMITS = {"disk_gib": "disk", "disk_iops": "iops", "network_gbit": "network", "memory_gib": "memory"}
"""Fields that say what a node has besides cores, and the words of `NodeLoad.limits` for them."""
USUAL_COMPRESSION = math.sqrt(math.prod(COMPRESSION))
_WARM = {"warm": 1.0, "mixed": 0.5, "cold": 0.0}
_OF_DATA = ("disk_gib", "disk_iops", "memory_gib", "compaction", "compression", "headroom", "usable")
_NOTHING_GIB = 1e-9  # where there are no data, shares of them are taken of this


def read_gib(text: str) -> float:
    """Read GiB from a plain number or from a size with a unit.

    Raises
    ------
    InputError
        If it is neither.
    """
    for each in (f"{text}GiB", text):
        with suppress(InputError):
            return parse_size_bytes(each) / 2**30
    if any(map(str.isdigit, text)):
        return parse_size_bytes(text)  # which says what is wrong with the unit
    raise InputError(f"{text!r} is not a size: write GiB such as '400', or a size with its unit such as '1.5TiB'")


def _read_keep(text: str) -> float:
    """Read how long rows are kept."""
    keep_s = parse_duration_s(text, "d")
    if not keep_s > 0:
        raise InputError(f"{text!r} keeps no rows, and leaves no data: give how long a row is kept, such as 2d")
    return keep_s


def read_busiest(text: str) -> float:
    """Read how busy the busiest node is, over the mean: a number, or CPU or rates of all nodes, such as `61/48/55`.

    Of a range such as `1.1..1.5`, the high end counts.

    Raises
    ------
    InputError
        If it is neither, or below 1.
    """
    try:
        each = [float(part.strip().removesuffix("%")) for part in text.rpartition("..")[2].split("/")]
        found = each[0] if len(each) == 1 else max(each) * len(each) / sum(each)
    except (ValueError, ZeroDivisionError):
        found = math.nan
    if not 1 <= found <= MOST_BUSY:
        raise InputError(
            f"{text!r} is not how busy the busiest node is over the mean, which is 1 to {MOST_BUSY:g}: give "
            "one such as 1.3, or the CPU of each node, such as 61/48/55"
        )
    return found


MOST_BUSY = 100.0
_RATE = ("tps", "read_fraction", "clients")
_REPLACED: dict[str, tuple[str, ...]] = {"reads": _RATE, "writes": _RATE, "row": ("row_bytes",)}


def _rate(name: str, value: Any) -> float:
    """Return a stated rate, per second."""
    try:
        number = parse_rate_per_s(value) if isinstance(value, str) else value
        return float(np.max(check_number(number, "rate per second", at_most=HIGHEST_RATE)))
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


@dataclass(frozen=True, config=LANGUAGE)
class CassandraScenario(ClusterScenario):
    """A layout of a Cassandra cluster and the traffic on it.

    Data centres may differ. Where a field takes a number per data centre, one number is the same in each, and a list
    such as `[6, 6, 3]` has one for each; a list also determines `dcs` if that is not given.

    Attributes
    ----------
    system
        Name of the system.
    cluster
        Which of several clusters or versions of the load tests, as they name it; by default the first.
    dcs
        Data centres.
    cass_nodes
        Cassandra nodes per data centre.
    rf
        Replicas of each row per data centre.
    client_share
        Share of the clients of each data centre, such as `50%/30%/20%`; equal by default.
    node_cores
        Cores (vCPU) of a Cassandra node.
    one_host
        Whether all nodes share the cores of one machine, which then has `node_cores`; the load generator has its own.
    consistency_read, consistency_write
        Consistency levels.
    read_fraction
        Reads as a share of all requests, 0 to 1.
    row_bytes
        Bytes of a row's values.
    cache_state
        Page cache of the nodes when reads begin: `warm`, `cold` or `mixed`.
    data_gib
        Data on each node, its replicas included, GiB. Figures depend on it where `cache_gib` is given, too.
    cache_gib
        Page cache of a node, GiB: what its memory has beside the heap. If there are more data, reads of the rest go to
        disk: a share 1 - cache / data, for keys that are equally likely. A load-test table has no column for it.
    keep
        How long rows are kept, from their write to their deletion, such as `2d`. With the rate of writes it says how
        much data there are. A load-test table has no column for it.
    compaction
        Compaction strategy: `STCS` (by default), `LCS`, `TWCS` or with its window `TWCS:1h`, `UCS` or with its scaling
        `UCS:L10`.
    compression
        Size on disk over uncompressed size; 0.25 to 0.75 by default.
    headroom, usable
        Share of the disk that compaction needs free, by default that of the strategy, and share that is left after
        formatting, 0.9 by default.
    memory_gib, disk_gib, disk_iops, network_gbit
        What a node has: memory and disk for data, GiB, reads from disk per second, and Gbit/s of its network. What is
        left out limits nothing. Reads from disk follow from `memory_gib` or `cache_gib`.
    data_factor
        Work of a replica on your data over that on the data of the load tests, where it was measured; 0.2 to 20. As
        tested by default.
    busiest
        How busy the busiest node is over the mean; its load decides the capacity. As in the load tests by default.
    token_aware
        Whether the driver sends a request to a replica of its row.
    connections
        Driver connections to each node, of all applications together. With `in_flight` they limit the requests under
        way; no limit if both are left out. A load-test table has no column for them.
    in_flight
        Requests that may be under way on a connection; further ones wait at the client. 1024 if only `connections` is
        given, and one connection to each node if only this is.
    native_threads
        Threads of a node that coordinate requests, `native_transport_max_threads` of `cassandra.yaml` (128 there);
        each is busy until its request is answered. No limit if left out. A load-test table has no column for them.
    speculative_retry
        When a read is sent to one more replica: a percentile of reads such as `99p`, as in the options of a table;
        never if left out.
    rtt
        Round trip between data centres, such as `20ms`, or one for each pair: `dc1-dc2=3ms,dc1-dc3=20ms,...`.
    tcp_nodelay
        Whether nodes send messages to other data centres at once. Cassandra's own `cassandra.yaml` says false: Nagle's
        algorithm then holds a message while another one is not acknowledged, and an answer takes about two round trips
        where connections are busy.
    encryption
        TLS links: `client`, `internode` or `client+internode`; none by default.
    clients
        Closed clients, such as threads of a load generator: each sends its next request when it has its answer. They
        determine the rate; instead of `tps`.
    tps
        Offered rate over all data centres, requests per second; 80 % of the capacity by default.
    slo
        Objectives, such as `read.p99<10ms`.

    Raises
    ------
    InputError
        If a field is out of range, there are fewer nodes than replicas, a consistency level cannot be met, or `rtt`
        does not match the data centres or differs by direction.
    """

    system: Literal["cassandra"] = "cassandra"
    cluster: Annotated[
        str | None, Option("Which cluster or version of the load tests, as they name it.", "cluster", "NAME")
    ] = None
    dcs: DataCentres = 1
    cass_nodes: CassNodes = 3
    rf: Replicas = 3
    client_share: ClientShare = None
    node_cores: Annotated[
        Cores, Option("Cores (vCPU) of a Cassandra node.", "cores of a Cassandra node", measured=True)
    ] = 8
    one_host: Annotated[bool, Option("All nodes share the cores of one machine.", "one machine for all nodes")] = False
    consistency_read: ConsistencyOfReads = "LOCAL_QUORUM"
    consistency_write: ConsistencyOfWrites = "LOCAL_QUORUM"
    read_fraction: Annotated[
        float,
        Field(ge=0, le=1),
        READ_SHARE,
        Option("Reads as a share of all requests, such as 80%.", "reads", "SHARE", read=parse_share),
    ] = 0.5
    row_bytes: Annotated[
        float,
        Field(gt=0, le=1e8),
        Option("Bytes of a row's values, such as 4kB.", "bytes of a row", "SIZE", read=parse_size_bytes, measured=True),
    ] = USUAL_ROW_BYTES
    cache_state: Annotated[
        Literal["warm", "cold", "mixed"],
        Option("Page cache of the nodes: warm, cold or mixed.", "page cache", "STATE"),
    ] = "warm"
    data_gib: Annotated[
        Gibibytes | None,
        Option(
            "Data on each node, GiB, such as 400 or 1.5TiB; reads of what exceeds --cache-gib go to disk.",
            "data on a node, GiB",
            "SIZE",
            read=read_gib,
        ),
    ] = None
    cache_gib: Annotated[
        Gibibytes | None,
        Option(
            "Page cache of a node, GiB, such as 100: its memory beside the heap.",
            "page cache of a node, GiB",
            "SIZE",
            read=read_gib,
        ),
    ] = None
    keep: Annotated[
        PositiveSeconds | None,
        Option(
            "How long rows are kept, such as 2d; with the rate of writes, how much data there are.",
            "time that rows are kept",
            "TIME",
            read=_read_keep,
            shown=lambda keep_s: duration_text(float(np.max(keep_s))),
        ),
    ] = None
    compaction: Annotated[
        str | None,
        Option("Compaction: STCS (default), LCS, TWCS, TWCS:1h, UCS, UCS:L10.", "compaction", "STRATEGY"),
    ] = None
    compression: Annotated[
        Share | None,
        READ_SHARE,
        Option("Size on disk over uncompressed size; 25% to 75% by default.", "compression", "SHARE", read=parse_share),
    ] = None
    headroom: Annotated[
        Share | None,
        READ_SHARE,
        Option(
            "Disk that compaction needs free; by default that of --compaction.", "free disk", "SHARE", read=parse_share
        ),
    ] = None
    usable: Annotated[
        Share | None,
        READ_SHARE,
        Option("Disk that is left after formatting; 90% by default.", "formatted disk", "SHARE", read=parse_share),
    ] = None
    memory_gib: Annotated[
        Gibibytes | None, Option("Memory of a node, GiB, such as 64.", "memory of a node, GiB", "SIZE", read=read_gib)
    ] = None
    disk_gib: Annotated[
        Gibibytes | None,
        Option("Disk of a node for data, GiB, such as 2TB.", "disk of a node, GiB", "SIZE", read=read_gib),
    ] = None
    disk_iops: Annotated[
        float | None,
        Field(gt=0, le=1e9),
        Option("Reads per second of a node's disk, such as 400k.", "IOPS of a node", "RATE", read=parse_rate_per_s),
    ] = None
    network_gbit: Annotated[
        float | None, Field(gt=0, le=1e5), Option("Network of a node, Gbit/s.", "network of a node, Gbit/s", "GBIT")
    ] = None
    data_factor: DataFactor = None
    busiest: Annotated[
        float | None,
        Field(ge=1, le=MOST_BUSY),
        Option(
            "Load of the busiest node over the mean, such as 1.3, or the CPU of each node, such as 61/48/55.",
            "busiest node over the mean",
            "RATIO",
            read=read_busiest,
        ),
    ] = None
    token_aware: Annotated[
        bool, Option("The driver sends each request to a replica of its row.", "token-aware driver")
    ] = True
    connections: Annotated[
        AtLeastOne | None,
        Option(
            "Driver connections to each node, of all applications; times --in-flight, the requests under way.",
            "connections to a node",
            "N",
        ),
    ] = None
    in_flight: Annotated[
        AtLeastOne | None,
        Option(
            "Requests that may be under way on a connection, such as 1024; further ones wait at the client.",
            "requests in flight on a connection",
            "N",
        ),
    ] = None
    native_threads: Annotated[
        AtLeastOne | None,
        Option(
            "Threads of a node that coordinate requests (native_transport_max_threads), such as 128.",
            "native-transport threads of a node",
            "N",
        ),
    ] = None
    speculative_retry: Annotated[
        str | None,
        Option(
            "When a read is sent to one more replica: a percentile of reads, such as 99p, or none.",
            "speculative retry",
            "WHEN",
        ),
    ] = None
    rtt: Annotated[str | tuple[tuple[str, ...], ...], MILLISECONDS_TEXT, ROUND_TRIP] = "1ms"
    tcp_nodelay: Annotated[
        bool,
        Option(
            "Answers of other data centres take one round trip, not two: inter_dc_tcp_nodelay of cassandra.yaml.",
            "messages to other data centres sent at once",
        ),
    ] = False
    gc: ReportedGc = None
    heap: Heap = None
    collector: Collector = None
    encryption: Annotated[
        str | None, Option("TLS links: client, internode, client+internode or none.", "encrypted links", "LINKS")
    ] = None
    clients: Annotated[
        AtLeastOne | None,
        Option(
            "Closed clients (threads) instead of --tps: each waits for its answer.", "clients", "N", replaces=("tps",)
        ),
    ] = None
    tps: Annotated[PositivePerSecond | None, rate_option("Offered rate over all data centres.", replaces="clients")] = (
        None
    )
    slo: Annotated[Objectives, Option("Objective, such as 'read.p99<10ms'; may be repeated.", "objectives")] = ()

    STATEMENT = MappingProxyType(  # no annotation, which would make it a field
        {
            "reads": Option("Reads per second, such as 10k/s; with --writes, instead of --tps.", metavar="RATE"),
            "writes": Option("Writes per second, such as 40k/s; with --reads, instead of --tps.", metavar="RATE"),
            "row": Option("Bytes of a row, such as 500B: --row-bytes in short.", metavar="SIZE"),
        }
    )

    @classmethod
    def of_statement(cls, given: Mapping[str, Any], shown: Callable[[str], str] = str) -> dict[str, Any]:
        """Return the fields for reads and writes per second, and for a row; see `Scenario.of_statement`."""
        for name, fields in _REPLACED.items():
            if name in given and (other := next((field for field in fields if field in given), None)):
                raise InputError(f"{shown(name)} and {shown(other)} exclude each other: give one of them")
        found = {name: value for name, value in given.items() if name not in cls.STATEMENT}
        if "row" in given:
            found["row_bytes"] = row = given["row"]
            if isinstance(row, str) and not parse_size_bytes(row) > 0:
                raise InputError(f"{shown('row')}: {row!r} is no row: give its bytes, above 0, such as 500B")
        rates = {name: _rate(shown(name), given[name]) for name in ("reads", "writes") if name in given}
        if rates:
            total = sum(rates.values())
            if not total:
                raise InputError(f"{' and '.join(map(shown, rates))} are no load: give a rate above 0, such as 10k/s")
            found |= {"tps": f"{total:.15g}", "read_fraction": f"{rates.get('reads', 0.0) / total:.15g}"}
        return found

    def __post_init__(self) -> None:
        check_at_most(LARGEST, dcs=self.dcs)
        check_load(self.clients, self.tps)
        self._check_limits()
        if self.compaction is not None:
            self._set(compaction=read_compaction(self.compaction).text)
        if self.speculative_retry is not None:
            self._set(speculative_retry=read_retry(self.speculative_retry))
        self._check_data_centres()
        self._set(data_factor=normal_data_factor(self.data_factor))
        self._set(encryption=check_encryption(self.encryption, None, sum(self.nodes_by_dc())))

    def _check_limits(self) -> None:
        if (
            self.disk_iops is not None
            and self.memory_gib is None
            and self.cache_gib is None
            and _WARM[self.cache_state] == 1
        ):
            raise InputError(
                f"disk_iops = {self.disk_iops:g} limits nothing while nobody says which reads go to disk: give "
                "memory_gib, the memory of a node, or cache_gib"
            )
        if self.memory_gib is not None and self.cache_gib is not None:
            free = float(self.memory_gib) - self._heap_gib()
            if self.cache_gib > free:
                raise InputError(
                    f"cache_gib = {self.cache_gib:g} does not fit beside the heap: of memory_gib = "
                    f"{self.memory_gib:g}, at most {free:.4g} GiB are left for it"
                )
        if self.headroom == 1:
            raise InputError("headroom = 100% leaves no disk for data: give less")
        if (self.connections or 1) > MOST_CONNECTIONS:
            raise InputError(
                f"connections = {self.connections} is more than {MOST_CONNECTIONS:,} to a node: give those of all "
                "applications to one node, such as 10 for ten applications with one each"
            )
        if (self.in_flight or 1) > STREAMS:
            raise InputError(
                f"in_flight = {self.in_flight} is more than the {STREAMS:,} requests that the protocol can tell apart "
                f"on one connection: give at most {STREAMS}, such as the Java driver's {USUAL_IN_FLIGHT}"
            )
        if (self.native_threads or 1) > MOST_THREADS:
            raise InputError(
                f"native_threads = {self.native_threads} is more than {MOST_THREADS:,} of a node: give "
                "native_transport_max_threads of its cassandra.yaml, which is 128 by default"
            )

    def levels(self) -> dict[str, str]:
        """Return the consistency level of each operation in the traffic."""
        found = {"read": self.consistency_read, "write": self.consistency_write}
        return {operation: found[operation] for operation in self.mix()}

    def mix(self) -> dict[str, float]:
        """Return the non-zero shares of reads and writes."""
        shares = {"read": self.read_fraction, "write": 1 - self.read_fraction}
        return {operation: share for operation, share in shares.items() if share > 0}

    def statements(self) -> dict[str, float]:
        """Return the mean number of statements that a request makes, by operation: it makes one."""
        return self.mix()

    @property
    def unequal(self) -> bool:
        """Whether data centres differ in nodes, replicas, round trips or share of clients."""
        return super().unequal or isinstance(self.rtt, tuple)

    def in_flight_at_node(self) -> int | None:
        """Return the mean driver limit on requests in flight per node; None without a limit."""
        if self.connections is None and self.in_flight is None:
            return None
        return (self.connections or USUAL_CONNECTIONS) * (self.in_flight or USUAL_IN_FLIGHT)

    def check_complete(self) -> None:
        """Refuse a page cache of data that follow from no rate."""
        cached = self.memory_gib is not None or self.cache_gib is not None
        if cached and self.keep is not None and self.data_gib is None and self.tps is None:
            raise InputError(
                "keep needs one rate: how much data there are, and what the page cache has of them, follow from the "
                "rate of writes; give reads and writes, or tps, or data_gib instead of keep"
            )

    def cold_share(self) -> float:
        """Return the share of reads that miss the page cache if all keys are equally likely."""
        warm = _WARM[self.cache_state]
        return 1 - warm + warm * self.beyond_cache()

    def beyond_cache(self) -> float:
        """Return the share of a node's data beyond its page cache; 0 if either size is not given."""
        load = self.node_load(float(np.max(self.tps or 0.0)))
        return 0.0 if load is None else 1 - float(load.covered(load.data_gib))

    def node_load(
        self, rate_per_s: float, compression: Number = USUAL_COMPRESSION, down: Sequence[int] = ()
    ) -> NodeLoad | None:
        """Return what the busiest node stores and moves; None if nothing is said of data or limits.

        Parameters
        ----------
        rate_per_s : float
            Offered rate, requests per second.
        compression : number
            Size on disk over uncompressed size, where the scenario does not say it.
        down : sequence of int (dcs,)
            Nodes of each data centre that are down; none by default.
        """
        sizes = {word: getattr(self, field) for field, word in NODE_LIMITS.items()}
        limits = {word: float(size) for word, size in sizes.items() if size is not None}
        if not limits and not self._has_data:
            return None
        if not self._has_data:  # what nobody can judge limits nothing
            decided = ("network", "iops") if _WARM[self.cache_state] < 1 else ("network",)
            limits = {word: size for word, size in limits.items() if word in decided}
        traffic, busiest = self._traffic(rate_per_s, down or (0,) * self.dcs), self.busiest or 1.0
        ratio, keep_s = self.compression or compression, None if self.keep is None else float(np.max(self.keep))
        strategy, grows = read_compaction(self.compaction or "STCS"), self.data_gib is None
        if self.data_gib is not None:
            data = np.asarray(float(self.data_gib))
        else:
            copy = 0.0 if keep_s is None else traffic.writes_per_s * self.row_bytes * strategy.kept_s(keep_s)
            data = np.maximum(busiest * fullest(*self.cassandra_nodes()) * copy * np.asarray(ratio) / GIB, _NOTHING_GIB)
        return NodeLoad(
            data_gib=data,
            grows=grows,
            room=(self.usable or USABLE) * (1 - (self.headroom or strategy.free(keep_s))),
            raw_bytes=1 / np.asarray(ratio),
            row_bytes=self.row_bytes,
            reads_per_s=busiest * traffic.rows_read_per_s(self.consistency_read),
            network_gbit=busiest * traffic.rows_moved_per_s() * self.row_bytes * 8e-9,
            heap_gib=self._heap_gib(),
            cache_gib=None if self.cache_gib is None or not self._has_data else float(self.cache_gib),
            warm=_WARM[self.cache_state],
            limits=limits,
        )

    @property
    def _has_data(self) -> bool:
        """Whether anything says how much data there are."""
        return self.keep is not None or self.data_gib is not None

    def _traffic(self, rate_per_s: float, down: Sequence[int]) -> NodeTraffic:
        """Return the traffic on the nodes that are up; clients of a data centre without one go to the others."""
        nodes = self.nodes_by_dc()
        return NodeTraffic(
            reads_per_s=rate_per_s * self.read_fraction,
            writes_per_s=rate_per_s * (1 - self.read_fraction),
            shares=proportions(self.shares_by_dc(), (dc for dc, count in enumerate(nodes) if count > down[dc])),
            nodes=nodes,
            replicas=self.rf_by_dc(),
            down=down,
            round_trips_s=self.round_trips_s(),
            token_aware=self.token_aware,
        )

    def _heap_gib(self) -> float:
        if self.heap is not None:
            return parse_size_bytes(self.heap) / GIB
        return MOST_HEAP_GIB if self.memory_gib is None else min(HEAP_SHARE * float(self.memory_gib), MOST_HEAP_GIB)

    def without_effect(self) -> tuple[str, ...]:
        """Return a sentence for each field that was set but has no effect."""
        return (
            *self._idle_sizes(),
            *(["rtt has no effect: the layout has one data centre"] if self.dcs == 1 and self.rtt != "1ms" else []),
            *self._idle_nodelay(),
            *self._idle_limits(),
            *self._idle_retries(),
            *self._idle_heap(),
            *(["busiest has no effect: all nodes share one machine"] if self.busiest and self.one_host else []),
        )

    def _idle_nodelay(self) -> Iterator[str]:
        if self.tcp_nodelay and self.dcs == 1:
            yield "tcp_nodelay has no effect: the layout has one data centre"

    def _idle_sizes(self) -> Iterator[str]:
        if self.keep is not None and self.data_gib is not None:
            yield "keep has no effect: data_gib says how much data there are"
        elif self.keep is not None and not (self.tps and self.read_fraction < 1):
            yield "keep has no effect on figures without a rate of writes: give --writes, or data_gib"
        yield from self._idle_nodes()
        if self.keep is not None or self.memory_gib is not None:
            return
        given = {name: getattr(self, name) is not None for name in ("data_gib", "cache_gib")}
        if not all(given.values()):
            if given["data_gib"] and self.disk_gib is not None:
                yield "data_gib decides disk space only: capacity and latency depend on it with memory_gib or cache_gib"
                return
            other = next((name for name, there in given.items() if not there), "")
            yield from (f"{name} has no effect on figures without {other}" for name, there in given.items() if there)
        elif not self.read_fraction:
            yield "data_gib and cache_gib have no effect: there are no reads"
        elif self.cache_state == "cold":
            yield "data_gib and cache_gib have no effect: with cache_state cold, all reads go to disk"

    def _idle_nodes(self) -> Iterator[str]:
        """Yield what limits nothing, as the data or the rate are not known."""
        if not self._has_data:
            cold = _WARM[self.cache_state] < 1
            yield from self._idle(
                [name for name in _OF_DATA if not (cold and name == "disk_iops")],
                "without data: give keep with the rate of writes, or data_gib",
            )
        if self.tps is None:
            names = ("network_gbit",) if not self._has_data else ("disk_gib", "disk_iops", "network_gbit")
            yield from self._idle(names, "without a rate: give reads and writes, or tps")

    def _idle(self, names: Sequence[str], why: str) -> Iterator[str]:
        yield from (f"{name} has no effect {why}" for name in names if getattr(self, name) is not None)

    def _idle_limits(self) -> Iterator[str]:
        each, threads = self.in_flight_at_node(), self.native_threads
        if each is None or threads is None:
            return
        if each <= threads:
            yield f"native_threads has no effect: drivers send a node at most {each:,} requests"
            return
        given = [name for name in ("connections", "in_flight") if getattr(self, name) is not None]
        have = "have" if len(given) > 1 else "has"
        yield f"{' and '.join(given)} {have} no effect: a node takes {threads:,} of the {each:,} requests at a time"

    def _idle_retries(self) -> Iterator[str]:
        if self.speculative_retry is None or self.retries_reads():
            return
        if not self.read_fraction:
            yield "speculative_retry has no effect: there are no reads"
            return
        words = f"reads at {self.consistency_read} leave no other replica to ask"
        if self.dcs > 1 and not self.consistency_read.startswith("LOCAL_"):
            words = "with several data centres, only reads at LOCAL_ONE and LOCAL_QUORUM are retried in the model"
        yield f"speculative_retry has no effect: {words}"

    def retries_reads(self) -> bool:
        """Return whether slow reads are retried and a spare replica exists."""
        if self.speculative_retry is None or not self.read_fraction:
            return False
        replicas = self.rf_by_dc()
        return any(
            share > 0 and has_spare(self.consistency_read, replicas, dc, replicas[dc])
            for dc, share in enumerate(self.shares_by_dc())
        )

    def given(self) -> dict[str, Any]:
        """Return the fields that are set; the round trip only if there are two or more data centres."""
        return {name: value for name, value in super().given().items() if self.dcs > 1 or name != "rtt"}

    def round_trips_s(self) -> tuple[tuple[float, ...], ...]:
        """Return the round trips between data centres, seconds (dcs, dcs)."""
        return self.given_rtt_s() or ()
