"""The models of the benchmark in capplan's language, and the numbers of the three-data-centre flow for others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from settings import (
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_REPLICAS,
    QUORUM_SERVICE_S,
)

from capplan.models.cassandra.cluster import LOCAL_READ_REPAIR_CHANCE, NATIVE_TRANSPORT_THREADS
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import ForkJoin, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.systems.openprovider.network import build_cluster, network
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

FLOW_PEAK_PER_S = 10_500.0  # what the document says three data centres carry, in bursts: evidence ts4.incoming
CLASSES = ("auth", "start", "update")


@lru_cache
def mm4(rate_per_s: float = MM4_RATE_PER_S) -> Network:
    """M/M/4."""
    flow = Visit("server", Exponential(MM4_SERVICE_S))
    return _single_class("M/M/4", (Station("server", MM4_SERVERS),), RequestClass("request", flow), rate_per_s)


@lru_cache
def quorum() -> Network:
    """2-of-3 quorum; the third answer comes late and still does its work."""
    names = [f"replica{number}" for number in range(QUORUM_REPLICAS)]
    flow = ForkJoin(tuple(Visit(name, Exponential(QUORUM_SERVICE_S)) for name in names), QUORUM_NEEDED)
    stations = tuple(Station(name, 1) for name in names)
    return _single_class("quorum", stations, RequestClass("request", flow), QUORUM_RATE_PER_S)


def _single_class(name: str, stations: tuple[Station, ...], request: RequestClass, rate_per_s: float) -> Network:
    return Network(name=name, stations=stations, classes=(request,), traffic=Open(rate_per_s, {request.name: 1.0}))


@lru_cache
def flow(discipline: str) -> Network:
    """TS4 with the median of the calibration, at the mean rate of traffic with the documented peak, without its bursts.

    Bursts of a second would decide the percentiles of runs that are seconds long, and the storage path, for which
    nobody waits, is overloaded in them. `discipline` is that of all cores: `ps` as calibrated, or `fcfs`.
    """
    built = network(OpenproviderScenario(), _values(), FLOW_PEAK_PER_S)
    stations = tuple(replace(station, discipline=discipline) for station in built.stations if station.servers > 1)
    storage = tuple(station for station in built.stations if station.servers == 1)
    return replace(built, stations=(*stations, *storage), traffic=Open(flow_rate_per_s(), {"session": 1.0}))


def _values() -> dict[str, float]:
    """Return the calibrated parameters of the flow; messages between nodes cost nothing there, to keep it short."""
    openprovider = system("openprovider")
    return {
        **openprovider.median_values(openprovider.fitted(), OpenproviderScenario(data_factor=1.0)),
        "message_share": 0.0,
    }


def flow_rate_per_s() -> float:
    """Mean rate of the calibrated traffic, requests per second over all data centres."""
    return FLOW_PEAK_PER_S / (1 + _values()["burst_excess"])


@dataclass(frozen=True)
class FlowNumbers:
    """The flow of TS4 as plain numbers (seconds): all that a hand-written simulation needs to know."""

    dcs: int
    nodes: int
    fronts: int
    workers: int
    queue_limit: int
    front_cores: int
    node_cores: int
    threads: int
    front_s: float
    parse_s: float
    read_s: float
    mutation_s: float
    unseen: float
    storage_s: float
    gap_s: float
    lan_s: float
    wan_s: float
    repair_chance: float
    write_needed: int
    read_needed: int
    updates: int
    rate_per_s: float


@lru_cache
def flow_numbers() -> FlowNumbers:
    """Return the numbers that `flow` is built from."""
    scenario, values = OpenproviderScenario(), _values()
    cluster = build_cluster(scenario, values)
    return FlowNumbers(
        dcs=scenario.dcs,
        nodes=scenario.cass_nodes,
        fronts=scenario.front_nodes,
        workers=scenario.front_workers,
        queue_limit=int(values["queue_limit"]),
        front_cores=scenario.front_cores,
        node_cores=scenario.node_cores,
        threads=NATIVE_TRANSPORT_THREADS,
        front_s=values["front_s"],
        parse_s=values["coordinator_s"],
        read_s=values["replica_read_s"],
        mutation_s=values["mutation_s"],
        unseen=values["unseen_work"],
        storage_s=values["storage_s"],
        gap_s=values["gap_s"],
        lan_s=float(cluster.lan_s),
        wan_s=float(cluster.wan_s[0][1]),
        repair_chance=LOCAL_READ_REPAIR_CHANCE,
        write_needed=cluster.need(scenario.consistency_write, 0).total,
        read_needed=cluster.need(scenario.consistency_read, 0).by_dc[0],
        updates=network(scenario, values, 1.0).sessions[0].classes.count("update"),
        rate_per_s=flow_rate_per_s(),
    )
