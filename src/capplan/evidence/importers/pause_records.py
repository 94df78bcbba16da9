"""Pauses of a node, from records of collectors and tools: gc.log, system.log, gcstats, metrics, cassandra-stress."""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from capplan.errors import InputError
from capplan.evidence.importers.database_load_generators import CASSANDRA_STRESS, stress_console
from capplan.evidence.importers.importer import LABELS
from capplan.evidence.importers.json_report import is_json, read_json
from capplan.evidence.importers.listed_requests import time_s
from capplan.evidence.importers.log_prefix import without_prefix
from capplan.evidence.importers.number_format import number
from capplan.evidence.text_file import TextFile
from capplan.models.cassandra.pauses import ReportedPauses, parse_pauses

_Read = tuple[ReportedPauses, tuple[str, ...]]
_TYPED = "or type share and mean length, such as --gc 0.6%@45ms"
_FEW = 100  # pauses, below which the figures are uncertain
_HOUR_S = 3600.0


def read_pauses(path: Path) -> _Read:
    """Read the pauses of a node from a record of any known format.

    Known are gc.log of JDK 8 and later, Cassandra's system.log (stops above its threshold only), `nodetool gcstats` as
    text or JSON, metrics of the JVM in the text format of Prometheus, and what cassandra-stress prints on the console.
    Large logs are read line by line.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    pauses : ReportedPauses
        Share of the time, mean length and what else the record says. Of a log of more than an hour, those of its
        busiest hour, because a layout is sized for that.
    remarks : tuple of str
        The collector, the time span, and what was left out, in sentences.

    Raises
    ------
    InputError
        If the file is of another format, is damaged, or has no pause.
    """
    file, _ = without_prefix(TextFile(path), _TIMED)
    read = next((read for recognises, read in _FORMATS if recognises(file)), None)
    if read is None:
        raise InputError(
            f"{path} is no record of pauses: give a gc.log, Cassandra's system.log, the output of nodetool gcstats, "
            f"metrics of the JVM or the console output of cassandra-stress, {_TYPED}"
        )
    found, remarks = read(file)
    try:
        parse_pauses(str(found))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if found.count is not None and found.count < _FEW:
        remarks += (f"Only {found.count} pauses: the figures are uncertain, and no band counts that.",)
    if found.rate_per_s is None:
        remarks += (
            f"The load is not in it, so the share is taken at any rate: '{found} rate=3000/s' lets it follow the "
            "operations of clients per second and node.",
        )
    return found, remarks


def _pauses(
    file: TextFile, total_s: float, count: float, span_s: float, sd_s: float | None = None, rate: float | None = None
) -> ReportedPauses:
    """Return the pauses of a tool that counts them and adds their lengths."""
    if not 0 < count < 2**53:
        raise InputError(f"{file.path} counts no pause: take it again under load, over a longer time, {_TYPED}")
    if not 0 < span_s < math.inf:
        raise InputError(f"{file.path} covers {span_s:g} s: pauses must be counted over a longer time, {_TYPED}")
    known = sd_s is not None and 0 <= sd_s < math.inf
    return ReportedPauses(total_s / span_s, total_s / count, sd_s if known else None, int(count), rate)


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


# ---- gc.log. The reader of JDK 9 and later was written from real logs of JDK 11, 17, 21 and 25 with all their
# collectors; the lines of JDK 8 were written from documentation and from logs in public, not from own output.
#
# A line "threads were stopped" or "Safepoint" (-XX:+PrintGCApplicationStoppedTime, -Xlog:safepoint) tells a whole stop,
# for whatever reason and with the time until all threads have stopped. Collections are inside such stops. So where
# there are such lines, nothing else is counted.

_WALL = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"
_DECORATIONS = re.compile(r"(?:\[[^\]]*\])+")
_UNIFIED = re.compile(rf"\[(?:(?P<wall>{_WALL})|(?P<up>\d{{1,18}}(?:[.,]\d{{1,9}})?)(?P<unit>s|ms|ns))\]")
_JDK8 = re.compile(rf"(?:(?P<wall>{_WALL}): )?(?:(?P<up>\d{{1,18}}[.,]\d{{1,9}}): )?")
_STOPPED = re.compile(
    r'threads were stopped: (?P<s>\d{1,9}[.,]\d{1,9}) seconds|Safepoint "[^"]*"[^"]*?\bTotal:\s+(?P<ns>\d{1,18}) ns'
)
# The begin and the end of a line are searched one after the other: together they would take the square of its length.
_PAUSE = re.compile(r"GC\((?P<id>\d{1,18})\) (?:[YyOo]: )?Pause (?P<kind>\w+)")
_PAUSE_MS = re.compile(r"\b(\d{1,9}[.,]\d{1,9})ms\s*$")
_EVENT = re.compile(r"(?:^|\d: )(?:#\d+: )?\[(?:Full )?GC(?! ?concurrent| ref-proc)")
_BRACKET = re.compile(r"\[0x[^\[\]()]*\)|\[|(?:, (?P<s>\d{1,9}[.,]\d{1,9}) secs)?\]")  # addresses have one bracket
_SHENANDOAH_8 = re.compile(r"\[Pause .*, (\d{1,9}[.,]\d{1,9}) ms\]\s*$")
_COLLECTOR = re.compile(
    r"(?P<G1>Using G1|UseG1GC|G1 Evacuation Pause|\[GC pause)|(?P<ZGC>The Z Garbage|UseZGC|Pause Mark Start|\"ZMark)"
    r"|(?P<Shenandoah>Using Shenandoah|UseShenandoahGC|Pause Init Mark)"
    r"|(?P<CMS>Using Concurrent Mark|UseConcMark|ParNew)|(?P<Parallel>Using Parallel|UseParallelGC|PSYoungGen)"
    r"|(?P<Serial>Using Serial|UseSerialGC|DefNew)"
)
_GC_LOG = re.compile(
    rf"^\[(?:{_WALL}|\d+(?:[.,]\d+)?(?:s|ms|ns))\]|GC\(\d+\) |threads were stopped: "
    rf"|^(?:{_WALL}: )?(?:\d+[.,]\d+: )?(?:#\d+: )?\[(?:Full )?GC|^CommandLine flags: -",
    re.MULTILINE,
)
# what begins a line of a gc.log and belongs to it, other than the times that something else has put before lines
_TIMED = re.compile(rf"\[?(?:{_WALL}|\d{{1,18}}[.,]\d{{1,9}}(?:s|ms)?|\d{{1,18}}[mn]s)(?:\]|: )")
_SECONDS = {"s": 1.0, "ms": 1e-3, "ns": 1e-9, None: 1.0}
_LONGEST = 4096  # characters of a line; those of stops have a few hundred
_BACK_S = 1.0  # lines of several threads may change places by less


@dataclass
class _Clock:
    """The time of a log's lines: uptime if the first line with a time has it, otherwise the time of day."""

    kind: str = ""
    first_s: float = 0.0
    now_s: float = 0.0
    offset_s: float = 0.0
    restarts: int = 0

    def read(self, line: str) -> str:
        """Move to the time of a line, if it has one, and return what follows the time."""
        if head := _DECORATIONS.match(line) if line.startswith("[") else None:
            stamps = list(_UNIFIED.finditer(head[0]))
            rest = line[head.end() :]
        else:
            stamp = _JDK8.match(line)
            stamps, rest = ([stamp], line[stamp.end() :]) if stamp else ([], line)
        for kind in (self.kind,) if self.kind else ("up", "wall"):
            for each in stamps:
                if each[kind] and (time_s := _seconds(each, kind)) is not None:
                    self.move(kind, time_s)
                    return rest
        return rest

    def move(self, kind: str, time_s: float) -> None:
        """Move to a time; one that is earlier than the last follows it, as after a restart."""
        if not self.kind:
            self.kind, self.first_s, self.now_s = kind, time_s, time_s
        elif time_s + self.offset_s < self.now_s - _BACK_S:
            self.offset_s, self.restarts = self.now_s - time_s, self.restarts + 1
        self.now_s = max(self.now_s, time_s + self.offset_s)


def _seconds(stamp: re.Match[str], kind: str) -> float | None:
    if kind == "up":
        return _decimal(stamp["up"]) * _SECONDS[stamp.groupdict().get("unit")]
    try:
        return time_s(stamp[kind])
    except (ValueError, OverflowError):
        return None


def _decimal(text: str) -> float:
    """Read a number of a log, of which some locales' have a decimal comma."""
    return float(text.replace(",", "."))


@dataclass
class _Event:
    """A collection of JDK 8 that has begun; its end may be on a later line, and others inside it."""

    began_s: float
    depth: int = 0  # of brackets
    longest_s: float = 0.0  # of the times in it so far
    remark: bool = False  # a remark of CMS may have a young collection inside


@dataclass
class _Log:
    """What the lines read so far have told; a stop is its start and its length, seconds, as there may be millions."""

    clock: _Clock = field(default_factory=_Clock)
    stops: array[float] = field(default_factory=lambda: array("d"))
    collections: array[float] = field(default_factory=lambda: array("d"))
    collector: str | None = None
    stalls: int = 0
    full: int | None = None  # the number of the last collection, if it was a full one
    event: _Event | None = None
    cut: int = 0  # collections whose end is missing

    def take(self, line: str) -> None:
        """Take a line."""
        rest = self.clock.read(line)
        if self.collector is None and (named := _COLLECTOR.search(rest)):
            self.collector = named.lastgroup
        if found := _STOPPED.search(rest):
            length_s = _decimal(found["s"]) if found["s"] else float(found["ns"]) * 1e-9
            self.stops.extend((self.clock.now_s - length_s, length_s))
        elif (found := _PAUSE.search(rest)) and (length := _PAUSE_MS.search(rest, found.end())):
            self._collection(int(found["id"]), found["kind"], _decimal(length[1]) * 1e-3)
        elif "Allocation Stall (" in rest and rest.rstrip().endswith("ms"):
            self.stalls += 1
        else:
            self._jdk8(rest)

    def _collection(self, identity: int, kind: str, length_s: float) -> None:
        if kind == "Young" and self.full == identity + 1:
            del self.collections[-2:]  # a young collection that became a full one ends after it, and contains it
        self.full = identity if kind == "Full" else None
        self.collections.extend((self.clock.now_s - length_s, length_s))

    def _jdk8(self, rest: str) -> None:
        if rest.startswith("[Pause ") and (found := _SHENANDOAH_8.match(rest)):
            length_s = _decimal(found[1]) * 1e-3
            self.collections.extend((self.clock.now_s - length_s, length_s))
        begins, event = _EVENT.search(rest), self.event
        if begins and event and not (event.remark and self.clock.now_s - event.began_s <= _BACK_S):
            self.end()
            event = None
        if begins and event is None:
            self.event = event = _Event(self.clock.now_s)
            rest = rest[begins.start() :]
        if event is None:
            return
        event.remark = event.remark or "[YG occupancy" in rest
        for found in _BRACKET.finditer(rest):
            event.depth += (found[0] == "[") - (found[0][-1] == "]")
            event.longest_s = max(event.longest_s, _decimal(found["s"] or "0"))
            if not event.depth and found["s"]:
                self.collections.extend((event.began_s, _decimal(found["s"])))
                self.event = None
                return

    def end(self) -> None:
        """End a collection whose end is not there, with what is there of its time."""
        if self.event is not None:
            self.cut += 1
            if self.event.longest_s:
                self.collections.extend((self.event.began_s, self.event.longest_s))
        self.event = None


def _read_log(file: TextFile) -> _Read:
    log = _Log()
    for _, line in file.lines():
        log.take(line[:_LONGEST])
    log.end()
    kept = log.stops or log.collections
    if not kept:
        raise InputError(
            f"{file.path} has no line of a stop: log with -Xlog:gc,safepoint, or on JDK 8 with -XX:+PrintGCDetails and "
            f"-XX:+PrintGCApplicationStoppedTime, for longer, {_TYPED}"
        )
    if not log.clock.kind:
        raise InputError(
            f"{file.path} has stops without times: log with the decoration uptime or time, or on JDK 8 with "
            f"-XX:+PrintGCTimeStamps, {_TYPED}"
        )
    found, span_s, remarks = _of_stops(file, kept, log.clock)
    return found, (*_log_remarks(log, span_s), *remarks)


def _of_stops(file: TextFile, stops: array[float], clock: _Clock) -> tuple[ReportedPauses, float, tuple[str, ...]]:
    """Return the pauses of a log, its span in seconds, and a remark if they are those of its busiest hour."""
    starts_s, lengths_s = np.array(stops).reshape(-1, 2).T.copy()
    begin_s = min(clock.first_s, float(starts_s.min()))
    end_s = max(clock.now_s, float((starts_s + lengths_s).max()))
    span_s, total_s = end_s - begin_s, float(lengths_s.sum())
    if 2 * total_s > span_s > 0:
        raise InputError(
            f"{file.path} covers {span_s:.3g} s and has pauses of {total_s:.3g} s: count them over a longer time, in "
            f"which they take at most half, {_TYPED}"
        )
    remarks: tuple[str, ...] = ()
    if span_s > _HOUR_S:
        order = np.argsort(starts_s, kind="stable")
        starts_s, lengths_s = starts_s[order], lengths_s[order]
        from_s, hour = _busiest(starts_s, lengths_s, end_s)
        remarks = (
            f"The figures are those of its busiest hour, which begins {_time(from_s - begin_s)} after its start.",
        )
        begin_s, end_s, lengths_s = from_s, from_s + _HOUR_S, lengths_s[hour]
    sd_s = float(lengths_s.std(ddof=1)) if len(lengths_s) > 1 else None
    return _pauses(file, float(lengths_s.sum()), len(lengths_s), end_s - begin_s, sd_s), span_s, remarks


def _busiest(
    starts_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    lengths_s: np.ndarray[tuple[int], np.dtype[np.float64]],
    end_s: float,
) -> tuple[float, slice]:
    """Return when the hour with the most time in stops begins, and which stops it has.

    An hour may be moved on until it begins with a stop or ends with the log: it loses none by that.
    """
    from_s = np.minimum(starts_s, end_s - _HOUR_S)
    first, after = np.searchsorted(starts_s, from_s), np.searchsorted(starts_s, from_s + _HOUR_S)
    before_s = np.concatenate([[0.0], np.cumsum(lengths_s)])
    best = int(np.argmax(before_s[after] - before_s[first]))
    return float(from_s[best]), slice(int(first[best]), int(after[best]))


def _log_remarks(log: _Log, span_s: float) -> Iterator[str]:
    whose = f"a log of {log.collector}" if log.collector else "a log that does not name its collector"
    yield f"From {whose} over {_time(span_s)}."
    if not log.stops:
        yield "Counted are the collector's pauses: the log has no safepoint lines, which hold all stops of threads."
    elif inside := len(log.collections) // 2:
        yield f"Counted are all stops of threads; the collector's {inside} pauses are among them."
    if log.cut and not log.stops:
        yield f"Lines are cut ({log.cut}): of a collection without its end, the longest part that is there counts."
    if log.stalls:
        yield f"Allocation stalls are left out ({log.stalls}): each stops one thread only."
    if log.clock.restarts:
        yield f"The time goes back (restarts: {log.clock.restarts}): the parts are put one after the other."


# ---- Cassandra's system.log: the lines of its GCInspector, of versions 1.2 to 5.0. Written from its source and from
# public logs. It writes only the stops above a threshold: the record is censored.

_ENTRY = re.compile(
    r"^ ?(?:TRACE|DEBUG|INFO|WARN|ERROR)\s+\[[^\]\n]*\] +"
    r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,]\d{3}) {1,2}(?P<source>\w+\.java)",
    re.MULTILINE,
)
_INSPECTED = re.compile(
    r"(?:- |\) )(?:GC for (?P<of>[\w ]+): +(?P<sum_ms>\d{1,9}) ms for (?P<count>\d{1,3}) "
    r"|(?P<by>[\w ]+) GC in (?P<ms>\d{1,9})ms)"
)
_THRESHOLD = re.compile(r"gc_log_threshold(?:_in_ms)?=(\d{1,6})(s\b)?")
_THRESHOLD_MS = 200  # unless cassandra.yaml has another


def _is_concurrent(collector: str) -> bool:
    return collector.endswith("Cycles") or collector == "ZGC"


def _read_system_log(file: TextFile) -> _Read:
    clock, stops = _Clock(), array("d")
    collectors, concurrent = set[str](), set[str]()
    threshold_ms = _THRESHOLD_MS
    for _, line in file.lines():
        if "gc_log_threshold" in line and (said := _THRESHOLD.search(line)):
            threshold_ms = int(said[1]) * (1000 if said[2] else 1)
        entry = _ENTRY.match(line[:_LONGEST])
        if not entry or (ended_s := _seconds(entry, "time")) is None:
            continue
        clock.move("wall", ended_s)
        found = _INSPECTED.search(line[:_LONGEST], entry.end()) if entry["source"] == "GCInspector.java" else None
        if found is None:
            continue
        name = (found["of"] or found["by"]).strip()
        if _is_concurrent(name):
            concurrent.add(name)
            continue
        collectors.add(name)
        count = max(1, int(found["count"] or 1))
        length_s = float(found["sum_ms"] or found["ms"]) / 1e3 / count
        stops.extend((clock.now_s - count * length_s, length_s) * count)
    if not stops:
        raise InputError(
            f"{file.path} has no line of GCInspector about a stop: none was longer than {threshold_ms} ms, or an older "
            f"file has it: give a gc.log, {_TYPED}"
        )
    pauses, span_s, remarks = _of_stops(file, stops, clock)
    left = (f"Left out are {', '.join(sorted(concurrent))}: concurrent work is no stop.",) if concurrent else ()
    return pauses, (
        f"From GCInspector in Cassandra's system.log ({', '.join(sorted(collectors))}) over {_time(span_s)}.",
        f"It is censored: only stops above {threshold_ms} ms are in it. So the share is the least that it can be, and "
        "the mean and the deviation are those of the long stops alone; a gc.log has all of them.",
        *remarks,
        *left,
    )


# ---- nodetool gcstats: since the last call. The text was written from real output of Cassandra 4.0 and 5.0, the JSON
# from its source.

_GCSTATS = "Total GC Elapsed (ms)"
_GCSTATS_KEYS = ("interval_ms", "max_gc_elapsed_ms", "total_gc_elapsed_ms", "stdev_gc_elapsed_ms", "collections")


def is_gcstats(head: str) -> bool:
    """Return whether a file with this start is of gcstats."""
    return _GCSTATS in head or '"total_gc_elapsed_ms"' in head


def gcstats(file: TextFile) -> Iterator[tuple[float, ...]]:
    """Yield each interval's length, longest pause, sum and deviation of the pauses in ms, and their number."""
    if is_json(file):
        found = read_json(file)
        yield tuple(number(str(found.get(key)), str(file.path), key) for key in _GCSTATS_KEYS)
        return
    for line_number, line in file.lines():
        if _GCSTATS in line or not line.strip():
            continue
        where, words = f"{file.path}, line {line_number}", line.split()
        if len(words) < 6:
            raise InputError(f"{where} has {len(words)} figures, and gcstats prints 7: the file is cut off")
        yield tuple(number(each, where, "a figure of gcstats") for each in (*words[:4], words[5]))


def _read_gcstats(file: TextFile) -> _Read:
    rows = list(gcstats(file))
    if not rows:
        raise InputError(f"{file.path} has no line of figures: nodetool gcstats prints one, the file may be cut off")
    span_s, total_s, count = (sum(row[place] for row in rows) / per for place, per in ((0, 1e3), (2, 1e3), (4, 1)))
    squares = sum(n * (sd * sd + total / n * (total / n)) for _, _, total, sd, n in rows if n > 0) / 1e6  # may be inf
    variance = squares / count - total_s / count * (total_s / count) if count > 0 else math.nan
    found = _pauses(file, total_s, count, span_s, math.sqrt(variance) if variance >= 0 else None)
    for interval_ms, longest_ms, total_ms, *_ in rows:
        if longest_ms > min(interval_ms, total_ms):
            raise InputError(
                f"{file.path} has a pause of {longest_ms:g} ms, which is longer than its interval ({interval_ms:g} ms) "
                f"or than all pauses together ({total_ms:g} ms): the figures are damaged, take them again, {_TYPED}"
            )
    intervals = "one interval" if len(rows) == 1 else f"{len(rows)} intervals, added,"
    return found, (
        f"From nodetool gcstats: {intervals} of {_time(span_s)}.",
        "gcstats names no collector: under ZGC and Shenandoah it counts concurrent cycles, so give a gc.log there.",
    )


# ---- Metrics of the JVM in the text format of Prometheus. Written from real scrapes of the JMX exporter 0.20 and 1.0,
# and for Micrometer from its documentation. Counters run since the process started, so its age is needed.

_METRIC = re.compile(
    r"^(?P<name>jvm_gc_(?:collection|pause)_seconds_(?:count|sum)|process_(?:start_time|uptime)_seconds)"
    rf"{LABELS}\s+(?P<value>\S+)"
    r"(?:\s+(?P<time>\d{1,18}(?:\.\d{1,9})?))?\s*(?:#.*)?$"
)
_METRICS = re.compile(r"^(?:# (?:TYPE|HELP) |jvm_gc_\w+|process_start_time_s)", re.MULTILINE)
_BEAN = re.compile(r'\bgc="([^"]*)"')
_MILLISECONDS = 1e11  # a time above is in ms, as Prometheus's format has it; OpenMetrics has seconds


def _read_metrics(file: TextFile) -> _Read:
    found: dict[str, dict[str, float]] = {}
    scraped_s = 0.0
    for line_number, line in file.lines():
        if match := _METRIC.match(line):
            value = number(match["value"], f"{file.path}, line {line_number}", "the value of a sample")
            samples, labels = found.setdefault(match["name"], {}), match["labels"] or ""
            if labels in samples:
                raise InputError(f"{file.path}, line {line_number}: a second scrape begins: give one of them")
            samples[labels] = value
            time = float(match["time"] or 0)
            scraped_s = max(scraped_s, time / 1e3 if time > _MILLISECONDS else time)
    family = next((each for each in ("collection", "pause") if f"jvm_gc_{each}_seconds_count" in found), "collection")
    counts, sums = (found.get(f"jvm_gc_{family}_seconds_{part}", {}) for part in ("count", "sum"))
    beans = set(map(_bean, counts)) - {""}
    concurrent = sorted(filter(_is_concurrent, beans))
    count, total_s = (
        sum(value for labels, value in samples.items() if _bean(labels) not in concurrent) for samples in (counts, sums)
    )
    named = f"From the metrics of {', '.join(sorted(beans - set(concurrent))) or 'a JVM'}"
    age_s = _age(file, found, scraped_s, count, total_s)
    remarks = [f"{named} over {_time(age_s)}, since the process started: a busy hour may have more."]
    if concurrent:
        remarks.append(
            f"Left out are {', '.join(concurrent)}: concurrent work is no stop. Metrics cut each pause to whole "
            "milliseconds, so the share is too small: a gc.log has it."
        )
    return _pauses(file, total_s, count, age_s), tuple(remarks)


def _bean(labels: str) -> str:
    found = _BEAN.search(labels)
    return found[1] if found else ""


def _age(file: TextFile, found: dict[str, dict[str, float]], scraped_s: float, count: float, total_s: float) -> float:
    """Return the age of the process at the scrape in seconds."""
    starts, ages = (found.get(f"process_{each}_seconds", {}) for each in ("start_time", "uptime"))
    if max(len(starts), len(ages)) > 1:
        raise InputError(f"{file.path} has the metrics of {max(len(starts), len(ages))} processes: give those of one")
    if ages:
        return next(iter(ages.values()))
    if starts and scraped_s:
        return scraped_s - next(iter(starts.values()))
    missing = "the samples' times are" if starts else "process_start_time_seconds or process_uptime_seconds is"
    mean = f"{1e3 * total_s / count:.4g}" if count > 0 else "45"
    raise InputError(
        f"{file.path} has pauses of {total_s:.4g} s in all, but not over which time, for {missing} missing: type "
        f"share and mean length, such as --gc 0.6%@{mean}ms, where the share is {total_s:.4g} s / the process's age"
    )


# ---- cassandra-stress: its console. Written from real output of the tool of Cassandra 4.0 (JMX connected). It adds the
# pauses of all nodes that its driver finds, or of those of a white list; if one does not answer over JMX, it counts
# none.


def _read_stress(file: TextFile) -> _Read:
    console = stress_console(file)
    counted = [each for each in console.runs if each.figure("total gc count") > 0]
    if not counted:
        raise InputError(
            f"{file.path} counts no pause: cassandra-stress must end, and reach each node over JMX (-port jmx=7199), "
            f"{_TYPED}"
        )
    run = max(counted, key=lambda each: each.figure("op rate"))
    count, mean_ms, rate = (run.figure(each) for each in ("total gc count", "avg gc time", "op rate"))
    span_s = run.duration_s
    if not (rate > 0 and mean_ms > 0 and span_s > 0):
        raise InputError(f"{file.path} must have 'Op rate', 'Avg GC time' and intervals: the file may be cut off")
    remarks = [f"From cassandra-stress at {rate:,.0f}/s over {_time(span_s)}."]
    if len(console.runs) > 1:
        remarks.append(f"Of {len(console.runs)} runs, that with the highest rate of those that count pauses.")
    nodes = len(console.hosts)
    if nodes > 1 and console.settings.get("Is White List") == "false":
        remarks.append(f"It adds the pauses of {nodes} nodes: the share is the mean of one of them.")
    elif nodes != 1:
        nodes = 1
        remarks.append("It adds the pauses of all nodes that it asks over JMX: of several, divide share and rate.")
    sd_s = run.figure("stddev gc time") / 1e3
    return _pauses(file, count * mean_ms / 1e3, count, span_s * nodes, sd_s, rate / nodes), tuple(remarks)


_FORMATS: tuple[tuple[Callable[[TextFile], bool], Callable[[TextFile], _Read]], ...] = (
    (lambda file: is_gcstats(file.head), _read_gcstats),
    (CASSANDRA_STRESS.recognises, _read_stress),
    (lambda file: bool(_ENTRY.search(file.head)), _read_system_log),
    (lambda file: bool(_METRICS.search(file.head)), _read_metrics),
    (lambda file: bool(_GC_LOG.search(file.head)), _read_log),
)
