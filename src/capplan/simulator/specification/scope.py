"""What no engine runs: runs that make no sense, and arrays of parameter draws where all draws must be alike.

Refused before a run begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args

import numpy as np

from capplan.models.errors import InputError, RefusedError
from capplan.models.language.distribution import Distribution
from capplan.models.language.network import Network
from capplan.models.language.traffic import Bursty, Open
from capplan.models.language.units import FloatArray
from capplan.simulator.specification.clock import to_ticks

_DRAWN = (*get_args(get_args(Distribution)[0]), Open, Bursty)  # what may hold other numbers in each draw


def check_scope(network: Network) -> None:
    """Check that every number in `network` is one number.

    Raises
    ------
    RefusedError
        With one sentence that names the array and where it stands.
    """
    for place, draws in _arrays(network, network.name):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


def check_draws(network: Network) -> int:
    """Return how many parameter draws a network holds; 1 when it holds single numbers.

    Raises
    ------
    RefusedError
        When draws differ in anything but laws and the numbers of open traffic, or arrays in length.
    """
    drawn: list[tuple[str, FloatArray]] = []
    for place, owner, draws in _owned_arrays(network, network.name, None, set()):
        if not isinstance(owner, _DRAWN):
            raise RefusedError(f"{place} holds {draws.size} parameter draws: only laws and rates may differ by draw")
        drawn.append((place, draws))
    lengths = {draws.shape for _, draws in drawn}
    if len(lengths) > 1:
        raise RefusedError(f"{drawn[0][0]} and other laws hold draws of shapes {sorted(lengths)}: give each as many")
    return max((draws.size for _, draws in drawn), default=1)


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


def _arrays(value: Any, place: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield every array of parameter draws in a value of the language with its place."""
    return ((where, draws) for where, _, draws in _owned_arrays(value, place, None, set()))


def _owned_arrays(value: Any, place: str, owner: Any, seen: set[int]) -> Iterator[tuple[str, Any, FloatArray]]:
    """Yield every array in a value with its place and the construct that it belongs to.

    A value that stands at several places (the same object) is looked at once.
    """
    if isinstance(value, (int, float, str)) or value is None or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield place, owner, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _owned_arrays(item, f"{place}[{getattr(item, 'name', '') or index}]", owner, seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _owned_arrays(item, f"{place}[{key}]", owner, seen)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _owned_arrays(getattr(value, item.name), f"{place}.{item.name}", value, seen)
