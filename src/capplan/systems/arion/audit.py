"""Checks of the evidence about `arion`: flow and rates, times, what its document claims, and what it leaves open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.evidence.audit.checks import Claim, Figure, Figures, Findings, Law, Reading, farthest_apart, figure, total
from capplan.evidence.interval import Interval
from capplan.models.solver.single_station import erlang_c


@dataclass(frozen=True)
class Load:
    """A mean time that the document gives at a rate."""

    id: str
    rate: Figure
    time: Figure

    @property
    def clients(self) -> Figure:
        """The clients of the test."""
        return self.time.cell("clients")


def at_peak(figures: Figures) -> Load:
    """Return the time at the highest rate."""
    return Load("clients300", figures["peak.rps"], figures["clients300.mean"])


def below_peak(figures: Figures) -> Load:
    """Return the time at a rate below the peak, with more clients."""
    return Load("clients1000.r30000", figures["servers10.server_rps"], figures["clients1000.r30000.mean"])


def calls_at_once(figures: Figures) -> Figure:
    """Return the calls at once at the peak, if those below it do not queue: c = X S."""
    return figures["peak.rps"] * below_peak(figures).time


def between(first: Figure, last: Figure) -> Figure:
    """Return all values from one figure to another; the number is half way."""
    middle = (first.value + last.value) / 2
    return figure(Interval(middle, first.interval.low, last.interval.high), first, last, unit=first.unit)


def checks(figures: Figures) -> Findings:
    """Yield the checks of the document."""
    for subject in (flow, times, claims, pictures, waiting_clients, calls_in_service, streams):
        yield from subject(figures)


# ---- Operational laws


def flow(figures: Figures) -> Findings:
    """Yield the laws of flow balance and of rates that add up."""
    for name, sent, came, words in (
        ("unary", "unary.requests", "unary.responses", "The unary test"),
        ("streaming", "streaming.calls", "streaming.responses", "The streaming test"),
        ("streaming_messages", "streaming.per_call", "streaming.per_answer", "Each call of the streaming test"),
        ("write", "write.requests", "write.responses", "The write test"),
    ):
        yield Law(f"balance.{name}", "flow balance, a response for each request").compare(
            expected := figures[sent],
            documented := figures[came],
            f"{words} sends {expected} requests and gets {documented} responses.",
        )
    clients, client_rate = figures["servers10.clients"], figures["servers10.client_rps"]
    offered, servers = figures["servers10.offered"], figures["servers10.servers"]
    yield Law("rates.clients", "rates add up over clients and servers").compare(
        expected := clients * client_rate,
        offered,
        f"{clients.written} clients at {client_rate.written} each offer {expected}; the document says {offered}.",
    )
    yield Law("rates.servers", "rates add up over clients and servers").compare(
        expected := offered / servers.printed,
        documented := figures["servers10.server_rps"],
        f"Each of {servers.written} servers gets {expected} of {offered.written}; the document says {documented}.",
    )


def times(figures: Figures) -> Findings:
    """Yield the laws about times and about the peak."""
    peak, below = at_peak(figures), below_peak(figures)
    for load in (peak, below):  # no more unary requests are under way than there are clients
        yield Law(f"little.{load.id}", "Little's law, requests in flight").compare(
            expected := load.clients.or_less,
            documented := load.rate * load.time,
            f"{load.clients.written} clients at {load.rate.written} and {load.time.written} have {documented} "
            f"requests in flight; {expected} are possible.",
        )
    # Two tests: below the peak with more clients, at the peak with fewer.
    yield Law("monotone.time", "response time grows with load").compare(
        expected := below.time.or_more,
        peak.time,
        f"At the highest rate a call should take {expected}, as at {below.rate.written}; with 300 clients it takes "
        f"{peak.time}.",
    )
    yield Law("peak.within", "a peak lies within its test").compare(
        expected := between(figures["steps.from"], figures["steps.to"]),
        peak.rate,
        f"The test covers rates of {expected}; its peak is at {peak.rate}.",
    )
    yield Law("peak.same", "one server has one peak").compare(
        peak.rate,
        documented := figures["clients1000.peak"],
        f"With 1000 clients the throughput peaks at {documented}; in the test by rate it peaks at {peak.rate}.",
    )
    yield Law("added_work.watch", "added work does not save time").compare(
        expected := figures["watch.direct"].or_more,
        documented := figures["watch.master"],
        f"A watch through the master should take {expected}, as without the master; it takes {documented}.",
    )


# ---- What the document says about its own figures


def claims(figures: Figures) -> Findings:
    """Yield the claims about parts, clients and servers."""
    peak, below = at_peak(figures), below_peak(figures)
    yield Claim("claim.instances", "each part has an instance").compare(
        expected := total(figures[f"all.{part}"] for part in ("servers", "hazelcast_nodes", "test_machines")),
        documented := figures["all.instances"],
        f"A master, Hazelcast and a load generator are {expected} instances; the document says {documented}. This "
        "holds if its 1, 2 and 3 number the list, as they do in its workflows; read as counts they add up to six.",
    )
    yield Claim("claim.insert", "the write test inserted one number of rules").compare(
        expected := figures["write.records"],
        documented := figures["write.requests"],
        f"The overview says that {expected} rules were inserted; the set-up says {documented} requests. They agree "
        "only if each rule was written ten times.",
        figures["write.responses"],
    )
    client_rate = figures["clients30.client_rps"]
    yield Claim("claim.clients30", "30 clients reach the highest rate").compare(
        peak.rate,
        documented := figures["clients30.clients"] * client_rate,
        f"The document says that 30 clients reach the highest rate, {peak.rate}, and that each sends "
        f"{client_rate.written}; together they send {documented}.",
    )
    yield Claim("claim.clients300", "more than 300 clients take more than 1.0 ms").compare(
        expected := figures["clients300.limit"].or_less,
        below.clients,
        f"By one test {expected} clients stay below {peak.time.written}; by another {below.clients} clients have "
        f"{below.time.written} at {below.rate.written}. The limit holds at the highest rate only.",
        peak.time,
    )
    yield Claim("claim.client_limit", "clients stay below the peak").compare(
        expected := (figures["clients1000.peak"] / figures["clients1000.clients"].printed).or_less,
        documented := figures["servers10.client_limit"],
        f"The document allows each client {documented}; if 1000 clients share the peak, each gets {expected}.",
    )
    capacity = figures["servers10.capacity"]
    yield Claim("claim.servers10", "ten servers sustain ten times what one does").compare(
        expected := peak.rate * figures["servers10.servers"].printed,
        None,
        f"The document says that ten servers sustain more than {capacity.written}. Ten times the peak of one server "
        f"is {expected}, but only one was measured, and Hazelcast would have to serve {capacity.written}.",
        capacity,
    )


def pictures(figures: Figures) -> Findings:
    """Yield the claims about what the pictures show."""
    for name, words in (
        ("vpc.rate_ratio", "says that the number of VPCs and subnets does not change the throughput, a ratio of {}"),
        ("vpc.time_ratio", "says that the number of VPCs and subnets does not change the latency, a ratio of {}"),
        ("peak.droop", "speaks of a slight drop beyond the peak, to {} of it, and attributes it to queued requests"),
        ("peak.time_growth", "says that the latency grows from step to step, by a factor of {}"),
        ("clients.growth", "says that more than 30 clients get {} times the throughput of 30"),
        ("streaming.gain", "says that streaming is much better, which is read as {} times the rate of unary reads"),
    ):
        sentence = f"The document {words.format(figures[name])}. The figures exist only as a picture."
        yield Claim(f"picture.{name}", "what the pictures show").compare(figures[name], None, sentence)


# ---- Readings that the document leaves open: whether clients wait, and how much the server does at once


def waiting_clients(figures: Figures) -> Findings:
    """Yield the readings of whether clients wait for an answer before the next call."""
    peak, below = at_peak(figures), below_peak(figures)
    for load in (peak, below):  # then R = N / X
        yield Reading(f"closed.{load.id}", "clients wait for each answer").compare(
            expected := load.clients / load.rate,
            load.time,
            f"If each of {load.clients.written} clients sent its next call when the last was answered, a call at "
            f"{load.rate.written} would take {expected}. The document says {load.time}, so clients send at a fixed "
            "rate.",
        )
    past = figures["clients1000.past"]
    yield Reading("closed.past_peak", "a client has one call in flight").compare(
        expected := figures["clients1000.clients"] / figures["clients1000.peak"],
        None,
        "Beyond the peak, clients always wait, whatever rate they were set to. With one call per client, a call of "
        f"1000 clients would take {expected}; the document calls the latency {past.written} and gives no figure.",
        past,
    )
    clients = figures["peak.clients"]
    # 30 clients that do wait reach the peak, by the times that other tests have below and at it.
    yield Reading("closed.clients30", "few clients wait for each answer").compare(
        expected := between(below.time, peak.time),
        documented := clients / peak.rate,
        f"{clients.written} clients that wait for each answer reach {peak.rate.written} if a call takes {documented}; "
        f"other tests show {expected}, below the peak and at it.",
    )
    # Clients that keep to a rate have enough calls under way at the peak to reach it.
    yield Reading("throttled.in_flight", "clients send at a fixed rate").compare(
        expected := clients.or_more,
        documented := peak.rate * peak.time,
        f"If clients send at a fixed rate, {below.rate * below.time:.0f} calls are in flight at {below.rate.written} "
        f"and {below.time.written}, and {documented} at {peak.rate.written} and {peak.time.written}; the peak needs "
        f"{expected}.",
        below.rate,
        below.time,
    )


def calls_in_service(figures: Figures) -> Findings:
    """Yield the readings of how many calls the server works on at once."""
    peak, below, at_once = at_peak(figures), below_peak(figures), calls_at_once(figures)
    candidates = {
        f"a service time of {below.time.written} at {peak.rate.written}": at_once,
        "the number of clients beyond which throughput stops growing": figures["peak.clients"],
    }
    first, second = farthest_apart(candidates)
    yield Reading("at_once", "the server works on one number of calls at once").compare(
        expected := candidates[first],
        documented := candidates[second],
        f"Calls that the server works on at once: {expected} from {first}; {documented} from {second}.",
    )
    yield Reading("at_once.cores", "each virtual core works on a call").compare(
        expected := figures["all.vcpu"],
        at_once,
        f"One call per virtual core is {expected} calls at once; the peak and the time below it give {at_once}.",
    )
    yield Reading("station", "calls queue for that many servers").compare(
        expected := rate_at(peak.time, at_once, below.time),
        peak.rate,
        f"With Poisson arrivals, {at_once:.0f} servers with a service time of {below.time.written} answer in "
        f"{peak.time.written} at {expected}; the peak is {peak.rate}.",
    )
    clients, client_rate = figures["clients300.limit"], figures["clients30.client_rps"]
    yield Reading("misprint.clients30", "150 requests are those of 300 clients").compare(
        expected := client_rate * clients.printed,
        peak.rate,
        f"If each of {clients.written} clients, not of 30, sent {client_rate.written}, the total would be {expected}; "
        f"the peak is {peak.rate}.",
    )


def rate_at(time: Figure, servers: Figure, service: Figure) -> Figure:
    """Return the rate at which a station has the mean response time `time`, with the rounding of `time`.

    `servers` is rounded to the nearest whole number; the rounding of the mean service time `service` is ignored.
    """
    bounds = time.interval.value, time.interval.low, time.interval.high
    rates = (rate_at_s(each, round(servers.value), service.value) for each in bounds)
    return figure(Interval(*rates), time, servers, service, unit="1/s")


def rate_at_s(time_s: float, servers: int, service_s: float) -> float:
    """Return the arrival rate at which an M/M/c station has the mean response time `time_s`, per second (Erlang C)."""
    load = np.linspace(0.0, servers, 20_001)[1:-1]
    mean = service_s * (1 + erlang_c(servers, load) / (servers - load))
    return float(np.interp(time_s, mean, load)) / service_s


def streams(figures: Figures) -> Findings:
    """Yield the readings of what the record of a watch costs."""
    records, size, direct = figures["watch.records"], figures["watch.size"], figures["watch.direct"]
    yield Reading("watch.record", "streams cost less").compare(
        expected := (1 / figures["peak.rps"]).or_less,
        record := figures["watch.master"] / records.printed,
        f"A record of a watch takes {direct.value / records.value * 1e6:.0f} us without the master and "
        f"{record.value * 1e6:.0f} us ({record}) through it; at its peak the master spends {expected} on a unary read.",
    )
    yield Reading("watch.bytes", "6M are bytes").compare(
        size / records.printed,
        None,
        f"If 6M means bytes, a record has {size.value / records.value:.0f} bytes; the document gives no unit.",
    )
