"""What the SimPy engine does not run: arrays of parameter draws, refused by name before a run begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.network import Network
from capplan.models.quantity import FloatArray


def check_scope(network: Network) -> None:
    """Check that every number in `network` is one number.

    Raises
    ------
    RefusedError
        With one sentence that names the array and where it stands.
    """
    for place, draws in _arrays(network, network.name):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


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
