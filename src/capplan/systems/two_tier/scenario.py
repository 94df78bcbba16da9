"""The layout of `two-tier`: front nodes over a replicated store, and the traffic on them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import (
    LARGEST,
    Objectives,
    Option,
    Scenario,
    check_at_most,
    check_load,
    rate_option,
)
from capplan.models.language.units import AtLeastOne, Count, PositivePerSecond, parse_share
from capplan.systems.components.machines import Cores

Waits = Literal["one", "majority", "all"]


@dataclass(frozen=True, config=LANGUAGE)
class TwoTierScenario(Scenario):
    """A layout of stateless front nodes over a replicated store, and the traffic on it.

    Attributes
    ----------
    system
        Name of the system.
    front_nodes
        Front nodes; 0 if the front runs on the nodes of the store.
    front_cores
        Cores of a front node.
    store_nodes
        Nodes of the store.
    node_cores
        Cores of a store node.
    rf
        Copies of each row.
    write_waits
        Copies that a write waits for: `one`, a `majority` or `all`.
    read_fraction
        Reads as a share of all requests, 0 to 1.
    clients
        Closed clients, such as threads of a load generator: each sends its next request when it has its answer. They
        determine the rate; instead of `tps`.
    tps
        Offered rate, requests per second; 80 % of the capacity by default.
    slo
        Objectives, such as `write.p99<20ms`.

    Raises
    ------
    InputError
        If a number is too large, there are fewer store nodes than copies, or both clients and a rate are given.
    """

    system: Literal["two-tier"] = "two-tier"
    front_nodes: Annotated[
        Count,
        Option("Front nodes; 0 if the front runs on the store's nodes.", "front nodes", "N", measured=True),
    ] = 3
    front_cores: Annotated[Cores, Option("Cores of a front node.", "cores of a front node", measured=True)] = 16
    store_nodes: Annotated[AtLeastOne, Option("Nodes of the store.", "store nodes", measured=True)] = 3
    node_cores: Annotated[Cores, Option("Cores of a store node.", "cores of a store node", measured=True)] = 16
    rf: Annotated[AtLeastOne, Option("Copies of each row.", "copies of a row", measured=True)] = 3
    write_waits: Annotated[
        Waits, Option("Copies that a write waits for: one, majority or all.", "copies a write waits for", "WORD")
    ] = "majority"
    read_fraction: Annotated[
        float,
        Field(ge=0, le=1),
        Option(
            "Reads as a share of all requests, such as 80%.", "share of reads", "SHARE", read=parse_share, measured=True
        ),
    ] = 0.5
    clients: Annotated[
        AtLeastOne | None,
        Option(
            "Closed clients (threads) instead of --tps: each waits for its answer.", "clients", "N", replaces=("tps",)
        ),
    ] = None
    tps: Annotated[PositivePerSecond | None, rate_option("Offered requests per second.", replaces="clients")] = None
    slo: Annotated[Objectives, Option("Objective, such as 'write.p99<20ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        check_at_most(LARGEST, front_nodes=self.front_nodes, store_nodes=self.store_nodes)
        check_load(self.clients, self.tps)
        if self.rf > self.store_nodes:
            raise InputError(
                f"rf = {self.rf} needs as many store nodes and there are {self.store_nodes}: add nodes, or lower rf"
            )

    def needed(self) -> int:
        """Return the number of copies that a write waits for, the first one included."""
        return {"one": 1, "majority": self.rf // 2 + 1, "all": self.rf}[self.write_waits]

    def answering(self) -> int:
        """Return the number of live copies that a row needs for requests to succeed.

        A majority decides together who leads, so reads fail with writes. Only writes wait for all copies.
        """
        return self.needed() if self.write_waits != "all" or self.read_fraction < 1 else 1

    def mix(self) -> dict[str, float]:
        """Return the non-zero shares of reads and writes."""
        shares = {"read": self.read_fraction, "write": 1 - self.read_fraction}
        return {operation: share for operation, share in shares.items() if share > 0}
