"""What no engine runs: arrays of parameter draws, and runs that make no sense. Refused before a run begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from capplan.models.errors import InputError, RefusedError
from capplan.models.network import Network
from capplan.models.quantity import FloatArray
from capplan.simulator.clock import to_ticks


def check_scope(network: Network) -> None:
    """Check that every number in `network` is one number.

    Raises
    ------
    RefusedError
        With one sentence that names the array and where it stands.
    """
    for place, draws in _arrays(network, network.name):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


def check_run(duration_s: float, warmup_s: float, seed: int, replication: int, max_requests: int | None) -> None:
    """Check how long a run is to be, whose random numbers it has, and how many requests may start.

    Raises
    ------
    InputError
        With one sentence that names the value and the rule.
    """
    if not 0 <= warmup_s < duration_s or to_ticks(warmup_s) == to_ticks(duration_s):
        raise InputError(
            f"warm-up {warmup_s:g} s of a run of {duration_s:g} s: it must be shorter than the run, by 1 ns"
        )
    if seed < 0 or replication < 0:
        raise InputError(f"seed {seed} and replication {replication} must not be negative")
    if max_requests is not None and max_requests < 1:
        raise InputError(f"max_requests = {max_requests} lets nothing start: give at least 1, or leave it out")


def _arrays(value: Any, place: str, seen: set[int] | None = None) -> Iterator[tuple[str, FloatArray]]:
    """Yield every array of parameter draws in a value of the language with its place.

    A value that stands at several places (the same object) is looked at once.
    """
    seen = set() if seen is None else seen
    if isinstance(value, (int, float, str)) or value is None or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield place, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _arrays(item, f"{place}[{getattr(item, 'name', '') or index}]", seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _arrays(item, f"{place}[{key}]", seen)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _arrays(getattr(value, item.name), f"{place}.{item.name}", seen)
