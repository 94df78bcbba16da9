"""What larger layouts of published scale-outs carry, predicted from their smallest one alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from decisions import nodes_of

from capplan.answers.results import Band
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.grouped import grouped
from capplan.layout.case import Case
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_components import Rows
from capplan.layout.table_rows import THROUGHPUT, with_mix
from capplan.layout.table_system import TableSystem, unloaded
from capplan.systems.registry import table_system

HELD = 0.8
"""Share of the figures of a scale-out that its bands hold, from which it counts as held."""


@dataclass(frozen=True)
class ScaleOut:
    """A published scale-out: the capacity of each layout is known by its highest throughput."""

    study: str
    system: str
    name: str

    def size(self, row: LoadTestRow) -> int:
        """Return the number of nodes that grow."""
        return nodes_of(row)

    def bands(self, system: TableSystem[Any], fitted: Fitted, rows: Sequence[LoadTestRow]) -> Iterator[Band]:
        """Yield the predictions of the larger layouts: of what they carry for clients of another load generator."""
        for row in rows:
            case = Case(system.of(fitted), unloaded(system.row_scenario(row)), fitted)
            yield case.uncertainty.of_rate(case.solution.capacity)

    def predicted(self, folder: Path) -> Iterator[tuple[float, Band]]:
        """Yield what larger layouts carried beside the prediction; each workload has a fit of its own."""
        system = table_system(self.system)
        frame = LOAD_TESTS.read(folder / f"{self.name}.csv")
        for rows in grouped(with_mix(list(LOAD_TESTS.rows(frame))), system.component(Rows).group).values():
            least = min(map(self.size, rows))
            fitted = fit_table(system, [row for row in rows if self.size(row) == least])
            larger = [row for row in rows if self.size(row) > least]
            for row, band in zip(larger, self.bands(system, fitted, larger), strict=True):
                yield float(row.throughput_tps or 0.0), band


class FrontScaleOut(ScaleOut):
    """A scale-out of front nodes, with a curve of clients for each layout."""

    def size(self, row: LoadTestRow) -> int:
        """Return the number of front nodes."""
        return int(row.front_nodes or 0)  # type: ignore[arg-type]  # of one data centre

    def bands(self, system: TableSystem[Any], fitted: Fitted, rows: Sequence[LoadTestRow]) -> Iterator[Band]:
        """Yield the predicted throughput of each row."""
        return (each.predicted for each in predict_table(system, fitted, rows) if each.quantity == THROUGHPUT)


SCALE_OUTS = (
    ScaleOut("Netflix 2011", "cassandra", "cassandra_netflix_2011"),
    ScaleOut("End Point 2015", "cassandra", "cassandra_endpoint_2015"),
    ScaleOut("Instaclustr 2015", "cassandra", "cassandra_instaclustr_2015"),
    *(
        ScaleOut(f"RabbitMQ 2020, {queue} queues", "two-tier", f"rabbitmq_{queue}_{disk}")
        for queue in ("quorum", "mirrored")
        for disk in ("io1", "gp2", "st1")
    ),
    ScaleOut("FoundationDB", "two-tier", "foundationdb_mix"),
)
CHECKS = (
    ScaleOut("EC2 2013: clients on the nodes", "cassandra", "cassandra_ec2_2013"),
    FrontScaleOut("WSO2: two front nodes from one", "two-tier", "wso2_identity"),
)


def page(folder: Path) -> str:
    """Return the table of scale-outs of a folder: each study, then its tables where it has several."""
    lines = ["| scale-out | figures | in their bands | high/low, median | held |", "| --- | ---: | ---: | ---: | --- |"]
    for study, tables in grouped((*SCALE_OUTS, *CHECKS), lambda each: each.study).items():
        found = {one.name: list(one.predicted(folder)) for one in tables}
        lines.append(_line(study, [each for own in found.values() for each in own]))
        if len(found) > 1:
            lines += [_line(f"- {name}", own) for name, own in found.items()]
    return "\n".join(lines)


def _line(name: str, found: Sequence[tuple[float, Band]]) -> str:
    inside = sum(band.low <= measured <= band.high for measured, band in found)
    wide = median(band.high / band.low for _, band in found)
    return f"| {name} | {len(found)} | {inside} | {wide:.2f} | {'yes' if inside >= HELD * len(found) else '**no**'} |"
