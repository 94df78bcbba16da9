"""The report of a validation as a page of Markdown: what is missed, tables of all systems, then a section a system."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from capplan.calibration.study import Goal
from capplan.calibration.validation.backtest import LeftOut
from capplan.calibration.validation.validate import CLOSE, goals_of_all
from capplan.calibration.validation.validation import MODEL, Compared, Validation
from capplan.planner.reports.number_words import per_cent, share, signed, significant
from capplan.planner.reports.validation_words import (
    banded,
    best_rule,
    close,
    covered,
    goal_cells,
    held,
    judged,
    missed,
    names,
    sharpest_rule,
    verdict,
    with_unit,
)
from capplan.systems.studies import study

ALL = "all"
MANY = 16  # rows of a table that is folded away
LISTED = 6  # figures of a scenario that are named one by one
WIDTH = 120
Picture = Callable[[str, str], str]
"""Returns the Markdown that shows a figure, from its name (a system or `all`) and what it shows, in words."""

TITLE = "How far capplan can be trusted"

HOW_TO_READ = """
A **documented** figure is one that a published load test printed. **Predicted** is what capplan says of the same
test: the median of its draws.

**As fitted** and **left out** are two questions. As fitted, capplan has seen the figure, so a small error says only
that its model can describe the test. Left out, the whole scenario was hidden from the fit, with every figure of it,
and capplan had to say what it would measure. That is what happens when you ask for a layout that nobody has tested:
trust the errors of that kind.

**Not counted** marks figures that others of the document contradict or that are derived from them, and left-out figures
that no other scenario speaks of. Each section says which they are, and why.

A **90 % band** reaches from the 5th to the 95th percentile of what a repeat of the load test would measure. If bands
are right, nine of ten measurements lie inside. A band of a figure as fitted is the parameters' alone, and is
narrower.

**Bands are scored on what they have not seen** (nested leave-one-out). How far off the model is for a hidden scenario
is judged from its errors on the *other* scenarios, each made by a fit without that scenario and without the hidden
one. A few scenarios tell little of how large errors can be, so a band is as many of those errors wide as **Student's
t** asks for with so many scenarios: 2.1 times their root mean square with four, 1.6 times with many.

The **interval score** (Gneiting and Raftery 2007) is the width of a band, plus twenty times what it misses the figure
by, both in the logarithm. Small is good: a band that is wide to be safe pays for its width, one that is narrow and
wrong pays far more.

**Coverage** is how often bands held. The figures of one scenario are right or wrong together, so the interval given
with it counts independent scenarios, not figures. With few scenarios it is wide: then a high share is no proof.

**The rules** are what a planner without a model would do with the other scenarios. *Persistence* takes the nearest of
them. *Linear* scales in proportion to nodes, or to load. *Affine* draws a straight line through them. *USL* is
Gunther's universal scalability law. Where a rule has a smaller error than capplan, the rule is the better guess of
that figure; it says nothing of bottlenecks, percentiles, outages or layouts that differ in more than one number.
"""


def page(
    reports: Sequence[Validation], picture: Picture, more: Mapping[str, str] | None = None, made_by: str = ""
) -> str:
    """Return the page.

    Parameters
    ----------
    reports
        Of one system or several.
    picture
        Returns the Markdown that shows a figure.
    more
        What else to say of a system, by its name: a sentence in Markdown.
    made_by
        A sentence that says where the page comes from.
    """
    wrong = missed(reports)
    parts = [f"# {TITLE}", made_by, _first_words(reports, wrong), "## What is missed", _misses(wrong)]
    parts += ["## In short", *_in_short(reports), picture(ALL, _words_of_all(reports))]
    parts += ["## How to read this", *HOW_TO_READ.strip().split("\n\n")]
    for report in reports:
        parts += _section(report, picture, (more or {}).get(report.system, ""))
    text = "\n\n".join(part for part in map(_wrapped, map(_bound, parts)) if part)
    return f"{text}\n"


def _bound(part: str) -> str:
    """Keep a number and its unit on one line."""
    return re.sub(r"(?<=\d) ?(%|(?<= )ms\b)", "\u00a0\\1", part)


def _wrapped(part: str) -> str:
    """Break the lines of a paragraph; leave tables, lists, headings and tags as they are."""
    if part.startswith(("#", "|", "-", "<", "!")):
        return part
    return "\n".join(textwrap.wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """Return a table whose first columns, `words` of them, are words and the others numbers."""
    rules = [":---" if place < words else "---:" for place in range(len(heads))]
    lines = [heads, rules, *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def folded(summary: str, text: str) -> str:
    """Return text that the reader unfolds."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def _first_words(reports: Sequence[Validation], wrong: Sequence[str]) -> str:
    met = [each for report in reports for each in judged(report)]
    met += [goal.met for goal in goals_of_all(reports)] if len(reports) > 1 else []
    systems = f"{len(reports)} systems" if len(reports) > 1 else reports[0].system
    return f"**{systems}: {sum(met)} of {len(met)} targets are met, {len(wrong) or 'none'} missed.**"


def _misses(wrong: Sequence[str]) -> str:
    if not wrong:
        return "Nothing: every target is met."
    return "\n".join(f"- {sentence}" for sentence in wrong)


def _in_short(reports: Sequence[Validation]) -> list[str]:
    fits = [[r.system, *(f"{sum(of)} of {len(of)}" for of in (close(r), judged(r)))] for r in reports]
    parts = [
        f"**The figures as fitted.** Within {share(CLOSE)} or the figure's own rounding, of those that were measured "
        "and that nothing contradicts; and the targets of the system.",
        table(("system", "within 10 %", "targets met"), fits),
    ]
    if len(reports) > 1:
        parts += [_goals(goals_of_all(reports), "all systems together")]
    return [
        *parts,
        "**Scenarios that were left out: the error.** Median of the absolute errors, on all figures; and on those that "
        "all rules say something of, beside the best rule.",
        table(("system", "all figures", MODEL, "best rule", "capplan is"), [_errors_in_short(r) for r in reports]),
        "**Scenarios that were left out: the bands.** Mean interval score (small is good), where rules have one too, "
        "and median half-width on all figures. Most scenarios lie outside the range of the others, so these bands are "
        "wider than those of predictions inside it.",
        table(("system", MODEL, "best rule", "half-width"), [_bands_in_short(report) for report in reports]),
        "**Coverage of the 90 % bands**, with its 90 % confidence interval (Clopper and Pearson 1934), which goes by "
        "the number of independent scenarios.",
        table(("system", "held", "interval", "scenarios"), [_coverage_in_short(report) for report in reports]),
    ]


def _errors_in_short(report: Validation) -> list[str]:
    best, alone = best_rule(report.scores), share(report.own.error) if report.own else "none"
    if best is None:
        return [report.system, alone, "", "none", ""]
    own, rule = report.scores[MODEL].error, report.scores[best].error
    return [report.system, alone, share(own), f"{best} {share(rule)}", "better" if own < rule else "**worse**"]


def _bands_in_short(report: Validation) -> list[str]:
    width = _or_none(share, report.own.half_width) if report.own else "none"
    if MODEL not in report.scores:
        return [report.system, "", "none", width]
    sharpest = sharpest_rule(report.scores)
    rule = "none has bands" if sharpest is None else f"{sharpest} {_score(report, sharpest)}"
    return [report.system, _score(report, MODEL), rule, width]


def _score(report: Validation, name: str) -> str:
    return f"{report.scores[name].interval_score:.2f}"


def _coverage_in_short(report: Validation) -> list[str]:
    found = report.coverage
    return [
        report.system,
        f"{found.held} of {found.figures}",
        f"{share(found.low)} to {share(found.high)}",
        str(found.scenarios),
    ]


def _words_of_all(reports: Sequence[Validation]) -> str:
    return f"Signed errors of left-out figures of {', '.join(r.system for r in reports)}: capplan and the best rule"


def _section(report: Validation, picture: Picture, more: str) -> list[str]:
    named = names(report.figures)
    return [
        f"## {report.system}",
        report.verdict,
        covered(report.coverage),
        more,
        picture(report.system, f"Left-out figures of {report.system}: predicted with 90 % band against documented"),
        f"### {report.system}: targets",
        report.goals_in_words,
        _goals(report.goals, "goal"),
        f"### {report.system}: figures as fitted",
        *_figures(report, named),
        f"### {report.system}: scenarios that were left out",
        *_left_out(report, named),
        *_scores(report),
        f"### {report.system}: what does not count, and why",
        *_apart(report),
        f"### {report.system}: the parameters",
        _parameters(report),
    ]


def _goals(goals: Iterable[Goal], head: str) -> str:
    return table((head, "value", "at most", ""), [goal_cells(goal) for goal in goals])


def _figures(report: Validation, named: Mapping[str, str]) -> list[str]:
    """Return the figures that are off, then all of them, by scenario where they are many."""
    figures = report.figures
    if len(figures) <= MANY:
        return [_figures_table(figures, named)]
    off = [each for each in figures if each.met is False or (each.sound and not each.close(CLOSE))]
    parts = [_off_words(off, figures), *([_figures_table(off, named)] if off else [])]
    for scenario in dict.fromkeys(figure.scenario for figure in figures):
        those = [figure for figure in figures if figure.scenario == scenario]
        short = {each.id: named[each.id].removeprefix(f"{scenario} ") for each in those}
        parts.append(folded(_summary_of(scenario, those, short), _figures_table(those, short)))
    return parts


def _off_words(off: Sequence[Compared], figures: Sequence[Compared]) -> str:
    if not off:
        return f"Of {len(figures)} figures none that was measured is further off than 10 % and its own rounding."
    return (
        f"Of {len(figures)} figures these {len(off)} miss a goal of their own, or were measured and are further off "
        "than 10 % and their own rounding. All figures are below, by scenario."
    )


def _summary_of(scenario: str, figures: Sequence[Compared], named: Mapping[str, str]) -> str:
    worst = max(figures, key=lambda figure: abs(figure.error))
    count = "1 figure" if len(figures) == 1 else f"{len(figures)} figures"
    return f"{scenario}: {count}, the largest error {signed(worst.error)} ({named[worst.id]})"


def _figures_table(figures: Sequence[Compared], named: Mapping[str, str]) -> str:
    rows = [
        [
            named[each.id],
            with_unit(each.documented, each.unit),
            banded(each.predicted, each.band_low, each.band_high, each.unit),
            signed(each.error),
            verdict(each.met) or ("" if each.sound else "not counted"),
        ]
        for each in figures
    ]
    return table(("figure", "documented", "predicted (band of the parameters)", "error", "goal"), rows)


def _left_out(report: Validation, named: Mapping[str, str]) -> list[str]:
    groups: dict[str, list[LeftOut]] = {}
    for each in report.left_out:
        groups.setdefault(each.group, []).append(each)
    parts = [report.refits]
    for group, those in groups.items():
        tables = [_predicted_table(those, named), *_rules_tables(those, named)]
        kept = sum(each.estimates[MODEL].holds(each.documented) for each in those)
        summary = f"{group}: {kept} of {len(those)} inside their bands"
        whole = "\n\n".join(tables)
        parts += [folded(summary, whole)] if len(report.left_out) > MANY else [f"**{summary}.**", whole]
    return parts


def _predicted_table(left_out: Sequence[LeftOut], named: Mapping[str, str]) -> str:
    rows = []
    for each in left_out:
        said = each.estimates[MODEL]
        error = signed(said.value / each.documented - 1)
        value = banded(said.value, said.low, said.high, each.unit)
        cells = [with_unit(each.documented, each.unit), value, error, held(said, each.documented, each.counts)]
        rows.append([named[each.id], *cells])
    return table(("figure", "documented", "predicted without it (90 % band)", "error", "band"), rows)


def _rules_tables(left_out: Sequence[LeftOut], named: Mapping[str, str]) -> list[str]:
    beside = [each for each in left_out if len(each.estimates) > 1]
    if not beside:
        return []
    rules = list(dict.fromkeys(name for each in beside for name in each.estimates))
    rows = []
    for each in beside:
        errors = each.errors()
        rows.append([named[each.id], *(per_cent(errors[rule]) if rule in errors else "" for rule in rules)])
    return ["Errors beside those of the rules, in per cent:", table(("figure", *rules), rows)]


def _scores(report: Validation) -> list[str]:
    if report.own is None:
        return ["No figure is scored."]
    scored = {"capplan, all figures": report.own, **report.scores}
    rows = [
        [name, share(score.error), _or_none(significant, score.interval_score), _or_none(share, score.half_width)]
        for name, score in scored.items()
    ]
    some = "Scores: of capplan on all figures that count"
    some += (
        "; then of all on the figures that every rule says something of." if report.scores else "; no rule says any."
    )
    if not all(math.isfinite(score.half_width + score.interval_score) for score in scored.values()):
        some += " None: too few other scenarios tell how far off that is."
    return [some, table(("", "median error", "interval score", "half-width"), rows)]


def _or_none(form: Callable[[float], str], value: float) -> str:
    return "none" if math.isnan(value) else form(value)


def _apart(report: Validation) -> list[str]:
    """Say which figures count in no fit or no score, and why."""
    lines = [f"- {what}: {_listed(found, report.figures)}. {why}" for (what, why), found in apart(report).items()]
    return ["\n".join(lines) if lines else "Every figure counts."]


def apart(report: Validation) -> dict[tuple[str, str], list[str]]:
    """Return the ids of the figures that count in no fit or no score, by what becomes of them and why."""
    found: dict[tuple[str, str], list[str]] = {}
    rows = [row for test in study(report.system).experiments() for row in test.rows]
    scored = {each.id for each in report.left_out}
    for row in rows:
        why = _sentence(row.reason or "no reason is given")
        if row.use != "fit":
            found.setdefault(("Compared, not fitted", why), []).append(row.id)
        elif row.status != "measured" and row.id not in scored:
            found.setdefault(("Fitted, not scored", why), []).append(row.id)
    for each in report.left_out:
        if not each.counts:
            found.setdefault(("Left out, not scored", _sentence(each.not_scored)), []).append(each.id)
    return {why: ids for why, ids in found.items() if ids}


def _listed(found: Sequence[str], figures: Sequence[Compared]) -> str:
    """List ids; those of a scenario by their number where they are many."""
    scenarios: dict[str, list[str]] = {}
    for figure in figures:
        if figure.id in found:
            scenarios.setdefault(figure.scenario, []).append(figure.id)
    totals = Counter(figure.scenario for figure in figures)
    parts: list[str] = []
    for scenario, ids in scenarios.items():
        few = len(ids) <= LISTED
        parts += [f"`{each}`" for each in ids] if few else [f"{len(ids)} of the {totals[scenario]} of *{scenario}*"]
    return ", ".join(parts)


def _sentence(reason: str) -> str:
    return reason[:1].upper() + reason[1:] + ("" if reason.endswith(".") else ".")


def _parameters(report: Validation) -> str:
    others, its = report.free_parameters - report.fitted_parameters, report.posterior
    prior = f" and {others} with narrower priors" if others else ""
    return (
        f"{report.fitted_parameters} fitted parameters{prior}; of all of them the figures decide "
        f"{significant(report.effective_parameters)} (the effective number of parameters). The ensemble has "
        f"{report.draws} draws, each moved by {its.steps} steps of emcee, of which {share(its.acceptance)} were "
        f"accepted; before that the proposals were worth {significant(its.effective_sample_size)} independent draws. "
        f"The law of a parameter is at most {significant(its.laplace)} (Kolmogorov-Smirnov distance) from Laplace's "
        "normal approximation: 0 is the same law, 1 shares nothing with it."
    )
