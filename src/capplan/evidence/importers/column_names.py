"""What others call the columns of a load-test table: `nodes` is `cass_nodes`, `p99 (us)` is `latency_p99_ms`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from capplan.errors import InputError, nearest
from capplan.evidence.load_test_row import PERCENTILES
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.models.language.units import DURATIONS_S, SIZES_BYTES

_BASES: Mapping[str, tuple[Mapping[str, Fraction], str]] = {
    "_ms": (DURATIONS_S, "ms"),
    "_s": (DURATIONS_S, "s"),
    "_gib": (SIZES_BYTES, "GiB"),
    "_bytes": (SIZES_BYTES, "B"),
}
_MEANT = {
    "run_id": "run test run_name test_name id",
    "request_class": "operation op class operation_type request_type",
    "cass_nodes": "nodes node_count nodes_count n_nodes num_nodes cassandra_nodes cluster_size hosts servers",
    "dcs": "datacenters data_centers datacentres data_centres",
    "node_cores": "cores vcpus cores_per_node cpus",
    "rf": "replication_factor",
    "clients": "threads users vus connections concurrency client_threads thread_count num_threads client_count",
    "throughput_tps": "ops ops_s ops_sec ops_per_s ops_per_sec op_s op_rate throughput rate tps rps qps req_s req_sec "
    "reqs_s requests_s requests_sec requests_per_s requests_per_sec requests_per_second ops_per_second achieved_rate",
    "offered_tps": "target target_rate target_ops target_tps offered offered_rate arrival_rate requested_rate",
    "latency_mean_ms": "mean avg average latency mean_latency avg_latency average_latency latency_avg response_time "
    "mean_response_time avg_response_time average_response_time",
    "latency_p50_ms": "median latency_median median_latency",
    "latency_max_ms": "max maximum max_latency longest max_response_time",
    "duration_s": "duration run_time runtime elapsed",
    "errors": "failures failed error_count failed_requests",
    "drops": "dropped",
    "data_gib": "data data_size data_per_node",
    "row_bytes": "row_size value_size",
    "node_cpu_percent": "node_cpu cassandra_cpu server_cpu",
    "client_cpu_percent": "client_cpu",
    "think_time_ms": "think_time",
    "note": "notes comment comments remarks",
}
_NAMES = {word: name for name, words in _MEANT.items() for word in words.split()} | {
    re.sub(r"_(?:ms|s|tps)$", "", name): name for name in LOAD_TESTS.columns
}
_SPELT = {
    **{"msec": "ms", "millis": "ms", "milliseconds": "ms", "usec": "us", "micros": "us", "microseconds": "us"},
    **{"nanos": "ns", "nanoseconds": "ns", "sec": "s", "secs": "s", "seconds": "s", "bytes": "B"},
}
_UNITS = {unit.lower(): unit for unit in (*DURATIONS_S, *SIZES_BYTES)} | _SPELT
_UNIT = re.compile(
    rf"(?P<base>.+?)(?:\s*[(\[]\s*(?:in )?(?P<inside>[^)\]]+?)\s*[)\]]|[\s_.-]+(?:in[\s_])?(?P<end>{'|'.join(_UNITS)}))"
)
_PERCENTILE = re.compile(
    r"(?:latency_|response_time_)?(?:p|perc_|percentile_)?(\d\d(?:[._]?\d)?)(?:th|p|pct|_percent|_percentile|th_percentile)?(?:_latency)?"
)
_PER_S = re.compile(
    r"[rqt]ps|(?:(?:1|ops?|operations?|req(?:uest)?s?|quer(?:y|ies)|t(?:x|ransaction)s?)/)?s(?:ec(?:ond)?)?"
)
_LONGEST = 60  # characters of a name
_FIGURES = ("throughput_tps", "latency_")
_RANKS = {f"{100 * share:g}".replace(".", ""): name for name, share in PERCENTILES.items()}


@dataclass(frozen=True)
class Mapped:
    """The source of one column: a column name of the CSV, and the factor that converts it to the table's unit."""

    column: str
    factor: float = 1.0
    unit: str = ""


def column_name(word: str, refusal: str) -> str:
    """Return the name of a column; refuse another with the column that it means, or the nearest.

    Raises
    ------
    InputError
        If it is none.
    """
    if word in LOAD_TESTS.columns:
        return word
    meant, _ = _meant(word)
    raise InputError(refusal + (f"; did you mean {meant!r}?" if meant else nearest(word, LOAD_TESTS.columns)))


def _meant(word: str) -> tuple[str, str]:
    """Return the column that a word means, and the unit that it says; empty if it means none."""
    if word in LOAD_TESTS.columns:
        return word, ""
    found = _UNIT.fullmatch(word.strip().lower()) if len(word) <= _LONGEST else None
    for text, unit in ((word, ""), *([(found["base"], found["inside"] or found["end"])] if found else [])):
        base = re.sub(r"[^a-z0-9.]+", "_", text.lower().replace("%", " percent ")).strip("_")
        rank = _PERCENTILE.fullmatch(base)
        name = _RANKS.get(re.sub(r"[._]", "", rank[1])) if rank else _NAMES.get(base)
        if name:
            return name, unit
    return "", ""


def _in_table(name: str, unit: str) -> Mapped | None:
    """Return the factor from a unit to that of a column, and what the unit is called; None if it cannot have it."""
    units, own = units_of(name)
    unit = _UNITS.get(unit.lower(), unit)
    if unit in units or not unit:
        return Mapped("", float(units[unit] / units[own]) if unit else 1.0, unit or own)
    fits = unit == "%" if name.endswith("_percent") else name.endswith("_tps") and _PER_S.fullmatch(unit.lower())
    return Mapped("") if fits else None


def stated_unit(word: str, name: str, unit: str) -> str:
    """Return the unit that a header gives a column, or the one that the user has given for latencies, or none."""
    found = _UNIT.fullmatch(word.strip().lower()) if len(word) <= _LONGEST else None
    said = _UNITS.get(found["inside"] or found["end"], "") if found else ""
    if said in units_of(name)[0]:
        return said
    return unit if name.startswith("latency_") and word != name else ""


def units_of(name: str) -> tuple[Mapping[str, Fraction], str]:
    """Return the units that a column may have, and the one in which the table has it."""
    return next((base for ending, base in _BASES.items() if name.endswith(ending)), ({}, ""))


def proposed(header: Iterable[str], unit: str = "") -> dict[str, Mapped]:
    """Return which column of a table each name of a header obviously means; empty without a rate or a latency.

    Parameters
    ----------
    header : iterable of str
        The names.
    unit : str
        Of latencies whose names say none.
    """
    found: dict[str, Mapped] = {}
    for word in header:
        name, said = _meant(word)
        said = said or (unit if name.startswith("latency_") and word != name else "")
        if name and name not in found and (mapped := _in_table(name, said)):
            found[name] = replace(mapped, column=word)
    return found if any(name.startswith(_FIGURES) for name in found) else {}


def as_pairs(columns: Mapping[str, Mapped]) -> str:
    """Return a mapping as the option takes it."""
    return ",".join(f"{each.column}={name}{f':{each.unit}' * bool(each.unit)}" for name, each in columns.items())
