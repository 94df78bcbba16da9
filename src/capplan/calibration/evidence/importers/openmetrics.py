"""OpenMetrics and Prometheus text: the histograms and summaries that a server exposes. Written from the specification.

A scrape holds counts since the server started, without the load that caused them: it becomes rows of microbenchmarks.
A percentile of a histogram is found by linear interpolation inside its bucket, as Prometheus's `histogram_quantile`
does. Some exporters fill every bucket with one count, whatever happened: percentiles then never change, and the mean
lies outside the bucket that every observation would be in. Such histograms are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, number, run_id
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s.*)?$")
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_TYPE = re.compile(r"^# TYPE (\S+) (\w+)\s*$", re.MULTILINE)
_PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_SECONDS = {
    "_seconds": 1.0,
    "_milliseconds": 1e-3,
    "_ms": 1e-3,
    "_microseconds": 1e-6,
    "_micros": 1e-6,
    "_nanoseconds": 1e-9,
}
_EQUAL = 1e-9  # relative error of sums of counts
_SAME = 1e-3  # of counts that a server extrapolates to the ends of a window
_FEW = 3  # buckets, below which equal counts may be chance
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Histogram:
    """The cumulative counts of a histogram's buckets by upper bound, its sum and its count."""

    buckets: dict[float, float] = field(default_factory=dict)
    quantiles: dict[float, float] = field(default_factory=dict)
    total: float | None = None
    count: float | None = None

    def defect(self) -> str:
        """Return what is wrong with the histogram as the end of a sentence; empty if nothing is."""
        bounds = sorted(self.buckets)
        counts = [self.buckets[bound] for bound in bounds]
        if any(math.isnan(each) or each < 0 for each in counts):
            return "has a bucket with a count that is no count"
        if any(before > after * (1 + _EQUAL) for before, after in pairwise(counts)):
            return "has cumulative counts that fall: it was read while it changed, or a counter overflowed"
        steps = [max(after - before, 0.0) for before, after in pairwise([0.0, *counts])]
        finite = steps[:-1] if bounds and math.isinf(bounds[-1]) else steps
        if len(finite) >= _FEW and min(finite) > 0 and max(finite) - min(finite) <= _EQUAL * max(finite):
            return "has the same count in every bucket: the exporter fills them all, and its percentiles never change"
        if self.count and self.total is not None and bounds:
            mean, holding = (
                self.total / self.count,
                [bound for bound, step in zip(bounds, steps, strict=True) if step > _EQUAL * self.count],
            )
            lowest = (
                max((bound for bound in bounds if bound < min(holding)), default=-math.inf) if holding else -math.inf
            )
            if holding and not lowest * (1 - _SAME) <= mean <= max(holding) * (1 + _SAME):
                return f"has a mean of {mean:.3g} outside the buckets that hold observations, up to {max(holding):g}"
        if self.count is not None and counts and not math.isclose(counts[-1], self.count, rel_tol=_SAME):
            return f"counts {self.count:g} observations and holds {counts[-1]:g} in its buckets"
        return ""

    def percentile(self, share: float) -> float | None:
        """Return a percentile by linear interpolation; None if it lies above the highest finite bound."""
        bounds = sorted(self.buckets)
        rank, below, start = share * self.buckets[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            if self.buckets[bound] >= rank:
                if math.isinf(bound):
                    return None
                inside = self.buckets[bound] - below
                return start + (bound - start) * ((rank - below) / inside if inside else 1.0)
            below, start = self.buckets[bound], bound
        return None


def _recognises(file: TextFile) -> bool:
    return bool(_TYPE.search(file.head)) or file.head.startswith("# HELP ")


def _read(file: TextFile) -> Imported:
    types: dict[str, str] = {}
    found: dict[Key, Histogram] = {}
    for line_number, line in file.lines():
        if line.startswith("#"):
            types.update(_TYPE.findall(line))
        elif line.strip():
            match = _SAMPLE.match(line)
            if not match:
                raise InputError(
                    f"{file.path}, line {line_number} must be a sample 'name{{labels}} value': {line[:40]!r}"
                )
            _take(found, types, match, f"{file.path}, line {line_number}")
    defects = {key: histogram.defect() for key, histogram in found.items()}
    rows = tuple(row for key, histogram in found.items() if not defects[key] for row in _rows(key, histogram, file))
    remarks = tuple(f"{_shown(key)} is refused: it {defect}" for key, defect in defects.items() if defect)
    if not rows and not remarks:
        raise InputError(f"{file.path} has no histogram or summary with observations: counters alone say no latency")
    return Imported(microbenchmarks=rows, remarks=remarks)


def _take(found: dict[Key, Histogram], types: Mapping[str, str], match: re.Match[str], where: str) -> None:
    """Keep a sample of a histogram or a summary."""
    name, value = match["name"], number(match["value"], where, "the value of a sample")
    base = next((name.removesuffix(end) for end in ("_bucket", "_sum", "_count") if name.endswith(end)), name)
    if types.get(base) not in ("histogram", "summary"):
        return
    labels = dict(_LABEL.findall(match["labels"] or ""))
    bound, quantile = labels.pop("le", None), labels.pop("quantile", None)
    histogram = found.setdefault((base, tuple(sorted(labels.items()))), Histogram())
    if bound is not None and name.endswith("_bucket"):
        histogram.buckets[number(bound, where, "the bound of a bucket")] = value
    elif quantile is not None:
        histogram.quantiles[number(quantile, where, "a quantile")] = value
    elif name.endswith("_sum"):
        histogram.total = value
    elif name.endswith("_count"):
        histogram.count = value


def _rows(key: Key, histogram: Histogram, file: TextFile) -> Iterator[MicrobenchRow]:
    name, labels = key
    if not histogram.count:
        return
    factor = next((each for ending, each in _SECONDS.items() if name.endswith(ending)), None)
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "component": name,
        "quantity": "latency" if factor else name,
        "unit": "s" if factor else "1",
        "samples": int(histogram.count),
        "conditions": " ".join(f"{label}={value}" for label, value in labels) or None,
        "source": f"{file.path.name}: OpenMetrics text",
    }
    if histogram.total is not None:
        mean = histogram.total / histogram.count * (factor or 1.0)
        yield MicrobenchRow(**shared, statistic="mean", value=mean)
    for statistic, share in _PERCENTILES.items():
        value = histogram.percentile(share) if histogram.buckets else histogram.quantiles.get(share)
        if value is not None and math.isfinite(value):
            scaled = value * (factor or 1.0)
            yield MicrobenchRow(**shared, statistic=statistic, value=scaled)  # type: ignore[arg-type]  # cells by name


def _shown(key: Key) -> str:
    name, labels = key
    return name + ("{" + ",".join(f'{label}="{value}"' for label, value in labels) + "}" if labels else "")


IMPORTER = Importer("OpenMetrics text", _recognises, _read)
