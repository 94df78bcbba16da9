"""Checks of documents, applied to their figures: operational laws, claims, readings, and counts of busy workers.

The intervals are those that the rounding of the printed figures allows. A verdict of `contradicted` means that no
rounding explains the difference.

References
----------
.. [1] P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
   10(3), 1978: operational laws hold for every system that is observed for long enough, whatever its distributions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from capplan.calibration.audit.checks import Check, Entry, WorkerCheck
from capplan.calibration.audit.expression import Figure, Group, Names, figure, fill
from capplan.calibration.audit.finding import Finding, Part, Severity, Verdict, judge, shown
from capplan.calibration.audit.laws import RULES
from capplan.calibration.evidence.interval import Interval
from capplan.models.errors import InputError

_ACTIONS: Mapping[Part, str] = {
    "law": "Fit none of these figures until it is known which is wrong.",
    "claim": "Rely on the figures, not on the claim.",
}


@dataclass(frozen=True)
class WorkerGap:
    """Busy workers: what Little's law gives, what is documented, and what would close the gap.

    Attributes
    ----------
    scenario
        The experiment.
    figures
        Ids of the documented figures used.
    expected
        Busy workers by Little's law from the peak rate and the mean times.
    documented
        Busy workers as printed.
    ratio
        Documented over expected.
    extra_hold_s
        Seconds that a request would have to hold its worker beyond its processing time.
    extra_workers
        Workers that would have to be busy with something else.
    """

    scenario: str
    figures: tuple[str, ...]
    expected: Interval
    documented: Interval
    ratio: Interval
    extra_hold_s: Interval
    extra_workers: Interval


def apply(check: Check, scope: Names, part: Part) -> Finding:
    """Apply one check to the rows of `scope`.

    Parameters
    ----------
    check : Check
        A law, a claim or a reading.
    scope : Names
        The figures by id.
    part : str
        Which of them it is.

    Raises
    ------
    InputError
        If the check cannot be computed from them.
    """
    try:
        return _found(check, replace(scope, let=check.let), part)
    except InputError as error:
        raise InputError(f"check {check.name!r}: {error}") from None


def _found(check: Check, scope: Names, part: Part) -> Finding:
    scope = _with_series(check, scope)
    expected = figure(check.expected or RULES[check.rule][1], scope)
    documented = figure(check.documented or "second", scope) if check.documented or check.rule else None
    verdict: Verdict = "untested" if documented is None else judge(expected.interval, documented.interval)
    words = {
        "expected": replace(expected, text=shown(expected.interval, check.unit)),
        "documented": replace(documented, text=shown(documented.interval, check.unit)) if documented else Figure(0.0),
    }
    used = [*(scope.rows[name] for name in check.cites), *expected.rows, *(documented.rows if documented else ())]
    severity: Severity = "refused" if verdict == "contradicted" and part != "reading" else "none"
    return Finding(
        part=part,
        rule=check.name,
        severity=severity,
        means=check.law,
        action=_ACTIONS[part] if severity == "refused" else "",
        figures=tuple(dict.fromkeys(row.id for row in used)),
        expected=expected.interval,
        documented=documented.interval if documented else None,
        unit=check.unit,
        verdict=verdict,
        sentence=fill(check.sentence, replace(scope, values={**scope.values, **words})),
    )


def _with_series(check: Check, scope: Names) -> Names:
    """Add the series of a check to the names that its expressions know, and what its rule picks from it."""
    if not check.series:
        return scope
    series = [_entry(each, replace(scope, let=each.let)) for each in check.series]
    values: dict[str, Figure | Group] = {"series": tuple(series)}
    if check.rule:
        values["first"], values["second"] = RULES[check.rule][0](series)
    return replace(scope, values=values)


def _entry(entry: Entry, scope: Names) -> Figure:
    return replace(figure(entry.value, scope), text=fill(entry.label, scope))


def worker_gap(workers: WorkerCheck, scope: Names) -> WorkerGap:
    """Compare busy workers with Little's law, N = X R."""
    rate, time, busy = (
        figure(text, replace(scope, let=workers.let)) for text in (workers.rate, workers.time, workers.busy)
    )
    expected = rate.interval * time.interval
    return WorkerGap(
        scenario=workers.scenario,
        figures=tuple(dict.fromkeys(row.id for each in (rate, time, busy) for row in each.rows)),
        expected=expected,
        documented=busy.interval,
        ratio=busy.interval / expected,
        extra_hold_s=busy.interval / rate.interval - time.interval,
        extra_workers=busy.interval - expected,
    )
