"""Checks of the evidence about `rhino-shcm`: operational laws, what its document claims, and what it leaves open."""

from __future__ import annotations

import math
from itertools import pairwise

from capplan.evidence.audit.checks import Claim, Figure, Figures, Findings, Law, Reading, figure
from capplan.evidence.interval import Interval
from capplan.evidence.table import PERCENTILES

TESTS = (1, 2, 3, 4, 5, 6, 7)
CONFIGURATIONS = {"a": (1, 2, 3), "b": (4, 5, 6)}  # tests of those with caches; test 7 has configuration C
STATISTICS = {
    "p50": "median",
    "p75": "75th percentile",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "maximum": "maximum",
}


def checks(figures: Figures) -> Findings:
    """Yield the checks of the document."""
    for law in (flow, configurations):
        yield from law(figures)
    for claim in (rates, caches, processor_times, disk, untested):
        yield from claim(figures)
    for reading in (tails, one_processor_time):
        yield from reading(figures)


def processor_time(figures: Figures, test: int) -> Figure:
    """Return the processor time of a request in the application's JVM: utilisation law, D = U / X."""
    return figures[f"t{test}.cpu"] / figures[f"t{test}.rps"]


def sessions_per_s(figures: Figures, test: int) -> str:
    """Return the rate of sessions as text."""
    return f"{figures[f't{test}.sps']:.0f} sessions/s"


def mean_from_percentiles(percentiles: list[Figure]) -> Figure:
    """Return bounds of a mean time from the percentiles p50, p75, p90, p95, p99 and the maximum.

    Between two percentiles every time is at least the lower and at most the higher; the number is half way.
    """
    shares = [0.0, *PERCENTILES.values(), 1.0]
    points = [Interval.exactly(0.0), *(each.interval for each in percentiles)]
    steps = [(high - low, below, above) for (low, below), (high, above) in pairwise(zip(shares, points, strict=True))]
    least = sum(share * below.low for share, below, _ in steps)
    most = sum(share * above.high for share, _, above in steps)
    return figure(Interval((least + most) / 2, least, most), *percentiles, unit="s")


# ---- Operational laws


def flow(figures: Figures) -> Findings:
    """Yield the laws about rates, times, cores and requests in flight."""
    requests = figures["all.session_requests"]
    for test in TESTS:
        sessions = figures[f"t{test}.sps"]
        yield Law(f"forced_flow.t{test}", "forced flow, requests = sessions x requests of a session").compare(
            expected := sessions * requests,
            documented := figures[f"t{test}.rps"],
            f"Test {test}: {sessions.written} sessions with {requests.written} requests each make {expected}; the "
            f"document says {documented}.",
        )
    for configuration, tests in CONFIGURATIONS.items():
        for statistic, words in STATISTICS.items():
            yield Law(f"monotone.{configuration}.{statistic}", "response time grows with load").never_falls(
                f"the {words}",
                {f"test {test} ({sessions_per_s(figures, test)})": figures[f"t{test}.{statistic}"] for test in tests},
            )
    for test in TESTS:  # the application's JVM cannot use more cores than its server has
        yield Law(f"utilisation.t{test}", "utilisation law, cores of the application's server").compare(
            expected := figures["all.server_vcpu"].or_less,
            documented := figures[f"t{test}.cpu"],
            f"Test {test}: the application's JVM keeps {documented} cores busy; {expected} are possible.",
        )
    for test in TESTS:  # a request in flight keeps at most one core busy
        mean_time = mean_from_percentiles([figures[f"t{test}.{statistic}"] for statistic in STATISTICS])
        inside = figures[f"t{test}.rps"] * mean_time
        yield Law(f"little.t{test}", "Little's law, at least as many requests in flight as busy cores").compare(
            expected := inside.or_less,
            documented := figures[f"t{test}.cpu"],
            f"Test {test}: by its percentiles {inside.interval.low:.0f} to {inside.interval.high:.0f} requests are in "
            f"flight, which keep {expected} cores busy; the application's JVM keeps {documented} busy.",
        )


def configurations(figures: Figures) -> Findings:
    """Yield the laws about servers: configuration B against A at the rates that both were tested at, and their sum."""
    law = "Cassandra on its own servers makes no request slower"
    for shared, own, sessions in (("t1", "t4", 1000), ("t3", "t5", 1200)):
        for statistic, words in STATISTICS.items():
            yield Law(f"own_servers.{sessions}.{statistic}", law).compare(
                expected := figures[f"{shared}.{statistic}"].or_less,
                documented := figures[f"{own}.{statistic}"],
                f"At {sessions} sessions/s the {words} with Cassandra on its own servers (B) should be {expected}, as "
                f"on the application's server (A); it is {documented}.",
            )
    for name, of_its_own in (("a", 0), ("b", 1), ("c", 0)):  # a node on the application's server has none of its own
        servers, nodes = figures[f"{name}.app_servers"], figures[f"{name}.cassandra_nodes"]
        yield Law(f"servers.{name}", "the servers add up").compare(
            expected := servers + nodes * of_its_own + figures[f"{name}.client_servers"],
            documented := figures[f"{name}.servers"],
            f"Configuration {name.upper()}: its parts need {expected} servers; the document says {documented}.",
        )


# ---- What the document says about its own figures, or one of its tests about another


def rates(figures: Figures) -> Findings:
    """Yield the claims of the conclusion about CPU and rates."""
    fourth, fifth, around = figures["t4.cpu"], figures["t5.cpu"], figures["t5.cpu_around"]
    yield Claim("claim.cpu_around", "test 5 uses around 300 % of a core").compare(
        fifth,
        around,
        f"The conclusion says around {around.written} for test 5, {around} cores. The table says {fifth.written}, "
        f"{fifth} cores, and {fourth.written} for test 4.",
    )
    sixth = figures["t6.rps"]
    yield Claim("claim.sustained", "one application server and three nodes sustain 2160/s").compare(
        expected := sixth.or_less,
        documented := figures["t5.sustained_rate"],
        f"The document says that one application server sustains the {documented} of test 5. Test 6 ran with three "
        f"nodes at {sixth.written}, so the sustained rate can be {expected}: test 5 met its rate and found no limit.",
        figures["t5.rps"],
    )
    yield Claim("duplicate.t6", "one experiment has one result").compare(
        sixth,
        documented := figures["t6.rate_repeated"],
        f"The conclusion says {documented} for test 6; the table says {sixth}.",
    )


def caches(figures: Figures) -> Findings:
    """Yield the claims about configuration C, which only adds the work that caches spare."""
    law = "without caches nothing is faster or takes less processor time"
    for statistic, words in STATISTICS.items():
        yield Claim(f"cache.{statistic}", law).compare(
            expected := figures[f"t1.{statistic}"].or_more,
            documented := figures[f"t7.{statistic}"],
            f"At 1000 sessions/s the {words} without caches should be {expected}, as with caches (A); in "
            f"configuration C it is {documented}.",
        )
    yield Claim("cache.cpu", law).compare(
        expected := processor_time(figures, 1).or_more,
        documented := processor_time(figures, 7),
        f"Without caches a request should take {expected} of processor time; in configuration C it takes {documented}.",
    )


def processor_times(figures: Figures) -> Findings:
    """Yield the claims that the next test of a configuration takes the same processor time."""
    for test, following in (pair for tests in CONFIGURATIONS.values() for pair in pairwise(tests)):
        yield Claim(f"cpu_demand.t{test}", "a request takes the same processor time at every load").compare(
            expected := processor_time(figures, following),
            documented := processor_time(figures, test),
            f"With the same software a request takes {documented} of processor time in test {test} "
            f"({sessions_per_s(figures, test)}) and {expected} in test {following} "
            f"({sessions_per_s(figures, following)}).",
        )


def disk(figures: Figures) -> Findings:
    """Yield the claim about the commit log's limit."""
    most, limit = figures["all.disk_maximum"], figures["all.commitlog_limit"]
    yield Claim("claim.disk", "disk usage grows to the commit log's limit").compare(
        expected := limit.or_more,
        most,
        f"When the commit log reaches its limit, the disk usage is {expected}; the document says {most}, which leaves "
        f"{(most - limit).value / 1e9:g} GB for the data.",
    )


def untested(figures: Figures) -> Findings:
    """Yield the claims that no figure speaks to."""
    for name, test in (("reasonable", 5), ("satisfactory", 6)):
        said = figures[f"t{test}.latency_in_words"]
        yield Claim(f"claim.{name}", "times and CPU are acceptable").compare(
            expected := figures[f"t{test}.p99"],
            None,
            f"The document calls the times of test {test} {said.written}, with a 99th percentile of {expected}; it "
            "states no objective.",
            said,
        )
    said = figures["t6.cpu_in_words"]
    yield Claim("claim.acceptable", "times and CPU are acceptable").compare(
        expected := figures["t6.cpu"],
        None,
        f"The document calls the CPU of test 6 {said.written}, at {expected} cores; it states no objective.",
        said,
    )
    yield Claim("claim.disk_same", "disk usage is the same everywhere").compare(
        expected := figures["all.disk_maximum"],
        None,
        "The document says that disk usage is the same in all tests and on all nodes; it gives one figure, "
        f"{expected}, for all.",
        figures["all.disk_same_tests"],
        figures["all.disk_same_nodes"],
    )


# ---- Readings that the document leaves open


def tails(figures: Figures) -> Findings:
    """Yield the readings of the tail, as in an M/G/1 queue near saturation.

    The reciprocal of the tail's mean is a line over the load, so two tests predict the third, and the load at which it
    is zero. The tail's mean is that of an exponential tail through the 90th and the 99th percentile.
    """
    logarithm = math.log((1 - 0.9) / (1 - 0.99))
    for name, tests in CONFIGURATIONS.items():
        tail1, tail2, tail3 = ((figures[f"t{test}.p99"] - figures[f"t{test}.p90"]) / logarithm for test in tests)
        load1, load2, load3 = (figures[f"t{test}.rps"].printed for test in tests)
        weight = (load3 - load1) / (load2 - load1)
        slope = (1 / tail1.value - 1 / tail2.value) / (load2 - load1).value
        yield Reading(f"tail.{name}", "the mean of the tail is proportional to 1 / (1 - load / capacity)").compare(
            expected := period(1 / tail2 * weight - 1 / tail1 * (weight - 1)),
            tail3,
            f"Configuration {name.upper()}: an exponential tail through the 90th and 99th percentiles has a mean of "
            f"{tail1.value * 1e3:.0f} ms in test {tests[0]} and {tail2.value * 1e3:.0f} ms in test {tests[1]}. With a "
            f"capacity of {load1.value + 1 / tail1.value / slope:.0f}/s the mean in test {tests[2]} would be "
            f"{expected}; it is {tail3}.",
        )


def period(rate: Figure) -> Figure:
    """Return the mean time between events at a rate; unbounded where the rate may be zero."""
    bounds = rate.value, rate.interval.high, rate.interval.low
    return figure(Interval(*(1 / each if each > 0 else math.inf for each in bounds)), rate, unit="s")


def one_processor_time(figures: Figures) -> Findings:
    """Yield the readings that a request takes one processor time."""
    a, b = CONFIGURATIONS.values()
    for name, words, tests in (
        ("a", "configuration A", a),
        ("b", "configuration B", b),
        ("cached", "configurations A and B", a + b),
    ):
        yield Reading(f"cpu_demand.one.{name}", "a request takes the same processor time in every test").one_constant(
            f"One processor time for every request in {words}",
            {f"test {test}": processor_time(figures, test) for test in tests},
        )
