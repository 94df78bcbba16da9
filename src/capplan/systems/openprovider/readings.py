"""Readings and explanations that the openprovider document leaves open, tried against its figures.

A refuted reading is no contradiction in the document: it tells a modeller what the figures cannot mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.audit.laws import Candidate, one_constant
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, select
from capplan.systems.openprovider.claims import session_time
from capplan.systems.openprovider.laws import CLASS_NAMES, WorkerGap, counted_once, worker_gaps
from capplan.systems.openprovider.tables import DocumentedMix, Experiment, mix

# The definition of the metre, SI; light in fibre is about 1.47 times slower, so this bounds a round trip from below.
SPEED_OF_LIGHT_M_PER_S = 299_792_458.0


def _one_explanation(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Try one constant for the busy workers of all scenarios."""
    explanations: dict[str, tuple[str, Callable[[WorkerGap], Interval], str]] = {
        "factor": ("factor", lambda gap: gap.ratio, "1"),
        "hold": ("extra hold time", lambda gap: gap.extra_hold_s, "s"),
        "workers": ("number of extra workers", lambda gap: gap.extra_workers, "1"),
    }
    gaps, known = worker_gaps(rows), {row.id: row for row in rows}
    findings = []
    for name, (what, measure, unit) in explanations.items() if len(gaps) > 1 else ():
        candidates = [Candidate(gap.scenario, measure(gap), tuple(known[row] for row in gap.rows)) for gap in gaps]
        law = f"one {what} explains the busy workers of every scenario"
        findings.append(one_constant(f"little.one_{name}", law, candidates, f"One {what} for all scenarios", unit))
    return findings


def _propagation(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Ask who waits for the second data centre: a round trip takes at least as long as light does."""
    distance = select(rows, quantity="dc_distance", scenario="all")
    plain = [one for one in counted_once(rows) if not one.ldap]
    pair = [(near, far) for near, far in pairwise(plain) if near.dcs == 1 and far.dcs == 2]
    if not distance or not pair:
        return []
    near, far = pair[0]
    round_trip = Interval.exactly(2 * distance[0].low / SPEED_OF_LIGHT_M_PER_S)
    bounds = {"acct": (at_least, "waits for"), "auth": (at_most, "does not wait for")}
    return [
        compare(
            f"propagation.{name}",
            f"{CLASS_NAMES[name]} {verb} the other data centre",
            near.used(f"latency.{name}") + far.used(f"latency.{name}") + distance,
            bound(round_trip),
            far[f"latency.{name}"] - near[f"latency.{name}"],
            f"If {CLASS_NAMES[name]} {verb} a round trip to the other data centre, its mean time rises by {{expected}} "
            f"from {near.scenario} to {far.scenario}; it rises by {{documented}}.",
            "s",
        )
        for name, (bound, verb) in bounds.items()
    ]


def _pauses(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Ask where a session pauses for a few milliseconds: after its accounting start only, or always."""
    flow, gap = select(rows, quantity="flow_time"), select(rows, quantity="interim_after_start")
    if not flow or not gap:
        return []
    total, used = session_time(rows, flow[0].scenario)
    requests = sum(row.value for row in select(rows, quantity="session_requests"))
    readings = (("once", 1.0, "after the accounting start"), ("always", requests - 1, "before every further request"))
    return [
        compare(
            f"pause.{name}",
            f"a session pauses {where}",
            (*flow, *gap, *used),
            total + gap[0].interval * count,
            flow[0].interval,
            f"With a pause of {gap[0].written} {where} a session takes {{expected}}, the document has {{documented}}.",
            "s",
        )
        for name, count, where in readings
    ]


def _flow_with_ldap(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Ask whether the time of a session is of the test with LDAP."""
    flow = select(rows, quantity="flow_time")
    with_ldap = [one for one in counted_once(rows) if one.ldap]
    if not flow or not with_ldap:
        return []
    total, used = session_time(rows, with_ldap[0].scenario)
    sentence = "If the session's time is of the test with LDAP it is {expected}; the document has {documented}."
    law = "the session's time is of the test with LDAP"
    return [compare("flow_time.ldap", law, (*flow, *used), at_least(total), flow[0].interval, sentence, "s")]


def _share_of_peak(one: Experiment, classes: DocumentedMix) -> float:
    return one["busy_workers"].value / (one["incoming_rate"].value * classes.mean(one).value)


def _busy_in_total(rows: tuple[Evidence, ...]) -> list[Finding]:
    """Ask whether busy workers are counted over all front nodes together."""
    classes = mix(rows)
    return [
        compare(
            f"busy_in_total.{one.scenario.lower()}",
            "busy workers are counted over all front nodes",
            one.used("incoming_rate", "latency.auth", "latency.acct", "busy_workers") + classes.rows,
            one["incoming_rate"] * classes.mean(one),
            one["busy_workers"],
            f"{one.scenario}: by Little's law {{expected}} workers are busy over all front nodes; the document's "
            f"{{documented}} is that number only if the mean rate is {_share_of_peak(one, classes):.2f} of the peak.",
        )
        for one in counted_once(rows)
        if classes.rows and one.front_nodes_total > 1 and "busy_workers" in one.figures
    ]


_READINGS: tuple[Callable[[tuple[Evidence, ...]], list[Finding]], ...] = (
    _one_explanation,
    _busy_in_total,
    _propagation,
    _pauses,
    _flow_with_ldap,
)


def readings(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Try the readings on `rows`; one whose rows are missing is left out."""
    rows = tuple(rows)
    return tuple(finding for reading in _READINGS for finding in reading(rows))
