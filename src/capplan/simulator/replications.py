"""Several replications of one network, taken together, and what scatters between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.models.errors import InputError
from capplan.models.quantity import FloatArray
from capplan.simulator.run import ClassReport, Run, together


@dataclass(frozen=True, eq=False)
class Replications:
    """Replications of one network.

    Attributes
    ----------
    runs
        The single runs.
    reports
        By request class, the counts, sums and histograms of all runs added; their windows follow one another.
    """

    runs: tuple[Run, ...]
    reports: dict[str, ClassReport]

    def each(self, figure: Callable[[Run], float]) -> FloatArray:
        """Return a figure of every run, for its scatter between runs."""
        return np.array([figure(run) for run in self.runs], dtype=np.float64)


def merged(runs: Sequence[Run]) -> Replications:
    """Take replications of one network together.

    Raises
    ------
    InputError
        When there is none, they are of different networks or classes, or one is there twice.
    """
    if not runs:
        raise InputError("no replication was given: simulate at least one")
    first = runs[0]
    for run in runs:
        if (run.network, run.classes) != (first.network, first.classes):
            raise InputError(
                f"runs of {first.network!r} and {run.network!r} are not replications: merge runs of one network only"
            )
    if len({(run.seed, run.replication) for run in runs}) < len(runs):
        raise InputError("two of the runs have the same seed and replication: number the replications")
    reports = {
        name: together((run.reports[name] for run in runs), name=name, windows="apart") for name in first.classes
    }
    return Replications(tuple(runs), reports)
