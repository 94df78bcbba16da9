"""The register of arion: what its document says about its own figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from capplan.calibration.audit.finding import Finding, at_most, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.systems.arion.laws import Rows


def _instances(rows: Rows) -> list[Finding]:
    claim = rows["all.instances"]
    parts = tuple(rows[f"all.{name}"] for name in ("servers", "hazelcast_nodes", "test_machines"))
    total = parts[0].interval + parts[1].interval + parts[2].interval
    sentence = (
        "A master, Hazelcast and a load generator are {expected} instances and the document has {documented}, if its "
        "1, 2 and 3 number the list, as they do in its workflows; as counts they would be six."
    )
    law = "each part has an instance"
    return [compare("claim.instances", law, (claim, *parts), total, claim.interval, sentence)]


def _insert(rows: Rows) -> list[Finding]:
    records, requests, responses = rows["write.records"], rows["write.requests"], rows["write.responses"]
    sentence = (
        "The overview has {expected} rules inserted, the setup {documented} requests: they agree only if each rule was "
        "written ten times."
    )
    law = "the write test inserted one number of rules"
    used = (records, requests, responses)
    return [compare("claim.insert", law, used, records.interval, requests.interval, sentence)]


def _thirty_clients(rows: Rows) -> list[Finding]:
    clients, each, peak = rows["clients30.clients"], rows["clients30.client_rps"], rows["peak.rps"]
    total = clients.interval * each.interval
    sentence = (
        f"30 clients are said to reach the highest rate, offered at {{expected}}, and to send {each.written} each, "
        "which is {documented} together."
    )
    law = "30 clients reach the highest rate"
    return [compare("claim.clients30", law, (clients, each, peak), peak.interval, total, sentence, "1/s")]


def _most_clients(rows: Rows) -> list[Finding]:
    claim, limit, time = rows["clients300.limit"], rows["clients300.mean"], rows["clients1000.r30000.mean"]
    clients = Interval.exactly(float(time.layout["clients"]))
    sentence = (
        f"Below {limit.written} there may be {{expected}} clients, by one test; by another {{documented}} have "
        f"{time.written} at {rows['servers10.server_rps'].written}: it is a limit at the highest rate."
    )
    law = "more than 300 clients take more than 1.0 ms"
    return [compare("claim.clients300", law, (claim, limit, time), at_most(claim.interval), clients, sentence)]


def _client_limit(rows: Rows) -> list[Finding]:
    claim, clients, peak = rows["servers10.client_limit"], rows["clients1000.clients"], rows["clients1000.peak"]
    sentence = "A client may ask for {documented} by the document; 1000 of them share the peak at {expected} each."
    law, most = "clients stay below the peak", at_most(peak.interval / clients.value)
    used = (claim, clients, peak)
    return [compare("claim.client_limit", law, used, most, claim.interval, sentence, "1/s")]


def _ten_servers(rows: Rows) -> list[Finding]:
    claim, servers, peak = (rows[name] for name in ("servers10.capacity", "servers10.servers", "peak.rps"))
    sentence = (
        f"Ten servers are said to carry more than {claim.written}; ten times the peak of one is {{expected}}, but only "
        f"one was measured, and Hazelcast would have to serve {claim.written}."
    )
    law = "ten servers carry what ten times one does"
    used = (claim, servers, peak)
    return [compare("claim.servers10", law, used, peak.interval * servers.value, None, sentence, "1/s")]


def _pictures_only(rows: Rows) -> list[Finding]:
    """List what is said of tables and charts that exist as pictures only."""
    said = {
        "vpc.rate_ratio": "The number of VPCs and subnets is said to leave the throughput at {expected} of itself",
        "vpc.time_ratio": "The number of VPCs and subnets is said to leave the latency at {expected} of itself",
        "peak.droop": "Past the peak a slight drop to {expected} of it is spoken of, put down to queued requests",
        "peak.time_growth": "From step to step the latency is said to grow, to {expected} of what it was",
        "clients.growth": "With more than 30 clients the throughput is said to be {expected} of that with 30",
        "streaming.gain": "Streaming is said to be much better, which is read as {expected} of unary reads",
    }
    law = "what the pictures show"
    return [
        compare(f"picture.{name}", law, (row,), row.interval, None, f"{words}; its figures exist as a picture only.")
        for name, words in said.items()
        for row in [rows[name]]
    ]


_CLAIMS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _instances,
    _insert,
    _thirty_clients,
    _most_clients,
    _client_limit,
    _ten_servers,
    _pictures_only,
)


def register(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return every claim checked, contradicted or not; `rows` must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for claim in _CLAIMS for finding in claim(known))
