"""Fields and rules of a scenario whose Cassandra nodes stand in one or several data centres, which may differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import model_validator
from pydantic_core import ArgsKwargs

from capplan.errors import InputError
from capplan.models.cassandra.consistency import check_level, need
from capplan.models.cassandra.pauses import check_collector, parse_pauses, young_bytes
from capplan.models.language.per_dc import (
    PerDc,
    SharesByDc,
    by_dc,
    implied_dcs,
    names_pairs,
    parse_pairs,
    per_dc_text,
    round_trip_s,
    same_or_each,
)
from capplan.models.language.scenario import Option, Scenario
from capplan.models.language.units import AtLeastOne, parse_size_bytes

_LEAST_HEAP = 256 * 2**20
_MANY_CORES = 1024  # where their number is not known, they do not limit the young generation
LARGEST_DC = 1000  # nodes of one kind in a data centre; a larger number is a typing error

DataCentres = Annotated[AtLeastOne, Option("Data centres.", "data centres", measured=True)]
CassNodes = Annotated[
    PerDc, Option("Cassandra nodes per data centre, such as 6 or 6/6/3.", "Cassandra nodes per DC", "N", measured=True)
]
Replicas = Annotated[
    PerDc, Option("Replicas per data centre, such as 3 or 3/3/2.", "replicas per DC", "N", measured=True)
]
ClientShare = Annotated[
    SharesByDc | None,
    Option(
        "Share of the clients of each data centre, such as 50%/30%/20%; 0 for a standby.",
        "clients by data centre",
        "SHARES",
    ),
]
ConsistencyOfReads = Annotated[str, Option("Consistency level of reads.", "consistency of reads", "LEVEL")]
ConsistencyOfWrites = Annotated[str, Option("Consistency level of writes.", "consistency of writes", "LEVEL")]
ROUND_TRIP = Option(
    "Round-trip time between data centres, such as 3ms, or one for each pair: dc1-dc2=3ms,dc1-dc3=20ms,...",
    "round trip, ms",
    "TIME",
    unit="ms",
)


class ClusterScenario(Scenario):
    """A layout with Cassandra nodes in data centres.

    Where a field takes a number per data centre, one number is the same in each, and a list has one for each. A list
    also determines `dcs` if that is not given.

    Attributes
    ----------
    dcs
        Data centres.
    cass_nodes
        Cassandra nodes in each data centre.
    rf
        Replicas of each row in each data centre; at most as many as nodes.
    client_share
        Share of the requests that arrive in each data centre; equal by default.
    consistency_read, consistency_write
        Consistency levels.
    rtt
        Round trip between data centres: one duration, a matrix of them, or one for each pair.
    gc
        Garbage-collection pauses of a node under this load, such as `0.6%@45ms`; estimated by default.
    heap, collector
        Heap of a node and its garbage collector, from which pauses are estimated; a guess by default.
    """

    COUNTS: ClassVar[tuple[str, ...]] = ("cass_nodes", "rf")
    """Fields with one number per data centre."""

    dcs: int
    cass_nodes: Any
    rf: Any
    client_share: tuple[float, ...] | None
    consistency_read: str
    consistency_write: str
    rtt: str | tuple[tuple[str, ...], ...] | None
    gc: str | None
    heap: str | None
    collector: str | None
    node_cores: Any

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, fields: Any) -> Any:
        """Let lists determine the number of data centres."""
        if isinstance(fields, ArgsKwargs) and len(fields.args) < 2:
            given = dict(fields.kwargs or {})
            return ArgsKwargs(fields.args, {**cls.implied(given), **given})
        return {**cls.implied(fields), **fields} if isinstance(fields, dict) else fields

    @classmethod
    def implied(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the number of data centres if lists determine it."""
        return implied_dcs(fields, (*cls.COUNTS, "client_share"), "rtt")

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _check_data_centres(self) -> None:
        """Give equal data centres one form, however they were written, and check what they have.

        Raises
        ------
        InputError
            If there are more nodes than capplan sizes or fewer than replicas, a consistency level cannot be met, or
            `rtt` does not match the data centres.
        """
        self._set(**{name: same_or_each(getattr(self, name), self.dcs, name) for name in self.COUNTS})
        if self.client_share is not None:
            shares = same_or_each(self.client_share, self.dcs, "client_share")
            self._set(client_share=shares if isinstance(shares, tuple) else None)
        self._check_counts()
        self._set(
            consistency_read=check_level(self.consistency_read),
            consistency_write=check_level(self.consistency_write),
        )
        self._check_pauses()
        for level in self.levels().values():
            for dc in range(self.dcs):
                need(level, self.rf_by_dc(), dc)
        if isinstance(self.rtt, str) and names_pairs(self.rtt):
            self._set(rtt=parse_pairs(self.rtt, self.dcs))
        self.given_rtt_s()

    def _check_pauses(self) -> None:
        if self.gc is not None:
            self._set(gc=str(parse_pauses(self.gc)))
        if self.collector is not None and self.gc is None:
            self._set(collector=check_collector(self.collector))
            if self.heap is None:
                raise InputError(f"collector = {self.collector!r} says nothing without the heap: give heap, too")
        if self.heap is not None and parse_size_bytes(self.heap) < _LEAST_HEAP:
            raise InputError(f"heap = {self.heap!r} is none of a Cassandra node: give at least 256 MiB, such as 8GiB")

    def _idle_heap(self) -> tuple[str, ...]:
        """Return a sentence for a heap or a collector beside reported pauses."""
        given = [name for name in ("heap", "collector") if getattr(self, name) is not None]
        if self.gc is None or not given:
            return ()
        return (f"{' and '.join(given)} {'has' if len(given) == 1 else 'have'} no effect: gc says how nodes pause",)

    def young_bytes(self) -> float | None:
        """Return the size of the young generation of a node; None if its heap is not given."""
        if self.heap is None:
            return None
        cores = int(self.node_cores or _MANY_CORES)
        return young_bytes(parse_size_bytes(self.heap), self.collector or "CMS", cores)

    def _check_counts(self) -> None:
        for name in self.COUNTS:
            value = getattr(self, name)
            if max(by_dc(value, self.dcs)) > LARGEST_DC:
                raise InputError(f"{name} = {per_dc_text(value)} is more than the {LARGEST_DC} that capplan sizes")
        unequal = isinstance(self.rf, tuple) or isinstance(self.cass_nodes, tuple)
        for dc, (replicas, nodes) in enumerate(zip(self.rf_by_dc(), self.nodes_by_dc(), strict=True), 1):
            if replicas > nodes:
                where = f"data centre {dc}" if unequal else "each data centre"
                raise InputError(
                    f"rf = {per_dc_text(self.rf)} needs at least {replicas} Cassandra nodes in {where} and there are "
                    f"{nodes}: add nodes, or lower rf to {nodes}{' there' if unequal else ''}"
                )

    @property
    def unequal(self) -> bool:
        """Whether data centres differ in what they have or in their share of clients."""
        return self.client_share is not None or any(isinstance(getattr(self, name), tuple) for name in self.COUNTS)

    def levels(self) -> dict[str, str]:
        """Return the consistency level of each operation in the traffic."""
        return {"read": self.consistency_read, "write": self.consistency_write}

    def statements(self) -> dict[str, float]:
        """Return the mean number of statements that a request makes, by operation."""
        raise NotImplementedError

    def nodes_by_dc(self) -> tuple[int, ...]:
        """Return the number of Cassandra nodes in each data centre (dcs,)."""
        return by_dc(self.cass_nodes, self.dcs)

    def rf_by_dc(self) -> tuple[int, ...]:
        """Return the number of replicas of each row in each data centre (dcs,)."""
        return by_dc(self.rf, self.dcs)

    def cassandra_nodes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of Cassandra nodes and of replicas of each row by data centre (dcs,)."""
        return self.nodes_by_dc(), self.rf_by_dc()

    def shares_by_dc(self) -> tuple[float, ...]:
        """Return the share of the requests that arrive in each data centre (dcs,); adds up to 1."""
        return self.client_share or (1 / self.dcs,) * self.dcs

    def given_rtt_s(self) -> tuple[tuple[float, ...], ...] | None:
        """Return the given round trips between data centres, seconds (dcs, dcs); None if there are none."""
        if self.rtt is None:
            return None
        if isinstance(self.rtt, str):
            seconds = round_trip_s(self.rtt)
            return tuple(tuple(0.0 if a == b else seconds for b in range(self.dcs)) for a in range(self.dcs))
        if len(self.rtt) != self.dcs:
            raise InputError(f"rtt needs {self.dcs} rows, one for each data centre, and has {len(self.rtt)}")
        for number, row in enumerate(self.rtt, 1):
            if len(row) != self.dcs:
                raise InputError(
                    f"row {number} of rtt has {len(row)} round trips and there are {self.dcs} data centres: "
                    "give one for each, 0 for the data centre itself"
                )
        matrix = tuple(tuple(round_trip_s(cell) for cell in row) for row in self.rtt)
        if any(abs(matrix[a][b] - matrix[b][a]) > 1e-12 for a in range(self.dcs) for b in range(self.dcs)):
            raise InputError("rtt must be the same in both directions: a round trip has no direction")
        return matrix
