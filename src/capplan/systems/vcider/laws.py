"""Arithmetic and operational laws, held against the documented figures of vcider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from capplan.calibration.audit.finding import Finding, at_least, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id

Rows = dict[str, Evidence]
FACTORS = ("r1", "r3")
REFERENCES = {
    "none": "native without encryption",
    "internode": "native with node encryption",
    "both": "native with client and node encryption",
}
"""What the virtual network is compared with, from the least to the most work."""


def cells(rows: Rows, factor: str, reference: str) -> tuple[Evidence, ...]:
    """Return the cells of one comparison, by column width."""
    return tuple(row for row in rows.values() if row.id.startswith(f"{factor}.{reference}.c"))


def average(rows: Rows, factor: str, reference: str) -> Evidence:
    """Return the documented average of one comparison over its column widths."""
    return rows[f"{factor}.{reference}.average"]


def percent(ratio: Interval) -> str:
    """Print a ratio as the change that the document prints, its rounding left out: `-3.7 %`."""
    return f"{(ratio.value - 1) * 100:+.3g} %"


def _averages(rows: Rows) -> list[Finding]:
    """Compute each average anew from its cells."""
    findings = []
    for factor in FACTORS:
        for reference, words in REFERENCES.items():
            used, printed = cells(rows, factor, reference), average(rows, factor, reference)
            total = sum((cell.interval for cell in used[1:]), used[0].interval)
            mean = total * (1 / len(used))
            findings.append(
                compare(
                    f"average.{factor}.{reference}",
                    "an average is the mean of its cells",
                    (*used, printed),
                    mean,
                    printed.interval,
                    f"{factor.upper()} over {words}: the five cells average {percent(mean)}, {{expected}} as a ratio; "
                    f"the document has {percent(printed.interval)}, {{documented}}.",
                )
            )
    return findings


def _added_work(rows: Rows) -> list[Finding]:
    """Hold each ratio against the one over less encryption, which makes the native cluster no slower.

    Averages, for cells scatter by more than the steps; holds if the virtual network does the same in each comparison.
    """
    findings = []
    for factor in FACTORS:
        for less, more in pairwise(REFERENCES):
            before, after = average(rows, factor, less), average(rows, factor, more)
            sentence = (
                f"{factor.upper()}: over {REFERENCES[more]} the ratio should be {{expected}}, as over "
                f"{REFERENCES[less]}; it is {{documented}}."
            )
            used, bound = (before, after), at_least(before.interval)
            law = "added work makes no cluster faster"
            findings.append(compare(f"added_work.{factor}.{more}", law, used, bound, after.interval, sentence))
    return findings


_LAWS: tuple[Callable[[Rows], list[Finding]], ...] = (_averages, _added_work)


def laws(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Hold the laws against `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for law in _LAWS for finding in law(known))
