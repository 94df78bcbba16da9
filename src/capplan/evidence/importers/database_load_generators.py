"""Load generators of databases: cassandra-stress, latte and YCSB."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from capplan.errors import InputError
from capplan.evidence.importers.hdr_log import decode
from capplan.evidence.importers.importer import Imported, Importer, matching, percentile_columns, run_id, run_names
from capplan.evidence.importers.json_report import at, json_with, read_json, real
from capplan.evidence.importers.number_format import (
    NUMBER,
    POINT,
    NumberFormat,
    Relation,
    number,
    number_format,
    quotient,
    rising,
    whole,
)
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS

# ---- cassandra-stress: what it prints on the console. Written from real output of Cassandra 5.0's tool; names in lower
# case and units in brackets, as 3.x prints them, from its source; without classes, as cql-stress prints them, from its
# source. It prints in the locale of its machine.
#
# With `-rate fixed=N` latency counts from the intended start, with `throttle=N` from the sending; the console shows the
# same setting for both, so the kind of load stays undetermined unless an HDR log of the run is there (`hdr_log`).
# `-rate auto` has neither. The rate counts failed requests, too.


_STRESS_FIGURE = re.compile(
    r"^\s*(?P<name>(?:op|partition|row) rate|(?:latency|total)(?: [\w.]+){1,2}|(?:avg|stdd?ev) gc time)"
    rf"\s*(?:\(\w+\)\s*)?:\s*(?P<all>{NUMBER})\s*[\w/]*\s*(?:\[(?P<classes>.*)\])?\s*$",
    re.IGNORECASE,
)
_STRESS_CLASS = re.compile(rf"([A-Za-z_][\w-]*):\s*({NUMBER})(?:\s+([\w/]+))?(?=, ?[A-Za-z]|$)")
_STRESS_SETTING = re.compile(r"^\s+([A-Z][\w .()]*?): (.*)$")
_STRESS_HEAD = re.compile(
    r"^type.*,\s*op/s,.*stderr, errors|^total ops ?,\s*(?:adj row/s,\s*)?op/s,|^[ \t]*op rate\s*:"
    r"|^[ \t]*Running .*with \d+ thread",
    re.MULTILINE | re.IGNORECASE,
)
_STRESS_ELAPSED = re.compile(r"^\s*Total operation time\s*: (\d+):(\d\d):(\d\d)", re.IGNORECASE)
_STRESS_TIME = re.compile(r".*,\s*(\d+[.,]\d+),\s*(?:\d+[.,]\d{5}|NaN),")  # of an interval; the standard error follows
_STRESS_RUNNING = re.compile(r"^\s*Running (?:\[?.*?\]? )?with (\d+) thread(Count|s?)")
_STRESS_HOST = re.compile(r"^Datacenter: .*?; Host: ([^;]+);")
_STRESS_LATENCIES = {
    "latency mean": "latency_mean_ms",
    "latency median": "latency_p50_ms",
    "latency 95th percentile": "latency_p95_ms",
    "latency 99th percentile": "latency_p99_ms",
    "latency 99.9th percentile": "latency_p999_ms",
    "latency max": "latency_max_ms",
}
_STRESS_COUNTS = ("op rate", "partition rate", "row rate", "total partitions", "total errors", "total gc count")
_STRESS_READS = {"READ", "COUNTER_READ", "RANGE_SLICE"}
_STRESS_CREATES = {"WRITE", "COUNTER_WRITE"}  # the keyspace: to other runs its options do not apply
_STRESS_SETTINGS = "** Stress Settings **"
_STRESS_ROUNDED_S = 2.0  # of whole seconds, and of what is done after the last interval
_STRESS_ABSENT = "Data returned was not validated"


@dataclass
class StressRun:
    """One run: its settings and threads, the time of its last interval, and its results by name and class.

    `auto`: the tool chose the number of threads, and limits no rate. `absent`: reads that found no row, which the tool
    counts as errors. `ended` and `texts` are as they are printed, and `read` says how their numbers are written.
    """

    settings: dict[str, str] = field(default_factory=dict)
    threads: int | None = None
    auto: bool = False
    ended: str = ""
    elapsed_s: float = 0.0
    absent: int = 0
    texts: dict[str, dict[str, str]] = field(default_factory=dict)
    read: NumberFormat = POINT

    def figure(self, name: str, request_class: str = ALL) -> float:
        """Return a result; NaN if it is not there."""
        return self.read.value(self.texts.get(name, {}).get(request_class, math.nan))

    @property
    def duration_s(self) -> float:
        """The time of the last interval, which is more exact, or of the operation if later intervals are missing; s."""
        ended_s = self.read.value(self.ended) if self.ended else -math.inf
        return ended_s if ended_s >= self.elapsed_s - _STRESS_ROUNDED_S else self.elapsed_s

    @property
    def begun(self) -> bool:
        """Whether something of it is there."""
        return bool(self.ended or self.texts)

    @property
    def answered(self) -> bool:
        """Whether a request was answered: a rate may count failed ones only."""
        failed = self.figure("total errors") == self.figure("total operations") or self.figure("total partitions") == 0
        return self.figure("op rate") > 0 and (self.absent > 0 or not failed)

    def take(self, line: str) -> bool:
        """Keep the time of an interval, or a result; return whether the line has one."""
        if line.lstrip().startswith("total,") and (found := _STRESS_TIME.match(line)):
            self.ended = found[1]
        elif found := _STRESS_FIGURE.match(line):
            name = found["name"].lower().replace("stdev", "stddev")
            classes = {each[0]: each[1] for each in _STRESS_CLASS.findall(found["classes"] or "")}
            self.texts[name] = {ALL: found["all"], **classes}
        self.absent += _STRESS_ABSENT in line
        return found is not None

    def relations(self) -> Iterable[Relation]:
        """Yield what holds between the results, however numbers are written."""
        row = {name: cells[ALL] for name, cells in self.texts.items()}
        yield whole(*(row[name] for name in _STRESS_COUNTS if name in row))
        yield rising(*(row[name] for name in list(_STRESS_LATENCIES)[1:] if name in row))
        if self.ended and {"total partitions", "partition rate"} <= row.keys():
            yield quotient(row["total partitions"], self.ended, row["partition rate"])


@dataclass
class StressConsole:
    """What a console shows: the last settings, complete runs, the nodes that the driver finds, and remarks."""

    settings: dict[str, str] = field(default_factory=dict)
    runs: list[StressRun] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)


def _is_stress(file: TextFile) -> bool:
    return _STRESS_SETTINGS in file.head or bool(_STRESS_HEAD.search(file.head))


def stress_console(file: TextFile) -> StressConsole:
    """Read what cassandra-stress prints, whatever of it is there.

    Raises
    ------
    InputError
        If its numbers cannot be read.
    """
    console, current = StressConsole(), StressRun()
    for line_number, line in file.lines():
        running = _STRESS_RUNNING.match(line)
        if running or _STRESS_SETTINGS in line:
            if current.begun:
                console.remarks.append(f"the run before line {line_number} has no results: it was interrupted")
            auto = running is not None and (running[2] == "Count" or (current.auto and not current.begun))
            console.settings = console.settings if running else {}
            current = StressRun(console.settings, int(running[1]) if running else None, auto)
        elif found := _STRESS_ELAPSED.match(line):
            current.elapsed_s = 3600 * float(found[1]) + 60 * float(found[2]) + float(found[3])
            console.runs.append(current)
            current = StressRun(console.settings)
        elif current.take(line):
            continue
        elif found := _STRESS_SETTING.match(line):
            console.settings.setdefault(found[1], found[2].strip())
        elif found := _STRESS_HOST.match(line):
            console.hosts.add(found[1])
    if console.runs and current.begun:
        console.remarks.append("the last run has no results: it was interrupted")
    texts = [text for run in console.runs for cells in run.texts.values() for text in cells.values()]
    texts += [run.ended for run in console.runs if run.ended]
    read = number_format(str(file.path), texts, [relation for run in console.runs for relation in run.relations()])
    for run in console.runs:
        run.read = read
    console.remarks += read.remarks(texts)
    return console


def _read_stress(file: TextFile) -> Imported:
    console = stress_console(file)
    if not console.runs:
        raise InputError(
            f"{file.path} has no results of cassandra-stress, whose last line is 'Total operation time': the run was "
            "interrupted or the file is cut off"
        )
    names = run_names(file, [f"{run.threads}-threads" if run.threads else "" for run in console.runs])
    rows: list[LoadTestRow] = []
    for name, run in zip(names, console.runs, strict=True):
        if "op rate" not in run.texts:
            raise InputError(f"{file.path} has no line 'Op rate' in its results: cassandra-stress prints one")
        if run.answered:
            rows += _stress_rows(name, run, file)
        else:
            failed = f"{run.figure('total errors'):,.0f} requests failed and none was answered"
            console.remarks.append(f"run {name!r} is left out: {failed}")
    if not rows:
        raise InputError(f"{file.path}: {failed}: there is no latency; find out why they failed")
    return Imported(tuple(rows), remarks=tuple(console.remarks))


def _stress_rows(name: str, run: StressRun, file: TextFile) -> Iterator[LoadTestRow]:
    settings, shares = run.settings, _stress_shares(run.settings)
    threads = int(settings["Thread Count"]) if settings.get("Thread Count", "").isdigit() else None
    layout = {**_stress_layout(settings), "clients": run.threads or threads, "duration_s": run.duration_s}
    if run.auto:
        layout["load_kind"] = "closed"
    rate = settings.get("OpsPer Sec", "").replace(",", "")
    offered = float(rate) if rate.isdigit() else 0.0
    classes = [each for each in run.texts["op rate"] if each != ALL] or [ALL]
    classes = [ALL, *(each for each in classes if run.figure("op rate", each))] if len(classes) > 1 else classes
    pauses, seconds = run.figure("total gc count"), run.figure("total gc time")
    for each in classes:
        latencies = {column: run.figure(line, each) for line, column in _STRESS_LATENCIES.items()}
        known: dict[str, Any] = {column: value for column, value in latencies.items() if not math.isnan(value)}
        every = each == ALL or len(classes) == 1
        share = 1.0 if every else shares.get(each)
        notes = [f"{pauses:.0f} GC pauses, {seconds:g} s in all"] if pauses > 0 else []
        counted = each in run.texts.get("total errors", {})
        errors = int(run.figure("total errors", each)) if counted else 0
        absent = min(run.absent, errors) if every else 0
        notes += [f"{absent:,} answered reads found no row"] if absent else []
        notes += [f"the rate counts {errors - absent:,} failed requests, too"] if errors > absent else []
        yield LoadTestRow(
            run_id=name,
            request_class=each.lower(),
            throughput_tps=run.figure("op rate", each),
            offered_tps=offered * share if offered and share else None,
            errors=errors - absent if counted else None,
            source=f"{file.path.name}: cassandra-stress console",
            note="; ".join(notes) or None,
            **layout,
            **known,
        )


def _stress_shares(settings: dict[str, str]) -> dict[str, float]:
    """Return the requested share of each class."""
    ratios = {name: float(ratio) for name, ratio in re.findall(r"(\w+)=([\d.]+)", settings.get("Command Ratios", ""))}
    total = sum(ratios.values())
    return {name: ratio / total for name, ratio in ratios.items()} if total else {}


def _stress_layout(settings: dict[str, str]) -> dict[str, Any]:
    kind, shares = settings.get("Type", "").upper(), _stress_shares(settings)
    of_profile = kind in ("", "USER")  # whose queries have any names, and whose table is the profile's
    done = shares or {kind: 1.0}
    reads = None if of_profile else sum(share for name, share in done.items() if name in _STRESS_READS)
    level = next((each for each in CONSISTENCY_LEVELS if each == settings.get("Consistency Level")), None)
    replicas = re.search(r"replication_factor=(\d+)", settings.get("Replication Strategy Options", ""))
    columns = re.findall(r"\w+", settings.get("Column Names", ""))
    size = re.search(r"Fixed:\s+key=(\d+)", settings.get("Size Distribution", ""))
    return {
        "consistency_read": level if reads != 0 else None,
        "consistency_write": level if reads != 1 else None,
        "read_fraction": reads,
        "rf": int(replicas[1]) if replicas and kind in _STRESS_CREATES else None,
        "row_bytes": float(size[1]) * len(columns) if size and columns and not of_profile else None,
        "load_kind": "closed" if settings.get("OpsPer Sec", "").startswith("0") else None,
    }


CASSANDRA_STRESS = Importer("cassandra-stress console", _is_stress, _read_stress)


# ---- latte: its report in JSON. Written from real output of latte 0.29.
#
# A cycle is one call of a function of the workload. Its latency excludes the wait of cycles that find no free slot:
# at 15,000/s offered, a real run completed 35 % less in ten seconds with a mean of 79 ms. So an overloaded run
# understates latency, as the audit says. The summary is taken as latte prints it; the first and the last third of the
# whole intervals show whether the queue grew, without the last interval, which may be partial.


_LATTE_WHOLE = 0.9  # of the sampling interval: a shorter one is partial
_LATTE_GREW = 2.0  # times more waiting at the end than at the start
_AGREES = 0.01


def _read_latte_report(file: TextFile) -> Imported:
    report = read_json(file)
    configured, result = at(report, file, "conf"), at(report, file, "result")
    elapsed_s = real(result, file, "elapsed_time_s")
    weights = {at(each, file, "name"): real(each, file, "weight") for each in at(configured, file, "functions")}
    rate = configured.get("rate")
    clients = int(real(configured, file, "concurrency") * real(configured, file, "threads"))
    level = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", at(configured, file, "connection", "consistency")).upper()
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "version": configured.get("cass_version"),
        **dict.fromkeys(("consistency_read", "consistency_write"), level if level in CONSISTENCY_LEVELS else None),
        "encryption_client": bool(at(configured, file, "connection", "ssl")),
        "load_kind": "open" if rate else "closed",
        "clients": clients,
        "duration_s": elapsed_s,
        "client_cpu_percent": real(result, file, "cpu_util") / real(configured, file, "threads"),
        "source": f"{file.path.name}: latte report",
    }
    percentiles, throughput = at(report, file, "percentiles"), real(result, file, "cycle_throughput", "value")
    remarks = tuple(_latte_remarks(result, rate, throughput, configured))
    shared["note"], errors = "; ".join(remarks) or None, int(real(result, file, "error_count"))
    together = _latte_latencies(at(result, file, "cycle_latency"), percentiles, file)
    classes = at(result, file, "cycle_latency_by_fn")
    alone = len(classes) == 1
    each: dict[str, Any] = {"throughput_tps": throughput, "errors": errors}
    rows = [] if alone else [LoadTestRow(**shared, request_class=ALL, offered_tps=rate, **each, **together)]
    for name, latency in classes.items():
        count = decode(at(latency, file, "histogram"), f"{file.path}: {name}").get_total_count()
        offered = rate * weights[name] / sum(weights.values()) if rate and name in weights else None
        own: dict[str, Any] = {**(each if alone else {"throughput_tps": count / elapsed_s}), "offered_tps": offered}
        latencies = _latte_latencies(latency, percentiles, file)
        rows.append(LoadTestRow(**shared, request_class=str(name).lower(), **own, **latencies))
    return Imported(tuple(rows), remarks=remarks)


def _latte_latencies(latency: Mapping[str, Any], percentiles: Sequence[float], file: TextFile) -> dict[str, Any]:
    values = [real(each, file, "value") for each in at(latency, file, "percentiles")]
    by_percentile = dict(zip(percentiles, values, strict=False))
    columns = {"latency_mean_ms": real(latency, file, "mean", "value"), **percentile_columns(by_percentile)}
    return {**columns, "latency_max_ms": by_percentile[100.0]} if 100.0 in by_percentile else columns


def _latte_remarks(
    result: Mapping[str, Any], rate: float | None, throughput: float, configured: Mapping[str, Any]
) -> Iterator[str]:
    ratio = result.get("cycle_throughput_ratio")
    if rate and ratio is not None and abs(ratio / 100 - throughput / rate) > _AGREES:
        yield f"cycle_throughput_ratio {ratio:.4g} % is not that of the rates, {100 * throughput / rate:.4g} %"
    interval_s = configured.get("sampling_interval", {}).get("Time", {}).get("secs") or 1.0
    whole = [each for each in result.get("log", ()) if each.get("duration_s", 0.0) >= _LATTE_WHOLE * interval_s]
    third = len(whole) // 3
    if third:
        first, last = (fmean(each["mean_queue_len"] for each in part) for part in (whole[:third], whole[-third:]))
        if rate and last > _LATTE_GREW * first and last > configured["concurrency"] / 2:
            yield f"the queue grew from {first:.3g} to {last:.3g} requests during the run"


LATTE_REPORT = Importer("latte report", json_with("conf", "cass_version"), _read_latte_report, exactness=3)


# ---- YCSB: what it prints at the end of a run. Written from a published run of YCSB 0.17.
#
# `[OVERALL], Throughput` is computed by YCSB from a counter that can overflow and turn negative; rates are therefore
# computed again from operations and run time. With `-p measurement.interval=both` latencies of `[Intended-...]` count
# from the intended start, and are taken instead of the others. A read-modify-write is one operation of YCSB and two
# requests, which are in the counts of reads and updates, too; `VERIFY` is work of the client.
#
# `[READ]` times the operations that returned OK; others are timed in `[READ-FAILED]`, or with their status in a part of
# their own such as `[READ-NOT_FOUND]`. The server answered some of these: they are requests like others. Their mean
# and maximum are those of both parts together; percentiles of two parts cannot be added.


_YCSB_METRIC = re.compile(r"^\s*\[(?P<part>[^\]]+)\], ?(?P<name>[^,]+), ?(?P<value>\S+)[\s\\]*$")
_YCSB_LATENCY = re.compile(r"(Average|Max|(?P<rank>[\d.]+)(?:st|nd|rd|th)?Percentile)Latency\((?P<unit>us|ms)\)")
_YCSB_NOT_REQUESTS = ("OVERALL", "CLEANUP", "TOTAL_GC", "VERIFY")
_YCSB_INTENDED, _YCSB_FAILED = "Intended-", "-FAILED"
_YCSB_STATUS = re.compile(r"-(?:FAILED|ERROR|FORBIDDEN|[A-Z]+(?:_[A-Z]+)+)$")
_YCSB_GOOD = ("OK", "0", "BATCHED_OK")  # of today's and of old versions
_YCSB_ANSWERED = {"NOT_FOUND": "found no row", "UNEXPECTED_STATE": "did not apply"}
_YCSB_SAID = {**_YCSB_ANSWERED, "BATCHED_OK": "only joined a batch"}
_YCSB_READS = {"READ", "SCAN"}
_YCSB_TWICE, _YCSB_TWO = "READ-MODIFY-WRITE", {"READ", "UPDATE"}
_Parts = dict[str, dict[str, float]]


class _YcsbClass(NamedTuple):
    """One kind of operation: what was answered, what failed, its columns of latencies, and a note on both."""

    answered: float
    failed: float
    latencies: dict[str, Any]
    note: str | None


def _read_ycsb(file: TextFile) -> Imported:
    runs = [(options, parts) for options, parts in _ycsb_runs(file) if options or parts]
    complete = [(options, parts) for options, parts in runs if parts.get("OVERALL", {}).get("RunTime(ms)")]
    if not complete:
        raise InputError(
            f"{file.path} ends before '[OVERALL], RunTime(ms)': the run was interrupted or the file is cut off"
        )
    remarks = [] if len(complete) == len(runs) else ["a run without results is left out: it was interrupted"]
    names = run_names(file, ["load" if "load" in each else "run" if "t" in each else "" for each, _ in complete])
    rows: list[LoadTestRow] = []
    for name, (options, parts) in zip(names, complete, strict=True):
        rows += _ycsb_rows(name, options, parts, file, remarks)
    return Imported(tuple(rows), remarks=tuple(remarks))


def _ycsb_runs(file: TextFile) -> list[tuple[dict[str, str], _Parts]]:
    """Read options and figures of the runs of a file: each begins with its command line, or its overall figures."""
    runs: list[tuple[dict[str, str], _Parts]] = [({}, {})]
    for line_number, line in file.lines():
        if line.lstrip().startswith("Command line:"):
            runs.append((_ycsb_options(line), {}))
        elif found := _YCSB_METRIC.match(line):
            value = number(found["value"], f"{file.path}, line {line_number}", found["name"])
            if found["part"] == "OVERALL" and found["name"] in runs[-1][1].get("OVERALL", {}):
                runs.append(({}, {}))
            runs[-1][1].setdefault(found["part"], {})[found["name"]] = value
    return runs


def _ycsb_options(line: str) -> dict[str, str]:
    """Return the options of a command line; properties by their names."""
    phase = dict.fromkeys(re.findall(r"(?<= )-(load|t)(?= |$)", line), "")
    pairs = re.findall(r"-(threads|target|P) (\S+)", line) + re.findall(r"-p (\S+?)=(\S+)", line)
    return {**phase, **dict(pairs)}


def _ycsb_rows(
    name: str, options: Mapping[str, str], parts: _Parts, file: TextFile, remarks: list[str]
) -> Iterator[LoadTestRow]:
    """Yield the rows of a run, and add what is to be said."""
    duration_s = parts["OVERALL"]["RunTime(ms)"] / 1000
    operated = dict.fromkeys(_YCSB_STATUS.sub("", part) for part in parts)
    names = [each for each in operated if not each.startswith((*_YCSB_NOT_REQUESTS, _YCSB_INTENDED))]
    every = {each: _ycsb_class(each, parts) for each in names}
    classes = {each: found for each, found in every.items() if found.answered}
    if not classes:
        raise InputError(
            f"{file.path} has no answered operation of a class such as [READ]: YCSB prints them at the end, unless "
            "every one failed"
        )
    failed = sum(found.failed for each, found in every.items() if each != _YCSB_TWICE)
    pairs = 0.0
    if classes.keys() >= _YCSB_TWO and _YCSB_TWICE in classes:
        pairs = classes.pop(_YCSB_TWICE).answered
        remarks.append(f"{_YCSB_TWICE} is left out: its reads and updates are counted as such")
    if "VERIFY" in parts:
        remarks.append("VERIFY is left out: it is work of the client")
    if any(key.endswith("PercentileLatency(ms)") for metrics in parts.values() for key in metrics):
        remarks.append("percentiles are whole milliseconds, rounded down, and those of 0 ms are left out")
    total = sum(found.answered for found in classes.values())
    operations = total - min(pairs, total / 2)
    rate, tried = operations / duration_s, (operations + failed) / duration_s
    printed = parts["OVERALL"].get("Throughput(ops/sec)", rate)
    wrong = (
        f"the throughput of {printed:g}/s that YCSB prints is wrong: it is {rate:.6g}/s by operations and run time"
        if not (1 - _AGREES) * rate <= printed <= (1 + _AGREES) * tried  # it may count failed operations
        else None
    )
    said = [f"{each}: {found.note}" for each, found in classes.items() if found.note]
    remarks += [*said, wrong] if wrong else said
    reads = sum(found.answered for each, found in classes.items() if each in _YCSB_READS) / total
    if len(classes) > 1:
        together = _ycsb_together([(found.answered, found.latencies) for found in classes.values()])
        failures = sum(found.failed for found in classes.values())
        classes = {ALL: _YcsbClass(total, failures, together, "; ".join(said) or None), **classes}
    target = number(options.get("target", "0"), str(file.path), "the number after -target")
    layout = _ycsb_layout(options, target, file, intended=any(each.startswith(_YCSB_INTENDED) for each in parts))
    for each, found in classes.items():
        yield LoadTestRow(
            run_id=name,
            request_class=each.lower(),
            duration_s=duration_s,
            throughput_tps=found.answered / duration_s,
            offered_tps=target * total / operations if target and found.answered == total else None,
            errors=int(found.failed),
            read_fraction=reads,
            source=f"{file.path.name}: YCSB",
            note="; ".join(filter(None, (found.note, wrong))) or None,
            **layout,
            **found.latencies,
        )


def _ycsb_layout(options: Mapping[str, str], target: float, file: TextFile, *, intended: bool) -> dict[str, Any]:
    """Return the columns that a command line says; without one, the kind of load is known of intended starts only.

    YCSB starts one thread where neither the line nor the file after -P asks for more.
    """
    sizes = [options.get(name, "") for name in ("fieldcount", "fieldlength")]
    threads = options.get("threads") or options.get("threadcount") or ("1" if options and "P" not in options else "")
    levels = {each: options.get(f"cassandra.{each}consistencylevel", "").upper() for each in ("read", "write")}
    without_start = ("throttled" if target else "closed") if options else None
    return {
        "load_kind": "open" if intended and (target or not options) else without_start,
        "clients": int(number(threads, str(file.path), "the number of threads")) if threads else None,
        "row_bytes": float(sizes[0]) * float(sizes[1]) if all(each.isdigit() for each in sizes) else None,
        **{f"consistency_{each}": level if level in CONSISTENCY_LEVELS else None for each, level in levels.items()},
    }


def _ycsb_class(name: str, parts: _Parts) -> _YcsbClass:
    """Put an operation together from the parts that time it."""
    good = parts.get(name, {}).get("Operations", 0.0)
    returned = {key.removeprefix("Return="): n for key, n in parts.get(name, {}).items() if key.startswith("Return=")}
    answered = {status: count for status, count in returned.items() if status in _YCSB_ANSWERED and count}
    in_one = sum(returned.values()) == good  # old versions count and time all in one part
    absent = 0.0 if in_one else sum(answered.values())
    failed = sum(count for status, count in returned.items() if status not in (*_YCSB_GOOD, *answered))
    if not (failed or answered):
        failed = parts.get(name + _YCSB_FAILED, {}).get("Operations", 0.0)
    timed = {f"-{status}": count for status, count in answered.items() if f"{name}-{status}" in parts and absent}
    apart = absent - sum(timed.values())  # in the part of what failed
    if apart and not failed:
        timed[_YCSB_FAILED] = apart
    latencies = [
        (count, _ycsb_latencies(parts.get(_YCSB_INTENDED + name + ending, parts.get(name + ending, {}))))
        for ending, count in {"": good, **timed}.items()
        if count
    ]
    said = [f"{returned[each]:,.0f} {what} ({each})" for each, what in _YCSB_SAID.items() if returned.get(each)]
    note = f"of {good + absent:,.0f} answered requests {' and '.join(said)}" if said else None
    if note and apart and failed:
        note += "; these are in no latency, because YCSB times them together with what failed"
    elif note and len(latencies) > 1:
        note += "; they are timed apart, and percentiles of both together are not known"
    elif failed and in_one:
        note = "; ".join(filter(None, (note, f"the rate counts {failed:,.0f} failed requests, too")))
    return _YcsbClass(good + absent, failed, _ycsb_together(latencies), note)


def _ycsb_together(parts: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Return the mean and the maximum of several counted parts together, or all latencies of a single one."""
    if len(parts) == 1:
        return parts[0][1]
    timed = bool(parts) and all("latency_mean_ms" in latencies for _, latencies in parts)
    total = sum(count for count, _ in parts)
    return {
        "latency_mean_ms": sum(count * each["latency_mean_ms"] for count, each in parts) / total if timed else None,
        "latency_max_ms": max((each.get("latency_max_ms", 0.0) for _, each in parts), default=None),
    }


def _ycsb_latencies(metrics: Mapping[str, float]) -> dict[str, Any]:
    found = [
        (match, value / (1000.0 if match["unit"] == "us" else 1.0))
        for name, value in metrics.items()
        if (match := _YCSB_LATENCY.fullmatch(name)) and (value or match["unit"] == "us")
    ]
    columns = {"Average": "latency_mean_ms", "Max": "latency_max_ms"}
    return {
        **{columns[match[1]]: value for match, value in found if match[1] in columns},
        **percentile_columns({float(match["rank"]): value for match, value in found if match["rank"]}),
    }


_IS_YCSB = matching(r"YCSB Client|\[OVERALL\], ?|site\.ycsb|com\.yahoo\.ycsb")
YCSB = Importer("YCSB", _IS_YCSB, _read_ycsb)
