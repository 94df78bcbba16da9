"""What a layout must survive: a loss, a situation such as a repair, or both at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.outage import Loss
from capplan.calibration.situation import Situation
from capplan.calibration.system import System
from capplan.models.errors import InputError, nearest
from capplan.models.verdict import NORMAL

_JOINED = "+"


@dataclass(frozen=True)
class Conditions:
    """Conditions under which the objectives must hold.

    Attributes
    ----------
    word : str
        As they are asked for, such as `dc+compaction`.
    loss : Loss or None
        What is lost.
    situations : tuple of Situation
        What else differs from the load tests.
    fitted : Fitted or None
        The calibration under these conditions; None if no parameter differs.
    """

    word: str
    loss: Loss | None = None
    situations: tuple[Situation, ...] = ()
    fitted: Fitted | None = None

    @property
    def guessed(self) -> bool:
        """Whether a part of them is a guess."""
        return any(each.guessed for each in self.situations)


_NORMAL = Conditions(NORMAL)


def read_conditions(texts: Iterable[str], system: System[Any], fitted: Fitted) -> tuple[Conditions, ...]:
    """Read what to survive; normal conditions come first, always.

    Parameters
    ----------
    texts : iterable of str
        Lists such as `dc,node,dc+compaction`: words of losses or situations, `+` between those at the same time.
    system : System
        The system, which knows the words.
    fitted : Fitted
        Its calibration.

    Raises
    ------
    InputError
        If a word is unknown.
    """
    return (_NORMAL, *(_conditions(word, system, fitted) for word in words_of(texts)))


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words of what to survive, each once and without normal conditions, as `read_conditions` reads them."""
    words = [word.strip().casefold() for text in texts for word in text.split(",")]
    return tuple(dict.fromkeys(word for word in words if word not in ("", NORMAL)))


def _conditions(word: str, system: System[Any], fitted: Fitted) -> Conditions:
    parts = [part.strip() for part in word.split(_JOINED)]
    for part in parts:
        if part not in system.losses and part not in system.situations:
            known = (*system.losses, *system.situations)
            listed = f"known are {', '.join(known)}" if known else "no loss and no situation of it is modelled"
            raise InputError(
                f"--survive {word}: {part!r} is nothing that {system.name} can survive{nearest(part, known)}; {listed}"
            )
    lost = [part for part in parts if part in system.losses]
    counts = reduce(lambda found, part: {**found, part: found.get(part, 0) + 1}, lost, dict[str, int]())
    situations = tuple(system.situations[part] for part in dict.fromkeys(parts) if part in system.situations)
    stressed = reduce(lambda found, each: each.applied_to(found), (each for each in situations if each.factors), fitted)
    return Conditions(
        _JOINED.join(parts), Loss(counts) if counts else None, situations, None if stressed is fitted else stressed
    )
