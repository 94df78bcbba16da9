"""The compiled engine: the whole language in machine code, on the same sample path as the SimPy engine.

A network is lowered to flat arrays (`program`), a state is made for them (`program_state`), and the kernel (`kernel/`)
lets it run from interval to interval. In between, Python makes the changes of the timeline, makes arrays larger that
have become short, takes single requests out of the buffer, and tells how far the run has come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from capplan.models.errors import InputError
from capplan.models.network import Network
from capplan.models.traffic import Open
from capplan.simulator.changes import Changes
from capplan.simulator.clock import to_ticks
from capplan.simulator.kernel import layout as at
from capplan.simulator.kernel import loop
from capplan.simulator.kernel.layout import Ints, Program, State
from capplan.simulator.program import Lowered, lower
from capplan.simulator.program_state import grown, new_state
from capplan.simulator.reference_scope import check_scope
from capplan.simulator.run import Requests, Run, Status
from capplan.simulator.streams import root_key
from capplan.simulator.tally import NUMBER, PAUSED, Tally, add_pair, empty_tally, intervals, report

TRACE_ROWS = 1 << 16  # rows of single requests that the kernel gathers before Python takes them
BEFORE = -1  # as a rank: before everything of a tick, the looks too
Progress = Callable[[float, int], None]  # simulated seconds, requests started


def simulate(  # noqa: PLR0913 - the options of a run are the arguments of its function
    network: Network,
    duration_s: float,
    *,
    seed: int,
    replication: int = 0,
    warmup_s: float = 0.0,
    max_requests: int | None = None,
    trace: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a network once.

    Parameters
    ----------
    network
        What to run.
    duration_s
        How long traffic comes, in seconds; statistics are about the time from `warmup_s` to `duration_s`. Requests
        that have started run to their end.
    seed, replication
        The random numbers: equal ones give equal runs, others give independent ones.
    warmup_s
        How much of the beginning is left out of the statistics, in seconds.
    max_requests
        How many requests start at most; left out, as many as the traffic brings.
    trace
        Keep every request.
    progress
        Told now and then how many seconds have been simulated and how many requests have started.

    Raises
    ------
    InputError
        When the durations or the seed make no sense.
    RefusedError
        When the network holds parameter draws, or something too long or too extreme for an engine.
    """
    check_scope(network)
    _check(duration_s, warmup_s, seed, replication)
    return run_lowered(
        lower(network),
        (to_ticks(warmup_s), to_ticks(duration_s)),
        (seed, replication),
        max_requests=max_requests,
        trace=trace,
        progress=progress,
    )


@dataclass
class _Course:
    """A run on its way: the arrays, and what Python keeps beside them."""

    lowered: Lowered
    program: Program
    state: State
    changes: Changes
    rows: list[Ints] = field(default_factory=list)

    def until(self, tick: int, rank: int) -> None:
        """Let everything happen before a key, changes of the timeline too."""
        while self.changes.next_key() < (tick, rank):
            self.change()
        self.advance(tick, rank)

    def change(self) -> None:
        """Let everything happen up to the next change of the timeline, and that."""
        key = self.changes.next_key()
        self.advance(*key)
        self.settle(key[0])
        self.changes.happen(self.state)
        self.settle(key[0])

    def advance(self, tick: int, rank: int) -> None:
        """Let everything happen before a key; the timeline must not change anything before."""
        while (why := loop.advance(self.program, self.state, tick, rank)) in (at.ROOM_NEEDED, at.TRACE_FULL):
            if why == at.ROOM_NEEDED:
                self.state = grown(self.state, self.lowered)
            else:
                self.take_rows()

    def settle(self, tick: int) -> None:
        """Let sums reach a tick, and speeds be right from there."""
        loop.settle(self.program, self.state, tick)

    def take_rows(self) -> None:
        """Take the single requests that the kernel has gathered."""
        traced = self.state.header[at.TRACED]
        self.rows.append(self.state.trace[:traced].copy())
        self.state.header[at.TRACED] = 0

    def idle(self) -> bool:
        """Tell whether nothing is under way any more."""
        header, state = self.state.header, self.state
        events = len(self.lowered.processes)
        return bool(header[at.LEFT_THREADS] == len(state.threads) and header[at.HEAP] <= events)


def run_lowered(
    lowered: Lowered,
    window: tuple[int, int],
    numbers: tuple[int, int],
    *,
    max_requests: int | None = None,
    trace: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Run a lowered network: `window` are the ends of warm-up and traffic in ticks, `numbers` seed and replication."""
    network, bounds = lowered.network, intervals(*window)
    tally, root = empty_tally(network, bounds, window[0]), root_key(*numbers)
    state = new_state(
        lowered,
        root,
        tally,
        clients=0 if isinstance(network.traffic, Open) else network.traffic.clients,
        trace_rows=TRACE_ROWS if trace else 0,
        most_requests=at.NEVER if max_requests is None else max_requests,
    )
    course = _Course(lowered, lowered.program(root, bounds), state, Changes(lowered))
    _run(course, bounds, window[0], progress)
    tally = _tally(course, tally)
    return report(
        network,
        tally,
        seed=numbers[0],
        replication=numbers[1],
        events=int(course.state.header[at.EVENTS]),
        requests=_requests(course) if trace else None,
    )


def _run(course: _Course, bounds: Ints, warmup: int, progress: Progress | None) -> None:
    header = course.state.header
    header[[at.WINDOW_START, at.WINDOW_END]] = warmup, bounds[-1]
    for interval, end in enumerate(bounds[1:].tolist()):
        header[[at.INTERVAL, at.INTERVAL_END, at.IN_WINDOW]] = interval, end, bounds[interval] >= warmup
        if interval == 0:
            loop.begin(course.program, course.state)
        course.until(end, BEFORE)
        course.settle(end)
        if progress is not None:
            progress(end / 1e9, int(header[at.ROWS]))
    header[[at.INTERVAL, at.INTERVAL_END, at.IN_WINDOW]] = len(bounds) - 1, at.NEVER, 0
    while not course.idle() and course.changes.agenda:
        course.change()
    header[at.STOP_IDLE] = 1
    course.advance(at.NEVER, 0)


def _tally(course: _Course, tally: Tally) -> Tally:
    """Return what the kernel has counted, completed by what is still under way."""
    state, header = course.state, course.state.header
    for row, number in _unfinished(course):
        start, end = max(int(row["start"]), tally.warmup_ticks), tally.end_ticks
        add_pair(tally.class_totals[number], NUMBER, max(0, end - start))
    for number in np.flatnonzero(state.stations["paused"] > 0):
        since = max(int(state.stations["paused_since"][number]), tally.warmup_ticks)
        tally.station_totals[number, PAUSED] += max(0, tally.end_ticks - since)
    return replace(
        tally,
        class_series=state.class_series[:-1],
        station_series=state.station_series[:-1],
        pool_series=state.pool_series[:-1],
        marks=_marks(course, int(header[at.MARKED])),
    )


def _marks(course: _Course, count: int) -> list[tuple[int, int, str, str]]:
    network, processes = course.lowered.network, course.lowered.processes
    marks = []
    for start, end, process in course.state.marks[:count].tolist():
        each = processes[process]
        kind = "pause" if each.share == at.NONE else "background"
        marks.append((start, end, kind, f"{network.stations[each.station].name}: {each.what.name}"))
    ...
    return marks


def _unfinished(course: _Course) -> list[tuple[Ints, int]]:
    """Return the sessions whose request has not ended, and the number of its class."""
    program, talks = course.program, course.state.talks
    live = talks[talks["open"] > 0]
    places = program.sources["classes"][live["source"]] + live["place"]
    return list(zip(live, program.table[places].tolist(), strict=True))


def _requests(course: _Course) -> Requests:
    """Return every request in the order of starting."""
    course.take_rows()
    rest = [
        [row["row"], row["source"], number, row["unit"], row["first"] + row["place"]]
        + [row["attempt"] + 1, row["intended"], row["start"], -1, Status.UNFINISHED]
        for row, number in _unfinished(course)
    ]
    rows = np.concatenate([*course.rows, np.array(rest, dtype=np.int64).reshape(-1, 10)])
    rows = rows[np.argsort(rows[:, 0])]
    return Requests(
        source=rows[:, 1],
        request_class=rows[:, 2],
        session=rows[:, 3],
        position=rows[:, 4],
        attempts=rows[:, 5],
        intended_ticks=rows[:, 6],
        start_ticks=rows[:, 7],
        end_ticks=rows[:, 8],
        status=rows[:, 9],
    )


def _check(duration_s: float, warmup_s: float, seed: int, replication: int) -> None:
    if not 0 <= warmup_s < duration_s:
        raise InputError(f"warm-up {warmup_s:g} s of a run of {duration_s:g} s: it must be shorter than the run")
    if seed < 0 or replication < 0:
        raise InputError(f"seed {seed} and replication {replication} must not be negative")
