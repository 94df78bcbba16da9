"""HdrHistogram interval logs (`.hdr`, `.hlog`) of any tool. Written from real logs of cassandra-stress and latte.

The histograms of all intervals of a tag are added; a percentile is read from the sum. cassandra-stress has three tags
per operation: `-st` (service time), `-rt` (response time from the intended start) and `-wt` (the wait between);
latency is the response time where it is there. The format does not name its unit. It is nanoseconds by convention,
and microseconds in logs of YCSB, which are known by their `Logging for:` (from YCSB's source).
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from capplan.evidence.importers.importer import Imported, Importer, of_histogram, run_id
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.errors import InputError

_INTERVAL = re.compile(
    r"^(?:Tag=(?P<tag>[^,]*),)?(?P<start>[\d.]+),(?P<length>[\d.]+),(?P<max>[\d.]+),(?P<histogram>HIST\S+)$"
)
_NS_PER_MS, _US_PER_MS = 1e6, 1e3
_BAD = (
    *(binascii.Error, zlib.error, HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
    *(ValueError, IndexError, TypeError, OverflowError, MemoryError),
)
_MOST_VALUE = 2**53  # of what a histogram holds: a hundred days in nanoseconds
_SERVICE = "service times: without -rate fixed=, cassandra-stress does not count from an intended start"
_TAGS = {"cycles": ALL}  # of latte: a whole call of its workload, of which `requests` are parts
_LEFT_OUT = {"requests": "times the parts of a cycle"}


class _Series:
    """The sum of a tag's histograms, and the time that they span.

    `HdrHistogram.add` takes several milliseconds where the lengths of arrays differ, and a log has thousands of
    intervals. The arrays count the same values from their start on, so they are added as far as they go.
    """

    def __init__(self, first: HdrHistogram, start_s: float, end_s: float) -> None:
        self.total = HdrHistogram(first.lowest_trackable_value, _MOST_VALUE, first.significant_figures)
        self.start_s, self.end_s = start_s, end_s
        self.add(first, end_s)

    def add(self, found: HdrHistogram, end_s: float) -> None:
        """Add the histogram of a later interval, or of another class."""
        self.end_s = max(self.end_s, end_s)
        if not found.get_total_count():
            return
        alike = ("unit_magnitude", "sub_bucket_count", "word_size")
        if any(getattr(self.total, name) != getattr(found, name) for name in alike):
            self.total.add(found)
            return
        counts = np.frombuffer(found.counts, dtype=np.int64)[: self.total.counts_len]
        np.frombuffer(self.total.counts, dtype=np.int64)[: len(counts)] += counts
        self.total.total_count += found.get_total_count()
        self.total.max_value = max(self.total.max_value, found.max_value)
        self.total.min_value = min(self.total.min_value, found.min_value)


def decode(text: str, where: str) -> HdrHistogram:
    """Decode a histogram.

    Raises
    ------
    InputError
        If it is damaged.
    """
    try:
        found = HdrHistogram.decode(text)
        if found.max_value > _MOST_VALUE:
            raise ValueError(found.max_value)
        found.encoder = None  # it refers back, and would keep megabytes until the next garbage collection
        return found
    except _BAD:
        raise InputError(f"{where}: the histogram cannot be decoded: the file is damaged or cut off") from None


def _recognises(file: TextFile) -> bool:
    head = file.head
    return "Histogram log format" in head or "Interval_Compressed_Histogram" in head or ",HISTFAAA" in head[:4096]


def _read(file: TextFile) -> Imported:
    series: dict[str, _Series] = {}
    comments: list[str] = []
    for line_number, line in file.lines():
        if line.startswith("#"):
            comments.append(line)
            continue
        if not line.strip() or line.startswith('"StartTimestamp"'):
            continue
        where = f"{file.path}, line {line_number}"
        found = _INTERVAL.match(line)
        if not found:
            raise InputError(
                f"{where} must be an interval 'start,length,max,histogram': the file is damaged or cut off"
            )
        start_s, end_s = float(found["start"]), float(found["start"]) + float(found["length"])
        histogram, tag = decode(found["histogram"], where), found["tag"] or ""
        if tag in series:
            series[tag].add(histogram, end_s)
        else:
            series[tag] = _Series(histogram, start_s, end_s)
    if not any(each.total.get_total_count() for each in series.values()):
        raise InputError(f"{file.path} has no interval with a request: the run was interrupted, or measured nothing")
    about = "\n".join(comments)
    remarks = tuple(f"tag {tag!r} is left out: it {_LEFT_OUT[tag]}" for tag in series if tag in _LEFT_OUT)
    return Imported(tuple(_rows(series, about, file)), remarks=remarks)


def _rows(series: dict[str, _Series], about: str, file: TextFile) -> Iterator[LoadTestRow]:
    ycsb = re.search(r"Logging for: ([\w-]+)", about)
    per_ms = _US_PER_MS if ycsb else _NS_PER_MS
    timed = {name for tag in series if (name := _operation(tag))}
    kind = "rt" if any(f"{name}-rt" in series for name in timed) else "st"
    classes = {name: series[f"{name}-{kind}"] for name in timed if f"{name}-{kind}" in series}
    if len(classes) > 1:
        classes[ALL] = _together(list(classes.values()))
    for tag, found in series.items():
        if tag not in _LEFT_OUT and not _operation(tag):
            classes[_TAGS.get(tag, tag) or (ycsb[1] if ycsb else ALL)] = found
    for name, found in sorted(classes.items()):
        count, duration_s = found.total.get_total_count(), found.end_s - found.start_s
        if not count:
            continue
        yield LoadTestRow(
            run_id=run_id(file),
            request_class=name.lower(),
            load_kind="open" if timed and kind == "rt" else None,
            duration_s=duration_s,
            throughput_tps=count / duration_s if duration_s else None,
            source=f"{file.path.name}: HdrHistogram log",
            note=(_note(series, name) if kind == "rt" else _SERVICE) if name in timed else None,
            **of_histogram(found.total, per_ms),
        )


def _operation(tag: str) -> str:
    """Return the operation of a tag of cassandra-stress; empty for other tags."""
    name, _, kind = tag.rpartition("-")
    return name if kind in ("st", "rt", "wt") else ""


def _together(parts: list[_Series]) -> _Series:
    """Return the sum of several classes."""
    first, *others = parts
    series = _Series(first.total, min(each.start_s for each in parts), first.end_s)
    for each in others:
        series.add(each.total, each.end_s)
    return series


def _note(series: dict[str, _Series], name: str) -> str | None:
    """Say how much of the response time is a wait before the sending."""
    if f"{name}-wt" not in series:
        return None
    parts = {kind: series[f"{name}-{kind}"].total for kind in ("st", "wt") if f"{name}-{kind}" in series}
    means = {kind: of_histogram(total, _NS_PER_MS).get("latency_mean_ms", 0.0) for kind, total in parts.items()}
    return f"mean service {means.get('st', 0.0):.4g} ms after a wait of {means['wt']:.4g} ms in the client"


IMPORTER = Importer("HdrHistogram log", _recognises, _read, exactness=2)
