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
import binascii
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException, ext_header_size
from hdrh.histogram import HdrHistogram

from capplan.evidence.importers.importer import Imported, Importer, matching, of_histogram, run_id
from capplan.evidence.importers.latency_unit import PER_MS, USUAL_MS, given_unit, possible_units, unstated
from capplan.evidence.importers.listed_requests import BusyTime
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.errors import InputError

_INTERVAL = re.compile(
    r"^(?:Tag=(?P<tag>[^,]*),)?(?P<start>[\d.]+),(?P<length>[\d.]+),(?P<max>[\d.]+),(?P<histogram>HIST\S+)$"
)
_BAD = (
    *(binascii.Error, zlib.error, struct.error, HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
    *(ValueError, IndexError, TypeError, OverflowError, MemoryError),
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


def _classes(tags: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return the tag that counts for each class, and its stage."""
    order = ("", *_STAGES)
    found = [(tag, *_parts(tag)) for tag in tags]
    best = sorted((each for each in found if each[2] in order), key=lambda each: order.index(each[2]))
    return {name: (tag, stage) for tag, name, stage in reversed(best)}


def _left_out(tags: Iterable[str], classes: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield a remark on each tag that counts for no class."""
    used = {name: tag for name, (tag, _) in classes.items()}
    for tag in tags:
        name, stage = _parts(tag)
        if stage in _NO_REQUESTS.keys() - {"wt"}:
            yield f"tag {tag!r} is left out: it {_NO_REQUESTS[stage]}"
        elif stage not in ("st", "wt") and used[name] != tag:  # the note of cassandra-stress's row has these
            yield f"tag {tag!r} is left out: it has the same requests as {used[name]!r}, which is taken"


def _same_requests(series: dict[str, _Series], classes: dict[str, tuple[str, str]]) -> Iterator[str]:
    """Yield a remark if two classes have the same count in each interval: they may be one, timed twice."""
    seen: dict[tuple[int, ...], str] = {}
    for tag, _ in classes.values():
        counts = tuple(series[tag].counts)
        if counts in seen:
            yield (
                f"tags {seen[counts]!r} and {tag!r} count the same in each interval: if they time the same requests "
                "twice, use one of them"
            )
        seen[counts] = tag


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
            continue
        if not line.strip():
            continue
        found = _INTERVAL.match(line.strip())
        if not found:
            raise InputError(
                f"{where} must be an interval 'start,length,max,histogram': the file is damaged or cut off"
            )
        start_s, end_s = float(found["start"]), float(found["start"]) + float(found["length"])
        histogram, tag = decode(found["histogram"], where), found["tag"] or ""
        if tag not in series:
            series[tag] = _Series(histogram)
        series[tag].add(histogram, start_s, end_s, float(found["max"]))
        if histogram.get_total_count():
            busy.add([start_s], [end_s], [line_number])
    series = {tag: each for tag, each in series.items() if each.total.get_total_count()}
    classes = _classes(series)
    if not classes:
        raise InputError(f"{file.path} has no interval with a request: the run was interrupted, or measured nothing")
    unit, guess = _unit(unit, "\n".join(comments), series, classes, file)
    rows = tuple(_rows(series, classes, PER_MS[unit], "\n".join(comments), file))
    left = (*_left_out(series, classes), *_same_requests(series, classes))
    return Imported(rows, remarks=(*guess, *left, *busy.remarks()))


_STATED = re.compile(
    r"\bin (?P<unit>[nuµm]s|nano|micro|milli)|(?P<us>Logging for: )|(?P<ns>Cassandra Stress|Latte|jHiccup|for session)",
    re.IGNORECASE,
)
_UNITS = {"nano": "ns", "micro": "us", "milli": "ms"}


def _unit(
    given: str, about: str, series: dict[str, _Series], classes: dict[str, tuple[str, str]], file: TextFile
) -> tuple[str, tuple[str, ...]]:
    """Return the unit of a log, and a remark if it is a guess.

    Raises
    ------
    InputError
        If nothing shows it.
    """
    if given:
        return given_unit(given), ()
    if found := _STATED.search(about):
        said = (found["unit"] or found.lastgroup or "").lower()
        return given_unit(_UNITS.get(said, said)), ()
    if any(stage in ("rt", "st") for _, stage in classes.values()):
        return "ns", ()
    largest = max((series[tag] for tag, _ in classes.values()), key=lambda each: each.total.get_total_count())
    median, span_s = largest.total.get_value_at_percentile(50), largest.end_s - largest.start_s
    possible = possible_units(median, largest.total.max_value, span_s, USUAL_MS / 5)
    shown = next((unit for unit in ("ns", "us") if 0.5 < largest.shown_per_ms / PER_MS[unit] < 2), "")
    if shown in possible and median / PER_MS[shown] >= USUAL_MS:
        return shown, (f"its unit is taken for {shown}, as its column Interval_Max shows: --unit gives another",)
    if len(possible) == 1:
        return possible[0], (f"its unit is taken for {possible[0]}, as no other is possible: --unit gives another",)
    raise unstated(file.path, median)


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
            **of_histogram(each.total, per_ms),
        )


def _wait(series: dict[str, _Series], name: str, per_ms: float) -> str | None:
    """Return a note on how much of the response time is waiting in the client; None if unknown."""
    if f"{name}-wt" not in series:
        return None
    parts = {kind: series[f"{name}-{kind}"].total for kind in ("st", "wt") if f"{name}-{kind}" in series}
    means = {kind: of_histogram(total, per_ms).get("latency_mean_ms", 0.0) for kind, total in parts.items()}
    return f"mean service {means.get('st', 0.0):.4g} ms after a wait of {means['wt']:.4g} ms in the client"


HDR_LOG = Importer(
    "HdrHistogram log",
    matching(r"Histogram log format|Interval_Compressed_Histogram|^(?:Tag=[^,\n]*,)?[\d.]+,[\d.]+,[\d.]+,HIST"),
    _read,
    exactness=2,
    read_in=_read,
)
