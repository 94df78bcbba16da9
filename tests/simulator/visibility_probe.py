"""Requests that write in one data centre and read in another, with probes for each lookup and applied mutation.

Random numbers belong to requests and step names, so a network run twice, with a probe that ends at the one and at the
other, gives both times of the same request on the same sample path.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.models.cassandra.cluster import STAGES, Cluster, Costs, node_name, statement
from capplan.models.cassandra.encryption import Exchanges
from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.step import CountdownLatch, Delay, ForkJoin, Group, Sequence, Signal, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray
from capplan.simulator.engine import Engine, simulate

NOTHING, HERE = Sequence(()), Signal("here")
WRITER, READER = 0, 1  # data centres


def lags_s(
    where: tuple[Cluster, Costs],
    client_s: float,
    levels: tuple[str, int],
    beside: Callable[[tuple[RequestClass, ...]], Network],
    run: tuple[float, float, int, Engine],
) -> FloatArray:
    """Return, by probe, how much too early the read came: the smallest of mutation less look-up over the replicas.

    `levels` is the level of the write and how many replicas of its data centre the read asks; `beside` makes a network
    of the probes; `run` is the duration and the warm-up in seconds, the seed and the engine.
    """
    found = [
        _ends_s(beside(_probes(where, client_s, (levels[0], turn, end))), run)
        for turn in range(levels[1])
        for end in ("asked", "applied")
    ]
    early = [applied - asked for asked, applied in zip(found[::2], found[1::2], strict=True)]
    return np.asarray(np.min(early, axis=0))


def probes_alone(others: Network, rate_per_s: float) -> Callable[..., Network]:
    """Return what makes a network of probes, with the stations and pools of another."""
    return lambda probes: replace(
        others,
        classes=probes,
        sessions=(),
        traffic=Open(rate_per_s, {each.name: 1 / len(probes) for each in probes}),
    )


def _probes(where: tuple[Cluster, Costs], client_s: float, ending: tuple[str, int, str]) -> tuple[RequestClass, ...]:
    """Return a probe for each coordinator of the read; all ask or look at their replica number `turn`."""
    (cluster, costs), (level, turn, end) = where, ending
    links = costs.links.get("read", Exchanges())
    write = statement(cluster, costs, WRITER, level, "write")
    probes = []
    for first in range(cluster.rf[READER]):
        seen = node_name(READER, (first + turn) % cluster.rf[READER])
        marked = _marked(write, seen, HERE if end == "applied" else NOTHING, {})
        read = Sequence(
            (
                Delay(Exponential(client_s), name="client"),
                Delay(Deterministic(cluster.lan_s)),
                Visit(
                    node_name(READER, first),
                    Erlang(costs.coordinator + (links.client or 0.0), STAGES),
                    name="parse-read",
                ),
                Visit(
                    node_name(READER, first), Erlang((links.internode or 0.0) * (turn > 0), STAGES), name="send-read"
                ),
                Delay(Deterministic(cluster.lan_s if turn else 0.0)),
                HERE if end == "asked" else NOTHING,
            )
        )
        both = ForkJoin((Sequence((marked, read)),), 0)
        probes.append(RequestClass(f"probe-{first}", CountdownLatch((Group("here", 1),), both)))
    return tuple(probes)


def _marked(step: Any, station: str, mark: Step, known: dict[int, Step]) -> Any:
    """Return the step with a mark behind the mutation at a station."""
    if id(step) in known:
        return known[id(step)]
    made = step
    for field in ("steps", "branches", "targets"):
        if hasattr(step, field):
            inner = []
            for child in getattr(step, field):
                inner.append(_marked(child, station, mark, known))
                if isinstance(child, Visit) and child.name == child.station.replace("/", "-"):
                    inner.append(mark if child.station == station else NOTHING)
            made = replace(step, **{field: tuple(inner)})
    if hasattr(step, "step"):
        made = replace(step, step=_marked(step.step, station, mark, known))
    known[id(step)] = made
    return made


def _ends_s(network: Network, run: tuple[float, float, int, Engine]) -> FloatArray:
    duration_s, warmup_s, seed, engine = run
    requests = simulate(network, duration_s, seed=seed, trace=True, engine=engine).requests
    mine = [number for number, each in enumerate(network.classes) if each.name.startswith("probe-")]
    chosen = np.isin(requests.request_class, mine) & (requests.start_ticks > warmup_s * 1e9)
    return np.asarray(requests.end_ticks[chosen] / 1e9)
