"""Pauses and background work in the SimPy engine: processes of a station that know nothing of its visits."""

from __future__ import annotations

from itertools import count

from capplan.models.language.station import Background, Pauses
from capplan.simulator.reference.events import Happening, Kind, Moment, Work, request_rank, step_rank
from capplan.simulator.reference.processor_sharing import ElasticStation
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import fold, name_key, source_key, uniform


def begin_processes(station: ElasticStation, number: int, root: int) -> None:
    """Let the pauses and the background work of station `number` come and go."""
    key = source_key(root, "station", station.station.name)
    processes: list[Pauses | Background] = [*station.station.pauses, *station.station.background]
    for place, process in enumerate(processes):
        rank = request_rank(number) + step_rank(Kind.PROCESS, place)
        Work(station.clockwork, _come_and_go(station, process, place, key, rank))
        station.clockwork.aside += 1


def _come_and_go(station: ElasticStation, process: Pauses | Background, place: int, key: int, rank: int) -> Happening:
    clockwork = station.clockwork
    every, length = tick_sampler(process.every), tick_sampler(process.length)
    kind, name = "pause" if isinstance(process, Pauses) else "background", f"{station.station.name}: {process.name}"
    every_draw, length_draw = name_key("every", process.name), name_key("length", process.name)
    for turn in count():
        mine = fold(fold(key, turn), 0)
        yield Moment(clockwork).at(clockwork.tick + max(1, every(uniform(mine, every_draw))), rank)
        end = clockwork.tick + length(uniform(mine, length_draw))
        station.window.mark(clockwork.tick, end, kind, name)
        station.turn(place, on=True)
        yield Moment(clockwork).at(end, rank)
        station.turn(place, on=False)
