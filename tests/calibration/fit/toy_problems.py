"""Fitting problems whose posterior is known without sampling."""

from dataclasses import dataclass, replace

import numpy as np

from capplan.calibration.fit.posterior import Problem, Scatter
from capplan.evidence.table import Evidence, by_id
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.units import FloatArray
from capplan.systems.registry import system

_ROW = by_id(system("openprovider").evidence)["ts4.incoming"]


def figure(name: str, value: float) -> Evidence:
    """Return a figure without rounding to speak of: its likelihood is a normal density."""
    return replace(_ROW, id=name, value=value, low=value * (1 - 1e-6), high=value * (1 + 1e-6))


def parameter(name: str, value: float, log_sd: float) -> Parameter:
    return Parameter(name, value, "1/s", "fitted", log_sd, "made up for this test")


@dataclass(frozen=True)
class Normal:
    """A problem whose posterior is normal in the logarithms."""

    problem: Problem
    mean: FloatArray
    covariance: FloatArray

    def whitened(self, log_points: FloatArray) -> FloatArray:
        """Return points as independent standard normal numbers, if they are draws from the posterior."""
        return np.asarray(np.linalg.solve(np.linalg.cholesky(self.covariance), (log_points - self.mean).T).T)


def one_parameter() -> Normal:
    """A prior N(log 100, 0.3) and a figure of 120 whose logarithm scatters by 0.2: precisions add up."""
    row = figure("speed", 120.0)
    problem = Problem(
        (parameter("speed", 100.0, 0.3), parameter("held", 7.0, 0.0)),
        (row,),
        lambda values: {row.id: np.asarray(values["speed"])},
        lambda _: Scatter(0.2, logarithmic=True),
    )
    precision = 1 / 0.3**2 + 1 / 0.2**2
    mean = (np.log(100.0) / 0.3**2 + np.log(120.0) / 0.2**2) / precision
    return Normal(problem, np.array([mean]), np.array([[1 / precision]]))


def two_parameters() -> Normal:
    """Two priors N(log 10, 0.3) and N(log 20, 0.5), and a figure of their product, known to 0.05: correlated."""
    row = figure("product", 260.0)
    problem = Problem(
        (parameter("first", 10.0, 0.3), parameter("second", 20.0, 0.5)),
        (row,),
        lambda values: {row.id: np.asarray(values["first"]) * values["second"]},
        lambda _: Scatter(0.05, logarithmic=True),
    )
    priors = np.diag([1 / 0.3**2, 1 / 0.5**2])
    both = np.ones((2, 2)) / 0.05**2
    covariance = np.linalg.inv(priors + both)
    told = priors @ np.log([10.0, 20.0]) + np.ones(2) * np.log(260.0) / 0.05**2
    return Normal(problem, covariance @ told, np.asarray(covariance))


def skewed(beyond: float = np.inf) -> Problem:
    """A wide prior N(log 100, 1) and a figure of 100 whose value, not its logarithm, scatters by 60.

    The model says nothing of parameters above `beyond`.
    """
    row = figure("speed", 100.0)

    def said(values: Values) -> dict[str, FloatArray]:
        speed = np.asarray(values["speed"])
        return {row.id: np.where(speed > beyond, np.nan, speed)}

    return Problem((parameter("speed", 100.0, 1.0),), (row,), said, lambda _: Scatter(0.6))


@dataclass(frozen=True)
class Law:
    """A law on a grid."""

    grid: FloatArray
    cumulated: FloatArray

    def at(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.interp(points, self.grid, self.cumulated))

    def distance(self, points: FloatArray) -> float:
        """Kolmogorov-Smirnov distance of a sample."""
        said, count = self.at(np.sort(points)), len(points)
        above = np.arange(1, count + 1) / count - said
        return float(max(above.max(), (1 / count - above).max()))


def skewed_law(beyond: float = np.inf) -> Law:
    """The posterior of `skewed` by quadrature, from the densities written out."""
    grid = np.linspace(np.log(100) - 12, np.log(min(beyond, 100 * np.exp(3))), 400_001)
    log_density = -0.5 * ((np.exp(grid) - 100) / 60) ** 2 - 0.5 * (grid - np.log(100)) ** 2
    density = np.exp(log_density - log_density.max())
    steps = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return Law(grid, steps / steps[-1])
