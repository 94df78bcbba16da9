"""The `arion` system: gRPC masters that answer the lookups of many clients from Hazelcast.

Evidence: source `arion`, load tests of one master with 96 vCPUs. A client sends a request to its master and waits for
the answer before the next one; the masters share the clients equally. The number of requests in the system is therefore
at most the number of clients, and latency is at most that with all clients waiting. Latency counts from the time at
which a client sends its request.

Hypotheses: the document gives only a highest rate and mean times. Here a master serves 20 requests at once, each as
fast as when it is alone. This number is about the product of rate and time, 40,000 per second and 0.6 ms. The document
does not state the cause (threads, connections to Hazelcast, a lock, or the load generator), and the figures cannot
separate Hazelcast's share of the time from the master's. Each waiting request slows the others slightly, so throughput
droops. `docs/decisions/0012-how-arion-is-modelled.md` describes how the figures are interpreted.
"""

from __future__ import annotations

from collections.abc import Sequence as Listed

import numpy as np
from scipy import special

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.station import RateTable, Station
from capplan.models.language.step import Choice, Delay, ForkJoin, Pick, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number, plain
from capplan.models.solver.single_station import closed_throughputs_per_s, mean_number, mmc, speeds
from capplan.systems.arion.scenario import ArionScenario

AT_ONCE = 20
"""Requests that a master serves at once: the whole number that fits best, not a documented figure. The 96 vCPUs of a
master are not the limit."""
DROOP = 0.05
"""Share of throughput lost with 1,000 requests at a master: a guess; the document says "slightly"."""
LONG_QUEUE = 1000  # highest measured number of clients per master
FEW = 64  # clients per master below which they may be the bottleneck: AT_ONCE in service, and a few in the network
RECORDS = 100_000  # of a watch: evidence watch.records
GROWN = 0.98
"""Share of the highest throughput at which growth "almost stops": a guess; a chart does not show the other 2 %."""
READ = "read"
REPORTED = {READ: (READ,)}
_NEAREST = 0.998  # highest share of saturation in closed forms; any closer, a queue takes minutes to settle
_MOST_AT_ONCE = 160  # highest number of clients in the search for the last useful one


def _drooping() -> RateTable:
    """Return the speed of a server with 1 to 1,000 requests at the master; each waiting request slows it down."""
    waiting = np.maximum(np.arange(1.0, LONG_QUEUE + 1) - AT_ONCE, 0.0)
    cost = DROOP / (1 - DROOP) / waiting[-1]
    return RateTable(tuple((1 / (1 + cost * waiting)).tolist()))


_RATE = _drooping()
_SPEEDS = speeds(Station("master", AT_ONCE, rate=_RATE))


def network(scenario: ArionScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the network.

    Parameters
    ----------
    scenario : ArionScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate, requests per second over all masters.

    Returns
    -------
    Network
        One request class, `read`; Poisson arrivals. If clients are so few that they may be the bottleneck, each request
        also keeps a client busy, at a station that limits the rate and adds no wait.
    """
    groups = _sizes(scenario).items()
    stations = [Station(_group("master", scenario, size), AT_ONCE, rate=_RATE, count=count) for size, count in groups]
    if clients_are_few(scenario):
        stations += [Station(_group("clients", scenario, size), size, count=count) for size, count in groups]
    return Network(
        name=scenario.system,
        stations=tuple(stations),
        classes=(RequestClass(READ, _shared(scenario, values)),),
        traffic=Open(rate_per_s, {READ: 1.0}),
    )


def _shared(scenario: ArionScenario, values: Values) -> Step:
    """Return the flow of requests to masters; all clients send independently at the same rate."""
    groups = _sizes(scenario)
    picks = tuple(
        Pick("chosen", _group("master", scenario, size), "random", _to_master(scenario, values, size), name="master")
        for size in groups
    )
    if len(picks) == 1:
        return picks[0]
    shares = tuple(size * count / scenario.clients for size, count in groups.items())
    return Choice(shares, picks, name="group")


def clients_are_few(scenario: ArionScenario) -> bool:
    """Whether the clients may be the bottleneck; never for streaming clients, which do not wait for answers."""
    return scenario.stream_messages == 1 and scenario.clients < FEW * scenario.servers


def _to_master(scenario: ArionScenario, values: Values, size: int) -> Step:
    """Return the flow of a request to a master with `size` clients."""
    half, work = Deterministic(values["network_s"] / 2), Exponential(demand_s(scenario, values))
    served = Visit(_group("master", scenario, size), work, name="work", member="chosen")
    steps = (Delay(half, name="there"), served, Delay(half, name="back"))
    if not clients_are_few(scenario):
        return Sequence(steps)
    busy_s = _all_waiting_s(scenario, values, size)
    held = Deterministic(plain(busy_s if busy_s.size > 1 else busy_s[0]))  # an engine takes plain numbers
    busy = Visit(_group("clients", scenario, size), held, name="busy", member="chosen")
    return Sequence((ForkJoin((busy,), 0, name="client"), *steps))


def _sizes(scenario: ArionScenario) -> dict[int, int]:
    """Return the number of masters by clients per master, most clients first."""
    each, over = divmod(scenario.clients, scenario.servers)
    return {size: count for size, count in ((each + 1, over), (each, scenario.servers - over)) if count}


def _group(kind: str, scenario: ArionScenario, size: int) -> str:
    """Return the station name of masters with `size` clients; a single name if all have equally many."""
    return kind if len(_sizes(scenario)) == 1 else f"{kind}/of-{size}"


def demand_s(scenario: ArionScenario, values: Values) -> Number:
    """Return the service demand of a request at a master, seconds.

    A message of a stream costs a share of a call. The messages of the stream divide the remaining cost of the call.
    """
    share = np.minimum(values["message_share"], 1.0)
    return values["service_s"] * (share + (1 - share) / scenario.stream_messages)


def unloaded_s(scenario: ArionScenario, values: Values) -> Number:
    """Return the mean response time without other requests, seconds."""
    return demand_s(scenario, values) + values["network_s"]


def peak_per_s(scenario: ArionScenario, values: Values) -> Number:
    """Return the highest throughput of all masters, requests per second: all are busy, and no request waits."""
    return scenario.servers * AT_ONCE / demand_s(scenario, values)


def drooped_per_s(scenario: ArionScenario, values: Values) -> Number:
    """Return the throughput of all masters with 1,000 or more requests each, requests per second."""
    return peak_per_s(scenario, values) * (1 - DROOP)


def response_s(scenario: ArionScenario, values: Values, rate_per_s: Number) -> FloatArray:
    """Return the mean response time from the time at which a client sends its request, seconds (draws,).

    At each master it is that of open traffic, but at most that with all its clients waiting, as closed clients imply.
    It is infinite only for streams, if the rate exceeds the throughput with a long queue.
    """
    rate, mean_s = np.asarray(rate_per_s, dtype=float), np.zeros(1)
    for size, count in _sizes(scenario).items():
        share = size / scenario.clients
        open_s = _open_s(scenario, values, rate * share)
        mean_s = mean_s + count * share * np.minimum(open_s, _bound_s(scenario, values, size))
    return mean_s


def _open_s(scenario: ArionScenario, values: Values, each_per_s: FloatArray) -> FloatArray:
    """Return the mean response time of one master with open traffic, seconds."""
    demand = np.atleast_1d(demand_s(scenario, values))
    return np.asarray(mean_number(each_per_s * demand, _SPEEDS) / each_per_s + values["network_s"])


def _bound_s(scenario: ArionScenario, values: Values, clients: int) -> FloatArray:
    """Return the mean response time when all clients of a master wait, seconds; infinite for streams."""
    return _all_waiting_s(scenario, values, clients) if scenario.stream_messages == 1 else np.array([np.inf])


def _all_waiting_s(scenario: ArionScenario, values: Values, clients: int) -> FloatArray:
    """Return the mean response time of one master's clients without think time, seconds, by Little's law."""
    if clients <= LONG_QUEUE + FEW:
        return np.asarray(clients / closed_per_s(scenario, values, [clients])[:, 0])
    return np.asarray(clients * scenario.servers / np.atleast_1d(drooped_per_s(scenario, values)))


def closed_per_s(scenario: ArionScenario, values: Values, clients: Listed[int], think_s: Number = 0.0) -> FloatArray:
    """Return the throughput of one master with closed traffic.

    Parameters
    ----------
    scenario, values
        The layout, whose number of clients is ignored, and parameter values.
    clients : sequence of int
        Numbers of clients of the master.
    think_s : number
        Think time between an answer and the next request, seconds.

    Returns
    -------
    array (draws, numbers)
        Requests per second.
    """
    demand, delay = np.atleast_1d(demand_s(scenario, values)), np.atleast_1d(values["network_s"] + think_s)
    demand, delay = np.broadcast_arrays(demand, delay)
    return closed_throughputs_per_s(demand, _SPEEDS, delay, clients)


def useful_clients(scenario: ArionScenario, values: Values) -> FloatArray:
    """Return the number of clients without think time above which a master's throughput hardly grows (draws,)."""
    grown = closed_per_s(scenario, values, range(1, _MOST_AT_ONCE + 1))
    grown = grown / grown.max(axis=-1, keepdims=True)
    first = np.argmax(grown >= GROWN, axis=-1)  # index, which is one less than the number of clients
    rows = np.arange(len(grown))
    above, below = grown[rows, first], np.where(first > 0, grown[rows, first - 1], 0.0)
    return np.asarray(first + (GROWN - below) / (above - below))


def paced_response_s(scenario: ArionScenario, values: Values) -> FloatArray:
    """Return the mean response time of one master's clients with think time, seconds (draws,).

    A single client sends `paced_per_s` requests per second. Its think time is the same when answers come later.
    """
    think = np.maximum(1 / values["paced_per_s"] - unloaded_s(scenario, values), 0.0)
    return np.asarray(scenario.clients / closed_per_s(scenario, values, [scenario.clients], think)[:, 0] - think)


def watch_s(values: Values, records: int = RECORDS, direct: bool = False) -> Number:
    """Return the duration of a watch of `records` records, through a master or directly from Hazelcast, seconds."""
    return records * (values["hazelcast_record_s"] + (0.0 if direct else values["master_record_s"]))


def latency_s(scenario: ArionScenario, values: Values, rate_per_s: Number, level: float | None) -> FloatArray:
    """Return a percentile of the response time, or the mean if `level` is None, in closed form, seconds (draws,).

    It counts from the time at which a client sends its request; see `response_s`. Percentiles are those of the masters
    with most clients.
    """
    if level is None:
        return response_s(scenario, values, rate_per_s)
    size = max(_sizes(scenario))
    each = np.asarray(rate_per_s, dtype=float) * size / scenario.clients
    station = mmc(each, demand_s(scenario, values), AT_ONCE)
    settles = np.isfinite(_open_s(scenario, values, each))
    work_s = np.where(settles, station.response_quantile_s(level), np.inf)
    if scenario.stream_messages == 1:
        work_s = np.minimum(work_s, _all_waiting_quantile_s(scenario, values, size, level))
    return np.asarray(work_s + values["network_s"])


def _all_waiting_quantile_s(scenario: ArionScenario, values: Values, clients: int, level: float) -> FloatArray:
    """Return a percentile of the time at a master with all its clients waiting, seconds.

    The requests ahead leave one by one, and then the request itself is served. A shifted gamma distribution matches
    three moments of this sum; it is exact if no request is ahead.
    """
    whole, demand = _all_waiting_s(scenario, values, clients), demand_s(scenario, values)
    mean, each = whole - values["network_s"], whole / clients
    before = np.maximum(mean - demand, 0.0) / each
    variance, third = before * each**2 + demand**2, 2 * (before * each**3 + demand**3)
    shape, scale = 4 * variance**3 / third**2, third / (2 * variance)
    return np.asarray(mean + scale * (special.gammaincinv(shape, level) - shape))


def sustained_per_s(scenario: ArionScenario, values: Values) -> FloatArray:
    """Return the highest rate that masters and clients sustain, requests per second over all masters (draws,)."""
    each = np.atleast_1d(drooped_per_s(scenario, values)) / scenario.servers
    if clients_are_few(scenario):
        sizes = np.array([list(_sizes(scenario))])
        asked = np.stack([size / _all_waiting_s(scenario, values, size) for size in _sizes(scenario)], axis=-1)
        return np.asarray((np.minimum(asked, each[:, None]) / sizes).min(axis=-1) * scenario.clients)
    return np.asarray(each * scenario.clients / max(_sizes(scenario)))


def settling_s(scenario: ArionScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
    """Return the settling time of the slowest draw from empty: four relaxation times of its queue, seconds."""
    full = sustained_per_s(scenario, values)
    share = np.minimum(np.asarray(rate_per_s / full), _NEAREST)
    each = scenario.servers / full / (1 - np.sqrt(share)) ** 2  # of M/M/1 at this speed (Morse 1955)
    return np.asarray(4 * np.max(np.maximum(each, unloaded_s(scenario, values))))
