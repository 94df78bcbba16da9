"""Networks small enough to work out by hand, in milliseconds."""

from typing import Literal

from capplan.models.distribution import Deterministic
from capplan.models.network import Network
from capplan.models.station import Pool, Station
from capplan.models.step import Delay, Hold, Sequence, Step, Visit
from capplan.models.traffic import Closed, RequestClass, Session
from capplan.simulator.reference import simulate
from capplan.simulator.run import Run, Status

MS = 1_000_000  # ticks
COMPLETED, DROPPED, TIMED_OUT = Status.COMPLETED, Status.DROPPED, Status.TIMED_OUT


def ms(value: float) -> Deterministic:
    return Deterministic(value / 1000)


def wait(value: float, name: str = "") -> Delay:
    return Delay(ms(value), name=name)


def visit(value: float, station: str = "server") -> Visit:
    return Visit(station, ms(value))


def hold(step: Step, pool: str = "pool") -> Hold:
    return Hold(pool, step)


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


def ends_ms(run: Run) -> list[float]:
    return [end / MS for end in run.requests.end_ticks]


def statuses(run: Run) -> list[Status]:
    return [Status(status) for status in run.requests.status]
