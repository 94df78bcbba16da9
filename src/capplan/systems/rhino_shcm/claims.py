"""The register of rhino-shcm: what its document says about its own figures, and one of its tests about another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, at_most, compare
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.systems.rhino_shcm.laws import (
    CONFIGURATIONS,
    STATISTIC_NAMES,
    STATISTICS,
    Rows,
    at_load,
    cpu_demand,
    load_tests,
)


def _around(rows: Rows) -> list[Finding]:
    claim, table = rows["t5.cpu_around"], rows["t5.cpu"]
    alike = [f"test {name[1:]}" for name, test in load_tests(rows).items() if test["cpu"].value == claim.value]
    sentence = (
        f"The conclusion has around {claim.written} for test 5, {{documented}} cores; its table has {table.written}, "
        f"{{expected}}, and {claim.written} for {' and '.join(alike) or 'no test'}."
    )
    law = f"test 5 uses around {claim.written} of a core"
    return [compare("claim.cpu_around", law, (claim, table), table.interval, claim.interval, sentence)]


def _sustained(rows: Rows) -> list[Finding]:
    claim, table, highest = rows["t5.sustained_rate"], rows["t5.rps"], rows["t6.rps"]
    sentence = (
        "Test 5's {documented} are called what one application server sustains; test 6 ran with three nodes at "
        f"{highest.written}, so the rate can be {{expected}}: a rate that was met, no limit that was found."
    )
    law = f"one application server and three nodes sustain {claim.written}"
    bound = at_most(highest.interval)
    again = "The conclusion has {documented} for test 6, its table {expected}."
    repeated = rows["t6.rate_repeated"]
    return [
        compare("claim.sustained", law, (claim, table, highest), bound, claim.interval, sentence, "1/s"),
        compare(
            "duplicate.t6",
            "one experiment has one result",
            (repeated, highest),
            highest.interval,
            repeated.interval,
            again,
            "1/s",
        ),
    ]


def _caches(rows: Rows) -> list[Finding]:
    """Hold configuration C against the test of A at its rate: C only adds the work that caches spare."""
    (without,) = load_tests(rows, "C").values()
    cached = next(test for test in load_tests(rows, "A").values() if test["sps"].value == without["sps"].value)
    law = "without caches nothing is faster or costs less"
    figures = [
        compare(
            f"cache.{statistic}",
            law,
            (cached[statistic], without[statistic]),
            at_least(cached[statistic].interval),
            without[statistic].interval,
            f"At {without['sps'].value:.0f} sessions/s the {STATISTIC_NAMES[statistic]} without caches should be "
            "{expected}, as with them (A); configuration C has {documented}.",
            "s",
        )
        for statistic in STATISTICS
    ]
    sentence = "Without caches a request should take {expected} of processor time; configuration C has {documented}."
    used = tuple(test[name] for test in (cached, without) for name in ("cpu", "rps"))
    return [*figures, compare("cache.cpu", law, used, at_least(cpu_demand(cached)), cpu_demand(without), sentence, "s")]


def _demand(rows: Rows) -> list[Finding]:
    """Hold the processor time of a request against that of the next test of its configuration."""
    law = "a request costs the same processor time at every load"
    findings = []
    for configuration in CONFIGURATIONS:
        for (before, less), (after, more) in pairwise(load_tests(rows, configuration).items()):
            sentence = (
                f"A request costs {{documented}} of processor time in {at_load(before, less)} and {{expected}} in "
                f"{at_load(after, more)}, with the same software."
            )
            used = (less["cpu"], less["rps"], more["cpu"], more["rps"])
            name = f"cpu_demand.{before.lower()}"
            findings.append(compare(name, law, used, cpu_demand(more), cpu_demand(less), sentence, "s"))
    return findings


def _disk(rows: Rows) -> list[Finding]:
    limit, most = rows["all.commitlog_limit"], rows["all.disk_maximum"]
    left = most.interval - limit.interval
    sentence = (
        "A commit log that grows to its limit makes the disk usage {expected}; the document has {documented}, which "
        f"leaves {left.value / 1e9:g} GB for the data."
    )
    law = "disk usage grows to the commit log's limit"
    return [compare("claim.disk", law, (limit, most), at_least(limit.interval), most.interval, sentence, "B")]


def _untested(rows: Rows) -> list[Finding]:
    fifth, sixth, most = rows["t5.p99"], rows["t6.p99"], rows["all.disk_maximum"]
    words, again = rows["t5.latency_in_words"], rows["t6.latency_in_words"]
    cpu, cpu_words = rows["t6.cpu"], rows["t6.cpu_in_words"]
    tests, nodes = rows["all.disk_same_tests"], rows["all.disk_same_nodes"]
    acceptable, same = "times and CPU are acceptable", "disk usage is the same everywhere"
    return [
        compare(
            "claim.reasonable",
            acceptable,
            (words, fifth),
            fifth.interval,
            None,
            f"Times of test 5 are called {words.text}, with a 99th percentile of {{expected}}; no objective is stated.",
            "s",
        ),
        compare(
            "claim.satisfactory",
            acceptable,
            (again, sixth),
            sixth.interval,
            None,
            f"Times of test 6 are called {again.text}, with a 99th percentile of {{expected}}; no objective is stated.",
            "s",
        ),
        compare(
            "claim.acceptable",
            acceptable,
            (cpu_words, cpu),
            cpu.interval,
            None,
            f"The CPU of test 6 is called {cpu_words.text}, at {{expected}} cores; no objective is stated.",
        ),
        compare(
            "claim.disk_same",
            same,
            (tests, nodes, most),
            most.interval,
            None,
            "Disk usage is said to be the same in all tests and on all nodes; one figure, {expected}, stands for all.",
            "B",
        ),
    ]


_CLAIMS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _around,
    _sustained,
    _caches,
    _demand,
    _disk,
    _untested,
)


def register(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Return every claim checked, contradicted or not; `rows` must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for claim in _CLAIMS for finding in claim(known))
