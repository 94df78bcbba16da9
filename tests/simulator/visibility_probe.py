"""Requests that write in one data centre and read in another, with probes for each lookup and applied mutation.

Random numbers belong to requests and step names, so a network run twice, with a probe that ends at the one and at the
other, gives both times of the same request on the same sample path.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from capplan.models.cassandra.cluster import STAGES, Cluster, Costs, statement
from capplan.models.cassandra.encryption import Exchanges
from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.step import (
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray
from capplan.simulator.engine import Engine, simulate

NOTHING, HERE = Sequence(()), Signal("here")
WRITER = 0  # data centre
NODES, ORDER = "cassandra/dc2", "native-transport/dc2"  # of the reader


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
        _ends_s(beside((_probe(where, client_s, (levels[0], turn, end)),)), run)
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


def _probe(where: tuple[Cluster, Costs], client_s: float, ending: tuple[str, int, str]) -> RequestClass:
    """Return a probe whose read asks or looks at its replica number `turn`; the first one coordinates the read.

    All nodes own all rows. The read asks them in the order in which a set of another group has them, which does not
    depend on the order of the row's replicas, so that any of them may be the write's forwarder.
    """
    (cluster, costs), (level, turn, end) = where, ending
    links = costs.links.get("read", Exchanges())
    mark: Step = HERE if end == "applied" else NOTHING
    seen = If("replica", "asked", If("replica", "asked-before", NOTHING, mark) if turn else mark, NOTHING)
    write = _marked(statement(cluster, costs, WRITER, level, "write"), seen)
    exchange_s = (links.internode or 0.0) * (turn > 0)
    read = Sequence(
        (
            Delay(Exponential(client_s), name="client"),
            Delay(Deterministic(cluster.lan_s)),
            _at_reader(costs.coordinator + (links.client or 0.0), "parse-read"),
            _at_reader(exchange_s, "send-read"),
            Delay(Deterministic(cluster.lan_s if turn else 0.0)),
            HERE if end == "asked" else NOTHING,
        )
    )
    both: Step = CountdownLatch((Group("here", 1),), ForkJoin((Sequence((write, read)),), 0))
    both = ReplicaSet("asked", ORDER, turn + 1, Pick("reader", "asked", "first", both))
    return RequestClass("probe", ReplicaSet("asked-before", ORDER, turn, both) if turn else both)


def _at_reader(mean_s: Any, name: str) -> Visit:
    return Visit(NODES, Erlang(mean_s, STAGES), name=name, member="reader")


def _marked(step: Any, mark: Step) -> Any:
    """Return the step with a mark behind the mutations at the nodes of the reader's data centre."""
    made = step
    for field in ("steps", "branches", "targets"):
        if hasattr(step, field):
            inner = []
            for child in getattr(step, field):
                inner.append(_marked(child, mark))
                if isinstance(child, Visit) and child.name == "mutation" and child.station == NODES:
                    inner.append(mark)
            made = replace(step, **{field: tuple(inner)})
    for field in ("step", "then", "otherwise"):
        if hasattr(step, field):
            made = replace(made, **{field: _marked(getattr(step, field), mark)})
    return made


def _ends_s(network: Network, run: tuple[float, float, int, Engine]) -> FloatArray:
    duration_s, warmup_s, seed, engine = run
    requests = simulate(network, duration_s, seed=seed, trace=True, engine=engine).requests
    mine = [number for number, each in enumerate(network.classes) if each.name == "probe"]
    chosen = np.isin(requests.request_class, mine) & (requests.start_ticks > warmup_s * 1e9)
    return np.asarray(requests.end_ticks[chosen] / 1e9)
