"""The bottleneck names what limits the capacity, which need not be a station."""

from typing import Any

from capplan.layout.solution import Solution
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

OPENPROVIDER = system("openprovider")
VALUES = OPENPROVIDER.median_values(OPENPROVIDER.fitted(), OpenproviderScenario(data_factor=1.0))


def solution(**fields: Any) -> Solution:
    return OPENPROVIDER.solution(OpenproviderScenario(**{"data_factor": 1.0, **fields}), VALUES)


def bottleneck(**fields: Any) -> str:
    return solution(**fields).bottleneck


def test_stations_bound_the_documented_layouts() -> None:
    assert bottleneck(dcs=1, front_nodes=1) == "cassandra"
    assert bottleneck(dcs=2) == "cassandra"
    assert bottleneck(dcs=3) == "cassandra-storage"


def test_few_workers_or_a_long_round_trip_make_the_workers_the_bottleneck() -> None:
    assert bottleneck(dcs=3, front_workers=1) == "workers"
    assert bottleneck(dcs=3, rtt="100ms") == "workers"


def test_many_workers_behind_a_very_long_round_trip_fill_the_native_transport_threads() -> None:
    layout = solution(dcs=3, rtt="1s", front_workers=1024)
    assert layout.bottleneck == "native-transport"
    # 9 nodes of 128 threads, held for one round trip by the 7 of 8 messages that write
    assert layout.capacity[0] < 9 * 128 / (7 / 8 * 1.0) * (1 + VALUES["burst_excess"])
