"""The register of fedora4: what its document says about its own figures, and one of its tests about another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, compare, shown
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.systems.fedora4.laws import (
    Rows,
    capacities,
    in_words,
    of_each,
    requests_in_flight,
    throttled,
)

_MIXES = {"read": "for reads", "mixed": "with 5 % writes"}
_WRITES = {"create": "Creates", "delete": "Deletes"}
_READS = {
    "alone": ("Alone", "alone", "read"),
    "beside_creates": ("Beside creates", "mixed", "read_create"),
    "beside_deletes": ("Beside deletes", "mixed", "read_delete"),
}


def _linear(rows: Rows) -> list[Finding]:
    """Hold the clusters against n times a single server, which objective 5 asks for by name."""
    claim = rows["capacity.linear"]
    findings = []
    for kind, words in _MIXES.items():
        single, *clusters = capacities(rows, kind)
        for cluster in clusters:
            nodes = cluster.layout["nodes"]
            findings.append(
                compare(
                    f"claim.linear.{kind}.n{nodes}",
                    "capacity grows linearly with the number of nodes",
                    (claim, single, cluster),
                    Interval.exactly(float(nodes) ** claim.value),
                    cluster.interval / single.interval,
                    f"Linear growth makes the capacity of {in_words(nodes)} {words} {{expected}} times that of a "
                    "single server, the tables have {documented} times.",
                )
            )
    return findings


def _writes_free(rows: Rows) -> list[Finding]:
    claim = rows["capacity.writes_free"]
    return [
        compare(
            f"claim.writes_free.n{alone.layout['nodes']}",
            "writes are no bottleneck",
            (claim, alone, mixed),
            claim.interval,
            mixed.interval / alone.interval,
            f"Writes are said to be no bottleneck; 5 % of them make the capacity of {in_words(alone.layout['nodes'])} "
            f"{shown((alone.interval - mixed.interval).printed, '1/s')} less: a ratio of {{documented}}, the words "
            "allow {expected}.",
        )
        for alone, mixed in zip(capacities(rows, "read"), capacities(rows, "mixed"), strict=True)
    ]


def _reduced_a_little(rows: Rows) -> list[Finding]:
    claim, reads = rows["capacity.reduced_a_little"], rows["mixed.read_share"]
    findings = []
    for alone, mixed in zip(capacities(rows, "read"), capacities(rows, "mixed"), strict=True):
        lost = Interval.exactly(1.0) - mixed.interval * reads.interval / alone.interval
        nodes = alone.layout["nodes"]
        sentence = f"5 % writes cost {in_words(nodes)} a share {{documented}} of the reads; a little is {{expected}}."
        used, name = (claim, alone, mixed, reads), f"claim.reduced_a_little.n{nodes}"
        findings.append(compare(name, "writes reduce the reads a little", used, claim.interval, lost, sentence))
    return findings


def _writes_same(rows: Rows) -> list[Finding]:
    claim, share = rows["capacity.writes_same"], rows["mixed.write_share"]
    first, *_, last = capacities(rows, "mixed")
    least, most = (row.interval * share.interval for row in (first, last))
    sentence = (
        f"The writes that can be handled are said to stay the same; 5 % of the capacities are {shown(least, '1/s')} "
        f"on a single server and {shown(most, '1/s')} on {in_words(last.layout['nodes'])}: a ratio of {{documented}}, "
        "not {expected}."
    )
    law = "the writes that can be handled stay the same"
    return [compare("claim.writes_same", law, (claim, share, first, last), claim.interval, most / least, sentence)]


def _same_read_time(rows: Rows) -> list[Finding]:
    claim = rows["throttled.same"]
    return [
        compare(
            f"claim.same.{cluster.id.removeprefix('throttled.').removesuffix('.mean')}",
            "reads take the same time on a single server and a cluster",
            (claim, single, cluster),
            claim.interval * single.interval,
            cluster.interval,
            f"At {cluster.layout['requests']} requests in 60 s {in_words(nodes)} take {{documented}} for a read; the "
            "same as a single server is {expected}.",
            "s",
        )
        for nodes in ("3", "4")
        for single, cluster in zip(throttled(rows, "1"), throttled(rows, nodes), strict=True)
    ]


def _users_at_once(rows: Rows) -> list[Finding]:
    claim, duration = rows["throttled.users_at_once"], rows["throttled.duration"]
    runs = [row for nodes in ("1", "3", "4") for row in throttled(rows, nodes)]
    flights = {row.id: requests_in_flight(row, duration.interval) for row in runs}
    most = max(runs, key=lambda row: flights[row.id].value)
    least = min(flight.value for flight in flights.values())
    sentence = (
        f"{claim.written} users are said to make requests at the same time; by rate times mean time between "
        f"{least:.2g} and {{documented}} requests are under way: the load is throttled."
    )
    law = f"{claim.written} users make requests at the same time"
    return [compare("claim.users_at_once", law, (claim, most, duration), claim.interval, flights[most.id], sentence)]


def _one_read_time(rows: Rows) -> list[Finding]:
    """Hold the tests against each other: a read at light load takes one time, whichever table has it."""
    law, findings = "a read takes the same time in every test at light load", []
    for nodes in of_each(throttled(rows, "1") + throttled(rows, "3") + throttled(rows, "4"), "nodes"):
        alone, fastest = rows[f"alone.n{nodes}.read"], throttled(rows, nodes)[-1]
        sentence = (
            f"On {in_words(nodes)} a read takes {{expected}} by objective 7 and {{documented}} by objective 3, at "
            f"{fastest.layout['requests']} requests in 60 s; where their clients stood is not said."
        )
        used, name = (alone, fastest), f"objectives.read_time.n{nodes}"
        findings.append(compare(name, law, used, alone.interval, fastest.interval, sentence, "s"))
    east, alone = rows["region.us-east.r100.mean"], rows["alone.n4.read"]
    sentence = "From US-East a read takes {documented} by objective 6, and {expected} by objective 7 on 4 nodes."
    used = (alone, east)
    return [
        *findings,
        compare("objectives.read_time.us-east", law, used, alone.interval, east.interval, sentence, "s"),
    ]


def _read_time_by_nodes(rows: Rows) -> list[Finding]:
    claim = rows["all.read_time_by_nodes"]
    return [
        compare(
            f"claim.read_time.{name}.n{nodes}",
            "read times do not change significantly with the number of nodes",
            (claim, single, cluster),
            claim.interval * single.interval,
            cluster.interval,
            f"{words}, reads on {in_words(nodes)} take {{documented}}; no significant change from a single server is "
            "{expected}.",
            "s",
        )
        for name, (words, table, read) in _READS.items()
        for nodes in ("3", "4")
        for single, cluster in [(rows[f"{table}.n1.{read}"], rows[f"{table}.n{nodes}.{read}"])]
    ]


def _write_time_by_nodes(rows: Rows) -> list[Finding]:
    claim = rows["all.write_time_by_nodes"]
    findings = []
    for table, words in (("alone", "alone"), ("mixed", "in the mix")):
        for write, noun in _WRITES.items():
            for few, many in pairwise(("1", "3", "4")):
                less, more = rows[f"{table}.n{few}.{write}"], rows[f"{table}.n{many}.{write}"]
                findings.append(
                    compare(
                        f"claim.write_time.{table}.{write}.n{many}",
                        "write times grow with the number of nodes",
                        (claim, less, more),
                        claim.interval * less.interval,
                        more.interval,
                        f"{noun} {words} take {less.written} on {in_words(few)} and {{documented}} on {many}, where "
                        "growth makes it {expected}.",
                        "s",
                    )
                )
    return findings


def _three_nodes(rows: Rows) -> list[Finding]:
    claim, largest = rows["mixed.nodes"], rows["mixed.n4.create"]
    sentence = "The text of objective 7 speaks of {expected} nodes, its tables go up to {documented}."
    tested = Interval.exactly(float(largest.layout["nodes"]))
    law = "the mix was measured on three nodes"
    return [compare("claim.three_nodes", law, (claim, largest), claim.interval, tested, sentence)]


def _single_limit(rows: Rows) -> list[Finding]:
    low, high, single = (rows[f"capacity.n1.{name}"] for name in ("limit_from", "limit_to", "read"))
    sentence = "Objective 5 has {documented} for a single server; objective 4 has its limit at {expected}."
    limit = Interval(low.value, low.value, high.value)
    law = "one experiment has one result"
    return [compare("duplicate.single", law, (low, high, single), limit, single.interval.printed, sentence, "1/s")]


def _untested(rows: Rows) -> list[Finding]:
    claim, largest = rows["all.load_balance"], rows["capacity.n4.read"]
    each = largest.interval / float(largest.layout["nodes"])
    sentence = "Traffic is said to be spread evenly, which is {expected} a node at most; no figure is given by node."
    law = "the load balancer spreads the traffic evenly"
    return [compare("claim.balance", law, (claim, largest), each, None, sentence, "1/s")]


_CLAIMS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _linear,
    _writes_free,
    _reduced_a_little,
    _writes_same,
    _same_read_time,
    _users_at_once,
    _one_read_time,
    _read_time_by_nodes,
    _write_time_by_nodes,
    _three_nodes,
    _single_limit,
    _untested,
)


def register(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return every claim checked, contradicted or not; `rows` must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for claim in _CLAIMS for finding in claim(known))
