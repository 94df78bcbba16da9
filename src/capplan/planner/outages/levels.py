"""Which consistency levels of reads and writes a loss leaves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from capplan.layout.losses import DC, Loss, Remainder
from capplan.layout.system import Case
from capplan.models.cassandra.consistency import READ_LEVELS
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed, options_of
from capplan.planner.outages.answer import LevelAvailability

FIELDS = {"read": "consistency_read", "write": "consistency_write"}
LOWEST = "LOCAL_ONE"


def levels_left(case: Case[Any], remainders: Sequence[Remainder]) -> tuple[LevelAvailability, ...]:
    """Return the levels that each loss leaves; nothing for a system without consistency levels."""
    kind: type[Scenario] = type(case.scenario)
    if not set(FIELDS.values()) <= options_of(kind).keys():
        return ()
    named = {each.name: each for each in reversed(remainders)}
    asked = _operations(case)
    return tuple(
        LevelAvailability(
            each.name, **{name: _levels(case, loss_of(each), name) if name in asked else {} for name in FIELDS}
        )
        for each in reversed(named.values())
    )


def _operations(case: Case[Any]) -> Collection[str]:
    """Return the operations in the traffic: all, unless each is a request class of its own."""
    classes = case.system.classes(case.scenario)
    return classes if set(case.system.reported) == set(FIELDS) else tuple(FIELDS)


def loss_of(left: Remainder) -> Loss:
    """Return the loss that leaves this."""
    if not left.lost_dcs:
        return Loss(left.lost)
    places = tuple(int(name.removeprefix("dc")) - 1 for name in left.lost_dcs)
    return Loss({word: count for word, count in left.lost.items() if word != DC}, places)


def _levels(case: Case[Any], loss: Loss, operation: str) -> dict[str, bool]:
    """Return whether an operation succeeds at each level; the other operation has the lowest one."""
    found = {}
    for level in READ_LEVELS:
        fields = {**dict.fromkeys(FIELDS.values(), LOWEST), FIELDS[operation]: level}
        try:
            asked = replace(case, scenario=changed(case.scenario, **fields))
            found[level] = case.system.outages(asked, (loss,))[0].solved is not None
        except InputError:
            continue  # the layout cannot have this level at all
    return found
