"""The compiled engine: the whole language in machine code, on the same sample path as the SimPy engine.

A network is lowered to flat arrays (`lowering`, `instructions`), a state is made for them (`state`), and the kernel
(`kernel/`) advances it from interval to interval. In between, Python applies the changes of the timeline, enlarges
arrays that are nearly full, takes single requests out of the kernel's buffer, and reports progress.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.traffic import Open
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.layout import Ints, Program, Records, State
from capplan.simulator.compiled.kernel.library import Kernel
from capplan.simulator.compiled.lowering import Lowered, lower
from capplan.simulator.compiled.state import grown, new_state
from capplan.simulator.compiled.timeline import CompiledTimeline
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run, report
from capplan.simulator.results.tally import NUMBER, PAUSED, Tally, add_pair, empty_tally, intervals, overlaps
from capplan.simulator.results.trace import Requests, Status
from capplan.simulator.specification.clock import to_seconds, to_ticks
from capplan.simulator.specification.scope import check_run, check_scope
from capplan.simulator.specification.streams import root_key


def unfinished(program: Program, state: State) -> list[tuple[Records, int]]:
    """Return the sessions whose request has not ended, each with the number of its class."""
    live = state.sessions[state.sessions["open"] > 0]
    places = program.sources["classes"][live["source"]] + live["place"]
    return list(zip(live, program.table[places].tolist(), strict=True))


def unfinished_rows(program: Program, state: State) -> Ints:
    """Return rows of the requests that have not ended, like those of the kernel's buffer."""
    rows = [
        [
            *(each["row"], each["source"], number, each["unit"], each["first"] + each["place"], each["attempt"] + 1),
            *(each["intended"], each["start"], -1, Status.UNFINISHED),
        ]
        for each, number in unfinished(program, state)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, at.TRACE_COLUMNS)


def joined(parts: list[Ints]) -> Requests:
    """Return all requests, in the order of starting."""
    rows = np.concatenate([np.zeros((0, at.TRACE_COLUMNS), dtype=np.int64), *parts])
    return requests_of(rows[np.argsort(rows[:, 0])])


def requests_of(rows: Ints) -> Requests:
    """Return rows as requests, in the same order."""
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


TRACE_ROWS = 1 << 16  # size of the kernel's buffer for single requests
BEFORE = -1  # as a rank: before all events of a tick
Progress = Callable[[float, int], None]
Sink = Callable[[Requests, IntArray], None]


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
    sink: Sink | None = None,
) -> Run:
    """Run a network once; see `capplan.simulator.engine.simulate`.

    Parameters
    ----------
    network : Network
        The network; it must hold no arrays of parameter draws.
    duration_s : float
        How long the traffic lasts, in seconds. Statistics cover the time from `warmup_s` to `duration_s`. Requests that
        have started run to their end.
    seed, replication : int
        Select the random numbers: equal ones give equal runs, different ones independent runs.
    warmup_s : float
        The time at the start that statistics leave out, in seconds.
    max_requests : int, optional
        The largest number of requests, retries not counted; no limit when left out.
    trace : bool
        Keep every request.
    progress : callable, optional
        Called from time to time with the simulated seconds and the number of requests that have started.
    sink : callable, optional
        Receives every request with its number in the order of starting, many at a time, in the order of ending.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, a flow is too long or a distribution too extreme.
    InputError
        When the durations, the seed or the number of requests are invalid.
    """
    check_run(duration_s, warmup_s, seed, replication, max_requests)
    window = to_ticks(warmup_s), to_ticks(duration_s)
    active = begin(lowered(network), window, (seed, replication), max_requests=max_requests)
    return run(active, trace=trace, progress=progress, sink=sink)


_last_lowered: deque[Lowered] = deque(maxlen=4)
_lowering = Lock()


def lowered(network: Network) -> Lowered:
    """Lower a network, or reuse an earlier result: replications, and other rates of traffic, need that only once.

    Raises
    ------
    RefusedError
        When the network holds an array of parameter draws, a flow is too long or a distribution too extreme.
    """
    with _lowering:
        for known in _last_lowered:
            if known.network is network:
                return known
        check_scope(network)
        like = (known.with_rate_of(network) for known in _last_lowered)
        _last_lowered.append(next((program for program in like if program is not None), None) or lower(network))
        return _last_lowered[-1]


@dataclass
class ActiveRun:
    """A run in progress: the arrays, and what Python keeps beside them."""

    lowered: Lowered
    window: tuple[int, int]
    numbers: tuple[int, int]
    tally: Tally
    program: Program
    state: State
    timeline: CompiledTimeline
    sink: Callable[[Ints], None] | None = None
    _kernel: Kernel | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel, bound to the arrays as they are now."""
        if self._kernel is None or self._kernel.state is not self.state:
            self._kernel = Kernel(self.program, self.state)
        return self._kernel

    def until(self, tick: int, rank: int) -> None:
        """Run all events before a key, changes of the timeline included."""
        while self.timeline.next_key() < (tick, rank):
            self.change()
        self.advance(tick, rank)

    def change(self) -> None:
        """Run all events up to the next change of the timeline, and that change."""
        key = self.timeline.next_key()
        self.advance(*key)
        self.settle(key[0])
        self.timeline.apply_next(self.state)
        self.settle(key[0])

    def advance(self, tick: int, rank: int) -> None:
        """Run all events before a key; no change of the timeline may come before it."""
        while (why := self.kernel.advance(tick, rank)) in (at.ROOM_NEEDED, at.TRACE_FULL):
            if why == at.ROOM_NEEDED:
                self.state = grown(self.state, self.lowered)
            else:
                self.take_rows()

    def settle(self, tick: int) -> None:
        """Update sums to a tick, and speeds from there."""
        self.kernel.settle(tick)

    def take_rows(self) -> None:
        """Pass on the single requests in the kernel's buffer."""
        if self.sink is not None:
            self.sink(self.state.trace[: self.state.header["traced"]].copy())
        self.state.header["traced"] = 0

    def idle(self) -> bool:
        """Tell whether nothing is in progress any more."""
        header, state = self.state.header, self.state
        if state.stations["served"].any():  # visits that no request waits for count, too
            return False
        no_threads = header["threads"]["left"] == len(state.threads)
        return bool(no_threads and header["event_count"] <= len(self.lowered.processes))


def begin(
    lowered: Lowered, window: tuple[int, int], numbers: tuple[int, int], *, max_requests: int | None = None
) -> ActiveRun:
    """Return the start of a run: `window` has the ends of the warm-up and of the traffic in ticks.

    `numbers` are the seed and the replication.
    """
    network, bounds = lowered.network, intervals(*window)
    tally, root = empty_tally(network, bounds), root_key(*numbers)
    state = new_state(
        lowered,
        root,
        tally,
        clients=0 if isinstance(network.traffic, Open) else network.traffic.clients,
        trace_rows=TRACE_ROWS,
        most_requests=at.NEVER if max_requests is None else max_requests,
    )
    timeline = CompiledTimeline(lowered)
    if any(station.down for station in network.stations):
        timeline.update(state)
    return ActiveRun(lowered, window, numbers, tally, lowered.program(root, bounds), state, timeline)


def run(active: ActiveRun, *, trace: bool, progress: Progress | None, sink: Sink | None) -> Run:
    """Complete a run and report it; see `simulate`."""
    kept: list[Ints] = []
    _connect_sinks(active, kept if trace else None, sink)
    _run(active, progress)
    rest = unfinished_rows(active.program, active.state)
    active.take_rows()
    if active.sink is not None:
        active.sink(rest)
    return report(
        active.lowered.network,
        _tally(active),
        active.window[0],
        seed=active.numbers[0],
        replication=active.numbers[1],
        events=int(active.state.header["events"]),
        requests=joined(kept) if trace else None,
    )


def _connect_sinks(active: ActiveRun, kept: list[Ints] | None, sink: Sink | None) -> None:
    """Send single requests to the list and to the sink; without either, the kernel does not collect them."""
    if kept is None and sink is None:
        active.state = active.state._replace(trace=active.state.trace[:0])
        return

    def take(rows: Ints) -> None:
        if kept is not None:
            kept.append(rows)
        if sink is not None:
            sink(requests_of(rows), rows[:, 0])

    active.sink = take


def _run(active: ActiveRun, progress: Progress | None) -> None:
    bounds = active.tally.boundaries
    header = active.state.header
    for interval, end in enumerate(bounds[1:].tolist()):
        header["interval"], header["interval_end"] = interval, end
        if interval == 0:
            active.kernel.begin()
        active.until(end, BEFORE)
        active.settle(end)
        if progress is not None:
            progress(to_seconds(end), int(header["requests_started"]))
    header["interval"], header["interval_end"] = len(bounds) - 1, at.NEVER
    while not active.idle() and active.timeline.pending:
        active.change()
    header["stop_idle"] = 1
    active.advance(at.NEVER, 0)


def _tally(active: ActiveRun) -> Tally:
    """Return the kernel's counts, completed by what is still in progress."""
    state, tally = active.state, active.tally
    for session, number in unfinished(active.program, state):
        for interval, ticks in overlaps(tally.boundaries, int(session["start"]), tally.end_ticks):
            add_pair(tally.class_totals[interval, number], NUMBER, ticks)
    first_lanes = state.stations[: state.header["station_rows"]]  # all lanes of a station pause together
    for station in first_lanes["paused"].nonzero()[0].tolist():
        since = int(state.stations["paused_since"][station])
        for interval, ticks in overlaps(tally.boundaries, since, tally.end_ticks):
            tally.station_totals[interval, station, PAUSED] += ticks
    return replace(tally, marks=_marks(active))


def _marks(active: ActiveRun) -> list[tuple[int, int, str, str]]:
    network, marks = active.lowered.network, []
    for start, end, process in active.state.marks[: active.state.header["marked"]].tolist():
        each = active.lowered.processes[process]
        kind = "pause" if each.share == at.NONE else "background"
        marks.append((start, end, kind, f"{network.each_station[each.station].name}: {each.what.name}"))
    return marks
