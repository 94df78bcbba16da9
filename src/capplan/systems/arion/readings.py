"""Readings that the arion document leaves open, tried: whether clients wait, and how much the server does at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.audit.laws import Candidate, one_constant
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.models.solver.erlang import erlang_c
from capplan.systems.arion.laws import Rows, in_flight


def _closed(rows: Rows) -> list[Finding]:
    """Ask whether each client sends its next call when the last is answered: then R = N / X."""
    peak, below = rows["peak.rps"], rows["servers10.server_rps"]
    law, findings = "clients send as soon as they are answered", []
    for name, rate in (("clients300", peak), ("clients1000.r30000", below)):
        time = rows[f"{name}.mean"]
        clients = Interval.exactly(float(time.layout["clients"]))
        sentence = (
            f"If each of {time.layout['clients']} clients sent as soon as it was answered, a call at {rate.written} "
            "would take {expected}; the document has {documented}: clients keep to a rate."
        )
        expected = clients / rate.interval
        findings.append(compare(f"closed.{name}", law, (rate, time), expected, time.interval, sentence, "s"))
    return [*findings, _closed_past_the_peak(rows)]


def _closed_past_the_peak(rows: Rows) -> Finding:
    clients, peak, words = rows["clients1000.clients"], rows["clients1000.peak"], rows["clients1000.past"]
    sentence = (
        "Past the peak clients are always waiting, whatever rate they were set to: with one call each, 1000 would take "
        f"{{expected}}; the document says {words.text}, without a figure."
    )
    law, used = "a client has one call under way", (clients, peak, words)
    return compare("closed.past_peak", law, used, clients.interval / peak.interval, None, sentence, "s")


def _knee(rows: Rows) -> list[Finding]:
    """Ask whether 30 clients that do wait reach the peak, by the times that other tests have below and at it."""
    clients, peak = rows["peak.clients"], rows["peak.rps"]
    below, at_peak = rows["clients1000.r30000.mean"], rows["clients300.mean"]
    span = Interval((below.value + at_peak.value) / 2, below.interval.low, at_peak.interval.high)
    sentence = (
        f"{clients.written} clients that send as soon as they are answered reach {peak.written} if a call takes "
        "{documented}; other tests have {expected}, below the peak and at it."
    )
    law = "few clients wait for each answer"
    used, time = (clients, peak, below, at_peak), clients.interval / peak.interval
    return [compare("closed.clients30", law, used, span, time, sentence, "s")]


def _throttled(rows: Rows) -> list[Finding]:
    """Ask whether clients that keep to a rate have enough calls under way at the peak to reach it."""
    clients, peak, time = rows["peak.clients"], rows["peak.rps"], rows["clients300.mean"]
    below, light = rows["servers10.server_rps"], rows["clients1000.r30000.mean"]
    waiting = in_flight(below.interval, light.interval)
    sentence = (
        f"If clients keep to a rate, {light.written} at {below.written} keeps {waiting.value:.0f} calls under way, "
        f"{time.written} at {peak.written} {{documented}}; to reach the peak takes {{expected}}."
    )
    law, used = "clients keep to a rate", (clients, peak, time, below, light)
    found = in_flight(peak.interval, time.interval)
    return [compare("throttled.in_flight", law, used, at_least(clients.interval), found, sentence)]


def at_once(rows: Rows) -> Candidate:
    """Return how many calls the server works on at once at its peak, if calls at 30,000/s do not queue: c = X S."""
    peak, time = rows["peak.rps"], rows["clients1000.r30000.mean"]
    label = f"{time.written}, taken as the time of service, at {peak.written}"
    return Candidate(label, in_flight(peak.interval, time.interval), (peak, time))


def _at_once(rows: Rows) -> list[Finding]:
    """Ask whether the server works on one number of calls at once, and whether that is one for each virtual core."""
    work, clients, cores = at_once(rows), rows["peak.clients"], rows["all.vcpu"]
    knee = Candidate("the clients past which throughput stops growing", clients.interval, (clients,))
    law = "the server works on one number of calls at once"
    what = "Calls that the server works on at once"
    each = (
        "One call for each virtual core would be {expected} at once; the peak and the time below it make {documented}."
    )
    used = (*work.rows, cores)
    return [
        one_constant("at_once", law, [work, knee], what, "1"),
        compare("at_once.cores", "each virtual core works on a call", used, cores.interval, work.value, each),
    ]


def rate_at_s(time_s: float, servers: int, service_s: float) -> float:
    """Return the arrival rate at which an M/M/c station answers in `time_s` on average, per second (Erlang's C)."""
    load = np.linspace(0.0, servers, 20_001)[1:-1]
    mean = service_s * (1 + erlang_c(servers, load) / (servers - load))
    return float(np.interp(time_s, mean, load)) / service_s


def _station(rows: Rows) -> list[Finding]:
    """Ask whether a station of that many servers takes 1.0 ms near the peak."""
    work, time, peak = at_once(rows), rows["clients300.mean"], rows["peak.rps"]
    service = rows["clients1000.r30000.mean"]
    servers = round(work.value.value)
    rates = [rate_at_s(each, servers, service.value) for each in (time.value, time.low, time.high)]
    sentence = (
        f"{servers} servers of {service.written} take {time.written} at {{expected}} of random calls; the peak stands "
        "at {documented}."
    )
    law, used = "calls queue for that many servers", (service, time, peak)
    return [compare("station", law, used, Interval(*rates), peak.interval, sentence, "1/s")]


def _misprint(rows: Rows) -> list[Finding]:
    """Ask whether 150 requests a second are those of 300 clients, not of 30."""
    each, limit, peak = rows["clients30.client_rps"], rows["clients300.limit"], rows["peak.rps"]
    sentence = (
        f"If {each.written} were sent by each of {limit.written} clients, not of 30, they would make {{expected}}; the "
        "peak stands at {documented}."
    )
    law = "150 requests are those of 300 clients"
    total = each.interval * limit.value
    return [compare("misprint.clients30", law, (each, limit, peak), total, peak.interval, sentence, "1/s")]


def _records(rows: Rows) -> list[Finding]:
    """Compare a record of a watch with a unary read, and say what 6M would mean."""
    direct, master, records, size = (rows[f"watch.{name}"] for name in ("direct", "master", "records", "size"))
    peak = rows["peak.rps"]
    call = Interval.exactly(1.0) / peak.interval
    each = master.interval / records.value
    cheap = (
        f"A record of a watch takes {direct.value / records.value * 1e6:.0f} us without the master and "
        f"{each.value * 1e6:.0f} us through it, {{documented}}; at its peak the whole master spends {{expected}} on a "
        "unary read."
    )
    share = size.interval.value / records.value
    bytes_words = f"If 6M are bytes, a record has {share:.0f} of them; the document has no unit."
    return [
        compare("watch.record", "streams cost less", (master, records, peak), at_most(call), each, cheap, "s"),
        compare("watch.bytes", "6M are bytes", (size, records), size.interval / records.value, None, bytes_words, "B"),
    ]


_READINGS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _closed,
    _knee,
    _throttled,
    _at_once,
    _station,
    _misprint,
    _records,
)


def readings(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Try the readings on `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for reading in _READINGS for finding in reading(known))
