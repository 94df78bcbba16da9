"""The register of openprovider: what its document says about its own figures, held against those figures.

Every entry is computed from rows of evidence. Arithmetic that the document does on printed figures is checked on
the printed figures; everything else with the intervals that rounding allows. Claims that no figure speaks to stand as
`untested`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, compare, shown
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id, select
from capplan.systems.openprovider.tables import experiments, mix

Rows = dict[str, Evidence]


def _used(rows: Rows, *names: str) -> tuple[Evidence, ...]:
    return tuple(rows[name] for name in names)


def _proxy_doubles(rows: Rows) -> list[Finding]:
    classes = mix(rows.values())
    claim = rows["all.proxy_outgoing_ratio"]
    sentence = (
        "Forwarding accounting only makes {expected} outgoing requests of each incoming one, the tables with proxying "
        f"and without LDAP have {claim.written}."
    )
    visits = Interval.exactly(1 + classes.shares["acct"])
    law = "accounting proxying doubles the requests"
    return [compare("claim.proxy_doubles", law, (claim, *classes.rows), visits, claim.interval, sentence)]


def _proxy_is_free(rows: Rows) -> list[Finding]:
    used = _used(rows, "all.proxy_incoming_ratio", "ts4.incoming", "ts4.proxy.incoming")
    claim, without, forwarded = used
    ratio = forwarded.interval.printed / without.interval.printed
    sentence = (
        "The incoming rates with and without proxying have the ratio {expected}, the document says {documented}; "
        "tables that repeat each other are no second measurement."
    )
    return [compare("claim.proxy_free", "proxying costs no incoming rate", used, ratio, claim.interval, sentence)]


def _ldap_rate(rows: Rows) -> list[Finding]:
    classes = mix(rows.values())
    used = _used(rows, "ts4-ldap.rate_rise", "ts4-ldap.incoming", "ts4-ldap.ldap_visits_auth")
    claim, incoming, visits = used
    added = incoming.interval * (classes.shares["auth"] * visits.value)
    sentence = "One LDAP look-up per authorization adds {expected} outgoing requests, the document says {documented}."
    law = f"LDAP adds {claim.written} outgoing requests"
    return [compare("claim.ldap_rate", law, used + classes.rows, added, claim.interval, sentence, "1/s")]


def _ldap_latency(rows: Rows) -> list[Finding]:
    used = _used(rows, "ts4-ldap.auth_ratio", "ts4.auth_mean", "ts4-ldap.auth_mean", "ts4-ldap.acct_mean")
    claim, without, with_ldap, accounting = used
    sentence = (
        "LDAP makes the mean authorization time {expected} times what it was, the document says almost twice; with "
        f"LDAP authorization takes {shown(with_ldap.interval / accounting.interval)} times as long as accounting."
    )
    law = "LDAP makes authorization almost twice as slow"
    ratio = with_ldap.interval / without.interval
    return [compare("claim.ldap_latency", law, used, ratio, claim.interval, sentence)]


def _ldap_accounting(rows: Rows) -> list[Finding]:
    used = _used(rows, "ts4-ldap.ldap_visits_acct", "ts4.acct_mean", "ts4-ldap.acct_mean")
    _, without, with_ldap = used
    sentence = (
        "Accounting uses the profile kept from the authorization, so its mean time should stay {expected}; with LDAP "
        "the document has {documented}."
    )
    law = "LDAP costs accounting nothing"
    return [compare("claim.ldap_accounting", law, used, without.interval, with_ldap.interval, sentence, "s")]


def _ldap_workers(rows: Rows) -> list[Finding]:
    classes = mix(rows.values())
    tables = {(one.scenario, one.proxy): one for one in experiments(rows.values())}
    before, after = tables["TS4", False], tables["TS4-LDAP", True]
    added = after.rate_per_front_node * (classes.mean(after) - classes.mean(before))
    figures = ("latency.auth", "latency.acct", "busy_workers")
    sentence = (
        "The longer times with LDAP keep {expected} more workers of each policing node busy, the document has "
        "{documented} more."
    )
    law = "LDAP keeps no more workers busy"
    used = before.used(*figures) + after.used("incoming_rate", *figures) + classes.rows
    rise = after["busy_workers"] - before["busy_workers"]
    return [compare("claim.ldap_workers", law, used, added, rise, sentence)]


def _growth(rows: Rows) -> list[Finding]:
    used = _used(rows, "ts3.rate_growth", "ts2.incoming", "ts3.incoming", "ts1.incoming")
    claim, two, three, one = used
    sentence = (
        "TS3 carries {expected} times TS2 by the printed figures (with their rounding "
        f"{shown(three.interval / two.interval)}), the document says {claim.written}; over TS1 it is "
        f"{shown(three.interval.printed / one.interval.printed)}."
    )
    law = f"TS3 carries {claim.written} times the scenario before"
    ratio = three.interval.printed / two.interval.printed
    return [compare("claim.growth", law, used, ratio, claim.interval, sentence)]


def _second_policing_node(rows: Rows) -> list[Finding]:
    used = _used(rows, "ts1.incoming", "ts2.incoming")
    one, two = used
    sentence = (
        "The second policing node of one DC gains {documented}; whether that differs from {expected} cannot be told "
        "within the '~' of both rates."
    )
    law = "TS2 carries slightly more than TS1"
    rise = two.interval - one.interval
    return [compare("claim.second_policing_node", law, used, Interval.exactly(0.0), rise, sentence, "1/s")]


def _latency_rise(rows: Rows) -> list[Finding]:
    """TS3 is said to be a few milliseconds slower, TS4 as fast as TS3."""
    findings = []
    for before, after, words in (("ts2", "ts3", "a few milliseconds slower than"), ("ts3", "ts4", "as fast as")):
        for name in ("auth", "acct"):
            used = _used(rows, f"{after}.latency_rise", f"{before}.{name}_mean", f"{after}.{name}_mean")
            claim, low, high = used
            sentence = (
                f"From {before.upper()} to {after.upper()} the mean {name} time rises by {{expected}}, the document's "
                "words mean {documented}."
            )
            law = f"{after.upper()} is {words} {before.upper()}"
            rise = high.interval - low.interval
            findings.append(
                compare(f"claim.latency_rise.{after}.{name}", law, used, rise, claim.interval, sentence, "s")
            )
    return findings


def _rate_rise(rows: Rows) -> list[Finding]:
    used = _used(rows, "ts4.rate_rise", "ts3.incoming", "ts4.incoming")
    claim, three, four = used
    sentence = "TS4 takes {expected} more than TS3, the document says {documented}."
    law = f"TS4 carries {claim.written} more than TS3"
    rise = four.interval - three.interval
    return [compare("claim.rate_rise", law, used, rise, claim.interval, sentence, "1/s")]


def _half_busy(rows: Rows) -> list[Finding]:
    claim, pool = _used(rows, "all.front_busy", "all.front_workers")
    findings = []
    for busy in select(rows.values(), quantity="busy_workers", use="check"):
        sentence = (
            f"In {busy.scenario} a share {{expected}} of the workers is busy, the document concludes {{documented}} of "
            "the maximum (if it speaks of workers)."
        )
        share = busy.interval / pool.interval
        name, law = f"claim.half_busy.{busy.scenario.lower()}", "policing nodes work at half of their maximum"
        findings.append(compare(name, law, (claim, busy, pool), share, claim.interval, sentence))
    return findings


def _shared_out(rows: Rows) -> list[Finding]:
    """Check that fewer workers are busy for sharing the rate: then they go with the rate per policing node."""
    plain = [one for one in experiments(rows.values()) if not one.proxy and not one.ldap]
    findings = []
    for before, after in pairwise(plain):
        share = after.rate_per_front_node / before.rate_per_front_node
        total = after["busy_workers"].value * after.front_nodes_total
        sentence = (
            f"Sharing the rate out would leave {{expected}} workers busy per policing node in {after.scenario}, the "
            f"document has {{documented}} ({total:g} over all nodes against "
            f"{before['busy_workers'].value * before.front_nodes_total:g} in {before.scenario})."
        )
        used = before.used("incoming_rate", "busy_workers") + after.used("incoming_rate", "busy_workers")
        name, law = f"claim.shared_out.{after.scenario.lower()}", "workers are fewer because the rate is shared out"
        findings.append(compare(name, law, used, before["busy_workers"] * share, after["busy_workers"], sentence))
    return findings


def session_time(rows: Iterable[Evidence], scenario: str) -> tuple[Interval, tuple[Evidence, ...]]:
    """Return the sum of the mean times of a session's requests in `scenario`, in seconds, and the rows behind it."""
    rows = tuple(rows)
    session = select(rows, quantity="session_requests")
    one = next(one for one in experiments(rows) if one.scenario == scenario)
    total = Interval.exactly(0.0)
    for name in ("auth", "acct"):
        count = sum(row.value for row in session if row.request_class == name)
        total = total + one[f"latency.{name}"] * count
    return total, one.used("latency.auth", "latency.acct") + session


def _flow_time(rows: Rows) -> list[Finding]:
    claim = rows["ts4.flow_time"]
    total, used = session_time(rows.values(), claim.scenario)
    requests = sum(row.value for row in select(rows.values(), quantity="session_requests"))
    left_ms = (claim.value - total.value) / requests * 1e3
    sentence = (
        f"The mean times of a session add up to {shown(total, 's')}, the document has {{documented}} for the whole: "
        f"{left_ms:.2g} ms a request beside the processing."
    )
    law = "a session takes at least its processing times"
    return [compare("claim.flow_time", law, (claim, *used), at_least(total), claim.interval, sentence, "s")]


def _objectives(rows: Rows) -> list[Finding]:
    """Compare the outage objectives with the clusters that were built small, the only figures there are."""
    findings = []
    pairs = (("ts3.rate_same", "ts3", "one DC lost"), ("all.outage_two_dcs", "ts2", "two DCs lost"))
    for name, scenario, words in pairs:
        used = _used(rows, name, f"{scenario}.incoming", "ts4.incoming")
        goal, less, full = used
        sentence = (
            f"{scenario.upper()} carries {{documented}} of TS4, the objective with {words} is {{expected}}; its "
            "cluster was built in the remaining DCs, so no replica was missing."
        )
        findings.append(
            compare(f"objective.{scenario}", words, used, goal.interval, less.interval / full.interval, sentence)
        )
    return findings


def _headline(rows: Rows) -> list[Finding]:
    used = _used(rows, "all.max_rate", "ts4-ldap.outgoing", "ts4-ldap.incoming")
    claim, outgoing, incoming = used
    times = shown(claim.interval.printed / incoming.interval.printed)
    sentence = (
        "The headline of {documented} is the outgoing rate with LDAP, {expected}: it counts forwarded and LDAP "
        f"requests and is {times} times what the system takes in."
    )
    law = f"the system processes {claim.written}"
    return [compare("claim.headline", law, used, outgoing.interval, claim.interval, sentence, "1/s")]


def _untested(rows: Rows) -> list[Finding]:
    linear, production = _used(rows, "all.linear_scaling", "all.production_factor")
    layouts = sorted({row.cass_nodes for row in rows.values() if row.duplicate_group and row.cass_nodes})
    tested = ", ".join(map(str, layouts))
    return [
        compare(
            "claim.linear_scaling",
            "capacity grows linearly with the nodes per DC",
            (linear, rows["all.cass_nodes"]),
            linear.interval,
            None,
            f"Capacity is said to grow as the Cassandra nodes to the power {{expected}}; all tests have {tested} a DC.",
        ),
        compare(
            "claim.production",
            "mean times in production are two to three times higher",
            (production,),
            production.interval,
            None,
            "Production is expected to be {expected} times slower for its data; no scenario changes the data volume.",
        ),
    ]


_CLAIMS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _proxy_doubles,
    _proxy_is_free,
    _ldap_rate,
    _ldap_latency,
    _ldap_accounting,
    _ldap_workers,
    _growth,
    _second_policing_node,
    _latency_rise,
    _rate_rise,
    _half_busy,
    _shared_out,
    _flow_time,
    _objectives,
    _headline,
    _untested,
)


def register(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return every claim checked, contradicted or not."""
    known = by_id(rows)
    return tuple(finding for claim in _CLAIMS for finding in claim(known))
