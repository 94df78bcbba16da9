"""Make the priors of exponents from tests/published/scale_outs.csv: `uv run just scale-outs`.

An exponent is the power of the nodes, or of the cores of a node, with which capacity grows. Those of published clusters
scatter around a mean: between studies, and between the tables of one study. The prior is what the table of another
cluster may have. For each study there is a prior without it, for fits to its own rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from capplan.calibration.tables.priors import EXPONENTS
from capplan.files import replace_file
from capplan.models.language.units import FloatArray

TABLE = Path(__file__).resolve().parents[2] / "tests" / "published" / "scale_outs.csv"
_SCATTER = (np.arange(60) + 0.5) / 60
"""Standard deviations of exponents that are considered, between studies and between tables."""
_ENDS = (0.05, 0.95)


def predictive(slopes: FloatArray, errors: FloatArray, studies: Sequence[str]) -> tuple[float, float]:
    """Return the mean of the exponent of another cluster, and its standard deviation by the 5th and 95th percentile.

    Slopes are normal around a mean, with a scatter between studies, one between tables, and their own errors. The mean
    has a flat prior, each scatter that of DuMouchel: as likely above a typical error as below it.

    Parameters
    ----------
    slopes, errors : array (slopes,)
        Slopes with their standard errors.
    studies : sequence of str
        The study of each.

    References
    ----------
    D. J. Spiegelhalter, K. R. Abrams and J. P. Myles, Bayesian Approaches to Clinical Trials, 2004, section 5.7.
    """
    typical = float(np.mean(errors**-2.0)) ** -0.5
    between, within = (each.ravel() for each in np.meshgrid(_SCATTER, _SCATTER))
    same = np.equal.outer(list(studies), list(studies))
    covariance = np.diag(errors**2) + within[:, None, None] ** 2 * np.eye(len(slopes))
    inverse = np.linalg.inv(covariance + between[:, None, None] ** 2 * same)
    precision = inverse.sum(axis=(1, 2))
    means = (inverse @ slopes).sum(axis=1) / precision
    left = slopes - means[:, None]
    misfit = np.einsum("gi,gij,gj->g", left, inverse, left)
    logs = (np.linalg.slogdet(inverse)[1] - np.log(precision) - misfit) / 2
    logs -= 2 * np.log((typical + between) * (typical + within))
    likely = np.exp(logs - logs.max())
    likely /= likely.sum()
    sds = np.sqrt(between**2 + within**2 + 1 / precision)
    low, high = (brentq(lambda x, end=end: likely @ ndtr((x - means) / sds) - end, -5, 5) for end in _ENDS)
    return float(likely @ means), float((high - low) / (ndtri(_ENDS[1]) - ndtri(_ENDS[0])))


def prior(rows: pd.DataFrame) -> list[float]:
    """Return the median and the standard deviation of the logarithm of an exponent, as a lognormal distribution."""
    mean, sd = predictive(rows.slope.to_numpy(), rows.error.to_numpy(), list(rows.study))
    spread = float(np.log1p((sd / mean) ** 2))
    return [round(mean * float(np.exp(-spread / 2)), 4), round(spread**0.5, 4)]


def priors(table: pd.DataFrame) -> dict[str, dict[str, list[float]]]:
    """Return the prior of each axis: of all studies under an empty name, then without each study."""
    found = {}
    for axis, rows in table.groupby("axis"):
        sources = rows.source.drop_duplicates().sort_values()
        found[str(axis)] = {"": prior(rows), **{each: prior(rows[rows.source != each]) for each in sources}}
    return found


def main() -> None:
    """Write the priors."""
    text = json.dumps(priors(pd.read_csv(TABLE, comment="#")), indent=1)
    replace_file(EXPONENTS, text + "\n")


if __name__ == "__main__":
    main()
