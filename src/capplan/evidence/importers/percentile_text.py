"""HdrHistogram percentile distributions (`.hgrm`), as text or CSV: of wrk2, jHiccup, tlp-stress, vegeta and others.

Written from the source of HdrHistogram, and from public results of wrk2 and vegeta. A percentile between two lines is
interpolated. The format has neither a rate nor a time, and names its unit only if vegeta wrote it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from capplan.evidence.importers.importer import Imported, Importer, matching, run_id
from capplan.evidence.importers.latency_unit import PER_MS, given_unit, possible_units, unstated
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.errors import InputError

_TITLE = (
    r'^[ \t]*"?Value(?:\((?P<unit>\w+)\))?"?'
    r'[ \t,]+"?Percentile"?[ \t,]+"?TotalCount"?[ \t,]+"?1/\(1-Percentile\)"?[ \t]*$'
)
_HEADER = re.compile(_TITLE)
_VALUE = r"\d{1,18}(?:\.\d{0,18})?"
_ROW = re.compile(rf"\s*({_VALUE})[\s,]+(\d(?:\.\d{{0,18}})?)[\s,]+(\d{{1,18}})(?:[\s,]+(?:{_VALUE}|inf|Infinity))?\s*")
_SUMMARISED = {"Mean": "latency_mean_ms", "Max": "latency_max_ms"}
_SUMMARY = re.compile(rf"\b(Mean|Max|Total count) *= *({_VALUE})")


def _read(file: TextFile, unit: str = "") -> Imported:
    rows: list[tuple[float, float, float]] = []
    summary: dict[str, float] = {}
    stated: str | None = None
    for line_number, line in file.lines():
        where = f"{file.path}, line {line_number}"
        if found := _HEADER.match(line):
            if rows:
                raise InputError(f"{where}: a second distribution begins: put it into a file of its own")
            stated, summary = found["unit"] or "", {}
        elif stated is None or not line.strip():
            continue
        elif figures := _SUMMARY.findall(line) if line.lstrip().startswith("#") else []:
            summary |= {name: float(figure) for name, figure in figures}
        elif found := _ROW.fullmatch(line):
            rows.append((float(found[1]), float(found[2]), float(found[3])))
        elif not (summary or line.lstrip().startswith("#")):
            raise InputError(f"{where} must be a value, a percentile and a count: the file is damaged or cut off")
    if not rows or not rows[-1][2]:
        raise InputError(f"{file.path} has no values: the run was interrupted, or measured nothing")
    values, shares, counts = np.array(rows).T
    if any((np.diff(each) < 0).any() for each in (values, shares, counts)):
        raise InputError(f"{file.path} has percentiles that fall: the file is damaged")
    median = float(np.interp(0.5, shares, values))
    unit, remarks = _unit(unit or stated or "", median, file)
    columns = {
        name: float(np.interp(share, shares, values)) for name, share in PERCENTILES.items() if share <= shares[-1]
    }
    columns |= {"latency_max_ms": float(values[-1])} if shares[-1] == 1 else {}
    columns |= {column: summary[name] for name, column in _SUMMARISED.items() if name in summary}
    latencies: dict[str, Any] = {name: value / PER_MS[unit] for name, value in columns.items()}
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=ALL,
        source=f"{file.path.name}: HdrHistogram percentiles",
        note=f"{summary.get('Total count', counts[-1]):,.0f} requests",
        **latencies,
    )
    return Imported((row,), remarks=(*remarks, "it has no rate: give it by --set throughput_tps=..., if it is known"))


def _unit(stated: str, median: float, file: TextFile) -> tuple[str, tuple[str, ...]]:
    """Return the unit of the values, and a remark if it is a guess."""
    if stated:
        return given_unit(stated), ()
    possible = possible_units(median)
    if len(possible) != 1:
        raise unstated(file.path, median)
    return possible[0], (f"its unit is taken for {possible[0]}, as no other is possible: --unit gives another",)


PERCENTILE_TEXT = Importer("HdrHistogram percentiles", matching(_TITLE), _read, exactness=2, read_in=_read)
