"""Pauses of stations, such as garbage collections, and background work: the start and length of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from capplan.models.language.station import Background, Pauses
from capplan.simulator.reference.events import (
    EventKind,
    OrderedEnvironment,
    OrderedEvent,
    OrderedProcess,
    ProcessGenerator,
    request_rank,
    step_rank,
)
from capplan.simulator.reference.stations import RunningStation, Window
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import fold, name_key, source_key, uniform


def begin_processes(station: RunningStation, number: int, root: int, env: OrderedEnvironment, window: Window) -> None:
    """Start the pauses and the background work of station `number`."""
    key = source_key(root, "station", station.station.name)
    processes: list[Pauses | Background] = [*station.station.pauses, *station.station.background]
    for place, process in enumerate(processes):
        kind = "pause" if isinstance(process, Pauses) else "background"
        rank = request_rank(number) + step_rank(EventKind.PROCESS, place)
        mark = partial(window.mark, kind=kind, name=f"{station.station.name}: {process.name}")
        OrderedProcess(env, _station_process(env, process, (key, rank), partial(station.turn, place), mark))
        env.background_entries += 1


def _station_process(
    env: OrderedEnvironment,
    process: Pauses | Background,
    identity: tuple[int, int],
    turn: Callable[[bool], None],
    mark: Callable[[int, int], None],
) -> ProcessGenerator:
    key, rank = identity
    every, length = tick_sampler(process.every), tick_sampler(process.length)
    every_draw, length_draw = name_key("every", process.name), name_key("length", process.name)
    for number in count():
        mine = fold(fold(key, number), 0)
        yield OrderedEvent(env).at(env.tick + max(1, every(uniform(mine, every_draw))), rank)
        end = env.tick + length(uniform(mine, length_draw))
        mark(env.tick, end)
        turn(True)
        yield OrderedEvent(env).at(end, rank)
        turn(False)
