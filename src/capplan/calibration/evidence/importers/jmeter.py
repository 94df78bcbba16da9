"""JMeter: its results as CSV (JTL), one line per sample. Written from real output of JMeter 5.4.

A thread group does not say whether its threads wait (closed), are paced by a timer (throttled) or come at a rate (the
open model thread group), so that the kind of load stays open.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from capplan.calibration.evidence.importers.importer import Imported, Importer, run_id
from capplan.calibration.evidence.importers.latency_summary import of_samples
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_NEEDED = ("timeStamp", "elapsed", "label", "success")
_MOST_CLASSES = 50


def _recognises(file: TextFile) -> bool:
    header = file.head.partition("\n")[0]
    return "timeStamp" in header and "elapsed" in header


def _read(file: TextFile) -> Imported:
    samples = _samples(file)
    start_ms = pc.min(samples["timeStamp"]).as_py()
    ends = pc.add(samples["timeStamp"], samples["elapsed"])
    duration_s = (pc.max(ends).as_py() - start_ms) / 1000
    clients = pc.max(samples["allThreads"]).as_py() if "allThreads" in samples.column_names else None
    labels = pc.unique(samples["label"]).to_pylist()
    classes = sorted(labels) if 1 < len(labels) <= _MOST_CLASSES else []
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "clients": clients,
        "duration_s": duration_s,
        "source": f"{file.path.name}: JMeter",
    }
    parts = [(ALL if len(labels) > 1 else labels[0], samples)]
    parts += [(label, samples.filter(pc.equal(samples["label"], label))) for label in classes]
    rows = tuple(_rows(parts, shared, duration_s))
    many = f"{len(labels)} labels are too many for a row each: only all samples together are taken"
    return Imported(rows, remarks=(many,) if len(labels) > _MOST_CLASSES else ())


def _samples(file: TextFile) -> pa.Table:
    header = file.head.partition("\n")[0].strip()
    delimiter = next((each for each in ",;\t" if each in header), ",")
    names = next(csv.reader([header], delimiter=delimiter))
    if missing := [name for name in _NEEDED if name not in names]:
        raise InputError(f"{file.path}, line 1: column {missing[0]!r} is missing: save the results with it")
    types = {"timeStamp": pa.int64(), "elapsed": pa.int64(), "label": pa.string(), "success": pa.string()}
    if "allThreads" in names:
        types["allThreads"] = pa.int64()
    try:
        samples = pa_csv.read_csv(
            file.path,
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise _damaged(file, delimiter, names, str(error)) from None
    if not samples.num_rows:
        raise InputError(f"{file.path} has no samples: the run was interrupted, or measured nothing")
    if samples["timeStamp"].null_count or samples["elapsed"].null_count:
        raise _damaged(file, delimiter, names, "a cell is empty")
    return samples


def _damaged(file: TextFile, delimiter: str, names: list[str], reason: str) -> InputError:
    """Find the first line that is no sample."""
    lines = (line for _, line in file.lines())
    reader = csv.reader(lines, delimiter=delimiter)
    next(reader)
    for cells in reader:
        where = f"{file.path}, line {reader.line_num}"
        if len(cells) != len(names):
            return InputError(f"{where} has {len(cells)} cells, not {len(names)}: the file is damaged or cut off")
        for name in ("timeStamp", "elapsed"):
            if not cells[names.index(name)].lstrip("-").isdigit():
                found = cells[names.index(name)]
                return InputError(f"{where}: {name} has {found!r}: it must be milliseconds, as a whole number")
    return InputError(f"{file.path} is not a JTL file: {reason.splitlines()[0]}")


def _rows(parts: list[tuple[str, pa.Table]], shared: dict[str, Any], duration_s: float) -> Iterator[LoadTestRow]:
    for name, samples in parts:
        elapsed = samples["elapsed"].to_numpy().astype(np.float64)
        good = pc.sum(pc.equal(pc.utf8_lower(samples["success"]), "true")).as_py()
        yield LoadTestRow(
            **shared,
            request_class=name,
            throughput_tps=len(elapsed) / duration_s if duration_s else None,
            errors=len(elapsed) - int(good or 0),
            **of_samples(elapsed),
        )


IMPORTER = Importer("JMeter", _recognises, _read, exactness=2)
