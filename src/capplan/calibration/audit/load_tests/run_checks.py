"""Checks of the classes of one run: they add up, and no percentile is an average of percentiles."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from capplan.calibration.audit.finding import Finding
from capplan.calibration.audit.load_tests.measured_row import MeasuredRow, ms, rate
from capplan.calibration.audit.load_tests.row_checks import HISTOGRAM, LITTLE, STANDARD_ERRORS
from capplan.calibration.evidence.load_tests import ALL

_DIFFER = 0.05  # of the parts' percentiles, below which an average is no evidence
_EXACTLY = 5e-3  # of a percentile that its digits must show, so that an average is no chance
_AVERAGED = 2  # percentiles must be averages, and all that tell


def run_findings(rows: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Yield what is wrong between the rows of each run."""
    runs: defaultdict[object, list[MeasuredRow]] = defaultdict(list)
    for each in rows:
        if each.row.run_id is not None:
            runs[each.row.run_id, each.row.repeat].append(each)
    for classes in runs.values():
        twice = [name for name, count in Counter(each.request_class for each in classes).items() if count > 1]
        for name in twice:
            last = [each for each in classes if each.request_class == name][-1]
            yield last.finding("duplicate-row", f"run {last.row.run_id} has more than one row of class {name!r}")
        together = next((each for each in classes if each.request_class == ALL), None)
        parts = [each for each in classes if each.request_class != ALL]
        if together is not None and len(parts) > 1 and not twice:
            yield from _sums(together, parts)
            yield from _percentiles(together, parts)


def _sums(together: MeasuredRow, parts: Sequence[MeasuredRow]) -> Iterator[Finding]:
    total = together.row.throughput_tps
    rates = [each.row.throughput_tps for each in parts]
    if total is None or not total > 0 or any(each is None for each in rates):
        return
    known = [each for each in rates if each is not None]
    noise = STANDARD_ERRORS / (together.requests or 1e12) ** 0.5
    if abs(sum(known) - total) > (LITTLE + noise) * total + _rounding("throughput_tps", [together, *parts]):
        yield together.finding(
            "classes-disagree", f"the classes complete {rate(sum(known))}, all requests {rate(total)}"
        )
        return
    means = [each.row.latency_mean_ms for each in parts]
    mean = together.row.latency_mean_ms
    if mean is None or not sum(known) or any(each is None for each in means):
        return
    weighted = sum(share * (each or 0.0) for share, each in zip(known, means, strict=True)) / sum(known)
    slack = (LITTLE + HISTOGRAM) * mean + _rounding("latency_mean_ms", [together, *parts])
    if abs(weighted - mean) > slack:
        yield together.finding(
            "classes-disagree", f"the classes have a mean of {ms(weighted)}, all requests {ms(mean)}"
        )


def _percentiles(together: MeasuredRow, parts: Sequence[MeasuredRow]) -> Iterator[Finding]:
    top = together.row.latency_max_ms
    tops = [each.row.latency_max_ms for each in parts]
    if top is not None and all(each is not None for each in tops):
        highest = max(each for each in tops if each is not None)
        if abs(top - highest) > HISTOGRAM * highest + _rounding("latency_max_ms", [together, *parts]):
            yield together.finding("averaged-percentiles", f"the maximum is {ms(top)}, that of its parts {ms(highest)}")
            return
    shares = [each.row.throughput_tps or 0.0 for each in parts]
    averaged, told = [], 0
    for name, value in together.percentiles.items():
        found = [each.percentiles[name] for each in parts if name in each.percentiles]
        if len(found) < len(parts):
            continue
        printed = together.half_step(name) + max(each.half_step(name) for each in parts)
        slack = HISTOGRAM * value + printed
        if not min(found) - slack <= value <= max(found) + slack:
            yield together.finding(
                "classes-disagree",
                f"{name} of all requests, {ms(value)}, lies outside those of the classes, {ms(min(found))} to "
                f"{ms(max(found))}",
            )
            return
        if max(found) - min(found) > _DIFFER * value:
            told += 1
            plain = sum(found) / len(found)
            weighted = sum(a * b for a, b in zip(shares, found, strict=True)) / sum(shares) if sum(shares) else plain
            printed += 1e-9 * value
            if printed < _EXACTLY * value and min(abs(plain - value), abs(weighted - value)) <= printed:
                averaged.append(name)
    if len(averaged) == told >= _AVERAGED:
        yield together.finding("averaged-percentiles", f"{' and '.join(averaged)} are averages of the classes")


def _rounding(column: str, rows: Sequence[MeasuredRow]) -> float:
    """Return by how much a sum may differ from its parts because all of them are rounded."""
    return sum(each.half_step(column) for each in rows)
