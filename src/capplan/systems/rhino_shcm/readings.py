"""Readings and explanations that the rhino-shcm document leaves open, tried against its figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from capplan.calibration.audit.finding import Finding, compare
from capplan.calibration.audit.laws import Candidate, one_constant
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import PERCENTILES, Evidence, by_id
from capplan.systems.rhino_shcm.laws import Rows, Test, cpu_demand, load_tests


def tail_mean_s(test: Test) -> Interval:
    """Return the mean of an exponential tail through the 90th and the 99th percentile, in seconds."""
    logarithm = math.log((1 - PERCENTILES["p90"]) / (1 - PERCENTILES["p99"]))
    return (test["p99"].interval - test["p90"].interval) / logarithm


def _tail_by_load(rows: Rows) -> list[Finding]:
    """Ask whether the tail's mean goes as 1 / (1 - load / capacity), as it does in an M/G/1 queue near saturation.

    Its reciprocal is then a line over the load: two tests predict the third, and the load at which it is zero.
    """
    findings = []
    for configuration in ("A", "B"):
        one, two, three = tests = tuple(load_tests(rows, configuration).values())
        if min(tail_mean_s(test).low for test in tests) <= 0:
            continue  # not a tail; the law of ordered percentiles has said so
        weight = (three["rps"].value - one["rps"].value) / (two["rps"].value - one["rps"].value)
        rates = [Interval.exactly(1.0) / tail_mean_s(test) for test in tests]
        reciprocal = rates[1] * weight - rates[0] * (weight - 1)
        slope = (rates[0].value - rates[1].value) / (two["rps"].value - one["rps"].value)
        numbers = [test["p90"].scenario[1:] for test in tests]
        findings.append(
            compare(
                f"tail.{configuration.lower()}",
                "the tail's mean goes as 1 / (1 - load / capacity)",
                tuple(test[name] for test in tests for name in ("rps", "p90", "p99")),
                Interval(*(_reciprocal(each) for each in (reciprocal.value, reciprocal.high, reciprocal.low))),
                tail_mean_s(three),
                f"Configuration {configuration}: between the 90th and 99th percentile times fall off with a mean of "
                f"{tail_mean_s(one).value * 1e3:.0f} and {tail_mean_s(two).value * 1e3:.0f} ms in tests {numbers[0]} "
                f"and {numbers[1]}; a capacity of {one['rps'].value + rates[0].value / slope:.0f}/s would make it "
                f"{{expected}} in test {numbers[2]}, which has {{documented}}.",
                "s",
            )
        )
    return findings


def _reciprocal(rate: float) -> float:
    """Return the mean of a tail that falls off at `rate`; at or beyond saturation it has none."""
    return 1 / rate if rate > 0 else math.inf


def _one_demand(rows: Rows) -> list[Finding]:
    """Ask whether one processor time of a request serves every test: of a configuration, or of all with caches."""
    groups = {"a": "A", "b": "B", "cached": "AB"}
    findings = []
    for name, configurations in groups.items():
        tests = [test for one in configurations for test in load_tests(rows, one).items()]
        candidates = [
            Candidate(f"test {test[1:]}", cpu_demand(figures), (figures["cpu"], figures["rps"]))
            for test, figures in tests
        ]
        what = f"One processor time of a request in configuration{'s' * (len(configurations) > 1)} "
        what += " and ".join(configurations)
        law = "a request costs one processor time"
        findings.append(one_constant(f"cpu_demand.one.{name}", law, candidates, what, "s"))
    return findings


_READINGS: tuple[Callable[[Rows], list[Finding]], ...] = (_tail_by_load, _one_demand)


def readings(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Try the readings on `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for reading in _READINGS for finding in reading(known))
