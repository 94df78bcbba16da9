"""Load tests printed in documents, as rows of a load-test table: one row per run and request class.

Figures with the same scenario and layout are of one run. A row has what the table has columns for; everything else of
the layout, such as a proxy, stands in `system`, so that runs with and without it are not taken for repeats. A claim is
no measurement, and gives no row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.table import PERCENTILES, Evidence

_MEASURED = ("measured", "contradictory")
_STATED = (*_MEASURED, "configured")
_FIGURES = {
    ("latency", "mean"): ("latency_mean_ms", 1e3),
    ("latency", "maximum"): ("latency_max_ms", 1e3),
    **{("latency", name): (f"latency_{name}_ms", 1e3) for name in PERCENTILES},
    ("incoming_rate", "peak"): ("offered_tps", 1.0),
    ("offered_rate", "peak"): ("offered_tps", 1.0),
    ("offered_rate", "constant"): ("offered_tps", 1.0),
    ("request_rate", "constant"): ("offered_tps", 1.0),
    ("capacity", "peak"): ("throughput_tps", 1.0),
    ("test_length", "constant"): ("duration_s", 1.0),
    ("clients", "constant"): ("clients", 1.0),
}
"""Columns by quantity and statistic, with the factor from SI units."""
_OF_THE_RUN = ("duration_s", "clients")
"""Columns that every class of a run has; others without a class are of all requests together."""
_LAYOUT = {"clients": "clients", "users": "clients", "tps": "offered_tps", "duration_s": "duration_s"}
"""Columns by key of a layout."""
_LOADS = (*_LAYOUT, "requests", "rps_per_client", "sps", "write_share")
_EVERY_RUN = "all"


@dataclass(frozen=True)
class DocumentedRow:
    """A row of a load-test table taken from a document.

    Attributes
    ----------
    row : LoadTestRow
        Its cells.
    figures : tuple of str
        Ids of the documented figures in it.
    rounding : mapping of str to float
        Half of the interval that the rounding allows, by column, in the unit of the column.
    """

    row: LoadTestRow
    figures: tuple[str, ...]
    rounding: Mapping[str, float]


def documented_runs(evidence: Iterable[Evidence]) -> tuple[DocumentedRow, ...]:
    """Return the load tests among documented figures.

    Parameters
    ----------
    evidence : iterable of Evidence
        The figures of one system.

    Returns
    -------
    tuple of DocumentedRow
        Rows in the order of the figures; empty if the documents have no rate and no latency of a load test.
    """
    runs: defaultdict[tuple[object, ...], list[Evidence]] = defaultdict(list)
    shared = []
    for each in evidence:
        if each.use == "excluded" or each.status not in _STATED or (each.quantity, each.statistic) not in _FIGURES:
            continue
        if each.scenario == _EVERY_RUN:
            shared.append(each)
        else:
            runs[_run(each)].append(each)
    measured = {
        run: figures
        for run, figures in runs.items()
        if any(each.status in _MEASURED and each.statistic != "constant" for each in figures)
    }
    names = _names([figures[0] for figures in measured.values()])
    return tuple(
        row for name, figures in zip(names, measured.values(), strict=True) for row in _rows(name, [*figures, *shared])
    )


def _run(row: Evidence) -> tuple[object, ...]:
    return row.scenario, row.dcs, row.front_nodes, row.cass_nodes, row.rf, tuple(_configuration(row).items())


def _configuration(row: Evidence) -> dict[str, str]:
    """Return what distinguishes runs apart from node counts."""
    flags = {"proxy": row.proxy, "ldap": row.ldap}
    return {**{name: "yes" if flag else "no" for name, flag in flags.items() if flag is not None}, **row.layout}


def _names(firsts: Sequence[Evidence]) -> Iterator[str]:
    """Yield a name for each run: its scenario, and how it differs from other runs of the scenario."""
    by_scenario: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for each in firsts:
        by_scenario[each.scenario].append(_configuration(each))
    for each in firsts:
        alike = by_scenario[each.scenario]
        own = _configuration(each)
        apart = [f"{key}={value}" for key, value in own.items() if any(other.get(key) != value for other in alike)]
        yield " ".join([each.scenario, *apart])


def _rows(name: str, figures: Sequence[Evidence]) -> Iterator[DocumentedRow]:
    classes = list(dict.fromkeys(each.request_class for each in figures if each.request_class))
    alone = classes[0] if len(classes) == 1 else ALL
    cells: dict[str, dict[str, Evidence]] = {each: {} for each in classes}
    for each in figures:
        column, _ = _FIGURES[each.quantity, each.statistic]
        if each.request_class or column not in _OF_THE_RUN:
            cells.setdefault(each.request_class or alone, {}).setdefault(column, each)
    for request_class, found in sorted(cells.items(), key=lambda each: each[0] != ALL):
        for each in figures:
            column, _ = _FIGURES[each.quantity, each.statistic]
            if column in _OF_THE_RUN and not each.request_class:
                found.setdefault(column, each)
        whole = request_class in (ALL, alone)
        yield _row(name, request_class, found, figures[0], whole)


def _row(name: str, request_class: str, found: Mapping[str, Evidence], of: Evidence, whole: bool) -> DocumentedRow:
    values = {column: _decimal(each.value * _factor(each)) for column, each in found.items()}
    cells: dict[str, Any] = {**_load(of, whole), **values}
    if "clients" in cells:
        cells["clients"] = round(cells["clients"])
    words = " ".join(f"{key}={value}" for key, value in _configuration(of).items() if key not in _LOADS)
    ids = tuple(each.id for each in found.values())
    conditions = "; ".join(dict.fromkeys(each.conditions for each in found.values() if each.conditions))
    row = LoadTestRow(
        run_id=name,
        system=f"{of.system} {words}".strip(),
        dcs=of.dcs,
        cass_nodes=of.cass_nodes,
        rf=of.rf,
        front_nodes=of.front_nodes,
        load_kind=of.load_kind if of.load_kind in ("open", "closed", "throttled") else None,  # type: ignore[arg-type]  # checked here
        request_class=request_class,
        source=f"{of.source}: {' '.join(ids)}",
        note=conditions or None,
        **cells,
    )
    return DocumentedRow(row, ids, {column: _half(each) * _factor(each) for column, each in found.items()})


def _load(of: Evidence, whole: bool) -> dict[str, float]:
    """Return a run's load as its layout states it; rates only if the row covers all requests of the run."""
    stated = {key: float(value) for key, value in of.layout.items() if key in _LOADS}
    load = {column: stated[key] for key, column in _LAYOUT.items() if key in stated}
    if {"clients", "rps_per_client"} <= stated.keys():
        load["offered_tps"] = stated["clients"] * stated["rps_per_client"]
    if {"requests", "duration_s"} <= stated.keys():
        load["offered_tps"] = _decimal(stated["requests"] / stated["duration_s"])
    if "write_share" in stated:
        load["read_fraction"] = _decimal(1 - stated["write_share"])
    return load if whole else {key: value for key, value in load.items() if not key.endswith("_tps")}


def _decimal(value: float) -> float:
    """Return a value without its last bits, which differ from the printed decimal fraction."""
    return float(f"{value:.12g}")


def _factor(row: Evidence) -> float:
    return _FIGURES[row.quantity, row.statistic][1]


def _half(row: Evidence) -> float:
    return max(row.value - row.low, row.high - row.value)
