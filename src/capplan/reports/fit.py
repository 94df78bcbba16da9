"""A calibration for people: parameters, how well the evidence determines them, and what not to rely on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from capplan.calibration.tables.identifiability import DECIDED, decided
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_components import NodeCpu, Rows
from capplan.layout.table_rows import MEAN, THROUGHPUT, rows_of, without_cpu
from capplan.layout.table_system import NOT_PROMISED, TableSystem
from capplan.reports.document import Block, Break, Code, Fact, Heading, Paragraph, table
from capplan.reports.numbers import many


def of_documents(fitted: Fitted, file: str) -> Iterator[Block]:
    """Yield a calibration to documented evidence."""
    yield Heading(f"{fitted.system} is calibrated: {file}", 1)
    for name, value in zip(fitted.names, fitted.most_probable, strict=True):
        yield Fact(name, f"{value:.4g}", level=1)
    its = fitted.posterior
    yield Paragraph(
        f"{fitted.fitted_parameters} fitted parameters, {fitted.effective_parameters:.1f} determined by the evidence. "
        f"{len(fitted.draws)} draws, resampled from an effective {its.effective_sample_size:.0f} and moved by "
        f"{its.steps} steps of emcee (accepted {its.acceptance:.0%}, means shifted by at most {its.shift:.2f} standard "
        f"deviations); at most {its.laplace:.2f} from a normal distribution (Kolmogorov-Smirnov). Seed {fitted.seed}."
    )


def of_table(system: TableSystem[Any], fitted: Fitted, file: str) -> Iterator[Block]:
    """Yield a calibration to a load-test table, and the next command."""
    known = fitted.its_table
    yield Heading(f"{system.name} is fitted to {many(len(known.rows), 'row')}: {file}", 1)
    if system.component(NodeCpu).metered and (count := without_cpu(rows_of(fitted))):
        said = f"{many(count, 'row')} {'has' if count == 1 else 'have'} a node_cpu_percent of 0 or above 100"
        yield Paragraph(f"{said}, which no node has: the fit leaves that CPU out.")
    yield Break()
    shares, values = decided(fitted), np.array(fitted.draws)
    units = {each.name: each.unit for each in system.parameters}
    cells = []
    for at, name in enumerate(fitted.names):
        if name not in shares:
            continue
        unit = units.get(name.split("[")[0], "1")
        scale, word = (1e3, " ms") if unit == "s" else (1.0, "")
        ends = np.quantile(values[:, at], (0.05, 0.5, 0.95)).tolist()
        low, middle, high = (f"{each * scale:.3g}{word}" for each in ends)
        cells.append((name, middle, f"{low} to {high}", f"{shares[name]:.0%}"))
    yield table(("parameter", "median", "90 % of draws", "decided"), cells)
    yield Break()
    unknown = [name for name, share in shares.items() if share < DECIDED]
    yield Paragraph(
        "Decided: how far the rows narrow a parameter, 1 - posterior over prior standard deviation of its logarithm. "
        f"{len(unknown)} of {len(shares)} are decided to less than half: there, the prior speaks."
    )
    scatter = known.scatter
    yield Paragraph(
        f"A repeat scatters by {scatter[THROUGHPUT]:.0%} in throughput, {scatter[MEAN]:.0%} in the mean and "
        f"{scatter['latency_p99_ms']:.0%} in the 99th percentile (standard deviations). {NOT_PROMISED}"
    )
    for sentence in system.component(Rows).unstated(rows_of(fitted)):
        yield Paragraph(sentence)
    yield Break()
    yield Code(f"capplan predict {file}", "Next")
