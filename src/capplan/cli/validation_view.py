"""A validation for people: figures, goals, scenarios that were left out, bands; in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from capplan.calibration.study import Goal
from capplan.calibration.validation.backtest import LeftOut
from capplan.calibration.validation.validate import CLOSE, goals_of_all, median_errors
from capplan.calibration.validation.validation import MODEL, Compared, Validation
from capplan.cli.layout import bullets, section, table
from capplan.cli.terminal import Screen
from capplan.planner.reports.validation_words import best_rule, covered

_FEW = 12  # left-out figures that are listed one by one


def show(report: Validation, screen: Screen) -> None:
    """Print the report on one system."""
    screen.print(Text(_first_line(report), "bold"))
    screen.print(report.goals_in_words)
    figures = table(
        ("scenario", "left"),
        ("figure", "left"),
        ("documented", "right"),
        ("predicted", "right"),
        ("error", "right"),
        ("goal", "left"),
    )
    figures.columns[1].no_wrap = False  # names of figures give way in narrow terminals
    named = len({(figure.scenario, figure.quantity) for figure in report.figures}) == len(report.figures)
    for figure in report.figures:
        name = figure.scenario if named else figure.id
        figures.add_row(name, figure.quantity, *_numbers(figure), f"{figure.error:+.1%}", _goal(figure))
    screen.print(figures)
    if any(figure.share_of_time is not None for figure in report.figures):
        screen.print(_about_busy_workers(report))
    for goal in report.goals:
        screen.print(goal_line(goal))
    _show_left_out(report, screen)
    _show_scores(report, screen)
    _show_parameters(report, screen)


def goal_line(goal: Goal) -> str:
    """Say a goal, what it is, and whether it is met."""
    if goal.share:
        value, limit = f"{goal.value:.1%}", f"{goal.limit:.1%}".replace(".0%", "%")
    else:
        value, limit = f"{goal.value:.2f}", f"{goal.limit:.2f}"
    return f"{goal.name}: {value} of at most {limit}: {'met' if goal.met else 'MISSED'}"


def _first_line(report: Validation) -> str:
    """Say how many figures meet their goals, and how far off the worst of those without one is."""
    met = [figure.met for figure in report.figures if figure.met is not None]
    text = f"{report.system}: {sum(met)} of {len(met)} figures with a goal are met"
    if report.goals:
        text += f", and {sum(goal.met for goal in report.goals)} of {len(report.goals)} goals that figures share"
    others = [figure for figure in report.figures if figure.met is None]
    if not others:
        return f"{text}."
    worst = max(others, key=lambda figure: abs(figure.error))
    if len(others) == 1:
        return f"{text}; {worst.id} is compared without a goal, error {worst.error:+.0%}."
    own = " of their own" if report.goals else ""
    largest = f"the largest error {worst.error:+.0%} ({worst.id})"
    return f"{text}; {len(others)} others are compared without one{own}, {largest}."


def _about_busy_workers(report: Validation) -> str:
    shares = [(f.scenario, f.share_of_time) for f in report.figures if f.share_of_time is not None]
    levels = ", ".join(f"{scenario} {share:.0%}" for scenario, share in shares)
    return (
        "Busy workers have no goal: Little's law refutes the document's figures as means (capplan evidence audit), and "
        "no constant factor mends them. The model's mean is rate times time. Its busy workers are at or below the "
        f"documented figure for this share of the time: {levels}. The closer these shares, the better a reading as a "
        "high sample, not a mean, explains the document, which does not say what it reports."
    )


def _show_left_out(report: Validation, screen: Screen) -> None:
    scored = [each for each in report.left_out if each.family and each.counts]
    screen.print(section("Left out: each scenario's figures by a fit without it, beside simple rules"))
    families = {name: [each for each in scored if each.family == name] for name in _families(scored)}
    if len(scored) > _FEW:
        screen.print("Medians of the absolute errors; --json has each scenario.")
        screen.print(_families_table(families))
    else:
        for name, alone in families.items():
            if len(families) > 1:
                screen.print(f"\n{name}")
            screen.print(_left_out_table(alone))
    screen.print(report.verdict)
    screen.print(report.refits)


def _families(left_out: Sequence[LeftOut]) -> list[str]:
    return list(dict.fromkeys(each.family for each in left_out))


def _families_table(families: Mapping[str, list[LeftOut]]) -> Table:
    """Return the median errors of each family of left-out figures."""
    medians = {name: median_errors(alone) for name, alone in families.items()}
    names = list(next(iter(medians.values())))
    listed = table(("figure", "left"), ("scenarios", "right"), *((name, "right") for name in names))
    listed.columns[0].no_wrap = False
    for name, errors in medians.items():
        scenarios = len({each.fold for each in families[name]})
        listed.add_row(name, str(scenarios), *(_per_cent(errors[each]) for each in names))
    return listed


def _per_cent(error: float) -> str:
    """Return an error without decimals where it is as large as the figure."""
    return f"{error:.0%}" if error >= 1 else f"{error:.1%}"


def _left_out_table(left_out: list[LeftOut]) -> Table:
    """Return the left-out figures of one family."""
    names = list(max(left_out, key=lambda each: len(each.estimates)).estimates)
    errors = table(("scenario", "left"), ("capplan, 90 % band", "right"), *((name, "right") for name in names))
    for each in left_out:
        made = each.errors()
        errors.add_row(each.fold, _band(each), *(f"{made[name]:+.1%}" if name in made else "" for name in names))
    medians = median_errors(left_out)
    if medians:
        errors.add_row("median", "", *(f"{medians[name]:.1%}" for name in names))
    return errors


def _band(each: LeftOut) -> str:
    said = each.estimates["capplan"]
    if each.unit == "s":
        return f"{said.value * 1e3:.3g} ({said.low * 1e3:.3g}-{said.high * 1e3:.3g}) ms"
    if each.unit == "1":
        return f"{said.value:.2f} ({said.low:.2f}-{said.high:.2f})"
    return f"{said.value:,.0f} ({said.low:,.0f}-{said.high:,.0f})"


def _show_scores(report: Validation, screen: Screen) -> None:
    screen.print(section("Bands of scenarios that were left out"))
    listed = table(("", "left"), ("median error", "right"), ("mean interval score", "right"), ("half-width", "right"))
    if report.own is None:
        screen.print("No figure is scored.")
        return
    for name, score in {"capplan, all figures": report.own, **report.scores}.items():
        listed.add_row(name, f"{score.error:.1%}", _score(score.interval_score), _share(score.half_width))
    screen.print(listed)
    screen.print(
        "The interval score is in the logarithm: the width of a band and 20 times what it misses by. Rules are scored "
        "on the figures that all of them say something of. Most scenarios lie outside the range of the others, so "
        "these bands are wider than those of predictions inside it."
    )
    screen.print(covered(report.coverage))


def _score(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "none"


def _share(value: float) -> str:
    return f"{value:.0%}" if math.isfinite(value) else "none"


def _show_parameters(report: Validation, screen: Screen) -> None:
    screen.print(section("Parameters"))
    others, its = report.free_parameters - report.fitted_parameters, report.posterior
    screen.print(
        f"{report.fitted_parameters} fitted parameters and {others} with narrower priors; of all of them the figures "
        f"decide {report.effective_parameters:.1f}. {report.draws} draws, moved by {its.steps} steps of emcee "
        f"({its.acceptance:.0%} accepted); their laws are at most {its.laplace:.2f} (Kolmogorov-Smirnov) from "
        "Laplace's normal ones."
    )


def show_all(reports: Sequence[Validation], screen: Screen) -> None:
    """Print the reports on all systems side by side."""
    goals = goals_of_all(reports)
    missed = [f"{each.system}: {text}" for each in reports for text in missed_of(each)]
    missed += [f"all: {goal_line(goal)}" for goal in goals if not goal.met]
    screen.print(Text(f"{len(reports)} systems; {_targets(len(missed))} missed.", "bold"))
    _show_summaries(reports, screen)
    for goal in goals:
        screen.print(goal_line(goal))
    for each in reports:
        screen.print(section(each.system))
        screen.print(each.verdict)
        screen.print(covered(each.coverage))
    if missed:
        screen.print(section("Missed"))
        screen.print(bullets(missed))


def _show_summaries(reports: Sequence[Validation], screen: Screen) -> None:
    """Print a line for each system, and what its columns are."""
    listed = table(
        ("", "left"),
        ("goals", "right"),
        ("in 10 %", "right"),
        ("left out", "right"),
        ("beside best rule", "right"),
        ("bands", "right"),
        ("held", "right"),
    )
    for each in reports:
        listed.add_row(*_summary(each))
    screen.print(listed)
    screen.print(
        "Goals: those that are met; in 10 %: measured figures as fitted; left out: the median error on all figures, "
        "then on those that simple rules say something of, beside the best rule's; bands: their median half-width, and "
        "how many held the figure."
    )


def _targets(count: int) -> str:
    return "1 target is" if count == 1 else f"{count or 'no'} targets are"


def missed_of(report: Validation) -> list[str]:
    """Say which targets a system misses."""
    figures = [f"{each.id} ({each.error:+.1%})" for each in report.figures if each.met is False]
    return [*figures, *(goal_line(goal) for goal in report.goals if not goal.met)]


def _summary(report: Validation) -> list[str]:
    judged = [each.met for each in report.figures if each.met is not None] + [goal.met for goal in report.goals]
    sound = [each.close(CLOSE) for each in report.figures if each.sound]
    own, best = report.own, best_rule(report.scores)
    return [
        report.system,
        f"{sum(judged)}/{len(judged)}",
        f"{sum(sound)}/{len(sound)}",
        f"{own.error:.1%}" if own else "",
        f"{report.scores[MODEL].error:.1%} / {report.scores[best].error:.1%} {best}" if best else "",
        _share(own.half_width) if own else "",
        f"{report.coverage.held}/{report.coverage.figures}",
    ]


def _numbers(figure: Compared) -> tuple[str, str]:
    if figure.unit == "s":
        return f"{figure.documented * 1e3:.1f} ms", f"{figure.predicted * 1e3:.2f} ms"
    if figure.unit == "1/s":
        return f"{figure.documented:,.0f}/s", f"{figure.predicted:,.0f}/s"
    if figure.quantity.startswith("cpu"):
        return f"{figure.documented:.2f} cores", f"{figure.predicted:.2f} cores"
    if "throughput ratio" in figure.quantity:
        return f"{figure.documented:.3f}", f"{figure.predicted:.3f}"
    return f"{figure.documented:g}", f"{figure.predicted:.1f}"


def _goal(figure: Compared) -> str:
    return "" if figure.met is None else "met" if figure.met else "MISSED"
