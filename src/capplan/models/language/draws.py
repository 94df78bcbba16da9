"""Values of the language whose numbers are arrays over parameter draws: one of the draws, or all of them as a key."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

import numpy as np

Value = TypeVar("Value")


def at_draw(value: Value, number: int) -> Value:
    """Return a value with the numbers of one draw: every array in it gives its element `number`.

    A part without an array stays the same object, and what stands at several places is made once.

    Parameters
    ----------
    value
        A number, an array over draws, or anything of the language that holds such: a law, a step, a network.
    number : int
        Which draw, from 0.
    """
    return cast("Value", _at_draw(value, number, {}))


def _at_draw(value: object, number: int, made: dict[int, object]) -> object:
    if isinstance(value, np.ndarray):
        return float(value[number])
    if not isinstance(value, tuple) and not is_dataclass(value):
        return value
    if id(value) not in made:
        made[id(value)] = _remade(value, number, made)
    return made[id(value)]


def _remade(value: object, number: int, made: dict[int, object]) -> object:
    if isinstance(value, tuple):
        parts = tuple(_at_draw(part, number, made) for part in value)
        return value if all(map(_same, parts, value)) else parts
    if not is_dataclass(value) or isinstance(value, type):
        return value
    before = {field.name: getattr(value, field.name) for field in fields(value)}
    after = {name: _at_draw(part, number, made) for name, part in before.items()}
    return value if all(map(_same, before.values(), after.values())) else replace(value, **after)


def _same(one: object, other: object) -> bool:
    return one is other


def as_key(value: object) -> Hashable:
    """Return something to look a value up by: itself, or when it holds arrays, its parts with their contents."""
    try:
        hash(value)
    except TypeError:
        return _parts(value)
    return value


def _parts(value: object) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(as_key, value))
    if is_dataclass(value):
        return type(value), tuple(as_key(getattr(value, field.name)) for field in fields(value))
    raise TypeError(f"{value!r} is nothing of the language")
