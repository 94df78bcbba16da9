"""Operational laws, held against the documented figures of arion."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id

Rows = dict[str, Evidence]


def in_flight(rate: Interval, time: Interval) -> Interval:
    """Return the mean number of requests under way, by Little's law."""
    return rate * time


def _responses(rows: Rows) -> list[Finding]:
    """Hold the responses against the requests: as many come as went."""
    pairs = {
        "unary": ("unary.requests", "unary.responses", "The unary test"),
        "streaming": ("streaming.calls", "streaming.responses", "The streaming test"),
        "streaming_messages": ("streaming.per_call", "streaming.per_answer", "Each call of the streaming test"),
        "write": ("write.requests", "write.responses", "The write test"),
    }
    findings = []
    for name, (requests, responses, words) in pairs.items():
        sent, came = rows[requests], rows[responses]
        sentence = f"{words} sends {{expected}} requests and gets {{documented}} responses."
        law = "flow balance, a response for each request"
        findings.append(compare(f"balance.{name}", law, (sent, came), sent.interval, came.interval, sentence))
    return findings


def _forced_flow(rows: Rows) -> list[Finding]:
    """Compute the rates of the ten servers from what stands beside them."""
    servers, clients, each, offered, one = (
        rows[f"servers10.{name}"] for name in ("servers", "clients", "client_rps", "offered", "server_rps")
    )
    total = clients.interval * each.interval
    words = f"{clients.written} clients of {each.written} offer {{expected}}, the document has {{documented}}."
    share = f"{servers.written} servers take {{expected}} each of {offered.written}, the document has {{documented}}."
    law = "rates add up over clients and servers"
    return [
        compare("rates.clients", law, (clients, each, offered), total, offered.interval, words, "1/s"),
        compare(
            "rates.servers", law, (offered, servers, one), offered.interval / servers.value, one.interval, share, "1/s"
        ),
    ]


def _little(rows: Rows) -> list[Finding]:
    """Apply Little's law, N = X R: no more unary requests are under way than there are clients."""
    peak, rate = rows["peak.rps"], rows["servers10.server_rps"]
    times = {"clients300": peak, "clients1000.r30000": rate}
    findings = []
    for name, offered in times.items():
        time = rows[f"{name}.mean"]
        clients = Interval.exactly(float(time.layout["clients"]))
        sentence = (
            f"{time.layout['clients']} clients at {offered.written} and {time.written} keep {{documented}} requests "
            "under way, {expected} are possible."
        )
        found = in_flight(offered.interval, time.interval)
        law = "Little's law, requests under way"
        findings.append(compare(f"little.{name}", law, (offered, time), at_most(clients), found, sentence))
    return findings


def _rises_with_load(rows: Rows) -> list[Finding]:
    """Compare times of two tests: below the peak with more clients, at the peak with fewer."""
    below, at_peak = rows["clients1000.r30000.mean"], rows["clients300.mean"]
    sentence = (
        f"At the highest rate a call should take {{expected}}, as at {rows['servers10.server_rps'].written}; 300 "
        "clients take {documented}."
    )
    law = "response time grows with load"
    return [compare("monotone.time", law, (below, at_peak), at_least(below.interval), at_peak.interval, sentence, "s")]


def _peak(rows: Rows) -> list[Finding]:
    """Hold the peak of one test against that of the other, and against the steps between which it was looked for."""
    peak, again, first, last = (rows[name] for name in ("peak.rps", "clients1000.peak", "steps.from", "steps.to"))
    tested = Interval((first.value + last.value) / 2, first.value, last.value)
    between = "The peak is looked for between {expected} and found at {documented}."
    same = "With 1000 clients the throughput peaks at {documented}, in the test by rate at {expected}."
    return [
        compare(
            "peak.within", "a peak lies within its test", (first, last, peak), tested, peak.interval, between, "1/s"
        ),
        compare("peak.same", "one server has one peak", (peak, again), peak.interval, again.interval, same, "1/s"),
    ]


def _added_work(rows: Rows) -> list[Finding]:
    direct, master = rows["watch.direct"], rows["watch.master"]
    sentence = "A watch through the master should take {expected}, as without it; it takes {documented}."
    used, bound = (direct, master), at_least(direct.interval)
    return [compare("added_work.watch", "added work does not save time", used, bound, master.interval, sentence, "s")]


_LAWS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _responses,
    _forced_flow,
    _little,
    _rises_with_load,
    _peak,
    _added_work,
)


def laws(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Hold the laws against `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for law in _LAWS for finding in law(known))
