"""A calibration without a fit: draws from the priors of a system, and a table that nothing was fitted to."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import DRAWS, Fitted, FittedTable, Posterior
from capplan.layout.layout_factors import name_of
from capplan.layout.system import System
from capplan.layout.table_components import LayoutFactors
from capplan.layout.table_rows import QUANTITIES, cells_of
from capplan.layout.table_system import TableSystem, hash_of, table_of
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import Number


def prior_draws(system: TableSystem[Any], rows: Sequence[LoadTestRow], narrow: float = 0.1) -> Fitted:
    """Return a calibration with draws around the medians of the priors, `narrow` times as wide as these."""
    free = [each for each in system.parameters if each.free]
    random = np.random.default_rng(1)
    levels = (np.arange(DRAWS) + 0.5) / DRAWS
    columns = [each.value * np.exp(narrow * each.log_sd * ndtri(random.permutation(levels))) for each in free]
    cells = tuple(map(cells_of, rows))
    return Fitted(
        system=system.name,
        version="1",
        seed=1,
        data_hash=hash_of(cells),
        code="",
        names=tuple(each.name for each in free),
        most_probable=tuple(each.value for each in free),
        draws=tuple(tuple(row) for row in np.stack(columns, axis=-1).tolist()),
        fitted_parameters=len(free),
        effective_parameters=float(len(free)),
        posterior=Posterior(float(DRAWS), 0, 0.0, 0.0, 0.0),
        hypotheses=(),
        figures=(),
        left_out=(),
        nested=(),
        table=FittedTable(
            cells,
            dict.fromkeys(QUANTITIES, 0.05),
            {
                **{each.name: (each.value, each.log_sd) for each in free},
                **{name_of(name): (1.0, sd) for name, sd in system.component(LayoutFactors).log_sd.items()},
            },
        ),
    )


def prior_values(its: System[Any], asked: Scenario) -> dict[str, Number]:
    """Return the prior median of each parameter, and one value of what a layout needs beside them."""
    usual: dict[str, Number] = {each.name: each.value for each in its.parameters}
    return usual if table_of(its) is not None else {**its.median_values(its.fitted(), asked), **usual}
