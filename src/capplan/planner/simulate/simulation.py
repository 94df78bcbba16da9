"""What `simulate` answers: the contract `capplan.simulation/1`, as frozen data and as JSON.

Latencies are in milliseconds, rates per second, utilisations are shares from 0 to 1. The figures are those of one set
of parameters, and the same for both engines, so neither the engine nor its speed stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from capplan.models.results import plain
from capplan.planner.simulate.parts import (
    Backlog,
    ClassFigures,
    PoolFigures,
    PoolKind,
    PrecisionReached,
    StationFigures,
    StationKind,
)

SCHEMA = "capplan.simulation/1"
EVERY_CLASS = "*"

OfferedSource = Literal["given", "default", "network"]
Horizon = Literal["steady", "finite"]
WarmupSource = Literal["given", "mser", "none"]


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What replications of a system have seen, with one set of parameters.

    Attributes
    ----------
    target
        What was asked for: a system or a file.
    network
        Name of the network that was run.
    scenario
        The layout; keys are those of a scenario file. Null when the target is a network.
    offered_tps
        Offered rate, requests per second: of a system the peak rate, as in a prediction; of a network its mean rate.
        Null for closed traffic, which has none.
    mean_tps
        Mean rate of the traffic, requests per second; less than the peak rate where it comes in bursts. Null for
        closed traffic.
    offered_source
        `given` by the user, the `default`, 80 % of the predicted capacity, or as the `network` has it.
    duration_s
        How long traffic came, in seconds.
    horizon
        `steady`: the figures are those of the steady state. `finite`: they are means over replications of what one such
        run measures.
    warmup_s
        How much of the beginning of every replication is left out, in seconds.
    warmup_source
        `given` by the user, found by `mser` in the first ten replications together, or `none` is left out.
    settled
        Whether replications were long enough to tell their warm-up.
    backlog
        Whether work piles up; null where no open traffic comes, and over a finite horizon.
    precision
        What became of the precision that was asked for; null when none was.
    seed
        The seed of every random number.
    replications
        How many independent runs there are.
    classes
        What became of requests, by class; `*` is all of them.
    stations
        What stations did, by name.
    station_kinds
        What stations of a kind did, that with the most loaded one first.
    pools
        What pools did, by name.
    pool_kinds
        What pools of a kind did, the most used one first.
    controls
        Control variates that narrow the intervals of latencies: quantities whose means are known exactly.
    version
        The version of capplan.
    """

    target: str
    network: str
    scenario: Mapping[str, Any] | None
    offered_tps: float | None
    mean_tps: float | None
    offered_source: OfferedSource
    duration_s: float
    horizon: Horizon
    warmup_s: float
    warmup_source: WarmupSource
    settled: bool
    backlog: Backlog | None
    precision: PrecisionReached | None
    seed: int
    replications: int
    classes: Mapping[str, ClassFigures]
    stations: Mapping[str, StationFigures]
    station_kinds: Mapping[str, StationKind]
    pools: Mapping[str, PoolFigures]
    pool_kinds: Mapping[str, PoolKind]
    controls: tuple[str, ...]
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it: plain tables, lists and finite numbers."""
        return {"schema": SCHEMA, **plain(self)}


def simulation_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `Simulation.to_json` returns; every key is required."""
    from capplan.models.language.document import schema  # pydantic takes longer to import than all the rest

    published = schema(Simulation)
    published["properties"] = {"schema": {"const": SCHEMA, "type": "string"}, **published["properties"]}
    for part in (published, *published["$defs"].values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    for name, number in _UNSEEN:
        published["$defs"][name]["properties"][number]["type"] = ["number", "null"]
    return published


_UNSEEN = (  # null when nothing was there to see
    ("Estimate", "value"),
    ("PrecisionReached", "relative"),
)
