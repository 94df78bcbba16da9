"""Sessions of several messages on a cluster, each message in the next data centre: latencies, and rows not found.

A message reads or writes rows through a node of its data centre, as the system that the flow is taken from says. Before
the session has a row, a message reads another one, which all data centres have. The first write inserts the session's
row, later ones update it, and that of the last message deletes it. Sessions arrive at random times, whatever becomes of
the others. A message counts from its intended start: for the first one that of the session, for the others the end of
the message before and the time to think.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors import load
from capplan.lab.collectors.cassandra import Client, Load, Operation, RunningCluster, Table
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.cql import Asked, CqlTarget, Loop, Statement
from capplan.lab.collectors.cql import Flow as Requests
from capplan.lab.collectors.load import Run, doubt_cells, doubts, pause
from capplan.lab.collectors.runs_in_turn import (
    ROWS,
    Bounds,
    RoundTrip,
    create_tables,
    run_name,
    runs_left,
    seed_of,
    table_of,
)

SESSION = "session"
"""Request class of the row about whole sessions, whose drops are sessions not found."""
_MOST = 100_000
_APART = 100_000_000  # numbers of sessions of one run from those of the next
_WARM_CLIENTS = 4
_THINKS = 4096
_TABLE = "live_sessions"
_UNANSWERED = "no session was completed: check the nodes, or the levels"
_SEED = 11


@dataclass(frozen=True)
class Message:
    """A message of a session.

    Attributes
    ----------
    name : str
        Its request class.
    operations : tuple of str
        What it asks Cassandra for, one after another.
    """

    name: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class SessionLoad:
    """The sessions of a run: levels, think time, round trip and rate.

    Attributes
    ----------
    read, write : str
        Consistency levels.
    think_s : float
        Mean time from an answer to the next message of the session; exponential.
    sessions_per_s : float
        Rate at which sessions begin.
    rtt_ms : float
        Round trip between data centres.
    row_bytes : int
        Bytes of a row's value.
    """

    read: str
    write: str
    think_s: float
    sessions_per_s: float
    rtt_ms: float
    row_bytes: int = 100

    @property
    def name(self) -> str:
        """The name of this load among the loads of a cluster."""
        levels = f"{self.read}-{self.write}".lower()
        return f"{levels}-think-{1000 * self.think_s:g}ms-{self.rtt_ms:g}ms-open-{self.sessions_per_s:g}"

    def level(self, operation: Operation) -> str:
        """Return the consistency level of an operation."""
        return self.read if operation == "read" else self.write


Flow = Sequence[Message]
Key = tuple[str, str]
"""A row of a table: its run, and its request class."""


def complete(rows: Iterable[Key]) -> set[str]:
    """Return the names of the runs that have a row about whole sessions."""
    return {run for run, request_class in rows if request_class == SESSION}


def row_of(cluster: RunningCluster, load_: SessionLoad, flow: Flow) -> dict[str, Any]:
    """Return the cells of a run that are known before it, for all its messages."""
    operations = [each for message in flow for each in message.operations]
    return {
        **cluster.row(Load("write", load_.write, load_.row_bytes, rtt_ms=load_.rtt_ms)),
        "client_share": None,  # messages of a session go to several data centres
        "consistency_read": load_.read,
        "read_fraction": operations.count("read") / len(operations),
        "request_class": "all",
        "offered_tps": load_.sessions_per_s * len(flow),
    }


def measure_sessions(  # noqa: PLR0913, PLR0917  # one call site
    clusters: Sequence[RunningCluster],
    stage: str,
    flow: Flow,
    loads: Sequence[SessionLoad],
    bounds: Bounds,
    finished: Mapping[Key, LoadTestRow],
    done: Callable[[Sequence[LoadTestRow]], None],
    progress: Progress,
) -> None:
    """Measure session loads in turn with the requested repeats; skip runs that are finished.

    Parameters
    ----------
    clusters : sequence of RunningCluster
        The cluster as the clients of each data centre see it.
    stage : str
        With which the names of the runs begin.
    flow : sequence of Message
        The messages of a session.
    loads : sequence of SessionLoad
        The loads.
    bounds : Bounds
        How long and how often.
    finished : mapping of LoadTestRow
        Rows that were measured before.
    done : function
        Receives the rows of each run as soon as it is measured.
    progress : function
        Receives what is done.

    Raises
    ------
    InputError
        If no session of a load is completed.
    """
    left = runs_left(stage, loads, bounds, complete(finished))
    if not left:
        return

    async def measured() -> None:
        its = clusters[0]
        with ExitStack() as opened:
            clients = [opened.enter_context(closing(Client(each))) for each in clusters]
            progress("writing rows", 0, 1)
            size = left[0][1].row_bytes
            create_tables(clients[0], its, [size])
            own = Table(f"{its.keyspace}.{_TABLE}", size, _MOST)
            clients[0].create(own.creation)
            loop = Loop([each for client in clients for each in client.connections], its.servers)
            statements = {
                levels: [Statements(client, table_of(its, size), own, *levels) for client in clients]
                for levels in {(each.read, each.write) for _, each in left}
            }
            rtt = RoundTrip(its)
            await rtt.become(left[0][1].rtt_ms)
            first = time.time_ns() >> 10  # no row of an earlier measurement has such a number
            warm: dict[tuple[str, str], str] = {}
            for levels, one_load in {(each.read, each.write): each for _, each in left}.items():
                progress(f"warming sessions at {' and '.join(levels)} up until they are steady", 0, 1)
                quick = Sessions(statements[levels], flow, replace(one_load, think_s=0.0), first).run
                found = CqlTarget(its.servers, _UNANSWERED, flow=quick, loop=loop)
                warm[levels] = (await found.warmed_up(_WARM_CLIENTS, _MOST, bounds.warm_up_s)).sentence
                first += _APART
            for number, (repeat, each) in enumerate(left):
                progress(f"sessions, think {1000 * each.think_s:g} ms, {each.read} and {each.write}", number, len(left))
                await rtt.become(each.rtt_ms)
                await pause(each.rtt_ms / 1000)
                name, levels = run_name(stage, each, repeat), (each.read, each.write)
                sessions = Sessions(statements[levels], flow, each, first, seed_of(f"{name}: time to think"))
                target = CqlTarget(its.servers, _UNANSWERED, flow=sessions.run, loop=loop)
                sample = await target.sampled(None, each.sessions_per_s, bounds.duration_s, _MOST, seed_of(name))
                first += _APART
                run = Run(name, None, each.sessions_per_s, repeat, target.answered(sample))
                done(list(_rows(its, run, sessions, warm[levels])))

    load.run(measured())


class Statements:
    """The statements of one data centre, at the levels of a load; each goes to the next of its nodes.

    Parameters
    ----------
    client : Client
        Its connections.
    known, own : Table
        A table whose rows all data centres have, and that of the sessions.
    read, write : str
        Consistency levels.
    """

    def __init__(self, client: Client, known: Table, own: Table, read: str, write: str) -> None:
        self._nodes = client.connections
        self.known, self.select = known.selection(client, read), own.selection(client, read)
        self.insert = own.insertion(client, write, _SEED)
        self.delete = client.prepared(f"DELETE FROM {own.name} WHERE id = ?", write)  # noqa: S608  # our table

    def ask(self, statement: Statement, number: int) -> Asked:
        """Return a request about the row of a number."""
        return Asked(self._nodes[number % len(self._nodes)], statement, number)


@dataclass
class Sessions:
    """The sessions of one run and their results.

    Attributes
    ----------
    at : sequence of Statements
        The statements of each data centre.
    flow : sequence of Message
        The messages of a session.
    load : SessionLoad
        The load.
    first : int
        Number of the row of the first session.
    seed : int
        Seed of the times to think.
    took_s : mapping of str to list of float
        Latencies of messages by request class, and of whole sessions.
    checked : int
        Sessions that read their row after they had written it.
    missed : int
        Those whose first such read found no row.
    """

    at: Sequence[Statements]
    flow: Flow
    load: SessionLoad
    first: int = 0
    seed: int = _SEED
    took_s: dict[str, list[float]] = field(default_factory=dict)
    checked: int = 0
    missed: int = 0

    @cached_property
    def thinks_s(self) -> list[list[float]]:
        """Think times before each message, for some thousand sessions; later sessions reuse them."""
        random = np.random.default_rng(self.seed)
        found: list[list[float]] = random.exponential(self.load.think_s, (_THINKS, len(self.flow))).tolist()
        return found

    def run(self, number: int) -> Requests:
        """Run a session; its number determines the data centre of its first message."""
        thinks, row = self.thinks_s[number % _THINKS], self.first + number
        began = time.perf_counter()
        written = looked = False
        for step, message in enumerate(self.flow):
            begins = time.perf_counter()
            if step:
                begins += thinks[step]
                yield begins
            there = self.at[(number + step) % len(self.at)]
            for operation in message.operations:
                if operation == "write":
                    last = step == len(self.flow) - 1
                    yield there.ask(there.delete if last else there.insert, row)
                    written = True
                elif not written:
                    yield there.ask(there.known, row % ROWS)
                else:
                    found = yield there.ask(there.select, row)
                    if not looked:
                        looked = True
                        self.checked += 1
                        self.missed += not found
            self._took(message.name, begins)
        self._took(SESSION, began)

    def _took(self, name: str, since: float) -> None:
        self.took_s.setdefault(name, []).append(time.perf_counter() - since)


def _rows(cluster: RunningCluster, run: Run, sessions: Sessions, warm: str) -> list[LoadTestRow]:
    """Return a row about whole sessions, and one for each request class."""
    its, sample, counts = sessions.load, run.sample, Counter(message.name for message in sessions.flow)
    took = {each: np.array(sessions.took_s.get(each, [])) for each in (SESSION, *counts)}
    parts = {each: replace(sample, latencies_s=took[each]) for each in took}
    shared = row_of(cluster, its, sessions.flow)
    first = parts[sessions.flow[0].name]
    said = [
        f"sessions of {len(sessions.flow)} messages, each in the next data centre, {1000 * its.think_s:g} ms between "
        f"them; {sessions.missed} of {sessions.checked} sessions did not find their row",
        warm,
        *doubts(first),
    ]
    found = []
    for each, part in parts.items():
        own = {
            **shared,
            **doubt_cells(first),
            "request_class": each,
            "offered_tps": its.sessions_per_s * counts.get(each, 1),
            "node_cpu_percent": None,
            "drops": sessions.missed if each == SESSION else 0,
            "errors": sample.errors if each == SESSION else 0,
            "note": "; ".join(said),
        }
        found.append(replace(run, sample=part).row(own, []))
    return found
