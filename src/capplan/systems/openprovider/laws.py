"""Operational laws, held against the documented figures of openprovider.

They hold for every system that is observed for long enough, whatever its distributions (Denning and Buzen, "The
operational analysis of queueing network models", ACM Computing Surveys 10(3), 1978). Rates are peaks where the
document says so, which makes Little's law an upper bound on the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, compare, shown
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, select
from capplan.systems.openprovider.tables import DocumentedMix, Experiment, experiments, mix

CLASS_NAMES = {"auth": "authorization", "acct": "accounting"}


@dataclass(frozen=True)
class WorkerGap:
    """Busy workers of one front node: what Little's law gives, what is documented, and what would close the gap.

    Attributes
    ----------
    expected, documented : Interval
        Busy workers by Little's law from the peak rate and the mean times, and as printed.
    ratio : Interval
        Documented over expected.
    extra_hold_s : Interval
        Seconds that a request would have to hold its worker beyond its processing time.
    extra_workers : Interval
        Workers that would have to be busy with something else.
    """

    scenario: str
    rows: tuple[str, ...]
    expected: Interval
    documented: Interval
    ratio: Interval
    extra_hold_s: Interval
    extra_workers: Interval


def counted_once(rows: Iterable[Evidence]) -> tuple[Experiment, ...]:
    """Return the experiments that have a rate and mean times, without their duplicates."""
    needed = {"incoming_rate", "latency.auth", "latency.acct"}
    whole = (one for one in experiments(rows) if needed <= one.figures.keys())
    return tuple(one for one in whole if one.figures["incoming_rate"].use != "excluded")


def _in_words(experiment: Experiment) -> str:
    return f"{experiment.scenario} with proxying" if experiment.proxy else experiment.scenario


def _key(experiment: Experiment) -> str:
    return next(iter(experiment.figures.values())).id.rpartition(".")[0]


def worker_gaps(rows: Iterable[Evidence]) -> tuple[WorkerGap, ...]:
    """Compare the documented busy workers of each experiment with Little's law, N = X R."""
    rows = tuple(rows)
    classes = mix(rows)
    return tuple(_gap(one, classes) for one in counted_once(rows) if classes.rows and "busy_workers" in one.figures)


def _gap(one: Experiment, classes: DocumentedMix) -> WorkerGap:
    rate, mean, busy = one.rate_per_front_node, classes.mean(one), one["busy_workers"]
    used = one.used("incoming_rate", "latency.auth", "latency.acct", "busy_workers") + classes.rows
    ids = tuple(row.id for row in used)
    return WorkerGap(one.scenario, ids, rate * mean, busy, busy / (rate * mean), busy / rate - mean, busy - rate * mean)


def _little(rows: tuple[Evidence, ...]) -> list[Finding]:
    known = {row.id: row for row in rows}
    return [
        compare(
            f"little.{gap.scenario.lower()}",
            "Little's law, per front node",
            (known[name] for name in gap.rows),
            gap.expected,
            gap.documented,
            f"{gap.scenario}: the peak rate times the mean processing time gives {{expected}} busy workers per front "
            "node, the document has {documented}: a difference of "
            f"{shown(gap.extra_hold_s, 's')} of holding a worker per request.",
        )
        for gap in worker_gaps(rows)
    ]


def _forced_flow(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Outgoing rate = incoming rate times the visits of a request: itself, a forwarded copy, a look-up."""
    classes = mix(rows)
    findings = []
    for one in experiments(rows):
        if not classes.rows or not {"incoming_rate", "outgoing_rate"} <= one.figures.keys():
            continue
        visits = 1 + classes.shares["acct"] * one.proxy + classes.shares["auth"] * one.ldap
        findings.append(
            compare(
                f"forced_flow.{_key(one)}",
                "forced flow, outgoing = incoming x visits",
                one.used("incoming_rate", "outgoing_rate") + classes.rows,
                one["incoming_rate"] * visits,
                one["outgoing_rate"],
                f"{_in_words(one)}: each request makes {visits:g} outgoing, so {{expected}} in all; the document has "
                "{documented}.",
                "1/s",
            )
        )
    return findings


def _utilisation(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Utilisation law, U = X S / m: the worker pools, with the mean times as service times, must not be full."""
    classes, pools = mix(rows), select(rows, quantity="front_workers")
    return [
        compare(
            f"utilisation.{_key(one)}",
            "utilisation law, worker pool of a front node",
            one.used("incoming_rate", "latency.auth", "latency.acct") + pools,
            Interval(1.0, 0.0, 1.0),
            one.rate_per_front_node * classes.mean(one) / pools[0].interval,
            f"{one.scenario}: processing keeps a share {{documented}} of the {pools[0].written} workers busy, at most "
            "1 is possible.",
        )
        for one in counted_once(rows)
        if pools and classes.rows
    ]


def _monotone(rows: tuple[Evidence, ...]) -> list[Finding]:
    """More load on one cluster must not make it faster; more data centres must not take less."""
    plain = [one for one in counted_once(rows) if not one.ldap]
    findings = []
    for low, high in pairwise(sorted(plain, key=lambda one: (one.dcs, one["incoming_rate"].value))):
        if low.dcs != high.dcs:
            findings.append(_no_less(low, high, "incoming_rate", "more data centres carry no less"))
            continue
        findings += [_no_less(low, high, f"latency.{name}", "response time grows with load") for name in CLASS_NAMES]
    with_ldap = [one for one in counted_once(rows) if one.ldap]
    for more in with_ldap:
        for less in (one for one in plain if one.dcs == more.dcs):
            findings += [
                _no_less(less, more, f"latency.{name}", "added work does not save time") for name in CLASS_NAMES
            ]
    return findings


def _no_less(before: Experiment, after: Experiment, figure: str, law: str) -> Finding:
    what = "the incoming rate" if figure == "incoming_rate" else f"the mean {CLASS_NAMES[figure[-4:]]} time"
    return compare(
        f"monotone.{_key(after)}.{figure.removeprefix('latency.')}",
        law,
        before.used(figure) + after.used(figure),
        at_least(before[figure]),
        after[figure],
        f"From {before.scenario} to {after.scenario} {what} should be {{expected}}, the document has {{documented}}.",
        before.figures[figure].unit,
    )


def _duplicates(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Compare each table with proxying with the one without: one experiment has one result."""
    every = experiments(rows)
    first = {one.scenario: one for one in reversed(every)}
    pairs = ((first[one.scenario], one) for one in every if one is not first[one.scenario])
    return [_repeats(one, again) for one, again in pairs]


def _repeats(first: Experiment, again: Experiment) -> Finding:
    names = ("incoming_rate", "busy_workers", "latency.auth", "latency.acct")
    figures = [name for name in names if name in first.figures and name in again.figures]
    differences = sum(first[figure].value != again[figure].value for figure in figures)
    return compare(
        f"duplicate.{_key(again)}",
        "one experiment has one result",
        first.used(*figures) + again.used(*figures),
        Interval.exactly(0.0),
        Interval.exactly(differences),
        f"{_in_words(again)} differs from {first.scenario} in {{documented}} of {len(figures)} figures.",
    )


def _ownership(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Each node holds replication factor / nodes of its data centre's data."""
    names = ("replication_factor", "cass_nodes", "ownership")
    used = tuple(row for name in names for row in select(rows, quantity=name))
    if len(used) != len(names):
        return []
    factor, nodes, share = used
    sentence = "Replicas over nodes give each node a share {expected} of the data, the document has {documented}."
    law = "each node holds replication factor / nodes of the data"
    return [compare("ownership", law, used, factor.interval / nodes.interval, share.interval, sentence)]


_LAWS: tuple[Callable[[tuple[Evidence, ...]], list[Finding]], ...] = (
    _little,
    _forced_flow,
    _utilisation,
    _monotone,
    _duplicates,
    _ownership,
)


def laws(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Hold the laws against `rows`; a law whose rows are missing is left out."""
    rows = tuple(rows)
    return tuple(finding for law in _LAWS for finding in law(rows))
