"""wrk and wrk2: what they print. wrk2's part is written from its documentation.

wrk's connections wait for their answers. wrk2 sends at a constant rate, which it does not print, and counts latency
from the intended start.
"""

from __future__ import annotations

import re
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, number, run_id
from capplan.calibration.evidence.importers.latency_summary import percentile_columns
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_TIME = r"([\d.]+)(us|ms|s|m|h)"
_PERCENTILE = re.compile(rf"^\s+([\d.]+)%\s+{_TIME}\s*$")
_LATENCY = re.compile(rf"^\s+Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}")
_TOTAL = re.compile(rf"^\s+(\d+) requests in {_TIME},")
_CLIENTS = re.compile(r"^\s+(\d+) threads and (\d+) connections")
_FAILED = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)|responses: (\d+)")
_CORRECTED, _UNCORRECTED = "Recorded Latency", "Uncorrected Latency"


def _recognises(file: TextFile) -> bool:
    return bool(re.search(r"^Running \S+ test @ ", file.head, re.MULTILINE))


def _read(file: TextFile) -> Imported:
    cells: dict[str, Any] = {"load_kind": "closed"}
    percentiles: dict[float, float] = {}
    failed, corrected, listed = 0, False, True
    for line_number, line in file.lines():
        where = f"{file.path}, line {line_number}"
        if found := _CLIENTS.match(line):
            cells["clients"] = int(found[2])
        elif found := _LATENCY.match(line):
            cells |= {"latency_mean_ms": _ms(found[1], found[2]), "latency_max_ms": _ms(found[5], found[6])}
        elif _CORRECTED in line or _UNCORRECTED in line:
            listed = _CORRECTED in line  # the other list counts from the sending
            corrected = corrected or listed
        elif listed and (found := _PERCENTILE.match(line)):
            percentiles[float(found[1])] = _ms(found[2], found[3])
        elif found := _TOTAL.match(line):
            cells["duration_s"] = _ms(found[2], found[3]) / 1000
        elif line.startswith("Requests/sec:"):
            cells["throughput_tps"] = number(line.partition(":")[2], where, "requests per second")
        elif found := _FAILED.search(line):
            failed += sum(int(each) for each in found.groups(default="0"))
    if "throughput_tps" not in cells:
        raise InputError(f"{file.path} ends before 'Requests/sec': the run was interrupted or the file is cut off")
    tool = "wrk2" if corrected else "wrk"
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=ALL,
        errors=failed,
        source=f"{file.path.name}: {tool}",
        **{**cells, **percentile_columns(percentiles), **({"load_kind": "open"} if corrected else {})},
    )
    needed = ("wrk2 does not print its rate: give it by --set offered_tps=...",) if corrected else ()
    return Imported((row,), remarks=needed)


def _ms(value: str, unit: str) -> float:
    return float(value) * _MS[unit]


IMPORTER = Importer("wrk", _recognises, _read)
