"""The fitted file of a system: parameters, draws, predictions, and the evidence that they were fitted to."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from capplan.answers.json_text import NotJsonError, parse_json
from capplan.errors import InputError
from capplan.files import read_file, replace_file
from capplan.models.cassandra.pauses import OF_PAUSES
from capplan.models.language.parameter import Parameter, defaults
from capplan.models.language.units import Number

SCHEMA = "capplan.fitted/3"
LARGEST_BYTES = 32 * 2**20
DRAWS = 512
"""Parameter draws of a calibration: enough for the ends of 90 % bands, with 26 draws beyond each end."""
_COUNTS = ("seed", "fitted_parameters")


@dataclass(frozen=True)
class FittedFigure:
    """A documented figure and its prediction, SI.

    Attributes
    ----------
    id, fold : str
        The figure's row id, and its independent scenario.
    documented : float
        The documented figure.
    predicted : float
        Median prediction over the draws.
    low, high : float
        5th and 95th percentile of the predictions.
    """

    id: str
    fold: str
    documented: float
    predicted: float
    low: float
    high: float


@dataclass(frozen=True)
class NestedFigure:
    """A prediction of a documented figure by a fit without its scenario and without one further scenario, SI.

    Attributes
    ----------
    id, fold : str
        The figure's row id, and its independent scenario.
    without : str
        The other scenario that the fit left out.
    predicted : float
        Median prediction over the draws.
    """

    id: str
    fold: str
    without: str
    predicted: float


@dataclass(frozen=True)
class Posterior:
    """Diagnostics of the draws; see `capplan.calibration.fit.posterior`.

    Attributes
    ----------
    effective_sample_size : float
        Effective sample size of the proposals that were resampled.
    steps : int
        Steps that every draw then took as a walker (emcee).
    acceptance : float
        Share of the steps that were accepted.
    shift : float
        Largest shift of a parameter's mean logarithm by the walk, in standard deviations.
    laplace : float
        Largest Kolmogorov-Smirnov distance of a parameter's draws from the normal distribution with the curvature at
        the maximum.
    """

    effective_sample_size: float
    steps: int
    acceptance: float
    shift: float
    laplace: float


@dataclass(frozen=True)
class Hypothesis:
    """A choice that the documents leave open, and the quality of the fit under it.

    Attributes
    ----------
    choice : mapping of str
        Fields of the scenario.
    deviance : float
        Deviance of figures and priors; less is better.
    """

    choice: Mapping[str, str] = field(hash=False)
    deviance: float


@dataclass(frozen=True)
class FittedTable:
    """The user's load-test table that a generic system was fitted to; with it, the fitted file stands on its own.

    Attributes
    ----------
    rows : tuple of mappings
        The cells of each row that have a value, by column.
    scatter : mapping of float
        Standard deviation of the logarithm of a repeat's measurement around the model, by column.
    priors : mapping of pairs
        Median and standard deviation of the logarithm of each free parameter's prior, by name.
    clusters : tuple of str
        The published clusters that the draws are a population of, whose rows these are; empty for a user's own rows.
    """

    rows: tuple[Mapping[str, Any], ...] = field(hash=False)
    scatter: Mapping[str, float] = field(hash=False)
    priors: Mapping[str, tuple[float, float]] = field(hash=False)
    clusters: tuple[str, ...] = ()


class Expected(NamedTuple):
    """What a calibration must match in its system.

    Attributes
    ----------
    system : str
        Name of the system.
    data_hash : str
        SHA-256 of its evidence.
    names : tuple of str
        Free parameters.
    folds : mapping of str
        Independent scenario of each figure, by row id.
    choices : int
        Number of choices that its documents leave open.
    """

    system: str
    data_hash: str
    names: tuple[str, ...]
    folds: Mapping[str, str]
    choices: int


@dataclass(frozen=True)
class Fitted:
    """A calibration of a system.

    Attributes
    ----------
    system : str
        Name of the system.
    version : str
        Version of capplan that made the calibration.
    seed : int
        Seed of the draws.
    data_hash : str
        SHA-256 of the evidence.
    code : str
        Digest of the code that made the calibration; see `stages.refit_code`.
    names : tuple of str
        Free parameters, in the order of the columns of `draws`.
    most_probable : tuple of float (free,)
        Their most probable values, SI.
    draws : tuple of tuples of float (draws, free)
        Equally weighted draws from the posterior, SI.
    fitted_parameters : int
        Number of free parameters with wide priors.
    effective_parameters : float
        Number of parameters that the figures determine, rather than the priors.
    posterior : Posterior
        Diagnostics of the draws.
    hypotheses : tuple of Hypothesis
        The open choices, best first; empty if the documents leave none open.
    figures : tuple of FittedFigure
        Every figure, predicted by the fit to all figures.
    left_out : tuple of FittedFigure
        Every figure, predicted by a fit without its scenario.
    nested : tuple of NestedFigure
        Every figure, predicted by fits without its scenario and another one.
    table : FittedTable or None
        The load-test table of a user; None where the system's own evidence was fitted.
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
    table: FittedTable | None = None

    @property
    def clusters(self) -> tuple[str, ...]:
        """The published clusters that the draws are a population of; empty where they are of one cluster."""
        return () if self.table is None else self.table.clusters

    @property
    def its_table(self) -> FittedTable:
        """The load-test table of this calibration.

        Raises
        ------
        InputError
            If it was not fitted to one.
        """
        if self.table is None:
            raise InputError(f"this calibration of {self.system} is not fitted to a load-test table")
        return self.table

    def values(self, parameters: tuple[Parameter, ...]) -> dict[str, Number]:
        """Return the values of all parameters, SI.

        Parameters
        ----------
        parameters : tuple of Parameter
            Parameters of the system.

        Returns
        -------
        dict
            By name: arrays (draws,) for those that were fitted, numbers for the others.
        """
        columns = np.array(self.draws).T
        return {**defaults(parameters), **dict(zip(self.names, columns, strict=True))}

    def median_values(self, parameters: tuple[Parameter, ...]) -> dict[str, float]:
        """Return one value of each parameter, SI: the draw nearest to the centre of the ensemble.

        A draw keeps the correlations between parameters, which medians of single parameters would not. Parameters of
        pauses are wide and correlated with nothing, so they are at their medians.

        Parameters
        ----------
        parameters : tuple of Parameter
            Parameters of the system.
        """
        single = self.middle()
        return {name: float(single.get(name, np.asarray(value))) for name, value in defaults(parameters).items()}

    def middle(self) -> dict[str, float]:
        """Return the free parameters at the draw nearest to the ensemble's centre, SI."""
        draws = np.array(self.draws)
        logs, of_pauses = np.log(draws), np.array([name in OF_PAUSES for name in self.names])
        centre, spread = np.median(logs, axis=0), np.maximum(logs.std(axis=0), 1e-12)
        nearest = int(np.argmin((((logs - centre) / spread)[:, ~of_pauses] ** 2).sum(axis=1)))
        middle = np.where(of_pauses, np.median(draws, axis=0), draws[nearest])
        return dict(zip(self.names, map(float, middle), strict=True))

    def check(self, where: str, expected: Expected) -> None:
        """Check that the calibration matches a system.

        Parameters
        ----------
        where : str
            Name of the fitted file, for messages.
        expected : Expected
            What the calibration must match.

        Raises
        ------
        InputError
            If the system, the evidence, the parameters or the number of draws differ, or figures are missing.
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
        except (TypeError, OverflowError):  # the file was edited by hand
            complete = False
        if not complete:
            raise _no_fitted_file(where)


def rounded(value: float) -> float:
    """Round to seven digits, so that the file does not depend on the last bits of a sum."""
    return float(f"{value:.7g}")


def to_json(fitted: Fitted) -> dict[str, Any]:
    """Return the contents of the fitted file as JSON types."""
    content = {"schema": SCHEMA, **asdict(fitted)}
    if fitted.table is None:
        del content["table"]
    elif not fitted.table.clusters:
        del content["table"]["clusters"]
    return content


def write(fitted: Fitted, path: Path) -> None:
    """Write a fitted file atomically.

    Parameters
    ----------
    fitted : Fitted
        The calibration.
    path : Path
        The file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    replace_file(path, json.dumps(to_json(fitted), indent=1, allow_nan=False) + "\n")


def read_fitted(path: Path) -> Fitted:
    """Read a fitted file; `Fitted.check` then checks that it matches a system.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Fitted
        The calibration.

    Raises
    ------
    InputError
        If the file cannot be read or is not a fitted file.
    """
    try:
        content = parse_json(read_file(path, LARGEST_BYTES), str(path))
        if content.pop("schema") != SCHEMA:
            raise KeyError
        return _built(content)
    except NotJsonError:
        raise _no_fitted_file(path.name) from None
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise _no_fitted_file(path.name) from None


def _no_fitted_file(where: str) -> InputError:
    return InputError(f"{where!r} is not a fitted file ({SCHEMA}): run `capplan calibrate` to make one")


def _built(content: Mapping[str, Any]) -> Fitted:
    lists = {key: tuple(value) for key, value in content.items() if isinstance(value, list)}
    fitted = Fitted(
        **{
            **content,
            **lists,
            "draws": tuple(tuple(row) for row in content["draws"]),
            "hypotheses": tuple(Hypothesis(**item) for item in content["hypotheses"]),
            "figures": tuple(FittedFigure(**item) for item in content["figures"]),
            "left_out": tuple(FittedFigure(**item) for item in content["left_out"]),
            "nested": tuple(NestedFigure(**item) for item in content["nested"]),
            "posterior": Posterior(**content["posterior"]),
            "table": _table(content.get("table")),
        }
    )
    typed = isinstance(content["system"], str) and all(isinstance(content[name], int) for name in _COUNTS)
    worded = all(isinstance(word, str) for each in fitted.hypotheses for pair in each.choice.items() for word in pair)
    if not typed or not worded or not _sound_numbers(fitted):
        raise ValueError
    return fitted


def _table(content: Mapping[str, Any] | None) -> FittedTable | None:
    if content is None:
        return None
    scatter = {str(name): float(value) for name, value in content["scatter"].items()}
    priors = {str(name): (float(median), float(sd)) for name, (median, sd) in content["priors"].items()}
    if not all(map(_amount, scatter.values())) or not all(_positive(x) for each in priors.values() for x in each):
        raise ValueError
    clusters = tuple(map(str, content.get("clusters", ())))
    return FittedTable(tuple(dict(row) for row in content["rows"]), scatter, priors, clusters)


def _sound_numbers(fitted: Fitted) -> bool:
    """Whether every number is valid; the file may have been edited by hand."""
    numbers = (fitted.effective_parameters, *(each.deviance for each in fitted.hypotheses))
    return (
        all(_amount(value) for value in numbers)
        and _sound_points((fitted.most_probable, *fitted.draws), len(fitted.names))
        and _sound_posterior(fitted.posterior)
    )


def _complete(fitted: Fitted, folds: Mapping[str, str], choices: int) -> bool:
    """Whether every figure, every left-out scenario and every open choice is present exactly once."""
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


def _sound_posterior(posterior: Posterior) -> bool:
    amounts = (posterior.effective_sample_size, posterior.steps, posterior.shift)
    shares = (posterior.acceptance, posterior.laplace)
    return all(_amount(value) for value in amounts) and all(0 <= share <= 1 for share in shares)


def _sound_figures(table: tuple[FittedFigure, ...], folds: Mapping[str, str]) -> bool:
    """Whether every figure is present exactly once, with a band around its prediction."""
    return (
        {figure.id: figure.fold for figure in table} == folds
        and len(table) == len(folds)
        and all(_positive(value) for f in table for value in (f.documented, f.low, f.high))
        and all(f.low <= f.predicted <= f.high for f in table)
    )
