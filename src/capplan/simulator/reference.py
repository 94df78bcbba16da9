"""The SimPy engine: the plain reading of the queueing-network language.

One SimPy process per request and per branch of a fork does what the flow says; stations and pools are queues that
wake processes. Time is an integer (`clock`), events have a total order (`reference_events`), random numbers are
functions of their keys (`streams`), so the same network, seed and replication give the same run, tick by tick.
"""

from __future__ import annotations

from collections.abc import Callable

from capplan.models.errors import InputError
from capplan.models.network import Network
from capplan.models.step import Step
from capplan.models.traffic import Closed, Open
from capplan.simulator.clock import to_ticks
from capplan.simulator.reference_events import Clockwork, Happening
from capplan.simulator.reference_requests import Book, Request, Source
from capplan.simulator.reference_scope import check_scope
from capplan.simulator.reference_sharing import SharingStation
from capplan.simulator.reference_stations import HeldPool, ServingStation, Window
from capplan.simulator.reference_steps import FlowCompiler, Served
from capplan.simulator.reference_traffic import Clients, Flow, Mix, begin_closed, begin_open
from capplan.simulator.run import Run
from capplan.simulator.sampling import tick_sampler
from capplan.simulator.streams import root_key, source_key


def simulate(
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    drain: bool = True,
) -> Run:
    """Run a network once.

    Parameters
    ----------
    network
        What to run.
    duration_s
        How long traffic comes, in seconds; statistics are about the time from `warmup_s` to `duration_s`.
    seed, replication
        The random numbers: equal ones give equal runs, others give independent ones.
    warmup_s
        How much of the beginning is left out of the statistics, in seconds.
    drain
        Run requests that have started to their end, so that latencies are not censored (the default); a session does
        not start further requests after `duration_s`. Without it the run stops at `duration_s` and what is under way
        stays unfinished.

    Raises
    ------
    RefusedError
        When the network has a construct that this engine does not run yet; nothing has been run then.
    InputError
        When the durations or the seed make no sense.
    """
    check_scope(network)
    _check(duration_s, warmup_s, seed, replication)
    window = Window(to_ticks(warmup_s), to_ticks(duration_s))
    clockwork, book = Clockwork(), Book()
    stations = _stations(network, clockwork, window)
    pools = {pool.name: HeldPool(pool, clockwork, window) for pool in network.pools}
    compiler = FlowCompiler(clockwork, stations, pools)
    flows = [Flow(_from(compiler, each.flow), _ticks(each.timeout_s)) for each in network.classes]
    clients = Clients(clockwork, book, flows, window.end)
    _begin(network, clients, root_key(seed, replication))
    clockwork.work_off(None if drain else window.end)
    return Run(
        network=network.name,
        seed=seed,
        replication=replication,
        warmup_s=warmup_s,
        duration_s=duration_s,
        classes=tuple(each.name for each in network.classes),
        sources=tuple(network.traffic.mix),
        requests=book.requests(),
        stations={name: station.report() for name, station in stations.items()},
        pools={name: pool.report() for name, pool in pools.items()},
        events=clockwork.count,
    )


def _stations(network: Network, clockwork: Clockwork, window: Window) -> dict[str, Served]:
    return {
        station.name: SharingStation(station, number, clockwork, window)
        if station.discipline == "ps"
        else ServingStation(station, clockwork, window)
        for number, station in enumerate(network.stations)
    }


def _check(duration_s: float, warmup_s: float, seed: int, replication: int) -> None:
    if not 0 <= warmup_s < duration_s:
        raise InputError(f"warm-up {warmup_s:g} s of a run of {duration_s:g} s: it must be shorter than the run")
    if seed < 0 or replication < 0:
        raise InputError(f"seed {seed} and replication {replication} must not be negative")


def _from(compiler: FlowCompiler, flow: Step) -> Callable[[Request], Happening]:
    run = compiler.compile(flow)
    return lambda request: run(request, None)


def _ticks(seconds: object) -> int | None:
    return None if seconds is None else to_ticks(float(seconds))  # type: ignore[arg-type]  # no draws: check_scope refused them


def _begin(network: Network, clients: Clients, root: int) -> None:
    """Look up the sources of the traffic and let it begin."""
    traffic = network.traffic
    mix = Mix(traffic.mix, [_source(network, name, index, root) for index, name in enumerate(traffic.mix)])
    if isinstance(traffic, Open):
        begin_open(clients, traffic, mix, root)
    elif isinstance(traffic, Closed):
        begin_closed(clients, traffic, mix, root)


def _source(network: Network, name: str, index: int, root: int) -> Source:
    numbers = {each.name: number for number, each in enumerate(network.classes)}
    key = source_key(root, "source", name)
    session = next((session for session in network.sessions if session.name == name), None)
    if session is None:
        return Source(index, key, (numbers[name],))
    return Source(
        index,
        key,
        classes=tuple(numbers[request] for request in session.classes),
        gaps=tuple(tick_sampler(gap) for gap in session.gaps),
        sticky=session.route == "sticky",
    )
