"""The fitted file of a system: parameters, draws, residuals, and what they were fitted to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.parameter import Parameter, defaults
from capplan.models.language.units import Number
from capplan.models.replaced_file import replace_file

SCHEMA = "capplan.fitted/2"
DRAWS = 512
"""Draws of the parameters that a calibration makes: enough for the ends of 90 % bands, of which 26 are beyond each."""
_COUNTS = ("seed", "fitted_parameters")


@dataclass(frozen=True)
class FittedFigure:
    """A documented figure beside what the model says of it (SI); `low` and `high` are the 5th and 95th percentiles."""

    id: str
    fold: str
    documented: float
    predicted: float
    low: float
    high: float


@dataclass(frozen=True)
class NestedFigure:
    """A documented figure as a fit says that saw neither its scenario nor another one (SI).

    Attributes
    ----------
    id, fold : str
        The figure and its scenario.
    without : str
        The other scenario that the fit did not see.
    predicted : float
        What the fit says, at its most probable parameters.
    """

    id: str
    fold: str
    without: str
    predicted: float


@dataclass(frozen=True)
class Posterior:
    """How the draws came about, and how far they are from Laplace's approximation: see `posterior`.

    Attributes
    ----------
    effective_sample_size : float
        Of the proposals that the draws were resampled from.
    steps : int
        Steps that every draw then walked (emcee).
    acceptance : float
        Share of the moves that were accepted.
    shift : float
        How far the walk moved the mean of a parameter's logarithm at most, in standard deviations.
    laplace : float
        Largest Kolmogorov-Smirnov distance of a parameter's draws from the normal law with the curvature at the
        maximum.
    """

    effective_sample_size: float
    steps: int
    acceptance: float
    shift: float
    laplace: float


@dataclass(frozen=True)
class Hypothesis:
    """A choice that the document leaves open, and how badly the figures fit under it (deviance: less is better).

    Attributes
    ----------
    choice : mapping of str
        Fields of the scenario.
    misfit : float
        Deviance of figures and priors.
    """

    choice: Mapping[str, str] = field(hash=False)
    misfit: float


class Expected(NamedTuple):
    """What a calibration must have been made from to belong to a system as it is today.

    Attributes
    ----------
    system, data_hash
        Name of the system, and SHA-256 of its evidence.
    names : tuple of str
        Its free parameters.
    folds : mapping of str
        The independent scenario of each figure, by row id.
    choices : int
        How many choices its documents leave open.
    """

    system: str
    data_hash: str
    names: tuple[str, ...]
    folds: Mapping[str, str]
    choices: int


@dataclass(frozen=True)
class Fitted:
    """A calibrated system.

    Attributes
    ----------
    system, version, seed, data_hash
        What was fitted, by which capplan, with which random numbers, to which evidence.
    code : str
        Digest of the code that fitted it: see `stages.refit_code`.
    names : tuple of str
        Free parameters, in the order of the columns of `draws`.
    most_probable : tuple of float
        Their most probable values, SI.
    draws : tuple of tuples of floats
        Equally weighted draws from the posterior, SI.
    fitted_parameters : int
        Free parameters with wide priors.
    effective_parameters : float
        Parameters that the figures decide.
    posterior : Posterior
        How the draws came about.
    hypotheses : tuple of Hypothesis
        The open choices, the best first; empty where the documents leave none open.
    figures, left_out : tuple of FittedFigure
        The figures as fitted, and each scenario's as predicted by a fit without it.
    nested : tuple of NestedFigure
        The figures as predicted by fits without their scenario and another one.
    """

    system: str
    version: str
    seed: int
    data_hash: str
    code: str
    names: tuple[str, ...]
    most_probable: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...]
    fitted_parameters: int
    effective_parameters: float
    posterior: Posterior
    hypotheses: tuple[Hypothesis, ...]
    figures: tuple[FittedFigure, ...]
    left_out: tuple[FittedFigure, ...]
    nested: tuple[NestedFigure, ...]

    def values(self, parameters: tuple[Parameter, ...]) -> dict[str, Number]:
        """Return the values of all `parameters` of the system, the free ones as arrays (draws,)."""
        columns = np.array(self.draws).T
        return {**defaults(parameters), **{name: columns[i] for i, name in enumerate(self.names)}}

    def median_values(self, parameters: tuple[Parameter, ...]) -> dict[str, float]:
        """Return one value of each parameter: the draw nearest to the ensemble's centre, correlations kept."""
        logs = np.log(np.array(self.draws))
        spread = np.maximum(logs.std(axis=0), 1e-12)
        nearest = int(np.argmin((((logs - np.median(logs, axis=0)) / spread) ** 2).sum(axis=1)))
        single = dict(zip(self.names, self.draws[nearest], strict=True))
        return {name: float(single.get(name, np.asarray(value))) for name, value in defaults(parameters).items()}

    def check(self, where: str, expected: Expected) -> None:
        """Check that the calibration belongs to a system as it is today.

        Parameters
        ----------
        where
            Names the fitted file in a message.
        expected : Expected
            The system as it is today.

        Raises
        ------
        InputError
            When it was fitted to another system, other evidence, other parameters, or has another number of draws.
        """
        other = None
        if self.system != expected.system:
            other = f"to {self.system}, not {expected.system},"
        elif self.data_hash != expected.data_hash:
            other = "to other evidence"
        elif self.names != expected.names:
            other = "with other parameters"
        elif len(self.draws) != DRAWS:
            other = f"with another number of draws ({len(self.draws)}, not {DRAWS})"
        if other:
            raise InputError(
                f"{where!r} was fitted {other} than this version has: run `capplan calibrate {expected.system}`"
            )
        try:
            complete = _complete(self, expected.folds, expected.choices)
        except (TypeError, OverflowError):  # a file that was changed by hand
            complete = False
        if not complete:
            raise _no_fitted_file(where)


def rounded(value: float) -> float:
    """Round to seven digits, so that a file does not hang on the last bits of a sum."""
    return float(f"{value:.7g}")


def to_json(fitted: Fitted) -> dict[str, Any]:
    """Return the contents of a fitted file."""
    return {"schema": SCHEMA, **asdict(fitted)}


def write(fitted: Fitted, path: Path) -> None:
    """Write a fitted file: whole, or not at all.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    replace_file(path, json.dumps(to_json(fitted), indent=1, allow_nan=False) + "\n")


def read_fitted(path: Path) -> Fitted:
    """Read a fitted file; `Fitted.check` says whether it belongs to a system.

    Raises
    ------
    InputError
        When the file cannot be read or is no fitted file.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found.pop("schema") != SCHEMA:
            raise KeyError
        return _built(found)
    except OSError as error:
        raise InputError(f"fitted file {str(path)!r} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _no_fitted_file(path.name) from None


def _no_fitted_file(where: str) -> InputError:
    return InputError(f"{where!r} is no fitted file ({SCHEMA}): run `capplan calibrate` to make one")


def _built(found: Mapping[str, Any]) -> Fitted:
    lists = {key: tuple(value) for key, value in found.items() if isinstance(value, list)}
    fitted = Fitted(
        **{
            **found,
            **lists,
            "draws": tuple(tuple(row) for row in found["draws"]),
            "hypotheses": tuple(Hypothesis(**item) for item in found["hypotheses"]),
            "figures": tuple(FittedFigure(**item) for item in found["figures"]),
            "left_out": tuple(FittedFigure(**item) for item in found["left_out"]),
            "nested": tuple(NestedFigure(**item) for item in found["nested"]),
            "posterior": Posterior(**found["posterior"]),
        }
    )
    typed = isinstance(found["system"], str) and all(isinstance(found[name], int) for name in _COUNTS)
    if not typed or not _sound_numbers(fitted):
        raise ValueError
    return fitted


def _sound_numbers(fitted: Fitted) -> bool:
    """Whether numbers are numbers: a file may have been changed by hand."""
    numbers = (fitted.effective_parameters, *(each.misfit for each in fitted.hypotheses))
    return (
        all(_amount(value) for value in numbers)
        and _sound_points((fitted.most_probable, *fitted.draws), len(fitted.names))
        and _sound_posterior(fitted.posterior)
    )


def _complete(fitted: Fitted, folds: Mapping[str, str], choices: int) -> bool:
    """Whether every figure, every left-out scenario and every open choice is there once."""
    others = {(row, other) for row, fold in folds.items() for other in set(folds.values()) if other != fold}
    return (
        len(fitted.hypotheses) == choices
        and all(_sound_figures(table, folds) for table in (fitted.figures, fitted.left_out))
        and sorted((each.id, each.without) for each in fitted.nested) == sorted(others)
        and all(each.fold == folds[each.id] for each in fitted.nested)
        and all(_positive(each.predicted) for each in fitted.nested)
    )


def _amount(value: float) -> bool:
    return math.isfinite(value) and value >= 0


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _sound_points(points: tuple[tuple[float, ...], ...], free: int) -> bool:
    positive = all(_positive(value) for point in points for value in point)
    return len(points) > 1 and all(len(point) == free for point in points) and positive


def _sound_posterior(its: Posterior) -> bool:
    amounts, shares = (its.effective_sample_size, its.steps, its.shift), (its.acceptance, its.laplace)
    return all(_amount(value) for value in amounts) and all(0 <= share <= 1 for share in shares)


def _sound_figures(table: tuple[FittedFigure, ...], folds: Mapping[str, str]) -> bool:
    """Whether every figure is there once, with a band around what is predicted."""
    return (
        {figure.id: figure.fold for figure in table} == folds
        and len(table) == len(folds)
        and all(_positive(value) for f in table for value in (f.documented, f.low, f.high))
        and all(f.low <= f.predicted <= f.high for f in table)
    )
