"""Constructs whose numbers are arrays over parameter draws: pick one draw, or build a key for look-ups."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, cast

import numpy as np

Value = TypeVar("Value")


def at_draw(value: Value, number: int) -> Value:
    """Replace every array over draws in a value by its element for one draw.

    Parts without arrays stay the same objects. An object that occurs several times is converted once.

    Parameters
    ----------
    value : number, array or construct
        A number, an array (draws,), or a construct that contains them: a distribution, a step, a network.
    number : int
        Index of the draw, from 0.

    Returns
    -------
    Value
        Of the same type; a float for an array.
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
    """Return a hashable key for a value: the value itself, or its contents if it holds arrays."""
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
    raise TypeError(f"{value!r} is not a construct of the language")
