"""Situations: when a layout works under other conditions than in its load tests, such as a repair or cold caches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from zlib import crc32

import numpy as np
from scipy.special import ndtri

from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.language.units import FloatArray


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
        """Return one value for each of `count` draws; each stream orders them differently (count,)."""
        levels = (np.random.default_rng(stream).permutation(count) + 0.5) / count
        return np.asarray(self.median * np.exp(self.log_sd * ndtri(levels)))


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Conditions that a load test did not have.

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
        """Whether no source exists."""
        return self.source == "guess"

    def applied_to(self, fitted: Fitted) -> Fitted:
        """Return a calibration in this situation: each draw of the parameters has its own factors.

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


class Machine(NamedTuple):
    """A kind of machine that a layout is made of, and that a planner pays for.

    Attributes
    ----------
    name : str
        In words, such as `Cassandra node`.
    cores, speed : str or None
        Fields of the scenario with its cores and their speed relative to the load tests'; None: not modelled.
    holds_data : bool
        Whether its disk holds the data.
    """

    name: str
    cores: str | None = None
    speed: str | None = None
    holds_data: bool = False
