"""Candidates for the next load test, written as `rf=3,5 clients=128..512:128`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from capplan.models.errors import InputError, nearest
from capplan.models.language.scenario import Scenario, options_of
from capplan.planner.explore.ranges import parse_values, value_type

MOST = 200  # candidates: more are a sweep, and each solves a network for every draw


def parse_candidates(texts: Sequence[str], scenario: type[Scenario]) -> tuple[dict[str, Any], ...]:
    """Return candidates, each once: all combinations of the values in each text.

    Parameters
    ----------
    texts : sequence of str
        Each has options of the scenario and their values, such as `rf=3,5 clients=128..512:128`.
    scenario : type
        The kind of scenario.

    Raises
    ------
    InputError
        If an option is unknown or repeated, a value cannot be read, or there are too many combinations.
    """
    found: dict[tuple[tuple[str, Any], ...], None] = {}
    for text in texts:
        values = _values(text, scenario)
        for combination in itertools.product(*values.values()):
            found[tuple(zip(values, combination, strict=True))] = None
            if len(found) > MOST:
                raise InputError(f"there are more than {MOST} candidates: give fewer values")
    return tuple(dict(each) for each in found)


def _values(text: str, scenario: type[Scenario]) -> Mapping[str, tuple[Any, ...]]:
    options = [name for name in options_of(scenario) if name != "slo"]
    found: dict[str, tuple[Any, ...]] = {}
    for part in text.split():
        name, sign, values = part.partition("=")
        field = name.removeprefix("--").replace("-", "_")
        if not sign or not values:
            raise InputError(f"candidates {text!r}: {part!r} has no value; write such as clients=128,512")
        if field not in options:
            raise InputError(f"candidates {text!r}: {name!r} is no option of the layout{nearest(field, options)}")
        if field in found:
            raise InputError(f"candidates {text!r}: {name!r} appears twice; list its values with commas")
        try:
            found[field] = parse_values(values, value_type(scenario, field))
        except InputError as error:
            raise InputError(f"candidates {text!r}: {name}: {error}") from None
    if not found:
        raise InputError("the candidates are empty: give options and values, such as 'rf=3,5 clients=128,512'")
    for field in found:
        for other in options_of(scenario)[field].replaces:
            if other in found:
                raise InputError(f"candidates {text!r}: {field} and {other} exclude each other; give one of them")
    return found
