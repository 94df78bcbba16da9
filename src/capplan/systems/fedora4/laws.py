"""Operational laws, held against the documented figures of fedora4."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.audit.laws import never_falls, of_row
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id, select

Rows = dict[str, Evidence]
REGION_NAMES = {"us-east": "US-East", "us-west": "US-West", "asia": "Asia", "eu": "the EU"}


def throttled(rows: Rows, nodes: str) -> tuple[Evidence, ...]:
    """Return the runs of objective 3 on `nodes` nodes, in the order of their requests."""
    return tuple(row for row in _means(rows, "throttled") if row.layout["nodes"] == nodes)


def regional(rows: Rows, region: str) -> tuple[Evidence, ...]:
    """Return the mean times of objective 6 in `region`, in the order of their rates."""
    return tuple(row for row in _means(rows, "region") if row.layout["region"] == region)


def of_each(rows: Iterable[Evidence], key: str) -> tuple[str, ...]:
    """Return the values of a key of layouts, each once, in the order of `rows`."""
    return tuple(dict.fromkeys(row.layout[key] for row in rows if key in row.layout))


def capacities(rows: Rows, kind: str) -> tuple[Evidence, ...]:
    """Return the capacities by number of nodes; `kind` is `read` or `mixed`."""
    return tuple(row for row in select(rows.values(), quantity="capacity", use="fit") if row.id.endswith(kind))


def in_words(nodes: str) -> str:
    """Return a number of nodes with its noun."""
    return "1 node" if nodes == "1" else f"{nodes} nodes"


def _means(rows: Rows, scenario: str) -> tuple[Evidence, ...]:
    return select(rows.values(), scenario=scenario, quantity="latency", statistic="mean")


def requests_in_flight(row: Evidence, duration: Interval) -> Interval:
    """Return the mean number of requests under way in a run of objective 3, by Little's law."""
    return Interval.exactly(float(row.layout["requests"])) / duration * row.interval


def _users(rows: Rows) -> list[Finding]:
    """Apply Little's law, N = X R: no more requests are under way than there are users."""
    users, duration = rows["throttled.users"], rows["throttled.duration"]
    return [
        compare(
            f"little.{row.id.removesuffix('.mean')}",
            "Little's law, requests under way",
            (row, users, duration),
            at_most(users.interval),
            requests_in_flight(row, duration.interval),
            f"{row.layout['requests']} requests in {duration.written} that take {row.written} each keep {{documented}} "
            f"of {users.written} users waiting, {{expected}} are possible.",
        )
        for row in _means(rows, "throttled")
    ]


def _rises_with_load(rows: Rows) -> list[Finding]:
    """Look for the deepest fall of the mean time from one load to a higher one, in each column of both tables."""
    law, findings = "response time grows with load", []
    for nodes in of_each(_means(rows, "throttled"), "nodes"):
        series = [of_row(row, f"{row.layout['requests']} requests") for row in throttled(rows, nodes)]
        what = f"in 60 s the mean time on {in_words(nodes)}"
        findings.append(never_falls(f"monotone.throttled.n{nodes}", law, series, what, "s"))
    for region, name in REGION_NAMES.items():
        series = [of_row(row, f"{row.layout['tps']}/s") for row in regional(rows, region)]
        findings.append(never_falls(f"monotone.region.{region}", law, series, f"the mean time in {name}", "s"))
    return findings


def _more_nodes(rows: Rows) -> list[Finding]:
    findings = []
    for kind, words in (("read", "reads"), ("mixed", "reads and 5 % writes")):
        for less, more in pairwise(capacities(rows, kind)):
            few, many = less.layout["nodes"], more.layout["nodes"]
            findings.append(
                compare(
                    f"monotone.{more.id}",
                    "more nodes carry no less",
                    (less, more),
                    at_least(less.interval),
                    more.interval,
                    f"From {few} to {in_words(many)} the capacity for {words} should be {{expected}}, the document has "
                    "{documented}.",
                    "1/s",
                )
            )
    return findings


def _more_writes(rows: Rows) -> list[Finding]:
    return [
        compare(
            f"monotone.writes.n{alone.layout['nodes']}",
            "added work does not raise the capacity",
            (alone, mixed),
            at_most(alone.interval),
            mixed.interval,
            f"With 5 % writes the capacity of {in_words(alone.layout['nodes'])} should be {{expected}}, the document "
            "has {documented}.",
            "1/s",
        )
        for alone, mixed in zip(capacities(rows, "read"), capacities(rows, "mixed"), strict=True)
    ]


def _within_capacity(rows: Rows) -> list[Finding]:
    """Compare the rates of the regions table, which does not say how many nodes it had, with the largest capacity."""
    largest = capacities(rows, "read")[-1]
    return [
        compare(
            f"capacity.region.r{row.layout['tps']}",
            "no cluster answers more than its capacity",
            (row, largest, *(mean for mean in _means(rows, "region") if mean.layout["tps"] == row.layout["tps"])),
            at_most(largest.interval),
            row.interval,
            f"The regions table has times at {{documented}}; {in_words(largest.layout['nodes'])}, the largest cluster "
            "that is documented, can answer {expected}.",
            "1/s",
        )
        for row in select(rows.values(), quantity="offered_rate")
    ]


def _added_work(rows: Rows) -> list[Finding]:
    """Compare times in the mix with those alone, as if the rates had been the same, which is not said."""
    return [
        compare(
            f"added_work.{row.id.removeprefix('mixed.')}",
            "added work does not save time",
            (alone, row),
            at_least(alone.interval),
            row.interval,
            f"On {in_words(row.layout['nodes'])} {row.request_class}s take {{documented}} in the mix with "
            f"{_partners(row)}, where they should take {{expected}} as alone.",
            "s",
        )
        for row in _means(rows, "mixed")
        for alone in [rows[f"alone.n{row.layout['nodes']}.{row.request_class}"]]
    ]


def _partners(row: Evidence) -> str:
    return f"{row.layout['action']}s" if row.request_class == "read" else "reads"


def _shares(rows: Rows) -> list[Finding]:
    reads, writes = rows["mixed.read_share"], rows["mixed.write_share"]
    sentence = "Reads and writes of the mix add up to {documented}, they should to {expected}."
    whole = reads.interval + writes.interval
    return [compare("shares", "shares add up to one", (reads, writes), Interval.exactly(1.0), whole, sentence)]


_LAWS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _users,
    _rises_with_load,
    _more_nodes,
    _more_writes,
    _within_capacity,
    _added_work,
    _shares,
)


def laws(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Hold the laws against `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for law in _LAWS for finding in law(known))
