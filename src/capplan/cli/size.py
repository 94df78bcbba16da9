"""`capplan size`: the cheapest layout that meets its objectives in every situation it must survive."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import (
    flag,
    given,
    given_demand,
    replaced_fields,
    say_what_has_no_effect,
    values_given,
    with_options,
)
from capplan.cli.shell.target import DEFAULT_TARGET, Target, TargetText, read_target
from capplan.cli.shell.terminal import (
    DEFAULT_CONFIDENCE,
    PLOT_HELP,
    Confidence,
    Json,
    NoTimeLimit,
    check_plot,
    chosen_engine,
    exit_unless,
    print_answer,
)
from capplan.cli.shell.workers import workers_for
from capplan.errors import InputError
from capplan.layout.components import Machines
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import parse_share
from capplan.planner.demand.demand import parse_growth
from capplan.planner.ranges import WHOLE, value_type
from capplan.planner.size.machines import Prices, read_prices, shapes_given
from capplan.planner.size.size import SizingQuestion, families, largest, most_machines, size
from capplan.planner.sustained import JudgingEngine
from capplan.planner.sweep import rate_fields
from capplan.reports import figure as look
from capplan.reports.sizing import describe
from capplan.reports.sizing import plot as drawn
from capplan.systems.registry import system

ENGINES: tuple[JudgingEngine, ...] = ("compiled", "analytic")
_MOST_GROWTH = 10.0


Survive = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SITUATIONS",
        help="Situations in which the objectives must hold, such as dc,node,dc+compaction; `+` joins what happens "
        "at once.",
    ),
]
Growth = Annotated[str | None, typer.Option(metavar="SHARE/y", help="Growth of the offered rate, such as 30%/y.")]
Years = Annotated[float | None, typer.Option(help="Years to plan for.")]
PriceList = Annotated[Path | None, typer.Option(help="Prices of machines (.toml); each counts as one by default.")]
ShapeList = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAMES",
        help="Machines to choose from: a file (.toml) with what they have and cost, or machine types of clouds, such "
        "as i4i.4xlarge,m6i.4xlarge.",
    ),
]
Cells = Annotated[
    str | None, typer.Option(metavar="N", help="Equal cells that share the traffic, such as 1..10; one by default.")
]
Engine = Annotated[
    str, typer.Option(metavar="NAME", help="compiled confirms the best layouts by simulation; analytic does not.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random number.")]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Layout families to search in parallel (default: one per CPU).")
]


def size_(
    ctx: typer.Context,
    target: TargetText = DEFAULT_TARGET,
    survive: Survive = None,
    confidence: Confidence = DEFAULT_CONFIDENCE,
    growth: Growth = None,
    years: Years = None,
    prices: PriceList = None,
    shapes: ShapeList = None,
    cells: Cells = None,
    engine: Engine = ENGINES[0],
    seed: Seed = 1,
    processes: Processes = None,
    dask: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="local, or tcp://host:port.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every situation of every layout, too.")] = False,
    no_limits: NoTimeLimit = False,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Find the smallest or cheapest layout that carries a rate, meets its objectives and survives what it must.

    Options of the layout are those of the target. Numbers of machines and of data centres are searched: give a range
    such as 3..30 to narrow the search, or one number to fix it. Other options take lists, such as
    --consistency-write QUORUM,LOCAL_QUORUM. Exit code 1 if no layout is safe enough.
    """
    check_plot(plot)
    chosen = read_target(target)
    its: System[Any] = system(chosen.scenario.system)
    base, question = asked(ctx, chosen, survive, confidence, growth, years, prices, engine, seed, shapes, cells)
    chosen_from = families(base, question)
    if dask is None and not no_limits:
        from capplan.planner.time_limits import check_sizing  # slow to import

        check_sizing(base, chosen_from, processes or os.cpu_count() or 1)
    with (
        counting("searching families of layouts") as progress,
        workers_for(len(chosen_from), processes, dask) as workers,
    ):
        sizing = size(base, question, workers, chosen.fitted, progress)
    say_what_has_no_effect(largest(base, chosen_from))
    if plot is not None:
        look.write(plot, f"{sizing.system}: sizing", lambda page: drawn(sizing, its, page))
    fitted_system = its.of(chosen.fitted or its.fitted())
    print_answer(sizing, lambda: describe(sizing, fitted_system, explain), as_json)
    exit_unless(sizing.answer == "yes")


def asked(
    ctx: typer.Context,
    chosen: Target,
    survive: list[str] | None,
    confidence: str,
    growth: str | None,
    years: float | None,
    prices: Path | None,
    engine: str,
    seed: int,
    shapes: str | None,
    cells: str | None,
) -> tuple[Scenario, SizingQuestion]:
    """Return the fields that are not sized, and the question, from the options of a command."""
    if shapes is not None and prices is not None:
        raise InputError(f"--prices {prices} has no effect beside --shapes: shapes have prices of their own")
    its: System[Any] = system(chosen.scenario.system)
    if shapes is not None:
        _refuse_what_shapes_say(given(ctx), its.component(Machines))
    base, sized, fixed = _space(chosen.scenario, its.component(Machines), given(ctx))
    return base, SizingQuestion(
        survive=tuple(survive or ()),
        confidence=parse_share(confidence),
        growth_per_year=_growth(growth),
        years=_years(years, growth),
        sized=sized,
        families=fixed,
        prices=Prices() if prices is None else read_prices(prices, its),
        shapes=None if shapes is None else shapes_given(shapes, its),
        cells=_cells(cells),
        demand=given_demand(ctx),
        engine=chosen_engine(engine, ENGINES, "does not size"),
        seed=seed,
    )


def _refuse_what_shapes_say(texts: Mapping[str, Any], machines: Machines[Any]) -> None:
    of_shapes = {name for each in machines.kinds.values() for name in each.fields}
    if both := [name for name in texts if name in of_shapes]:
        raise InputError(f"{flag(both[0])} has no effect beside --shapes, which state what machines have")


def _space(
    start: Scenario, machines: Machines[Any], texts: Mapping[str, Any]
) -> tuple[Scenario, dict[str, tuple[int, int]], dict[str, tuple[Any, ...]]]:
    """Return the fixed fields, the ranges of machine counts, and the candidate values of the other fields."""
    kind = type(start)
    replaced = replaced_fields(kind, texts)
    searched = {
        name for name, text in texts.items() if name in {**machines.sized, **machines.families} or _is_several(text)
    }
    found = {name: values_given(name, texts[name], value_type(kind, name)) for name in texts if name in searched}
    if rates := searched & set(rate_fields(kind)):
        raise InputError(f"{flag(min(rates))} {texts[min(rates)]}: a layout is sized for one rate, the highest")
    sized = {name: _ends(name, texts[name], values) for name, values in found.items() if name in machines.sized}
    fixed = {name: values for name, values in found.items() if name not in machines.sized}
    plain = {name: text for name, text in texts.items() if name not in machines.sized and not _is_several(text)}
    try:
        base = with_options(start, plain)
    except InputError:  # perhaps of as few machines as by default, or without an option that is listed
        listed = {name: values[0] for name, values in fixed.items()}
        base = with_options(start, {**listed, **plain, **most_machines(start, sized)})
    base = changed(base, **{name: None for name in replaced if name not in texts})
    for name in machines.sized:
        if name not in texts and isinstance(getattr(base, name), tuple):
            say(f"{name} differs by data centre in the target: layouts of equal data centres are searched instead")
    if lists := _lists(texts):  # they say how many data centres there are
        if "dcs" in machines.families:
            fixed.setdefault("dcs", (base.given()["dcs"],))
        _refuse_lists_for_several(texts, lists[0], fixed.get("dcs", ()))
    return base, sized, fixed


def _ends(name: str, text: str, values: Sequence[int]) -> tuple[int, int]:
    """Return the ends of a range of machines; refuse one that leaves numbers out."""
    low, high = min(values), max(values)
    if len(set(values)) <= high - low:
        raise InputError(
            f"{flag(name)} {text} leaves numbers out, and every number of a range is searched: write {low}..{high}, or "
            "one number"
        )
    return low, high


def _lists(texts: Mapping[str, Any]) -> list[str]:
    """Return the options with one value for each data centre, or for each pair."""
    pattern = re.compile(r"[\d.%]+(/[\d.%]+)+|dc\d+-dc\d+=.*", re.IGNORECASE)
    return [name for name, text in texts.items() if pattern.fullmatch("".join(str(text).split()))]


def _refuse_lists_for_several(texts: Mapping[str, Any], name: str, dcs: Sequence[int]) -> None:
    """Refuse an option that names data centres one by one where their number varies."""
    if len(set(dcs)) > 1:
        raise InputError(
            f"{flag(name)} {texts[name]} names data centres one by one, and --dcs {texts['dcs']} varies their number: "
            "give one value for all, or one number of data centres"
        )


def _is_several(text: Any) -> bool:
    """Whether a text lists several values, as opposed to one value per pair of data centres or a number with commas."""
    if not isinstance(text, str) or "=" in text:
        return False
    return ".." in text or re.search(r",(?!\d{3}(\D|$))", text) is not None


def _cells(text: str | None) -> tuple[int, ...]:
    if text is None:
        return (1,)
    found = tuple(map(int, values_given("cells", text, WHOLE)))
    if min(found) < 1:
        raise InputError(f"--cells {text}: there is at least one cell")
    return found


def _growth(text: str | None) -> float:
    if text is None:
        return 0.0
    growth = parse_growth(text)
    if not 0 <= growth <= _MOST_GROWTH:
        raise InputError(f"--growth {text}: give 0 % to {_MOST_GROWTH:.0%} a year, such as 30%")
    return growth


def _years(years: float | None, growth: str | None) -> float:
    if years is not None and growth is None:
        raise InputError(f"--years {years:g} has no effect without --growth: add one such as --growth 30%/y")
    return (1.0 if growth is not None else 0.0) if years is None else years
