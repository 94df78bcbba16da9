"""The layout of `arion`: masters, clients, and the requests of each client."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import (
    LARGEST,
    MOST_CLIENTS,
    Objectives,
    Option,
    Scenario,
    check_at_most,
    rate_option,
)
from capplan.models.language.units import AtLeastOne, Number, PositivePerSecond


@dataclass(frozen=True, config=LANGUAGE)
class ArionScenario(Scenario):
    """A layout of the `arion` system and the traffic on it.

    Attributes
    ----------
    system
        Name of the system.
    servers
        Masters, each with an equal share of the clients; 1 to 64.
    clients
        Clients (compute nodes) of all masters together. A client waits for its answer before its next request.
    rps_per_client
        Offered requests per second of each client; instead of `tps`.
    stream_messages
        Requests per streaming call; 1 means unary calls.
    tps
        Offered requests per second over all masters; by default 80 % of the capacity.
    slo
        Objectives, such as `read.p99<2ms`.

    Raises
    ------
    InputError
        If there are too many masters or clients, or fewer clients than masters, or both rates are given.
    """

    system: Literal["arion"] = "arion"
    servers: Annotated[AtLeastOne, Option("gRPC masters.", "masters", measured=True)] = 1
    clients: Annotated[AtLeastOne, Option("Clients over all masters.", "clients")] = 1000
    rps_per_client: Annotated[
        PositivePerSecond | None,
        rate_option(
            "Offered requests per second per client, instead of --tps.",
            "offered requests per second of a client",
            replaces="tps",
        ),
    ] = None
    stream_messages: Annotated[
        AtLeastOne, Option("Requests per streaming call; 1 means unary calls.", "requests of a stream")
    ] = 1
    tps: Annotated[
        PositivePerSecond | None,
        rate_option("Offered requests per second over all masters.", replaces="rps_per_client"),
    ] = None
    slo: Annotated[Objectives, Option("Objective, such as 'read.p99<2ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        check_at_most(LARGEST, servers=self.servers)
        check_at_most(MOST_CLIENTS, clients=self.clients)
        if self.clients < self.servers:
            raise InputError(
                f"clients = {self.clients} leaves some of {self.servers} servers without a client: give at least as "
                "many clients as servers"
            )
        if self.rps_per_client is not None and self.tps is not None:
            raise InputError(
                f"rps_per_client = {self.rps_per_client:g} and tps = {self.tps:g} both give the offered rate, and "
                f"{self.clients} clients at {self.rps_per_client:g} are {self.clients * self.rps_per_client:g} "
                "requests per second: give one of them"
            )

    def offered_per_s(self) -> Number | None:
        """Return the offered rate over all masters, requests per second; None if none is given."""
        return self.tps if self.rps_per_client is None else self.clients * self.rps_per_client
