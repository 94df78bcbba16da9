"""A calibration by a load-test table for people: parameters, how far rows decide them, what is not promised."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.tables.fit_table import NOT_PROMISED, TableSystem
from capplan.calibration.tables.identifiability import DECIDED, decided
from capplan.calibration.tables.rows import MEAN, THROUGHPUT, rows_of
from capplan.cli.shell.terminal import Screen
from capplan.cli.views.lines import paragraph, put, table


def show_fit(system: TableSystem[Any], fitted: Fitted, file: str) -> None:
    """Print a calibration and the next command."""
    screen: Console = Screen()
    known = fitted.table
    if known is None:
        return
    rows = len(known.rows)
    put(screen, f"{system.name} is fitted to {rows} {'row' if rows == 1 else 'rows'}: {file}", "bold")
    put(screen)
    shares, values = decided(fitted), np.array(fitted.draws)
    units = {each.name: each.unit for each in system.parameters}
    cells = []
    for at, name in enumerate(fitted.names):
        if name not in shares:
            continue
        low, middle, high = np.quantile(values[:, at], (0.05, 0.5, 0.95)).tolist()
        unit = units.get(name.split("[")[0], "1")
        cells.append(
            (name, _in_unit(middle, unit), f"{_in_unit(low, unit)} to {_in_unit(high, unit)}", f"{shares[name]:.0%}")
        )
    table(screen, ("parameter", "median", "90 % of draws", "decided"), cells)
    put(screen)
    open_ = [name for name, share in shares.items() if share < DECIDED]
    paragraph(
        screen,
        "Decided: how far the rows narrow a parameter, 1 - posterior over prior standard deviation of its logarithm. "
        f"{len(open_)} of {len(shares)} are decided to less than half: there, the prior speaks.",
    )
    scatter = known.scatter
    paragraph(
        screen,
        f"A repeat scatters by {scatter[THROUGHPUT]:.0%} in throughput, {scatter[MEAN]:.0%} in the mean and "
        f"{scatter['latency_p99_ms']:.0%} in the 99th percentile (standard deviations). {NOT_PROMISED}",
    )
    for sentence in system.unstated(rows_of(fitted)):
        paragraph(screen, sentence)
    put(screen)
    put(screen, f"Next: capplan predict {file}", "dim")


def _in_unit(value: float, unit: str) -> str:
    return f"{value * 1e3:.3g} ms" if unit == "s" else f"{value:.3g}"
