"""LINE: its discrete-event simulator LDES (a native program in the wheel), and SSA, its simulator in Python."""

from __future__ import annotations

from typing import Any

from line_solver import (
    LDES,
    SSA,
    Exp,
    Fork,
    GlobalConstants,
    Join,
    JoinStrategy,
    Network,
    OpenClass,
    Queue,
    SchedStrategy,
    Sink,
    Source,
    VerboseLevel,
)
from settings import (
    MM4_BUSY_RATE_PER_S,
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_REPLICAS,
    QUORUM_SERVICE_S,
)

GlobalConstants.set_verbose(VerboseLevel.SILENT)


def mm4(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 in LDES: as many service completions as requests."""
    return {"mean_s": _response(LDES(_mm4(), seed=seed, samples=requests))}


def busy(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 at 95 % load in LDES."""
    return {"mean_s": _response(LDES(_mm4(MM4_BUSY_RATE_PER_S), seed=seed, samples=requests))}


def mm4_ssa(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 in SSA, whose samples are events: an arrival and a completion per request."""
    return {"mean_s": _response(SSA(_mm4(), seed=seed, samples=2 * requests))}


def quorum(requests: int, seed: int) -> dict[str, float]:
    """2-of-3 quorum in LDES: three service completions per request."""
    solver = LDES(_quorum(), seed=seed, samples=QUORUM_REPLICAS * requests)
    return {"mean_s": float(solver.avg_sys_table()["SysRespT"].iloc[0])}


def _response(solver: Any) -> float:
    table = solver.avg_table()
    return float(table[table["Station"] == "server"]["RespT"].iloc[0])


def _mm4(rate_per_s: float = MM4_RATE_PER_S) -> Network:
    model = Network("M/M/4")
    source, server, sink = Source(model, "source"), Queue(model, "server", SchedStrategy.FCFS), Sink(model, "sink")
    server.set_number_of_servers(MM4_SERVERS)
    request = OpenClass(model, "request")
    source.set_arrival(request, Exp(rate_per_s))
    server.set_service(request, Exp(1 / MM4_SERVICE_S))
    model.link(Network.serial_routing(source, server, sink))
    return model


def _quorum() -> Network:
    model = Network("quorum")
    source, fork, sink = Source(model, "source"), Fork(model, "fork"), Sink(model, "sink")
    replicas = [Queue(model, f"replica{number}", SchedStrategy.FCFS) for number in range(QUORUM_REPLICAS)]
    join = Join(model, "join", fork)
    request = OpenClass(model, "request")
    source.set_arrival(request, Exp(QUORUM_RATE_PER_S))
    join.setStrategy(request, JoinStrategy.PARTIAL)
    join.setRequired(request, QUORUM_NEEDED)
    routes = model.init_routing_matrix()
    routes.set(request, request, source, fork, 1.0)
    for replica in replicas:
        replica.set_service(request, Exp(1 / QUORUM_SERVICE_S))
        routes.set(request, request, fork, replica, 1.0)
        routes.set(request, request, replica, join, 1.0)
    routes.set(request, request, join, sink, 1.0)
    model.link(routes)
    return model
