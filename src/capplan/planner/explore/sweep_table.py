"""The table of a sweep: one row per point, with columns that only depend on the system.

Units are in the names; rates are peak rates over the whole layout, and `throughput_tps` is the mean rate of what
completes. A latency that grows without bound is `inf`. An empty cell is not modelled or does not exist: latencies of
classes that are not in the traffic, and all figures of a layout that breaks a rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from capplan.calibration.system import System
from capplan.models.language.per_dc import is_per_dc, per_dc_text
from capplan.models.language.scenario import Option, Scenario, options_of
from capplan.models.language.units import FloatArray
from capplan.models.replaced_file import replace_file
from capplan.models.results import STATISTICS, rounded
from capplan.planner.explore.ranges import as_number

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "capplan.sweep/3"
SweepPoint = dict[str, Any]
"""A row: a layout at an offered rate, by column."""


def band_columns(name: str) -> tuple[str, str, str]:
    """Return the columns of a figure with a band: its median, and the 5th and 95th percentile."""
    return name, f"{name}_low", f"{name}_high"


def band_cells(name: str, figures: FloatArray | Sequence[float]) -> SweepPoint:
    """Return the cells of a figure with a band, to the digits that it deserves; what is not a number is empty."""
    numbers = (None if math.isnan(figure) else rounded(float(figure)) for figure in figures)
    return dict(zip(band_columns(name), numbers, strict=True))


def rate_fields(scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the fields that say what is offered, `tps` first."""
    options = options_of(scenario)
    others = [name for name, option in options.items() if "tps" in option.replaces]
    return tuple(dict.fromkeys(("tps", *options["tps"].replaces, *others)))


def layout_options(scenario: type[Scenario]) -> dict[str, Option]:
    """Return the options of the fields that describe a layout, by field."""
    others = {*rate_fields(scenario), "slo"}
    return {name: option for name, option in options_of(scenario).items() if name not in others}


def column_of(field: str, option: Option) -> str:
    """Return the column of a field: its name, with the unit if it has one."""
    return f"{field}_{option.unit}" if option.unit else field


def latency_columns(system: System[Any]) -> tuple[str, ...]:
    """Return the columns of the latencies, without those of their bands."""
    return tuple(f"{name}_{statistic}_ms" for name in system.reported for statistic in STATISTICS)


@lru_cache(maxsize=16)
def columns_of(system: System[Any]) -> dict[str, str]:
    """Return the columns in their order, with their types as pandas has them.

    Other than the name says: `load` is the offered rate over the median capacity, `answer` whether the layout carries
    the rate with the objectives met (`yes`, `uncertain` or `no`), `risk` the probability that it does not, and
    `simulation` how much of the band of latencies the simulation causes, as a share of the figure; empty where
    latencies are not simulated.
    """
    hints = get_type_hints(system.scenario)
    layout = {
        column_of(name, option): "Float64" if option.unit else _dtype(hints[name])
        for name, option in layout_options(system.scenario).items()
    }
    bands = ("bottleneck_utilisation", "throughput_tps", "drop_rate", *latency_columns(system))
    return {
        "system": "string",
        **layout,
        **({"clients": "Int64"} if "clients" in rate_fields(system.scenario) else {}),
        "offered_tps": "Float64",
        "offered_source": "string",
        "load": "Float64",
        **dict.fromkeys(band_columns("capacity_tps"), "Float64"),
        "answer": "string",
        "risk": "Float64",
        "bottleneck": "string",
        **{column: "Float64" for name in bands for column in band_columns(name)},
        "simulation": "Float64",
        "basis": "string",
        "engine": "string",
        "seed": "Int64",
        "version": "string",
        "refused": "string",
    }


def _dtype(hint: Any) -> str:
    kinds = {hint, *get_args(hint)}
    if is_per_dc(hint):
        return "Int64"  # text in a table with unequal data centres, see `to_frame`
    known = {bool: "boolean", int: "Int64", float: "Float64"}
    return next((dtype for kind, dtype in known.items() if kind in kinds), "string")


def layout_point(system: System[Any], fields: Mapping[str, Any]) -> SweepPoint:
    """Return a row that only has the layout, from the fields of its scenario."""
    point: SweepPoint = dict.fromkeys(columns_of(system)) | {"system": system.name}
    for name, option in layout_options(system.scenario).items():
        point[column_of(name, option)] = _cell(option, fields.get(name))
    return point


def _cell(option: Option, value: Any) -> Any:
    """Return the value of a field as a table has it: a number in the option's unit, or `6/6/3` for unequal DCs."""
    if option.unit and value is not None:
        return as_number(option, value)
    return per_dc_text(value) if isinstance(value, tuple) else value


def to_frame(points: Iterable[SweepPoint], columns: Mapping[str, str]) -> pd.DataFrame:
    """Return rows as a data frame; a column of counts is text if data centres differ in some row (`6/6/3`)."""
    import pandas as pd  # a table for people needs none

    rows = list(points)
    written = {name for row in rows for name, value in row.items() if isinstance(value, str)}
    dtypes = {name: "string" if dtype == "Int64" and name in written else dtype for name, dtype in columns.items()}
    return pd.DataFrame(rows, columns=list(columns)).astype(dtypes)


def csv_text(points: Iterable[SweepPoint], columns: Mapping[str, str]) -> str:
    """Return rows as CSV with a header; a missing value is an empty cell, a verdict `true` or `false`."""
    frame = to_frame(points, columns)
    verdicts = [name for name, dtype in columns.items() if dtype == "boolean"]
    words = {name: frame[name].map({True: "true", False: "false"}) for name in verdicts}
    return str(frame.assign(**words).to_csv(index=False, lineterminator="\n"))


def write_table(points: Sequence[SweepPoint], columns: Mapping[str, str], path: Path) -> None:
    """Write rows to a CSV or Parquet file, by its ending; it is there in full or not at all.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    if path.suffix.lower() == ".csv":
        replace_file(path, csv_text(points, columns))
    else:
        replace_file(path, lambda beside: to_frame(points, columns).to_parquet(beside, index=False))
