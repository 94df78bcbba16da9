"""What the SimPy engine does not run yet: refused by name before a run begins, never treated as something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.network import Network, walk
from capplan.models.quantity import FloatArray
from capplan.models.station import Station
from capplan.models.step import Batch, Hedge
from capplan.models.traffic import Open, Throttled, Trace


def check_scope(network: Network) -> None:
    """Check that the engine runs everything in `network`.

    Raises
    ------
    RefusedError
        With one sentence that names the construct and where it stands.
    """
    for what in _not_run(network):
        raise RefusedError(f"the SimPy engine does not run {what} yet: leave it out")
    for place, draws in _arrays(network, network.name):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


def _not_run(network: Network) -> Iterator[str]:
    for station in network.stations:
        yield from (f"{what} of station {station.name!r}" for what in _not_run_at(station))
    for request in network.classes:
        if request.retry is not None:
            yield f"the retries of request class {request.name!r}"
        for step in walk(request.flow):
            if isinstance(step, (Hedge, Batch)):
                yield f"the step {step.kind} in the flow of request class {request.name!r}"
    if isinstance(network.traffic, Throttled):
        yield "throttled traffic"
    if isinstance(network.traffic, Open) and isinstance(network.traffic.arrivals, Trace):
        yield "arrivals from a trace"
    if network.timeline.events:
        yield "the events of a timeline"


def _not_run_at(station: Station) -> Iterator[str]:
    if station.rate is not None:
        yield "the load-dependent rate"
    if station.expiry_s is not None:
        yield "the expiry"
    if station.pauses:
        yield "the pauses"
    if station.background:
        yield "the background work"
    if station.host is not None:
        yield f"the host {station.host!r}"


def _arrays(value: Any, place: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield every array of parameter draws in a value of the language with its place."""
    if isinstance(value, np.ndarray):
        yield place, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _arrays(item, f"{place}[{getattr(item, 'name', '') or index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _arrays(item, f"{place}[{key}]")
    elif is_dataclass(value):
        for item in fields(value):
            yield from _arrays(getattr(value, item.name), f"{place}.{item.name}")
