"""Sessions of several messages on a cluster, each message in the next data centre: latencies, and rows not found.

A message reads or writes rows through a node of its data centre, as the system that the flow is taken from says. Before
the session has a row, a message reads another one, which all data centres have. The first write inserts the session's
row, later ones update it, and that of the last message deletes it. Sessions arrive at random times, whatever becomes of
the others. A message counts from its intended start: for the first one that of the session, for the others the end of
the message before and the time to think.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors import load
from capplan.lab.collectors.cassandra import Load, Operation, RunningCluster, Table, connected, create, patiently
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.load import Run, Target, doubt_cells, doubts, pause
from capplan.lab.collectors.runs_in_turn import ROWS, Bounds, RoundTrip, create_tables, seed_of, table_of

SESSION = "session"
"""Request class of the row about whole sessions, whose drops are sessions not found."""
_MOST = 100_000
_WINDOW_S, _WARM_CLIENTS = 1.5, 4
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


def run_name(stage: str, load_: SessionLoad, repeat: int) -> str:
    """Return the name of a run."""
    return f"{stage}-{load_.name}-{repeat}"


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
    left = [
        (repeat, each)
        for repeat in range(1, bounds.repeats + 1)
        for each in loads
        if (run_name(stage, each, repeat), SESSION) not in finished
    ]
    if not left:
        return

    async def measured() -> None:
        its = clusters[0]
        drivers = []
        try:
            for one in clusters:
                drivers.append(await connected(one))  # noqa: PERF401  # those made so far are closed
            progress("writing rows", 0, 1)
            size = left[0][1].row_bytes
            await create_tables(drivers[0], its, [size])
            own = Table(f"{its.keyspace}.{_TABLE}", size, _MOST)
            await create(drivers[0], own.creation)
            statements = [await _statements(driver, table_of(its, size), own) for driver in drivers]
            rtt = RoundTrip(its)
            await rtt.become(left[0][1].rtt_ms)
            first = time.time_ns() >> 10  # no row of an earlier measurement has such a number
            warm: dict[tuple[str, str], str] = {}
            for levels, one_load in {(each.read, each.write): each for _, each in left}.items():
                progress(f"warming sessions at {' and '.join(levels)} up until they are steady", 0, 1)
                quick = Target(
                    Sessions(statements, flow, replace(one_load, think_s=0.0), first).run, its.servers, _UNANSWERED
                )
                warm[levels] = (await quick.warmed_up(_WARM_CLIENTS, _MOST, bounds.warm_up_s, _WINDOW_S)).sentence
                first += _MOST
            for number, (repeat, each) in enumerate(left):
                progress(f"sessions, think {1000 * each.think_s:g} ms, {each.read} and {each.write}", number, len(left))
                await rtt.become(each.rtt_ms)
                await pause(each.rtt_ms / 1000)
                name = run_name(stage, each, repeat)
                sessions = Sessions(statements, flow, each, first, seed_of(f"{name}: time to think"))
                target = Target(sessions.run, its.servers, _UNANSWERED)
                sample = await target.sampled(None, each.sessions_per_s, bounds.duration_s, _MOST, seed_of(name))
                first += _MOST
                run = Run(name, None, each.sessions_per_s, repeat, target.answered(sample))
                done(list(_rows(its, run, sessions, warm[each.read, each.write])))
        finally:
            for driver in drivers:
                await driver.close()

    load.run(measured())


Ask = Callable[[int, str], Awaitable[bool]]
"""Makes a statement about the row of a number at a level, and tells whether it found a row."""


@dataclass(frozen=True)
class Statements:
    """The statements of one data centre.

    Attributes
    ----------
    known : function
        Reads a row that all data centres have.
    read, write, delete : function
        Reads, writes or deletes the row of a session.
    """

    known: Ask
    read: Ask
    write: Ask
    delete: Ask


async def _statements(driver: Any, known: Table, own: Table) -> Statements:
    """Prepare a driver's statements; retry until the data centre knows the tables."""
    import acsylla

    value = bytes(own.row_bytes)
    texts = (
        f"SELECT value FROM {known.name} WHERE id = ?",  # noqa: S608  # our table
        f"SELECT value FROM {own.name} WHERE id = ?",  # noqa: S608  # our table
        f"INSERT INTO {own.name} (id, value) VALUES (?, ?)",  # noqa: S608  # our table
        f"DELETE FROM {own.name} WHERE id = ?",  # noqa: S608  # our table
    )

    async def prepared(text: str) -> Any:
        return await patiently(lambda: driver.create_prepared(text), "a statement cannot be prepared")

    look_up, select, insert, remove = [await prepared(text) for text in texts]

    async def ask(statement: Any, parameters: list[Any], level: str) -> bool:
        found = await driver.execute(statement.bind(parameters, consistency=acsylla.Consistency[level]))
        return bool(found.count())

    return Statements(
        lambda number, level: ask(look_up, [number % ROWS], level),
        lambda number, level: ask(select, [number], level),
        lambda number, level: ask(insert, [number, value], level),
        lambda number, level: ask(remove, [number], level),
    )


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
        Latencies of messages from their intended start, by request class; without the time for which the first message
        of a session was sent late.
    began : list of float
        Latency of the first message of each session, in the order in which they began; not a number if it failed.
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
    began: list[float] = field(default_factory=list)
    checked: int = 0
    missed: int = 0

    @cached_property
    def thinks_s(self) -> list[list[float]]:
        """Think times before each message, for some thousand sessions; later sessions reuse them."""
        random = np.random.default_rng(self.seed)
        found: list[list[float]] = random.exponential(self.load.think_s, (_THINKS, len(self.flow))).tolist()
        return found

    async def run(self, number: int) -> None:
        """Run a session; its number determines the data centre of its first message."""
        thinks = self.thinks_s[number % _THINKS]
        place, row = len(self.began), self.first + number
        self.began.append(float("nan"))
        written = looked = False
        for step, message in enumerate(self.flow):
            begins = time.perf_counter()
            if step:
                begins += thinks[step]
                await asyncio.sleep(thinks[step])
            there = self.at[(number + step) % len(self.at)]
            for operation in message.operations:
                level = self.load.level(operation)
                if operation == "write":
                    last = step == len(self.flow) - 1
                    await (there.delete if last else there.write)(row, level)
                    written = True
                elif not written:
                    await there.known(row, level)
                else:
                    found = await there.read(row, level)
                    if not looked:
                        looked = True
                        self.checked += 1
                        self.missed += not found
            took = time.perf_counter() - begins
            if step:
                self.took_s.setdefault(message.name, []).append(took)
            else:
                self.began[place] = took

    def latencies_s(self, lateness_s: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return latencies from the intended start, by request class.

        Parameters
        ----------
        lateness_s : array (sessions,)
            How late each session began, in the order in which they did.
        """
        firsts = np.array(self.began) + lateness_s[: len(self.began)]
        firsts = firsts[np.isfinite(firsts)]
        found = {name: np.array(values) for name, values in self.took_s.items()}
        name = self.flow[0].name
        found[name] = np.concatenate([firsts, found.get(name, np.zeros(0))])
        return found


def _rows(cluster: RunningCluster, run: Run, sessions: Sessions, warm: str) -> list[LoadTestRow]:
    """Return a row about whole sessions, and one for each request class."""
    its, sample, counts = sessions.load, run.sample, Counter(message.name for message in sessions.flow)
    by_class = sessions.latencies_s(sample.lateness_s)
    parts = {SESSION: sample}
    parts |= {each: replace(sample, latencies_s=by_class.get(each, np.zeros(0))) for each in counts}
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
