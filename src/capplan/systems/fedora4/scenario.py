"""The layout of `fedora4`: nodes, share of writes, and region of the clients."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema
from pydantic.dataclasses import dataclass

from capplan.errors import InputError, one_of
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import LARGEST, Objectives, Option, Scenario, check_at_most, rate_option
from capplan.models.language.units import (
    AtLeastOne,
    PositivePerSecond,
    check_number,
    is_scalar,
    parse_share,
)
from capplan.systems.components.machines import Cores, Speed

REGIONS = ("us-east", "us-west", "asia", "eu")
"""Regions of the document's clients; the cluster was in `us-east`."""


def _write_share(value: Any) -> float:
    share = check_number(parse_share(value) if isinstance(value, str) else value, "share of writes", at_most=1.0)
    if not is_scalar(share):
        raise InputError("an array is not a share of writes: give one number")
    return float(share)


WriteShare = Annotated[
    float,
    PlainValidator(_write_share),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string"}],
            "description": "share of writes, such as 0.05 or '5%'",
        }
    ),
]


CORES = 2
"""Cores of a node: a guess, because the document does not name the machine. With two cores, the capacity of a single
node (1.9 ms per read) and its time for a read at low load (4 ms) imply the same service demand."""


@dataclass(frozen=True, config=LANGUAGE)
class Fedora4Scenario(Scenario):
    """A layout of the `fedora4` system and the traffic on it.

    Attributes
    ----------
    system
        Name of the system.
    nodes
        Repository nodes behind the load balancer, each with all the data; 1 to 64.
    node_cores
        Cores of a node.
    node_speed
        Speed of such a core relative to that of the load tests.
    write_share
        Share of the requests that write (`5%` or 0.05): half of them create an object, half delete one.
    region
        Where the clients are: `us-east` (beside the cluster), `us-west`, `asia` or `eu`.
    tps
        Offered rate, requests per second over all nodes; by default 80 % of the capacity.
    slo
        Objectives, such as `read.p99<50ms`.

    Raises
    ------
    InputError
        If there are too many nodes, or the region does not exist.
    """

    system: Literal["fedora4"] = "fedora4"
    nodes: Annotated[AtLeastOne, Option("Nodes of the repository cluster.", "nodes", measured=True)] = 3
    node_cores: Annotated[Cores, Option("Cores of a node.", "cores of a node", measured=True)] = CORES
    node_speed: Annotated[
        Speed,
        Option("Speed of a core relative to the test's.", "times the core speed of a tested node", "X", measured=True),
    ] = 1.0
    write_share: Annotated[
        WriteShare,
        Option(
            "Share of requests that write, such as 5%.",
            "share of writes",
            "SHARE",
            read=parse_share,
            instead_of=("mix",),
        ),
    ] = 0.0
    region: Annotated[
        str, Option("Region of the clients: us-east, us-west, eu or asia.", "region of the clients", "NAME")
    ] = "us-east"
    tps: Annotated[PositivePerSecond | None, rate_option("Offered requests per second over all nodes.")] = None
    slo: Annotated[Objectives, Option("Objective, such as 'read.p99<50ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        check_at_most(LARGEST, nodes=self.nodes)
        one_of(REGIONS, self.region, f"region {self.region!r} does not exist")
