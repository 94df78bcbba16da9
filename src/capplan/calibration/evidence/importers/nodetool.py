"""nodetool: what a node counts of its own work. Written from real output of Cassandra 5.0.

These are figures of one server since its start, not a load test: they become rows of microbenchmarks. The percentiles
of several nodes must not be averaged; import the files of all nodes, and compare them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, number, read_json, run_id
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_STATISTICS = {"Min": "minimum", "Max": "maximum"} | {f"{each}%": f"p{each}" for each in (50, 75, 95, 98, 99)}
_UNITS = {"(micros)": ("s", 1e-6), "(millis)": ("s", 1e-3), "(bytes)": ("B", 1.0), "": ("1", 1.0)}
_SIZES = {"bytes": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_PROXY = (
    "Read Latency",
    "Write Latency",
    "Range Latency",
    "CAS Read Latency",
    "CAS Write Latency",
    "View Write Latency",
)
_TABLE = ("Read Latency", "Write Latency", "SSTables", "Partition Size", "Cell Count")
Rows = Iterator[MicrobenchRow]


def _histograms(file: TextFile) -> Rows:
    """Read proxyhistograms (coordinator) and tablehistograms (replica)."""
    subject = ""
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    for line_number, line in file.lines():
        where, words = f"{file.path}, line {line_number}", re.split(r"\s{2,}", line.strip())
        if line.startswith("proxy histograms"):
            subject, names, units = "coordinator", _PROXY, ("(micros)",) * len(_PROXY)
        elif line.endswith(" histograms") and "/" in line:
            subject, names = line.removesuffix(" histograms"), _TABLE
            units = ("(micros)", "(micros)", "", "(bytes)", "")
        elif words[0] in _STATISTICS and subject:
            if len(words) != len(names) + 1:
                raise InputError(
                    f"{where} has {len(words)} cells, not {len(names) + 1}: the file is damaged or cut off"
                )
            for name, unit, word in zip(names, units, words[1:], strict=True):
                si, factor = _UNITS[unit]
                value = number(word, where, name)
                operation, _, quantity = name.rpartition(" ")
                yield MicrobenchRow(
                    component="coordinator" if subject == "coordinator" else "replica",
                    operation=operation.lower() or None,
                    quantity=quantity.lower(),
                    statistic=_STATISTICS[words[0]],  # type: ignore[arg-type]  # a word of the Literal
                    value=value * factor,
                    unit=si,  # type: ignore[arg-type]  # a word of the Literal
                    conditions=None if subject == "coordinator" else f"table {subject}",
                )


def _pools(file: TextFile) -> Rows:
    """Read tpstats: what thread pools did, and what was dropped."""
    if file.head.lstrip().startswith("{"):
        report = read_json(file)
        pools = {name: _pool_counts(found) for name, found in report.get("ThreadPools", {}).items()}
        dropped = report.get("DroppedMessage", {})
    else:
        pools, dropped = _pools_text(file)
    for name, counts in pools.items():
        for quantity, value in counts.items():
            yield _constant("thread pool", name, quantity, value)
    for name, value in dropped.items():
        if float(value):
            yield _constant("messaging", name, "dropped", float(value))


def _pool_counts(found: Mapping[str, Any]) -> dict[str, float]:
    names = {"ActiveTasks": "active", "PendingTasks": "pending", "CompletedTasks": "completed"}
    return {
        words: float(found[name]) for name, words in {**names, "TotalBlockedTasks": "blocked"}.items() if name in found
    }


def _pools_text(file: TextFile) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
    pools: dict[str, dict[str, float]] = {}
    dropped: dict[str, float] = {}
    section = ""
    for line_number, line in file.lines():
        where, words = f"{file.path}, line {line_number}", line.split()
        if line.startswith(("Pool Name", "Message type", "Latencies")):
            section = words[0]
        elif section == "Pool" and len(words) >= 6:
            found = [number(word, where, "a count") for word in words[-5:]]
            pools[" ".join(words[:-5])] = dict(
                zip(("active", "pending", "completed", "blocked"), (*found[:3], found[4]), strict=True)
            )
        elif section == "Message" and len(words) >= 2:
            dropped[words[0]] = number(words[1], where, "a count of dropped messages")
        elif section == "Pool" and 1 < len(words) < 6:
            raise InputError(f"{where} has {len(words)} cells, not 6: the file is damaged or cut off")
    return pools, dropped


def _pauses(file: TextFile) -> Rows:
    """Read gcstats: pauses of the JVM since the last call."""
    lines = [(line_number, line.split()) for line_number, line in file.lines() if line.strip()]
    if len(lines) < 2 or len(lines[1][1]) < 6:
        raise InputError(f"{file.path} must have a line of figures below its header: nodetool gcstats prints one")
    line_number, words = lines[1]
    where = f"{file.path}, line {line_number}"
    interval, longest, total, deviation, _, count = (number(word, where, "a figure of gcstats") for word in words[:6])
    shared: dict[str, Any] = {"component": "jvm", "operation": "gc", "conditions": f"in {interval / 1000:g} s"}
    yield MicrobenchRow(
        **shared, quantity="pause", statistic="maximum", value=longest / 1000, unit="s", samples=int(count)
    )
    if count:
        yield MicrobenchRow(
            **shared, quantity="pause", statistic="mean", value=total / 1000 / count, unit="s", samples=int(count)
        )
    yield MicrobenchRow(
        **shared, quantity="pause", statistic="deviation", value=deviation / 1000, unit="s", samples=int(count)
    )
    if interval:
        yield MicrobenchRow(**shared, quantity="share of time", statistic="constant", value=total / interval, unit="1")


def _tables(file: TextFile) -> Rows:
    """Read tablestats as JSON: mean latencies and sizes of each table."""
    for keyspace, found in read_json(file).items():
        for table, facts in (found.get("tables", {}) if isinstance(found, dict) else {}).items():
            shared: dict[str, Any] = {"component": "replica", "conditions": f"table {keyspace}/{table}"}
            for operation in ("read", "write"):
                count, mean = facts.get(f"local_{operation}_count"), facts.get(f"local_{operation}_latency_ms")
                if count and mean not in (None, "NaN"):
                    value = number(str(mean), str(file.path), f"local_{operation}_latency_ms") / 1000
                    latency: dict[str, Any] = {"quantity": "latency", "statistic": "mean", "value": value, "unit": "s"}
                    yield MicrobenchRow(**shared, operation=operation, **latency, samples=int(count))
            for name, quantity in (
                ("space_used_live", "live data"),
                ("compacted_partition_mean_bytes", "partition size"),
            ):
                if facts.get(name) is not None:
                    value = number(str(facts[name]), str(file.path), name)
                    yield MicrobenchRow(**shared, quantity=quantity, statistic="constant", value=value, unit="B")


_WANTED = {
    "Load": "data",
    "Uncompressed load": "uncompressed data",
    "Uptime (seconds)": "uptime",
    "pending tasks": "pending compactions",
    "compactions completed": "compactions completed",
    "data compacted": "data compacted",
    "Attempted": "read repairs attempted",
    "Mismatch (Blocking)": "read repairs with a mismatch",
}


def _facts(file: TextFile) -> Rows:
    """Read info, netstats and compactionstats: names and figures."""
    for line_number, line in file.lines():
        found = re.match(r"^(.*?)(?:\s*:\s+|\s{2,})(-?[\d.,]+)(?: ([KMGT]iB|bytes))?\s*$", line)
        if found and found[1].strip() in _WANTED:
            value = number(found[2], f"{file.path}, line {line_number}", found[1].strip())
            size = _SIZES.get(found[3] or "")
            quantity = _WANTED[found[1].strip()]
            unit = "B" if size or quantity == "data compacted" else ("s" if quantity == "uptime" else "1")
            yield _constant("node", None, quantity, value * (size or 1.0), unit)


def _ring(file: TextFile) -> Rows:
    """Read status: how many nodes each data centre has, and what is up."""
    nodes: dict[str, list[str]] = {}
    current = ""
    for _, line in file.lines():
        if line.startswith("Datacenter:"):
            current = line.partition(":")[2].strip()
            nodes[current] = []
        elif current and re.match(r"^[UD][NLJM]\s", line):
            nodes[current].append(line[:2])
    for name, states in nodes.items():
        yield _constant("cluster", name, "nodes", len(states))
        yield _constant("cluster", name, "nodes up", sum(state.startswith("U") for state in states))


def _constant(component: str, operation: str | None, quantity: str, value: float, unit: str = "1") -> MicrobenchRow:
    return MicrobenchRow(
        component=component,
        operation=operation,
        quantity=quantity,
        statistic="constant",
        value=value,
        unit=unit,  # type: ignore[arg-type]  # a word of the Literal
    )


_KINDS: Mapping[str, tuple[Callable[[str], bool], Callable[[TextFile], Rows]]] = {
    "proxyhistograms": (lambda head: head.lstrip().startswith("proxy histograms"), _histograms),
    "tablehistograms": (lambda head: bool(re.match(r"\s*\S+/\S+ histograms\s*$", head, re.MULTILINE)), _histograms),
    "tpstats": (lambda head: head.startswith("Pool Name") or '"ThreadPools"' in head, _pools),
    "gcstats": (lambda head: "Max GC Elapsed (ms)" in head.partition("\n")[0], _pauses),
    "tablestats": (lambda head: '"total_number_of_tables"' in head and head.lstrip().startswith("{"), _tables),
    "status": (lambda head: head.startswith("Datacenter:") and "Status=Up/Down" in head, _ring),
    "info": (lambda head: "Gossip active" in head and "Native Transport active" in head, _facts),
    "netstats": (lambda head: head.startswith("Mode: ") and "Read Repair Statistics" in head, _facts),
    "compactionstats": (lambda head: "pending tasks" in head and "compaction" in head[:400], _facts),
}


def _kind(file: TextFile) -> str | None:
    return next((name for name, (recognises, _) in _KINDS.items() if recognises(file.head)), None)


def _read(file: TextFile) -> Imported:
    kind = _kind(file) or ""
    source = {"run_id": run_id(file), "source": f"{file.path.name}: nodetool {kind}"}
    rows = tuple(MicrobenchRow(**{**vars(row), **source}) for row in _KINDS[kind][1](file))
    if not rows:
        raise InputError(f"{file.path} has no figures: nodetool {kind} prints some, the file may be cut off")
    return Imported(microbenchmarks=rows)


IMPORTER = Importer("nodetool", lambda file: _kind(file) is not None, _read)
