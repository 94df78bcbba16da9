"""Checks before a run: invalid durations and seeds, and arrays of parameter draws where there must be one number."""

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

_DRAWN = (*get_args(get_args(Distribution)[0]), Open, Bursty)  # what may differ by draw


def check_scope(network: Network) -> None:
    """Check that every number in `network` is a single number.

    Raises
    ------
    RefusedError
        Names the array and its place.
    """
    for place, draws in _arrays(network, network.name):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


def check_draws(network: Network) -> int:
    """Return how many parameter draws a network holds; 1 when it holds single numbers.

    Raises
    ------
    RefusedError
        When anything but distributions and the numbers of open traffic differs by draw, or the arrays differ in length.
    """
    drawn: list[tuple[str, FloatArray]] = []
    for place, owner, draws in _owned_arrays(network, network.name, None, set()):
        if not isinstance(owner, _DRAWN):
            raise RefusedError(
                f"{place} holds {draws.size} parameter draws: only distributions and rates may differ by draw"
            )
        drawn.append((place, draws))
    lengths = {draws.shape for _, draws in drawn}
    if len(lengths) > 1:
        raise RefusedError(
            f"{drawn[0][0]} and other distributions hold draws of shapes {sorted(lengths)}: give each as many"
        )
    return max((draws.size for _, draws in drawn), default=1)


def check_run(duration_s: float, warmup_s: float, seed: int, replication: int, max_requests: int | None) -> None:
    """Check the duration of a run, its random numbers, and the limit on its requests.

    Raises
    ------
    InputError
        Names the value and the rule.
    """
    if not 0 <= warmup_s < duration_s or to_ticks(warmup_s) == to_ticks(duration_s):
        raise InputError(
            f"warm-up {warmup_s:g} s of a run of {duration_s:g} s: it must be shorter than the run, by 1 ns"
        )
    if seed < 0 or replication < 0:
        raise InputError(f"seed {seed} and replication {replication} must be at least 0")
    if max_requests is not None and max_requests < 1:
        raise InputError(f"max_requests = {max_requests} allows no request: give at least 1, or leave it out")


def _arrays(value: Any, place: str) -> Iterator[tuple[str, FloatArray]]:
    """Yield every array of parameter draws in a value of the language with its place."""
    return ((where, draws) for where, _, draws in _owned_arrays(value, place, None, set()))


def _owned_arrays(value: Any, place: str, owner: Any, seen: set[int]) -> Iterator[tuple[str, Any, FloatArray]]:
    """Yield every array in a value with its place and the construct that it belongs to.

    An object that appears at several places is visited once.
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
