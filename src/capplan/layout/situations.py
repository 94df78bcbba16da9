"""Situations that a layout must survive: lost machines, and conditions such as a repair or cold caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from scipy import special

from capplan.errors import InputError, nearest
from capplan.layout.case import Case
from capplan.layout.components import Component
from capplan.layout.ensemble import Places
from capplan.layout.fitted_file import Fitted
from capplan.layout.solution import Solution
from capplan.layout.uncertainty import Offset
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray

S = TypeVar("S", bound=Scenario)
DC = "dc"
Solved = Callable[[Values, Places | None], Solution]
"""Analyses what is left: a function of parameter values, and of `place` as in `System.solution`."""


@dataclass(frozen=True)
class Loss:
    """Machines and data centres that are lost at the same time.

    Attributes
    ----------
    counts : mapping of int
        How many of each kind, such as `{"node": 1}`; servers are lost in each data centre where there are several.
    dcs : tuple of int
        Data centres that are lost, from 0; those under `dc` in `counts` are the worst of the others.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    dcs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Remainder:
    """What remains of a layout after a loss, under one assumption about consistency levels.

    Attributes
    ----------
    name : str
        What is lost, in words, such as `1 node/DC`.
    lost : mapping of int
        What is lost, as in `capplan.answers.results.Outage`.
    lost_dcs : tuple of str
        Names of the lost data centres, where it matters which they are.
    assumed : str
        What is assumed, such as the consistency levels.
    solved : function or None
        Analyses what is left; None: no request can succeed.
    offset : function or None
        Returns the part of the survivors' latencies that the model error does not cover, from parameter values, as
        `MeasuredRange.offset` does; None: it is that of the whole layout.
    lowered : mapping of str
        Consistency levels that are assumed to be lower than asked, by operation (`read`, `write`).
    cost : str
        What lower levels cost.
    down : tuple of int
        Cassandra nodes of each data centre that are lost; empty where that is not known.
    """

    name: str
    lost: Mapping[str, int]
    lost_dcs: tuple[str, ...] = ()
    assumed: str
    solved: Solved | None
    offset: Callable[[Values], Offset] | None = None
    lowered: Mapping[str, str] = field(default_factory=dict)
    cost: str = ""
    down: tuple[int, ...] = ()


def read_loss(text: str, kinds: Mapping[str, str], dcs: int) -> Loss:
    """Read a loss, such as `node,dc2,front`.

    Parameters
    ----------
    text : str
        Words with commas between them: a kind, or `dc2` for the second data centre. A word that comes twice counts
        twice.
    kinds : mapping of str
        What can be lost, by word, with its meaning.
    dcs : int
        Number of data centres.

    Raises
    ------
    InputError
        If nothing or something else is named, or a data centre that does not exist.
    """
    counts: dict[str, int] = {}
    named: list[int] = []
    words = [word.strip().casefold() for word in text.split(",")]
    for word in words:
        numbered = re.fullmatch(r"dc(\d+)", word) if DC in kinds else None
        if numbered is None:
            if word not in kinds:
                known = ", ".join((*kinds, *(["dc1"] if DC in kinds else [])))
                raise InputError(f"--lose {text}: {word!r} cannot be lost{nearest(word, kinds)}: name {known}")
            counts[word] = counts.get(word, 0) + 1
            continue
        place = int(numbered[1])
        if not 1 <= place <= dcs:
            raise InputError(f"--lose {text}: there is no {word}: the layout has dc1 to dc{dcs}")
        if place - 1 not in named:
            named.append(place - 1)
    if len(named) + counts.get(DC, 0) > dcs:
        raise InputError(f"--lose {text} takes more data centres than there are: {dcs}")
    return Loss(counts, tuple(sorted(named)))


def losses_of(texts: Sequence[str], kinds: Mapping[str, str], dcs: int) -> tuple[Loss, ...]:
    """Read several losses; see `read_loss`.

    Raises
    ------
    InputError
        If one cannot be read, or the system has no outages.
    """
    if texts and not kinds:
        raise InputError(f"--lose {texts[0]}: no outage of this system is modelled; leave it out")
    return tuple(read_loss(text, kinds, dcs) for text in texts)


class Factor(NamedTuple):
    """A lognormal factor.

    Attributes
    ----------
    median : float
        Its median.
    log_sd : float
        Standard deviation of its natural logarithm.
    """

    median: float
    log_sd: float

    def draws(self, count: int, stream: int) -> FloatArray:
        """Return one value for each of `count` draws (count,); each stream has its own order."""
        levels = (np.random.default_rng(stream).permutation(count) + 0.5) / count
        return np.asarray(self.median * np.exp(self.log_sd * special.ndtri(levels)))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Conditions that no load test had.

    Attributes
    ----------
    name : str
        In words, such as `cold caches`.
    meaning : str
        What happens, in a sentence.
    factors : mapping of Factor
        Factors of free parameters of the system, by name.
    rate : Factor or None
        Factor of the offered rate; None: it stays.
    source : str
        Where the factors come from; `guess` where no source exists.
    """

    name: str
    meaning: str
    factors: Mapping[str, Factor] = field(default_factory=dict)
    rate: Factor | None = None
    source: str = "guess"

    @property
    def guessed(self) -> bool:
        """Whether the situation has no source."""
        return self.source == "guess"

    def applied_to(self, fitted: Fitted) -> Fitted:
        """Return a calibration for this situation: every draw is multiplied by random factors.

        Raises
        ------
        ValueError
            If a factor is of something else than a free parameter.
        """
        if unknown := set(self.factors) - set(fitted.names):
            raise ValueError(f"{', '.join(sorted(unknown))}: not free parameters of {fitted.system}")
        draws = np.array(fitted.draws)
        for name, factor in self.factors.items():
            draws[:, fitted.names.index(name)] *= factor.draws(len(draws), crc32(name.encode()))
        return replace(fitted, draws=tuple(tuple(row) for row in draws.tolist()))


RETRY_STORM = Situation(name="retry storm", meaning="clients send half of their requests again", rate=Factor(1.5, 0.15))


@dataclass(frozen=True)
class Losses(Component, Generic[S]):
    """What a system can lose, and what else it must survive.

    Attributes
    ----------
    kinds : mapping of str
        What can be lost, by word of `--lose`, with its meaning.
    remainders : function
        Returns what remains of a layout after some losses, at least one remainder for each; another where lower
        consistency levels restore service. Without losses, what remains after those that a planner should know of.
    situations : mapping of Situation
        Conditions to size for besides losses, by word of `--survive`.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    remainders: Callable[[Case[S], Sequence[Loss]], tuple[Remainder, ...]] = lambda _case, _losses: ()
    situations: Mapping[str, Situation] = field(default_factory=dict)
