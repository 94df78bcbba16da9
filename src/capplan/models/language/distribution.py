"""Laws of random durations: each knows its mean, squared coefficient of variation (SCV), quantile function and cdf.

Every law is sampled by inverse transform, so a law *is* its quantile function. Parameters may be arrays of parameter
draws (the analytic solver broadcasts them; the simulation engines and files refuse them). This is the front door:
the simple laws are in `capplan.models.language.continuous`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.continuous import Deterministic, Empirical, Erlang, Exponential, Lognormal, Pareto, Weibull
from capplan.models.language.units import FloatArray, Number, Probability, Seconds, plain

__all__ = [
    "LANGUAGE",
    "Deterministic",
    "Distribution",
    "Empirical",
    "Erlang",
    "Exponential",
    "Hyperexponential",
    "Lognormal",
    "Mixture",
    "Pareto",
    "Weibull",
    "check_probabilities",
    "scaled",
]


@dataclass(frozen=True, config=LANGUAGE)
class Hyperexponential(Construct):
    """One of several exponentials; SCV at least 1.

    Attributes
    ----------
    probabilities
        Probability of each exponential; positive, with sum 1.
    means_s
        Mean of each exponential, in seconds.

    Raises
    ------
    InputError
        When the probabilities are not one for each mean, positive, with sum 1.
    """

    probabilities: tuple[Probability, ...]
    means_s: tuple[Seconds, ...]
    kind: Literal["hyperexponential"] = "hyperexponential"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.means_s))

    @cached_property
    def _mixture(self) -> Mixture:
        return Mixture(self.probabilities, tuple(Exponential(mean) for mean in self.means_s))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self._mixture.mean

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return self._mixture.scv

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds; the smallest double that reaches it."""
        return self._mixture.quantile(probability)

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        return self._mixture.cdf(value)


@dataclass(frozen=True, config=LANGUAGE)
class Mixture(Construct):
    """One of several laws.

    Attributes
    ----------
    probabilities
        Probability of each law; positive, with sum 1.
    laws
        The laws; they may be mixtures themselves.

    Raises
    ------
    InputError
        When the probabilities are not one for each law, positive, with sum 1.
    """

    probabilities: tuple[Probability, ...]
    laws: tuple[Distribution, ...]
    kind: Literal["mixture"] = "mixture"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.laws))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return plain(sum(p * law.mean for p, law in zip(self.probabilities, self.laws, strict=True)))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; 0 when all mass lies at 0."""
        mean, pairs = np.asarray(self.mean), list(zip(self.probabilities, self.laws, strict=True))
        # Variance within plus variance between, about the mean, so that a narrow law keeps its digits.
        variance = np.asarray(sum(p * (law.scv * np.square(law.mean) + np.square(law.mean - mean)) for p, law in pairs))
        return plain(np.divide(variance, mean**2, out=np.zeros(np.shape(variance)), where=mean > 0))

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds; the smallest double that reaches it.

        It lies between the smallest and the largest of the components' quantiles, as their distribution functions are
        all below `probability` before the one and all at least that from the other on. Bisection evaluates the cdf
        some 60 times: fast for arrays, slow (about a millisecond) one number at a time.
        """
        parts = [np.asarray(law.quantile(probability)) for law in self.laws]
        wanted, *rest = np.broadcast_arrays(np.asarray(probability, dtype=np.float64), *parts, *self.probabilities)
        low, high = np.minimum.reduce(rest[: len(parts)]), np.maximum.reduce(rest[: len(parts)])
        inside = (wanted > 0) & (wanted < 1)
        bounds = (np.where(inside, bound, 0.0) for bound in (wanted, low, high))
        found = _smallest_reaching(self.cdf, *bounds)
        return plain(np.where(inside, found, np.where(wanted == 0, low, high)))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        pairs = zip(self.probabilities, self.laws, strict=True)
        # The probabilities' sum is 1 within rounding only.
        return plain(np.minimum(sum(p * np.asarray(law.cdf(value)) for p, law in pairs), 1.0))


def _smallest_reaching(
    cdf: Callable[[FloatArray], Number], probability: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return the smallest double from `low` to `high` at which `cdf` reaches `probability`, element by element.

    Bisects the bit patterns, which rise with the doubles that they stand for (from 0 on): an atom is found exactly,
    a gap gives its left end, and it ends within 64 steps whatever the magnitudes.
    """
    left, right = low.view(np.int64) - 1, high.view(np.int64)
    while np.any(right - left > 1):
        middle = right - (right - left) // 2
        reached = np.asarray(cdf(middle.view(np.float64))) >= probability
        left, right = np.where(reached, left, middle), np.where(reached, middle, right)
    return right.view(np.float64)


def check_probabilities(probabilities: tuple[Number, ...], count: int) -> None:
    """Check that there are `count` probabilities (at least one), with sum 1 in every draw.

    Raises
    ------
    InputError
        When there are not, naming them.
    """
    if len(probabilities) != count or not count:
        raise InputError(f"{len(probabilities)} probabilities for {count} alternatives: give one for each")
    total = np.asarray(sum(probabilities))
    if np.any(np.abs(total - 1) > 1e-9):
        worst = float(total.flat[np.argmax(np.abs(total - 1))])
        raise InputError(f"probabilities with sum {worst:.10g} are not a distribution: their sum must be 1")


Distribution = Annotated[
    Deterministic | Exponential | Erlang | Hyperexponential | Lognormal | Weibull | Pareto | Empirical | Mixture,
    Field(discriminator="kind"),
]


def scaled(law: Distribution, factor: Number) -> Distribution:
    """Return the same law with every duration multiplied by `factor` (an array of draws scales each).

    Whatever a law states in seconds is a field whose name ends in `_s`; the rest is its shape.
    """
    if isinstance(law, Mixture):
        return replace(law, laws=tuple(scaled(part, factor) for part in law.laws))
    durations = {field.name: getattr(law, field.name) for field in fields(law) if field.name.endswith("_s")}
    return replace(law, **{name: _times(value, factor) for name, value in durations.items()})


def _times(value: Any, factor: Number) -> Any:
    return tuple(part * factor for part in value) if isinstance(value, tuple) else value * factor
