"""HdrHistogram percentile distributions (`.hgrm`), as text or CSV: of wrk2, jHiccup, tlp-stress, vegeta and others.

Written from the source of HdrHistogram, and from public results of wrk2 and vegeta. A percentile between two lines is
interpolated. The format has neither a rate nor a time, and names its unit only if vegeta wrote it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from capplan.errors import InputError
from capplan.evidence.importers.importer import Imported, Importer, matching, run_id
from capplan.evidence.importers.latency_unit import PER_MS, possible_units, unit_of
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.text_file import TextFile

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
    rows: list[tuple[float, ...]] = []
    summary: dict[str, float] = {}
    stated: str | None = None
    for line_number, line in file.lines():
        where = f"{file.path}, line {line_number}"
        if header := _HEADER.match(line):
            if rows:
                raise InputError(f"{where}: a second distribution begins: put it into a file of its own")
            stated, summary = header["unit"] or "", {}
        elif stated is None or not line.strip():
            continue
        elif line.lstrip().startswith("#"):
            summary |= {name: float(value) for name, value in _SUMMARY.findall(line)}
        elif cells := _ROW.fullmatch(line):
            rows.append(tuple(map(float, cells.groups())))
        elif not summary:
            raise InputError(f"{where} must be a value, a percentile and a count, with a decimal point")
    if not rows or not rows[-1][2]:
        raise InputError(f"{file.path} has no values: the run was interrupted, or measured nothing")
    values, shares, counts = np.array(rows).T
    if (np.diff(rows, axis=0) < 0).any():
        raise InputError(f"{file.path} has percentiles that fall: the file is damaged")
    median = float(np.interp(0.5, shares, values))
    unit, remarks = unit_of(file.path, unit, stated or "", median, possible_units(median))
    latencies: dict[str, Any] = {name: float(np.interp(share, shares, values)) for name, share in PERCENTILES.items()}
    latencies = {name: value for name, value in latencies.items() if PERCENTILES[name] <= shares[-1]}
    latencies |= {"latency_max_ms": float(values[-1])} if shares[-1] == 1 else {}
    latencies |= {column: summary[name] for name, column in _SUMMARISED.items() if name in summary}
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=ALL,
        source=f"{file.path.name}: HdrHistogram percentiles",
        note=f"{summary.get('Total count', counts[-1]):,.0f} requests",
        **{name: value / PER_MS[unit] for name, value in latencies.items()},
    )
    return Imported((row,), remarks=(*remarks, "it has no rate: give it by --set throughput_tps=..., if it is known"))


PERCENTILE_TEXT = Importer("HdrHistogram percentiles", matching(_TITLE), _read, exactness=2, read_in=_read)
