"""Mixes of requests as people write them: `auth=1,acct=7`."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from capplan.models.errors import InputError, nearest


def parse_mix(text: str, names: Collection[str]) -> dict[str, float]:
    """Parse a mix such as `auth=1,acct=7`.

    Parameters
    ----------
    text : str
        A number for each name, separated by commas.
    names : collection of str
        The names; each must be there.

    Returns
    -------
    dict of float
        The numbers by name, at least 0, in the order of `names`.

    Raises
    ------
    InputError
        If a part is not a name with a number, or a name is unknown, missing or given twice.

    Examples
    --------
    >>> parse_mix("acct=7,auth=1", ("auth", "acct"))
    {'auth': 1.0, 'acct': 7.0}
    """
    example = ",".join(f"{name}={number}" for number, name in enumerate(names, 1))
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (each.strip() for each in part.partition("="))
        if not equals:
            raise InputError(f"{part.strip()!r} in mix {text!r} is not a name with a number: write {example!r}")
        if name not in names:
            raise InputError(f"{name!r} in mix {text!r} does not exist{nearest(name, names)}")
        if name in found:
            raise InputError(f"mix {text!r} has {name} twice: give it once")
        found[name] = _number(number, text)
    if missing := [name for name in names if name not in found]:
        raise InputError(f"mix {text!r} has no {missing[0]}: write one such as {example!r}")
    return {name: found[name] for name in names}


def mix_text(numbers: Mapping[str, float]) -> str:
    """Return a mix as people write it.

    Examples
    --------
    >>> mix_text({"auth": 1.0, "acct": 7.5})
    'auth=1,acct=7.5'
    """
    return ",".join(f"{name}={number:.12g}" for name, number in numbers.items())


def _number(text: str, mix: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{text!r} in mix {mix!r} is not a number of at least 0: write one such as 7 or 2.5")
    return number
