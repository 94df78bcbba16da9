"""Readings and explanations that the fedora4 document leaves open, tried against its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from capplan.calibration.audit.finding import Finding, compare, shown
from capplan.calibration.audit.laws import Candidate, of_row, one_constant
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.systems.fedora4.laws import REGION_NAMES, Rows, capacities, in_words, regional, throttled

CORES_OF_A_NODE = 2.0
"""A guess, tried here: the document gives no instance type."""


def _outside_client(rows: Rows) -> list[Finding]:
    """Ask whether a client outside the data centre makes reads of objective 3 slower by one constant."""
    excess = []
    for nodes in ("1", "3", "4"):
        alone, longest = rows[f"alone.n{nodes}.read"], throttled(rows, nodes)[-1]
        excess.append(Candidate(in_words(nodes), longest.interval - alone.interval, (alone, longest)))
    law = "clients of objective 3 are one round trip away"
    what = "One round trip to a client off site, over objective 7's reads at the most requests"
    return [one_constant("client.round_trip", law, excess, what, "s")]


def _cost_of_a_run(rows: Rows) -> list[Finding]:
    """Ask whether each run of objective 3 has one fixed cost, such as the first request of each of its users.

    The first and the last run give the cost and the time without it; they predict the two between.
    """
    findings = []
    for nodes in ("1", "3", "4"):
        first, *between, last = throttled(rows, nodes)
        cost = shown(_cost_of_a_user(rows, nodes).value.printed, "s")
        for row in between:
            weight = (_rarity(row) - _rarity(last)) / (_rarity(first) - _rarity(last))
            findings.append(
                compare(
                    f"run_cost.n{nodes}.r{row.layout['requests']}",
                    "each run has one fixed cost",
                    (first, row, last),
                    first.interval * weight + last.interval * (1 - weight),
                    row.interval,
                    f"If each user's first request took {cost} longer, a read on {in_words(nodes)} would take "
                    f"{{expected}} at {row.layout['requests']} requests; the document has {{documented}}.",
                    "s",
                )
            )
    costs = [_cost_of_a_user(rows, nodes) for nodes in ("3", "4")]
    law, what = "runs on both clusters have one fixed cost", "One extra time of each user's first request"
    return [*findings, one_constant("run_cost.clusters", law, costs, what, "s")]


def _cost_of_a_user(rows: Rows, nodes: str) -> Candidate:
    """Return what a run costs for each of its users, in seconds, by the means of the first and the last run."""
    first, *_, last = throttled(rows, nodes)
    users = rows["throttled.users"]
    cost = (first.interval - last.interval) / (_rarity(first) - _rarity(last)) / users.interval
    return Candidate(in_words(nodes), cost, (first, last, users))


def _rarity(row: Evidence) -> float:
    """Return the weight of a run's fixed cost in its mean."""
    return 1 / float(row.layout["requests"])


def _flat_regions(rows: Rows) -> list[Finding]:
    """Ask whether one round trip explains a region at every rate."""
    law = "one time serves each region at every rate"
    return [
        one_constant(
            f"region.flat.{region}",
            law,
            [of_row(row, f"{row.layout['tps']}/s") for row in regional(rows, region)],
            f"One time for {name} at every rate",
            "s",
        )
        for region, name in REGION_NAMES.items()
    ]


def _straight_line(rows: Rows) -> list[Finding]:
    """Ask what goes in a straight line over clusters of 2, 3 and 4 nodes: the capacity, or a request's node time."""
    findings = []
    for kind in ("read", "mixed"):
        _, two, three, four = used = capacities(rows, kind)
        node_time = {row.id: Interval.exactly(float(row.layout["nodes"])) / row.interval for row in used}
        for name, noun, of, unit in (
            ("capacity", "Capacities", {row.id: row.interval for row in used}, "1/s"),
            ("node_time", "Node times of a request", node_time, "s"),
        ):
            findings.append(
                compare(
                    f"straight_line.{name}.{kind}",
                    "clusters lie on a straight line over their number of nodes",
                    (two, three, four),
                    (of[two.id] + of[four.id]) * 0.5,
                    of[three.id],
                    f"{noun} ({'reads' if kind == 'read' else '5 % writes'}) on a straight line over 2, 3 and 4 nodes "
                    "give 3 nodes {expected}, the document {documented}.",
                    unit,
                )
            )
    return findings


def _cost_of_writes(rows: Rows) -> list[Finding]:
    """Ask what 5 % writes cost: the same node time a request whatever the size, or more for every replica."""
    plain, replicated = [], []
    for alone, mixed in zip(capacities(rows, "read"), capacities(rows, "mixed"), strict=True):
        nodes = float(alone.layout["nodes"])
        extra = Interval.exactly(nodes) / mixed.interval - Interval.exactly(nodes) / alone.interval
        label = in_words(alone.layout["nodes"])
        plain.append(Candidate(label, extra, (alone, mixed)))
        replicated.append(Candidate(label, extra / nodes, (alone, mixed)))
    return [
        one_constant(
            "write_cost.same", "writes cost the same node time at any size", plain, "One node time for 5 % writes", "s"
        ),
        one_constant(
            "write_cost.replicas",
            "writes cost every replica the same node time",
            replicated,
            "One node time for 5 % writes at every replica",
            "s",
        ),
    ]


def _cores(rows: Rows) -> list[Finding]:
    """Ask whether a read is all processor time on a node of two cores."""
    single, alone = rows["capacity.n1.read"], rows["alone.n1.read"]
    sentence = (
        f"If a read is nothing but processor time, {single.written} of {alone.written} keep {{documented}} cores of a "
        "single server busy; {expected} is a guess at how many it has."
    )
    law = "a single server is two cores that reads keep busy"
    busy = single.interval * alone.interval
    return [compare("cores.single", law, (single, alone), Interval.exactly(CORES_OF_A_NODE), busy, sentence)]


_READINGS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _outside_client,
    _cost_of_a_run,
    _flat_regions,
    _straight_line,
    _cost_of_writes,
    _cores,
)


def readings(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Try the readings on `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for reading in _READINGS for finding in reading(known))
