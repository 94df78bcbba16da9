"""What is recognised and not read: outputs of other tools, with what to save instead, and forms of files.

Written from public outputs of these tools.
"""

from __future__ import annotations

import re

from capplan.errors import InputError
from capplan.evidence.text_file import TextFile

_MAP = "put its figures into a CSV of your own, and import that with --map"
_OTHERS = (  # by a pattern of the first 64 KiB
    (r"^total,interval_op_rate,", "what cassandra-stress of Cassandra 2.0 and before prints", _MAP),
    (r"SUMMARY STATS [═=]", "what latte prints", "import its JSON report (-o) or its HDR log"),
    (r'"http_req_duration"|http_req_duration\.{2,}:', "a summary of k6", "import its points (--out json=FILE)"),
    (r"\nREQUEST\t", "a log of Gatling", "import js/global_stats.json of its report"),
    (r"^summary [=+] .* in ", "what JMeter prints", "import its results (-l FILE)"),
    (r"c-o fixed latency|^Time \(avg\):\s|^time\s+ops/s\s+rows/s", "what scylla-bench prints",
     "import its HDR log (-hdr-latency-file FILE)"),
    (r"^[ \t]*Writes\s+Reads\s+(?:Deletes\s+)?Errors|^Stress complete, \d",
     "what tlp-stress or cassandra-easy-stress prints", "import its CSV (--csv FILE)"),
    (r"(?i:nosqlbench)|\bnb5\b|^-- Timers -|type=TIMER,\s+name=|^t,count,max,mean,min,", "what NoSQLBench prints",
     "import its HDR log (--log-histograms FILE)"),
    (r"^[A-Z_]+ +- Takes\(s\): ", "what go-ycsb prints", _MAP),
    (r"^Requests\s+\[total, rate|\"latencies\": ?\{\"total\"|\A\{\"attack\":|^Bucket +# +%", "of vegeta",
     "import `vegeta report -type=hdrplot`"),
    (r"^Summary:\s+Total:\s+\S+ secs?\s+Slowest:|^response-time,DNS", "what hey prints", _MAP),
    (r"^Summary:\s+Success rate:|\"successRate\"", "what oha prints", _MAP),
    (r"^This is ApacheBench|^Concurrency Level:\s|^Percentage served,|^starttime\tseconds", "what ab prints", _MAP),
    (r"^Fortio \S+ running at|\"DurationHistogram\"|^Aggregated Function Time", "what fortio prints", _MAP),
    (r"\"(?:requests_per_sec(?:ond)?|requests_sec|req_per_sec|latency_distribution)\"", "JSON of a script for wrk",
     "import what wrk itself prints (--latency)"),
    (r"^total_number_of_tables: |^ThreadPools:", "YAML of nodetool", "let it print JSON (-F json)"),
    (r" GCInspector\.java|GC\(\d+\) (?:[YyOo]: )?Pause |\[(?:Full )?GC[ (]|threads were stopped: |Safepoint \"",
     "a record of a JVM's pauses", "give it to a prediction (--gc FILE)"),
    (r"\[[^\]\n]*\] +\d{4}-\d\d-\d\d[ T][\d:]+[.,]\d{3} +\w+\.java:\d+ - ", "a log of Cassandra",
     "a prediction reads its pauses (--gc FILE)"),
    (r"^ALL STATS$|\"ALL STATS\":", "what memtier_benchmark prints", _MAP),
    (r"^number of transactions actually processed: ", "what pgbench prints", _MAP),
    (r"\A\{\"log\": ?\"", "Docker's log as JSON", "save it by `docker logs NAME`"),
)  # fmt: skip
_SEPARATORS = {",": "commas", ";": "semicolons", "|": "'|'", "\t": "tabs"}
_NUMERIC = re.compile(r"\s*[\"']?[-+]?[\d.,:]+[\"']?\s*")


def why_unread(file: TextFile) -> str:
    """Return what a file of no known tool is, and what to do, as the end of a sentence; empty if nothing is known.

    Raises
    ------
    InputError
        If a tool that is not read has written it: its columns are not to be taken by their names.
    """
    for pattern, what, instead in _OTHERS:
        if re.search(pattern, file.head, re.MULTILINE):
            raise InputError(f"{file.path} is {what}: {instead}")
    start = file.head.lstrip()
    if re.match(r"<!doctype html|<html", start, re.IGNORECASE):
        return "is a web page: save the text that the tool prints"
    if re.match(r"<[?!\w]", start):
        return "is XML of no known tool: save the results as text or CSV"
    return _table(start.splitlines())


def _table(lines: list[str]) -> str:
    """Return what is known of a text as a table: its separator, and whether it has a header."""
    first, *others = [line for line in lines[:20] if line.strip()] or [""]
    separator = next((each for each in _SEPARATORS if first.count(each) and all(each in line for line in others)), "")
    if not separator or not others:
        return ""
    cells = first.split(separator)
    if sum(bool(_NUMERIC.fullmatch(cell)) for cell in cells) > len(cells) / 2:
        return "has no header: let its first line name the columns, and import it with --map"
    if separator != ",":
        return f"is a table whose cells are separated by {_SEPARATORS[separator]}: a CSV file needs --map"
    return ""
