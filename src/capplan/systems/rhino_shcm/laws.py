"""Operational laws, held against the documented figures of rhino-shcm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.audit.laws import Candidate, never_falls
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import PERCENTILES, Evidence, by_id, select

Rows = dict[str, Evidence]
Test = Mapping[str, Evidence]
STATISTICS = (*PERCENTILES, "maximum")
CONFIGURATIONS = ("A", "B", "C")
STATISTIC_NAMES = {"p50": "median", **{name: f"{name[1:]}th percentile" for name in STATISTICS[1:-1]}}
STATISTIC_NAMES["maximum"] = "maximum"


def load_tests(rows: Rows, configuration: str | None = None) -> dict[str, Test]:
    """Return the figures of each test by the last part of their ids; of one configuration, or of all.

    What the conclusion repeats of them is left out.
    """
    measured = [row for row in select(rows.values(), use="fit") if row.quantity == "cpu"]
    wanted = [row.scenario for row in measured if configuration in (None, row.layout["configuration"])]
    return {
        test: {row.id.rpartition(".")[2]: row for row in select(rows.values(), scenario=test) if row.use != "excluded"}
        for test in wanted
    }


def at_load(name: str, test: Test) -> str:
    """Return `test 4 (1000 sessions/s)` for T4."""
    return f"test {name[1:]} ({test['sps'].value:.0f} sessions/s)"


def cpu_demand(test: Test) -> Interval:
    """Return the processor time of a request in the application's JVM, in seconds: utilisation law, D = U / X."""
    return test["cpu"].interval / test["rps"].interval


def _forced_flow(rows: Rows) -> list[Finding]:
    """Apply forced flow: requests are sessions times the requests of a session."""
    ratio = rows["all.session_requests"]
    return [
        compare(
            f"forced_flow.{name.lower()}",
            "forced flow, requests = sessions x requests of a session",
            (test["sps"], test["rps"], ratio),
            test["sps"].interval * ratio.interval,
            test["rps"].interval,
            f"Test {name[1:]}: {test['sps'].written} sessions of {ratio.written} requests make {{expected}}, the "
            "document has {documented}.",
            "1/s",
        )
        for name, test in load_tests(rows).items()
    ]


def _ordered(rows: Rows) -> list[Finding]:
    return [
        compare(
            f"ordered.{name.lower()}.{higher}",
            "percentiles rise to the maximum",
            (test[lower], test[higher]),
            at_least(test[lower].interval),
            test[higher].interval,
            f"Test {name[1:]}: the {STATISTIC_NAMES[higher]} should be {{expected}}, the document has {{documented}}.",
            "s",
        )
        for name, test in load_tests(rows).items()
        for lower, higher in pairwise(STATISTICS)
    ]


def _rises_with_load(rows: Rows) -> list[Finding]:
    """Look for the deepest fall of each percentile from one load to a higher one within a configuration."""
    return [
        never_falls(
            f"monotone.{configuration.lower()}.{statistic}",
            "response time grows with load",
            [
                Candidate(at_load(name, test), test[statistic].interval, (test[statistic],))
                for name, test in tests.items()
            ],
            f"the {STATISTIC_NAMES[statistic]}",
            "s",
        )
        for configuration in CONFIGURATIONS
        for tests in [load_tests(rows, configuration)]
        for statistic in STATISTICS
        if len(tests) > 1
    ]


def _utilisation(rows: Rows) -> list[Finding]:
    """Apply the utilisation law: the application's JVM cannot use more cores than its server has."""
    cores = rows["all.server_vcpu"]
    return [
        compare(
            f"utilisation.{name.lower()}",
            "utilisation law, cores of the application's server",
            (test["cpu"], cores),
            at_most(cores.interval),
            test["cpu"].interval,
            f"Test {name[1:]}: the application's JVM keeps {{documented}} cores busy, {{expected}} are possible.",
        )
        for name, test in load_tests(rows).items()
    ]


def mean_bounds_s(test: Test) -> Interval:
    """Return between which bounds the mean response time lies, in seconds, by its percentiles and its maximum.

    Between two percentiles every time is at least the lower and at most the higher; `value` is half way.
    """
    shares = [0.0, *PERCENTILES.values(), 1.0]
    points = [Interval.exactly(0.0), *(test[name].interval for name in STATISTICS)]
    steps = [(high - low, below, above) for (low, below), (high, above) in pairwise(zip(shares, points, strict=True))]
    low, high = (
        sum(share * below.low for share, below, _ in steps),
        sum(share * above.high for share, _, above in steps),
    )
    return Interval((low + high) / 2, low, high)


def _little(rows: Rows) -> list[Finding]:
    """Apply Little's law, N = X R: no more cores work for requests than requests are inside."""
    findings = []
    for name, test in load_tests(rows).items():
        inside = test["rps"].interval * mean_bounds_s(test)
        findings.append(
            compare(
                f"little.{name.lower()}",
                "Little's law, at least as many requests inside as cores busy with them",
                (*(test[statistic] for statistic in STATISTICS), test["rps"], test["cpu"]),
                at_most(inside),
                test["cpu"].interval,
                f"Test {name[1:]}: the percentiles allow {inside.low:.0f} to {inside.high:.0f} requests inside, so "
                "{expected} cores can be busy with them; the application's JVM keeps {documented} busy.",
            )
        )
    return findings


def _own_servers(rows: Rows) -> list[Finding]:
    """Hold configuration B against A at the rates that both were tested at."""
    shared, own = load_tests(rows, "A"), load_tests(rows, "B")
    pairs = [(one, two) for one in shared.values() for two in own.values() if one["sps"].value == two["sps"].value]
    return [
        compare(
            f"own_servers.{one['sps'].value:.0f}.{statistic}",
            "Cassandra on servers of its own makes no request slower",
            (one[statistic], two[statistic]),
            at_most(one[statistic].interval),
            two[statistic].interval,
            f"At {one['sps'].value:.0f} sessions/s the {STATISTIC_NAMES[statistic]} with Cassandra on servers of its "
            "own (B) should be {expected}, as on the application's (A); it is {documented}.",
            "s",
        )
        for one, two in pairs
        for statistic in STATISTICS
    ]


def _servers(rows: Rows) -> list[Finding]:
    """Add up the servers of a configuration; a colocated Cassandra node has none of its own."""
    findings = []
    for configuration in CONFIGURATIONS:
        key = configuration.lower()
        every, front, nodes, clients = (
            rows[f"{key}.{name}"] for name in ("servers", "app_servers", "cassandra_nodes", "client_servers")
        )
        own = 0.0 if every.layout["colocated"] == "yes" else 1.0
        added = front.interval + nodes.interval * own + clients.interval
        sentence = (
            f"Configuration {configuration}: its parts need {{expected}} servers, the document has {{documented}}."
        )
        used = (every, front, nodes, clients)
        findings.append(compare(f"servers.{key}", "the servers add up", used, added, every.interval, sentence))
    return findings


_LAWS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _forced_flow,
    _ordered,
    _rises_with_load,
    _utilisation,
    _little,
    _own_servers,
    _servers,
)


def laws(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Hold the laws against `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for law in _LAWS for finding in law(known))
