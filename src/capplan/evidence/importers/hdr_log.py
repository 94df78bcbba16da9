"""HdrHistogram interval logs (`.hdr`, `.hlog`) of any tool.

Written from real logs of cassandra-stress and latte; the tags of scylla-bench and NoSQLBench are from their sources.

The histograms of all intervals of a tag are added; a percentile is read from the sum. A tag may be a class of requests,
or a stage or a corrected copy of the same requests: cassandra-stress has `-st` (service time), `-rt` (response time
from the intended start) and `-wt` (the wait between) of each operation, scylla-bench `raw` and `co-fixed`, NoSQLBench a
dozen timers of each activity. Of each class one tag counts, the corrected one first.

The format does not name its unit. A comment says it, or the tool does; otherwise the column Interval_Max (milliseconds
by convention) and what is possible show it, which a remark says; or it is asked.
"""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException, ext_header_size
from hdrh.histogram import HdrHistogram

from capplan.errors import InputError
from capplan.evidence.importers.importer import Imported, Importer, matching, percentile_columns, run_id
from capplan.evidence.importers.latency_unit import PER_MS, USUAL_MS, possible_units, unit_of
from capplan.evidence.importers.listed_requests import BusyTime
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.text_file import TextFile

_INTERVAL = re.compile(
    r"^(?:Tag=(?P<tag>[^,]*),)?(?P<start>[\d.]+),(?P<length>[\d.]+),(?P<max>[\d.]+),(?P<histogram>HIST\S+)$"
)
_BAD = (
    *(zlib.error, struct.error, HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
    *(ValueError, LookupError, TypeError, ArithmeticError, MemoryError),
)
_MOST_BYTES = 2**26  # of a histogram: one with five digits up to a hundred days has less
_MOST_VALUE = 2**53  # of what a histogram holds: a hundred days in nanoseconds


# ---- Encodings. The library decodes V2. V1 and V0 have plain words after a header that ends in digits, lowest and
# highest value, and a total or a ratio. Written from the source of HdrHistogram 2.1.


_COOKIE = ~0xF0  # without the bits that say the size of a word
_OLD_HEADERS = {0x1C849309: struct.Struct(">iiqqq"), 0x1C849302: struct.Struct(">iiiiqqd")}


def decode(text: str, where: str) -> HdrHistogram:
    """Decode a histogram.

    Raises
    ------
    InputError
        If it is damaged, or inflates to more than any histogram has.
    """
    try:
        packed, inflater = base64.b64decode(text), zlib.decompressobj()
        content = inflater.decompress(packed[ext_header_size:], _MOST_BYTES)
        if not inflater.eof:  # it is cut off, or some kilobytes inflate to gigabytes
            raise ValueError(len(text))
        header = _OLD_HEADERS.get(int.from_bytes(packed[:4], "big") & _COOKIE)
        found = _decode_old(content, header) if header else HdrHistogram.decode(text)
        if found.max_value > _MOST_VALUE:
            raise ValueError(found.max_value)
        found.encoder = None  # it refers back, and would keep megabytes until the next garbage collection
        return found
    except _BAD:
        raise InputError(f"{where}: the histogram cannot be decoded: the file is damaged or cut off") from None


def _decode_old(content: bytes, header: struct.Struct) -> HdrHistogram:
    cookie, *payload, digits, lowest, highest, _ = header.unpack_from(content)
    length, offset = payload or (len(content), 0)
    if offset:
        raise ValueError(offset)
    counts = np.frombuffer(content[header.size : header.size + length], f">u{(cookie & 0xE0) >> 4}")
    histogram = HdrHistogram(lowest, highest, digits)
    if len(counts) > histogram.counts_len or counts.max(initial=0) > _MOST_VALUE:
        raise ValueError(len(counts))
    np.frombuffer(histogram.counts, dtype=np.int64)[: len(counts)] = counts
    used = np.flatnonzero(counts)
    if len(used):
        histogram.set_internal_tacking_values(int(used[0]), int(used[-1]), int(counts.sum()))
    return histogram


# ---- Tags.


_STAGES = (  # of a request: the best latency first
    *("rt", "cycles_responsetime", "responsetime", "co_fixed", "corrected"),
    *("st", "cycles_servicetime", "servicetime", "cycles", "raw", "uncorrected", "result", "result_success"),
)
_NO_REQUESTS = {
    **dict.fromkeys(("wt", "cycles_waittime", "waittime"), "times a wait"),
    **dict.fromkeys(("requests", "bind", "execute", "read_input"), "times the parts of a request or of a cycle"),
    **dict.fromkeys(("strides_servicetime", "strides_responsetime", "strides", "phases"), "times several requests"),
    **dict.fromkeys(("tries", "resultset_size"), "counts, and times nothing"),
}
_BETWEEN = r"[\s._:/-]"
_WORDS = "|".join(sorted((*_STAGES, *_NO_REQUESTS), key=len, reverse=True)).replace("_", _BETWEEN)
_TAG = re.compile(
    rf"(?:(?P<name>.+?){_BETWEEN})?(?P<stage>{_WORDS})|(?P<copy>raw|co.fixed){_BETWEEN}(?P<operation>.+)", re.IGNORECASE
)
_SERVICE = "service times: without -rate fixed=, cassandra-stress does not count from an intended start"


def _parts(tag: str) -> tuple[str, str]:
    """Return the class in a tag, and the stage of its requests; each may be empty."""
    found = _TAG.fullmatch(tag)
    if not found:
        return tag, ""
    stage = re.sub(_BETWEEN, "_", found["stage"] or found["copy"]).lower()
    return found["name"] or found["operation"] or "", stage


def _classes(series: dict[str, _Series]) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Return the tag that counts for each class and its stage, and remarks on tags that may not be classes.

    The note of cassandra-stress's row has the service time and the wait. Two classes that have the same count in each
    interval may be one, timed twice.
    """
    parts = {tag: _parts(tag) for tag in series}
    left_out = {tag: _NO_REQUESTS[stage] for tag, (_, stage) in parts.items() if stage in _NO_REQUESTS}
    remarks = [f"tag {tag!r} is left out: it {why}" for tag, why in left_out.items() if parts[tag][1] != "wt"]
    classes: dict[str, tuple[str, str]] = {}
    counted: dict[tuple[int, ...], str] = {}
    for tag in sorted(parts.keys() - left_out.keys(), key=lambda tag: (("", *_STAGES).index(parts[tag][1]), tag)):
        name, stage = parts[tag]
        counts = tuple(series[tag].counts)
        if name not in classes:
            classes[name] = tag, stage
            if counts in counted:
                remarks.append(
                    f"tags {counted[counts]!r} and {tag!r} count the same in each interval: if they time the same "
                    "requests twice, use one of them"
                )
            counted[counts] = tag
        elif stage != "st":
            remarks.append(f"tag {tag!r} is left out: it has the same requests as {classes[name][0]!r}, which is taken")
    return classes, remarks


# ---- The log.


class _Series:
    """The sum of a tag's histograms, and the time span of them.

    `HdrHistogram.add` takes several milliseconds where the lengths of arrays differ, and a log has thousands of
    intervals. The arrays count the same values from their start on, so they are added as far as they go.
    """

    def __init__(self, like: HdrHistogram) -> None:
        self.total = HdrHistogram(like.lowest_trackable_value, _MOST_VALUE, like.significant_figures)
        self.start_s, self.end_s = math.inf, -math.inf
        self.shown_per_ms = math.nan  # of the longest latency, by the column Interval_Max
        self.counts: list[int] = []

    def add(self, found: HdrHistogram, start_s: float, end_s: float, shown_max: float = 0.0) -> None:
        """Add the histogram of a later interval or of another class."""
        self.start_s, self.end_s = min(self.start_s, start_s), max(self.end_s, end_s)
        self.counts.append(found.get_total_count())
        if not found.get_total_count():
            return
        if shown_max and found.max_value >= self.total.max_value:
            self.shown_per_ms = found.max_value / shown_max
        alike = ("unit_magnitude", "sub_bucket_count", "word_size")
        if any(getattr(self.total, name) != getattr(found, name) for name in alike):
            self.total.add(found)
            return
        counts = np.frombuffer(found.counts, dtype=np.int64)[: self.total.counts_len]
        np.frombuffer(self.total.counts, dtype=np.int64)[: len(counts)] += counts
        self.total.total_count += found.get_total_count()
        self.total.max_value = max(self.total.max_value, found.max_value)
        self.total.min_value = min(self.total.min_value, found.min_value)


def _read(file: TextFile, unit: str = "") -> Imported:
    series: dict[str, _Series] = {}
    comments: list[str] = []
    busy = BusyTime()
    for line_number, line in file.lines():
        where = f"{file.path}, line {line_number}"
        if line.startswith(("#", '"StartTimestamp"')):
            if series and "log format version" in line:
                raise InputError(f"{where}: a second log begins: put it into a file of its own")
            comments.append(line)
        elif line.strip():
            _take_interval(line, line_number, where, series, busy)
    series = {tag: each for tag, each in series.items() if each.total.get_total_count()}
    classes, left_out = _classes(series)
    if not series:
        raise InputError(f"{file.path} has no interval with a request: the run was interrupted, or measured nothing")
    if not classes:
        raise InputError(f"{file.path} has no tag that times requests, only {', '.join(map(repr, series))}")
    unit, guess = _unit(unit, "\n".join(comments), series, classes, file)
    rows = tuple(_rows(series, classes, PER_MS[unit], "\n".join(comments), file))
    return Imported(rows, remarks=(*guess, *left_out, *busy.remarks()))


def _take_interval(line: str, line_number: int, where: str, series: dict[str, _Series], busy: BusyTime) -> None:
    found = _INTERVAL.match(line.strip())
    if not found:
        raise InputError(f"{where} must be an interval 'start,length,max,histogram': the file is damaged or cut off")
    start_s, end_s = float(found["start"]), float(found["start"]) + float(found["length"])
    histogram, tag = decode(found["histogram"], where), found["tag"] or ""
    if tag not in series:
        series[tag] = _Series(histogram)
    elif end_s < series[tag].end_s:
        raise InputError(f"{where}: the time goes back: a second log begins: put it into a file of its own")
    series[tag].add(histogram, start_s, end_s, float(found["max"]))
    if histogram.get_total_count():
        busy.add([start_s], [end_s], [line_number])


_STATED = re.compile(
    r"(?P<ns>\bin (?:ns(?:ecs?)?|nano\w*)(?![\w-])|Cassandra Stress|Latte|jHiccup|for session)"
    r"|(?P<us>\bin (?:[uµ]s(?:ecs?)?|micro\w*)(?![\w-])|Logging for: )"
    r"|(?P<ms>\bin (?:ms(?:ecs?)?|milli\w*)(?![\w-]))",
    re.IGNORECASE,
)


def _unit(
    given: str, about: str, series: dict[str, _Series], classes: dict[str, tuple[str, str]], file: TextFile
) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a log, and a remark if it is a guess.

    Raises
    ------
    InputError
        If nothing shows it.
    """
    found = _STATED.search(about)
    of_stages = "ns" if any(stage in ("rt", "st") for _, stage in classes.values()) else ""
    stated = (found.lastgroup or "") if found else of_stages
    largest = max((series[tag] for tag, _ in classes.values()), key=lambda each: each.total.get_total_count())
    median, span_s = largest.total.get_value_at_percentile(50), largest.end_s - largest.start_s
    possible = possible_units(median, largest.total.max_value, span_s, USUAL_MS / 5)
    shown = next((unit for unit in ("ns", "us") if 0.5 < largest.shown_per_ms / PER_MS[unit] < 2), "")
    usual = shown in possible and median / PER_MS[shown] >= USUAL_MS
    return unit_of(file.path, given, stated, median, possible, shown if usual else "")


def _rows(
    series: dict[str, _Series], classes: dict[str, tuple[str, str]], per_ms: float, about: str, file: TextFile
) -> Iterator[LoadTestRow]:
    ycsb = re.search(r"Logging for: ([\w-]+)", about)
    found = {name or (ycsb[1] if ycsb else ALL): (series[tag], stage) for name, (tag, stage) in classes.items()}
    if len(found) > 1 and ALL not in found and all(stage for _, stage in found.values()):
        together = _Series(next(iter(found.values()))[0].total)
        for each, _ in found.values():
            together.add(each.total, each.start_s, each.end_s)
        found[ALL] = together, next(iter(found.values()))[1]
    for name, (each, stage) in sorted(found.items()):
        duration_s = each.end_s - each.start_s
        yield LoadTestRow(
            run_id=run_id(file),
            request_class=name.lower(),
            load_kind="open" if stage == "rt" else None,
            duration_s=duration_s,
            throughput_tps=each.total.get_total_count() / duration_s if duration_s else None,
            source=f"{file.path.name}: HdrHistogram log",
            note=_SERVICE if stage == "st" else _wait(series, name, per_ms),
            **_latencies(each.total, per_ms),
        )


def _latencies(histogram: HdrHistogram, per_ms: float) -> dict[str, Any]:
    """Return the columns of a histogram whose intervals are merged: percentiles of parts must never be averaged."""
    values = histogram.get_percentile_to_value_dict([100 * share for share in PERCENTILES.values()])
    return {
        "latency_mean_ms": float(histogram.get_mean_value()) / per_ms,
        **percentile_columns({rank: value / per_ms for rank, value in values.items()}),
        "latency_max_ms": float(histogram.get_max_value()) / per_ms,
    }


def _wait(series: dict[str, _Series], name: str, per_ms: float) -> str | None:
    """Return a note on how much of the response time is waiting in the client; None if unknown."""
    if f"{name}-wt" not in series:
        return None
    parts = {kind: series[f"{name}-{kind}"].total for kind in ("st", "wt") if f"{name}-{kind}" in series}
    means = {kind: total.get_mean_value() / per_ms for kind, total in parts.items()}
    return f"mean service {means.get('st', 0.0):.4g} ms after a wait of {means['wt']:.4g} ms in the client"


HDR_LOG = Importer(
    "HdrHistogram log",
    matching(r"Histogram log format|Interval_Compressed_Histogram|^(?:Tag=[^,\n]*,)?[\d.]+,[\d.]+,[\d.]+,HIST"),
    _read,
    exactness=2,
    read_in=_read,
)
