"""`capplan validate`: every documented figure beside the prediction, and every scenario left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from capplan.calibration.fitted_file import load
from capplan.calibration.validate import Compared, LeftOut, Validation, median_errors, validate
from capplan.cli.layout import section, table
from capplan.cli.target import read_target
from capplan.cli.terminal import Csv, Json, Screen, refuse_both, write_csv, write_json

_FEW = 2  # families whose scenarios are listed one by one


def validate_(
    target: Annotated[str, typer.Argument(help="A system or a fitted file (.json).")] = "openprovider",
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Hold a calibrated system against its evidence, and against simple rules; exit 1 if a goal is missed."""
    refuse_both(as_json, as_csv)
    chosen = read_target(target)
    report = validate(chosen.fitted or load(chosen.scenario.system))
    if as_json:
        write_json(report)
    elif as_csv:
        columns = [field.name for field in fields(Compared)]
        write_csv(columns, [[getattr(figure, name) for name in columns] for figure in report.figures])
    else:
        _show(report, Screen())
    if not report.passed:
        raise typer.Exit(1)


def _show(report: Validation, screen: Screen) -> None:
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
    named = len({(figure.scenario, figure.quantity) for figure in report.figures}) == len(report.figures)
    for figure in report.figures:
        name = figure.scenario if named else figure.id
        figures.add_row(name, figure.quantity, *_numbers(figure), f"{figure.error:+.1%}", _goal(figure))
    screen.print(figures)
    if any(figure.share_of_time is not None for figure in report.figures):
        screen.print(_about_busy_workers(report))
    for goal in report.goals:
        screen.print(f"{goal.name}: {goal.value:.1%} of at most {goal.limit:.0%}: {'met' if goal.met else 'MISSED'}")
    others = report.free_parameters - report.fitted_parameters
    screen.print(
        f"{report.fitted_parameters} fitted parameters and {others} with narrower priors; of all of them the figures "
        f"decide {report.effective_parameters:.1f}."
    )
    _show_left_out(report, screen)


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
    screen.print(section("Left out: each scenario's figures by a fit without it, beside simple rules"))
    families = {name: [each for each in report.left_out if each.family == name] for name in _families(report)}
    if len(families) > _FEW:
        screen.print("Medians of the absolute errors; --json has each scenario.")
        screen.print(_families_table(families))
    else:
        for name, alone in families.items():
            if len(families) > 1:
                screen.print(f"\n{name}")
            screen.print(_left_out_table(alone))
    screen.print(report.verdict)


def _families(report: Validation) -> list[str]:
    return list(dict.fromkeys(each.family for each in report.left_out))


def _families_table(families: Mapping[str, list[LeftOut]]) -> Table:
    """Return the median errors of each family of left-out figures."""
    medians = {name: median_errors(alone) for name, alone in families.items()}
    names = list(next(iter(medians.values())))
    listed = table(("figure", "left"), ("scenarios", "right"), *((name, "right") for name in names))
    for name, errors in medians.items():
        listed.add_row(name, str(len(families[name])), *(f"{errors[each]:.1%}" for each in names))
    return listed


def _left_out_table(left_out: list[LeftOut]) -> Table:
    """Return the left-out figures of one family."""
    names = list(max(left_out, key=lambda each: len(each.baselines)).errors())
    errors = table(
        ("scenario", "left"), ("capplan, 90 %\nof parameters", "right"), *((name, "right") for name in names)
    )
    for each in left_out:
        made = each.errors()
        errors.add_row(each.fold, _band(each), *(f"{made[name]:+.1%}" if name in made else "" for name in names))
    medians = median_errors(left_out)
    if medians:
        errors.add_row("median", "", *(f"{medians[name]:.1%}" for name in names))
    return errors


def _band(each: LeftOut) -> str:
    if each.unit == "s":
        return f"{each.predicted * 1e3:.3g} ({each.low * 1e3:.3g}-{each.high * 1e3:.3g}) ms"
    return f"{each.predicted:,.0f} ({each.low:,.0f}-{each.high:,.0f})"


def _numbers(figure: Compared) -> tuple[str, str]:
    if figure.unit == "s":
        return f"{figure.documented * 1e3:.1f} ms", f"{figure.predicted * 1e3:.2f} ms"
    if figure.unit == "1/s":
        return f"{figure.documented:,.0f}/s", f"{figure.predicted:,.0f}/s"
    if figure.quantity.startswith("cpu"):
        return f"{figure.documented:.2f} cores", f"{figure.predicted:.2f} cores"
    return f"{figure.documented:g}", f"{figure.predicted:.1f}"


def _goal(figure: Compared) -> str:
    return "" if figure.met is None else "met" if figure.met else "MISSED"
