"""The `arion` system: gRPC masters that answer the lookups of many clients from Hazelcast.

Facts and figures: evidence source `arion` (load tests of one master with 96 vCPUs). A client asks one master and waits
for its answer before it asks again; the masters share the clients. So no more requests are under way than there are
clients, and a request takes at most what it takes when all of them wait. Times count from when a client asks.

Hypotheses, since the document gives a highest rate and mean times only: a master works on 20 requests at once, however
many are inside, and each takes as long as when it is alone. That is about rate times time, 40,000 per second and 0.6
ms; what it is (threads, connections to Hazelcast, a lock, or the load generator) is not said. Hazelcast's part
of that time cannot be told from the master's. Each request that waits costs the others a little, so that throughput
droops. `docs/decisions/0012-how-arion-is-modelled.md` tells how its figures are read.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Listed

import numpy as np
from scipy import special

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.station import RateTable, Station
from capplan.models.language.step import Choice, Delay, ForkJoin, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number, plain
from capplan.models.solver.load_dependent import closed_throughputs_per_s, mean_number, speeds
from capplan.models.solver.single_station import mmc
from capplan.systems.arion.scenario import ArionScenario

AT_ONCE = 20
"""Requests that a master works on at once: the whole number that fits best, no documented figure. A master has 96
vCPUs, so they are not what bounds it."""
DROOP = 0.05
"""Share of the throughput that is lost with 1,000 requests inside a master: a guess, the document says slightly."""
LONG_QUEUE = 1000  # the most clients of one master that were measured
FEW = 64  # clients of each master: fewer may be what runs out, since AT_ONCE are worked on and a few are on the way
RECORDS = 100_000  # of a watch: evidence watch.records
GROWN = 0.98
"""Share of the highest throughput with which it almost stops growing: a guess, the 2 % that a chart does not show."""
READ = "read"
REPORTED = {READ: (READ,)}
_NEAREST = 0.998  # of saturation, in closed forms: nearer, a queue takes minutes to settle
_MOST_AT_ONCE = 160  # clients among which the last useful one is searched

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("service_s", 0.5e-3, "s", "fitted", 0.7, "wide prior: a lookup takes a master 0.15 to 1.6 ms"),
    Parameter(
        "network_s",
        0.1e-3,
        "s",
        "guess",
        0.5,
        "a round trip within a data centre, 0.04 to 0.23 ms: where the clients stood is not said",
    ),
    Parameter(
        "paced_per_s",
        150.0,
        "1/s",
        "prior",
        0.03,
        "about 150 requests per second of each client (evidence clients30.client_rps): 2 % of rounding and 2 % of "
        "repeating",
    ),
    Parameter(
        "message_share",
        0.1,
        "1",
        "guess",
        1.0,
        "work of a message of a long stream over that of a call: a record of a watch takes 2.5 %, much better than a "
        "call is at most half",
    ),
    Parameter("hazelcast_record_s", 10e-6, "s", "fitted", 1.0, "wide prior: Hazelcast streams a record in 2 to 50 us"),
    Parameter("master_record_s", 10e-6, "s", "fitted", 1.0, "wide prior: a master passes a record on in 2 to 50 us"),
)
"""`paced_per_s` is about the document's test of clients alone; the last two are about a watch."""


def _drooping() -> RateTable:
    """Speed of a server with 1 .. 1,000 requests inside: each that waits makes the others take so much longer."""
    waiting = np.maximum(np.arange(1.0, LONG_QUEUE + 1) - AT_ONCE, 0.0)
    cost = DROOP / (1 - DROOP) / waiting[-1]
    return RateTable(tuple((1 / (1 + cost * waiting)).tolist()))


_RATE = _drooping()
_SPEEDS = speeds(Station("master", AT_ONCE, rate=_RATE))


def network(scenario: ArionScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the system.

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
        One request class, `read`; Poisson arrivals. Where clients are so few that they may be what runs out, each
        request keeps one of them busy as well: a station that nobody waits for, and that bounds what is carried.
    """
    return _network(scenario, values, rate_per_s, range(scenario.servers))


def folded(scenario: ArionScenario, values: Values, rate_per_s: Number) -> Network | None:
    """Compose the system as the clients of its first master see it, for an `Analysis` with `alike=kind_of`.

    None where some masters have a client more than others.
    """
    if scenario.clients % scenario.servers:
        return None
    return _network(scenario, values, rate_per_s, range(1))


def _network(scenario: ArionScenario, values: Values, rate_per_s: Number, entries: range) -> Network:
    masters = range(scenario.servers)
    stations = [Station(_master(number), AT_ONCE, rate=_RATE) for number in masters]
    if clients_are_few(scenario):
        stations += [Station(_clients(number), _clients_of(scenario, number)) for number in masters]
    return Network(
        name=scenario.system,
        stations=tuple(stations),
        classes=(RequestClass(READ, _shared(scenario, values, entries)),),
        traffic=Open(rate_per_s, {READ: 1.0}),
    )


def _shared(scenario: ArionScenario, values: Values, entries: range) -> Step:
    """Return how requests come to masters: each client asks its own, all as often, and they are not in step."""
    steps = {size: _to_masters(scenario, values, size) for size in _sizes(scenario)}
    targets = tuple(steps[_clients_of(scenario, number)](number) for number in entries)
    if scenario.clients % scenario.servers == 0:
        return Route("random", targets, name="master")
    shares = tuple(_clients_of(scenario, number) / scenario.clients for number in entries)
    return Choice(shares, targets, name="master")


def clients_are_few(scenario: ArionScenario) -> bool:
    """Whether the clients may run out before the masters: in a stream a client need not wait for an answer."""
    return scenario.stream_messages == 1 and scenario.clients < FEW * scenario.servers


def _to_masters(scenario: ArionScenario, values: Values, size: int) -> Callable[[int], Step]:
    """Return what one request does, by master, for masters with so many clients: there and back."""
    half, work = Deterministic(values["network_s"] / 2), Exponential(demand_s(scenario, values))
    there, back = Delay(half, name="there"), Delay(half, name="back")
    if not clients_are_few(scenario):
        return lambda number: Sequence((there, Visit(_master(number), work, name="work"), back))
    busy_s = _all_waiting_s(scenario, values, size)
    held = Deterministic(plain(busy_s if busy_s.size > 1 else busy_s[0]))  # an engine takes plain numbers

    def step(number: int) -> Step:
        client = ForkJoin((Visit(_clients(number), held, name="busy"),), 0, name="client")
        return Sequence((client, there, Visit(_master(number), work, name="work"), back))

    return step


def _clients_of(scenario: ArionScenario, number: int) -> int:
    """Clients of one master: an equal part, the first ones take what is left over."""
    each, over = divmod(scenario.clients, scenario.servers)
    return each + (number < over)


def _sizes(scenario: ArionScenario) -> dict[int, int]:
    """Return how many masters have how many clients, those with more first."""
    each, over = divmod(scenario.clients, scenario.servers)
    return {size: count for size, count in ((each + 1, over), (each, scenario.servers - over)) if count}


def _master(number: int) -> str:
    return f"master/{number + 1}"


def _clients(number: int) -> str:
    return f"clients/{number + 1}"


def demand_s(scenario: ArionScenario, values: Values) -> Number:
    """Mean time that a master works on a request, seconds.

    A message of a stream costs a share of a call, and a part of the call's rest: all of it where it is alone.
    """
    share = np.minimum(values["message_share"], 1.0)
    return values["service_s"] * (share + (1 - share) / scenario.stream_messages)


def unloaded_s(scenario: ArionScenario, values: Values) -> Number:
    """Mean response when nobody else asks, seconds."""
    return demand_s(scenario, values) + values["network_s"]


def peak_per_s(scenario: ArionScenario, values: Values) -> Number:
    """Highest throughput of all masters, requests per second: nobody waits, and none of them is idle."""
    return scenario.servers * AT_ONCE / demand_s(scenario, values)


def drooped_per_s(scenario: ArionScenario, values: Values) -> Number:
    """Throughput of all masters with 1,000 and more requests inside each: what they carry whatever waits."""
    return peak_per_s(scenario, values) * (1 - DROOP)


def response_s(scenario: ArionScenario, values: Values, rate_per_s: Number) -> FloatArray:
    """Mean response from when a client asks, seconds (draws,).

    Each master answers as to open traffic, but at most as when all its clients wait for it: the law of closed clients.
    Infinite only for streams, where the masters cannot do it with a long queue.
    """
    rate, found = np.asarray(rate_per_s, dtype=float), np.zeros(1)
    for size, count in _sizes(scenario).items():
        share = size / scenario.clients
        open_s = _open_s(scenario, values, rate * share)
        found = found + count * share * np.minimum(open_s, _bound_s(scenario, values, size))
    return found


def _open_s(scenario: ArionScenario, values: Values, each_per_s: FloatArray) -> FloatArray:
    """Mean response of one master to open traffic, seconds."""
    demand = np.atleast_1d(demand_s(scenario, values))
    return np.asarray(mean_number(each_per_s * demand, _SPEEDS) / each_per_s + values["network_s"])


def _bound_s(scenario: ArionScenario, values: Values, clients: int) -> FloatArray:
    """Mean response when all clients of a master wait for it; in a stream a client need not wait."""
    return _all_waiting_s(scenario, values, clients) if scenario.stream_messages == 1 else np.array([np.inf])


def _all_waiting_s(scenario: ArionScenario, values: Values, clients: int) -> FloatArray:
    """Mean response of so many clients of one master that ask again at once, seconds: Little's law."""
    if clients <= LONG_QUEUE + FEW:
        return np.asarray(clients / closed_per_s(scenario, values, [clients])[:, 0])
    return np.asarray(clients * scenario.servers / np.atleast_1d(drooped_per_s(scenario, values)))


def closed_per_s(scenario: ArionScenario, values: Values, clients: Listed[int], think_s: Number = 0.0) -> FloatArray:
    """Throughput of one master with so many clients that each wait for their answer, per second (draws, numbers).

    Parameters
    ----------
    scenario, values
        The layout (its number of clients is not used) and parameter values.
    clients
        Numbers of clients of that master.
    think_s
        Time of a client's own between an answer and its next request, seconds.
    """
    demand, delay = np.atleast_1d(demand_s(scenario, values)), np.atleast_1d(values["network_s"] + think_s)
    demand, delay = np.broadcast_arrays(demand, delay)
    return closed_throughputs_per_s(demand, _SPEEDS, delay, clients)


def useful_clients(scenario: ArionScenario, values: Values) -> FloatArray:
    """Clients of one master, asking again at once, with which throughput almost stops growing (draws,)."""
    grown = closed_per_s(scenario, values, range(1, _MOST_AT_ONCE + 1))
    grown = grown / grown.max(axis=-1, keepdims=True)
    first = np.argmax(grown >= GROWN, axis=-1)  # the first place, so one less in number: interpolate from there
    rows = np.arange(len(grown))
    above, below = grown[rows, first], np.where(first > 0, grown[rows, first - 1], 0.0)
    return np.asarray(first + (GROWN - below) / (above - below))


def paced_response_s(scenario: ArionScenario, values: Values) -> FloatArray:
    """Mean response of all clients of one master with a time of their own between requests, seconds (draws,).

    Alone, a client asks `paced_per_s` times a second; it takes as long of its own when answers come later.
    """
    think = np.maximum(1 / values["paced_per_s"] - unloaded_s(scenario, values), 0.0)
    return np.asarray(scenario.clients / closed_per_s(scenario, values, [scenario.clients], think)[:, 0] - think)


def watch_s(values: Values, records: int = RECORDS, direct: bool = False) -> Number:
    """Time of a watch that brings so many records, through a master or directly from Hazelcast; seconds."""
    return records * (values["hazelcast_record_s"] + (0.0 if direct else values["master_record_s"]))


def latency_s(scenario: ArionScenario, values: Values, rate_per_s: Number, level: float | None) -> FloatArray:
    """Return the response that a share `level` of the requests does not exceed, or the mean; seconds, over draws.

    In closed form, from when a client asks; see `response_s`. Percentiles are those of the masters with most clients.
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
    """Return a percentile of the time at a master whose clients all wait for it; seconds.

    Those before it leave one by one, then it is worked on: a shifted gamma law with three moments of that sum,
    exact where nobody is before it.
    """
    whole, demand = _all_waiting_s(scenario, values, clients), demand_s(scenario, values)
    mean, each = whole - values["network_s"], whole / clients
    before = np.maximum(mean - demand, 0.0) / each
    variance, third = before * each**2 + demand**2, 2 * (before * each**3 + demand**3)
    shape, scale = 4 * variance**3 / third**2, third / (2 * variance)
    return np.asarray(mean + scale * (special.gammaincinv(shape, level) - shape))


def carried_per_s(scenario: ArionScenario, values: Values) -> FloatArray:
    """Highest rate at which neither a master nor its clients run out, requests per second over all masters."""
    each = np.atleast_1d(drooped_per_s(scenario, values)) / scenario.servers
    if clients_are_few(scenario):
        sizes = np.array([list(_sizes(scenario))])
        asked = np.stack([size / _all_waiting_s(scenario, values, size) for size in _sizes(scenario)], axis=-1)
        return np.asarray((np.minimum(asked, each[:, None]) / sizes).min(axis=-1) * scenario.clients)
    return np.asarray(each * scenario.clients / max(_sizes(scenario)))


def settling_s(scenario: ArionScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
    """Return how long the slowest draw takes to settle from empty: four relaxation times of its queue; seconds."""
    full = carried_per_s(scenario, values)
    share = np.minimum(np.asarray(rate_per_s / full), _NEAREST)
    each = scenario.servers / full / (1 - np.sqrt(share)) ** 2  # of M/M/1 at this speed (Morse 1955)
    return np.asarray(4 * np.max(np.maximum(each, unloaded_s(scenario, values))))
