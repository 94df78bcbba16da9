"""Values in groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(values: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return values by key; keys in the order of their first value, and values in their order."""
    found: dict[K, list[T]] = {}
    for each in values:
        found.setdefault(key(each), []).append(each)
    return found
