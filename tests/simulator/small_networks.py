"""Networks small enough to work out by hand, in milliseconds."""

from collections.abc import Sequence as Several
from typing import Literal

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Delay, Route, Sequence, Step, Visit
from capplan.models.language.traffic import Closed, Event, Open, RequestClass, Retry, Session, Timeline, Trace
from capplan.simulator.reference.engine import simulate
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Status

MS = 1_000_000  # ticks
Timed = tuple[float, Step]  # what a request does that arrives at this time, in ms
COMPLETED, DROPPED, TIMED_OUT = Status.COMPLETED, Status.DROPPED, Status.TIMED_OUT
UNFINISHED = Status.UNFINISHED


def ms(value: float) -> Deterministic:
    return Deterministic(value / 1000)


def wait(value: float, name: str = "") -> Delay:
    return Delay(ms(value), name=name)


def visit(value: float, station: str = "server") -> Visit:
    return Visit(station, ms(value))


def hold(step: Step, pool: str = "pool") -> Acquire:
    return Acquire(pool, step)


def seq(*steps: Step) -> Sequence:
    return Sequence(steps)


def network(
    flow: Step,
    *,
    clients: int = 1,
    servers: int = 1,
    discipline: Literal["fcfs", "ps"] = "fcfs",
    pool: Pool | None = None,
    timeout_ms: float | None = None,
    think_ms: float = 1,
    session: Session | None = None,
    more: tuple[RequestClass, ...] = (),
) -> Network:
    """All clients start at 1 ms (they think first) and do `flow`; one station `server`, one pool `pool`."""
    request = RequestClass("ask", flow, timeout_s=None if timeout_ms is None else timeout_ms / 1000)
    return Network(
        "small",
        (Station("server", servers, discipline),),
        (request, *more),
        Closed(clients, ms(think_ms), {session.name if session else "ask": 1.0}),
        pools=(pool or Pool("pool", 1),),
        sessions=(session,) if session else (),
    )


def once(flow: Step, **more: object) -> Run:
    """Let each client ask once."""
    return simulate(network(flow, **more), 0.0011, seed=1)  # type: ignore[arg-type]  # fields of many types


def arrivals(times_ms: Several[float], name: str = "ask") -> Open:
    """Return open traffic that arrives at these times."""
    last_s = times_ms[-1] / 1000
    return Open(len(times_ms) / last_s, {name: 1.0}, Trace(tuple(time / 1000 for time in times_ms)))


def timeline(*events: tuple[float, str, str] | tuple[float, str, str, float], **more: float) -> Timeline:
    """Return the events (time in ms, action, target, factor); `detection`, `cold_start` in ms, `cold_speed`."""
    return Timeline(
        tuple(Event(event[0] / 1000, *event[1:]) for event in events),
        detection_s=more.get("detection", 1000) / 1000,
        cold_start_s=more.get("cold_start", 0) / 1000,
        cold_speed=more.get("cold_speed", 1.0),
    )


def arriving(
    requests: Several[Timed],
    *stations: Station,
    timeout_ms: float | None = None,
    retry: Retry | None = None,
    until_ms: float = 1000,
    **more: object,
) -> Run:
    """Let requests arrive that each do a flow of their own: (time in ms, flow), in order of time.

    There is one pool `pool` of one unit that nobody waits for, and one station `server` if none is given.
    """
    flows = tuple(flow for _, flow in requests)
    flow = flows[0] if len(flows) == 1 else Route("round_robin", flows, name="each its own")
    made = Network(
        "small",
        stations or (Station("server", 1),),
        (RequestClass("ask", flow, None if timeout_ms is None else timeout_ms / 1000, retry),),
        arrivals([time for time, _ in requests]),
        pools=(Pool("pool", 1, queue_limit=0),),
        **more,  # type: ignore[arg-type]  # fields of many types
    )
    return simulate(made, until_ms / 1000, seed=1)


def ends_ms(run: Run) -> list[float]:
    return [end / MS for end in run.requests.end_ticks]


def starts_ms(run: Run) -> list[float]:
    return [start / MS for start in run.requests.start_ticks]


def statuses(run: Run) -> list[Status]:
    return [Status(status) for status in run.requests.status]
