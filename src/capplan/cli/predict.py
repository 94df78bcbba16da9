"""`capplan predict`: what a layout sustains, how fast it responds, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import given, given_demand, say_what_has_no_effect, with_options
from capplan.cli.shell.target import DEFAULT_TARGET, TargetOrNetworkText, read_target_or_network
from capplan.cli.shell.terminal import (
    DEFAULT_CONFIDENCE,
    PLOT_HELP,
    Confidence,
    Csv,
    Json,
    NoSolvingLimit,
    check_plot,
    chosen_engine,
    exit_by,
    naming,
    print_answer,
    refuse_both,
)
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import parse_duration_s, parse_share
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.planner.predict.prediction import Prediction
from capplan.reports import figure as look
from capplan.reports.node_needs import of_node
from capplan.reports.prediction import Answer, answered, describe, ratio_plot
from capplan.reports.prediction import plot as drawn
from capplan.systems.registry import resolve

if TYPE_CHECKING:
    from capplan.planner.demand.demand import Demand


ENGINES: tuple[PredictionEngine, ...] = ("compiled", "analytic", "simpy")


def predict_(
    ctx: typer.Context,
    target: TargetOrNetworkText = DEFAULT_TARGET,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How to obtain latencies: compiled or simpy simulate, analytic is fast.",
            show_default="compiled",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Simulation time on a nominal machine (two threads, 200 ns per visit), so results do not depend on "
            "yours. Each system has a default of at most 800ms; the least is 24,000 requests, for which SimPy takes "
            "half a minute and more. Four times the budget halves the simulation part of a band.",
        ),
    ] = None,
    confidence: Confidence = DEFAULT_CONFIDENCE,
    lose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARTS",
            help="What is lost at once, such as node,dc2,front: an outage of your own, and no other; may be repeated.",
        ),
    ] = None,
    growth: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Growth of --tps in a year, such as 20%: shows when it reaches the capacity, after --lose.",
        ),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show all figures, parts of their bands, assumptions and notes, too.")
    ] = False,
    sources: Annotated[bool, typer.Option("--sources", help="Show the sources of the evidence, too.")] = False,
    staleness: Annotated[
        bool, typer.Option("--staleness", help="Show how likely a session is not found in another data centre, too.")
    ] = False,
    no_limits: NoSolvingLimit = False,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Predict capacity, latency, utilisation and outages of a layout, or of a network of your own.

    With a rate or an objective, the answer is yes, no or uncertain, and counts what --lose names. Exit code 1 unless it
    is yes.

    Node counts are per data centre where there are several, rates and capacities are totals. The options of the layout
    are those of the target: `capplan predict fedora4 --help` shows fedora4's.
    """
    refuse_both(as_json, as_csv)
    check_plot(plot)
    chosen, wanted = read_target_or_network(target), _engine(engine, budget)
    shared: dict[str, Any] = {"seed": seed, "engine": wanted, "budget_s": _budget_s(budget, wanted)}
    shared["confidence"] = parse_share(confidence)
    asked_for = {"explain": explain, "sources": sources, "staleness": staleness}
    wanted_more = [name for name, shown in asked_for.items() if shown]
    if isinstance(chosen, Network):
        _refuse_for_network(target, plot, lose, growth, wanted_more)
        with counting("simulating rates") as progress:
            from capplan.planner.predict_network import predict_network  # slow to import

            question = with_options(NetworkQuestion(), given(ctx))
            prediction = predict_network(chosen, file=target, question=question, progress=progress, **shared)
        _finish(prediction, as_json, as_csv, wanted_more)
        return
    scenario = with_options(chosen.scenario, given(ctx))
    if not no_limits:
        from capplan.planner.time_limits import check_layout  # slow to import

        check_layout(scenario)
    with counting("simulating draws") as progress:
        prediction = predict(
            scenario,
            fitted=chosen.fitted,
            lose=tuple(lose or ()),
            growth=_growth(growth),
            progress=progress,
            **shared,
        )
    say_what_has_no_effect([scenario])
    if staleness and not prediction.session_not_found:
        say("--staleness shows nothing: no session is looked up in another data centre, or the rate is not carried")
    if plot is not None:
        _plot(prediction, resolve(scenario, chosen.fitted, seed), plot)
    node = of_node(scenario, seed)
    _finish(prediction, as_json, as_csv, wanted_more, _of_demand(given_demand(ctx), scenario), node)


def _of_demand(demand: Demand | None, scenario: Scenario) -> str:
    """Return in words how much data a demand puts on a layout."""
    if demand is None:
        return ""
    from capplan.reports.demand import data_in_words  # most predictions have no demand

    return data_in_words(demand, scenario)


def _growth(text: str | None) -> float | None:
    if text is None:
        return None
    from capplan.planner.demand.demand import parse_growth  # slow to import

    return parse_growth(text)


def _refuse_for_network(
    target: str, plot: Path | None, lose: list[str] | None, growth: str | None, more: Sequence[str]
) -> None:
    if systems_only := [name for name in more if name in ("sources", "staleness")]:
        raise InputError(f"--{systems_only[0]} is for systems, and {target} is a network: leave it out")
    if growth is not None:
        raise InputError(f"--growth {growth} is for systems, and {target} is a network: leave it out")
    if lose:
        raise InputError(
            f"--lose {lose[0]} is for systems, and {target} is a network: give its timeline an event with action "
            f"'down' and run `capplan simulate {target}`"
        )
    if plot is not None:
        raise InputError(
            f"--plot {plot} shows measured and calibrated figures, and {target} is a network without any: run "
            f"`capplan simulate {target} --plot {plot}`"
        )


def _plot(prediction: Prediction, case: Case[Any], path: Path) -> None:
    if prediction.throughput_ratios:
        look.write(path, f"{prediction.system}: prediction", lambda page: ratio_plot(prediction, page))
    elif prediction.peak_tps is not None and prediction.offered is not None:
        offered = prediction.offered.peak_tps
        shown = (prediction.peak_tps, prediction.latency_ms, prediction.outages, answered(prediction))
        answer = Answer(case.at(offered), offered, *shown)
        look.write(path, f"{prediction.system}: prediction", lambda page: drawn(answer, page))
    else:
        raise InputError(f"--plot {path} shows latencies along the rate, and these clients have none: give --tps")


def _engine(name: str | None, budget: str | None) -> PredictionEngine:
    """Return the engine; if none is chosen and the compiled one is missing, say so and take the analytic solver."""
    if name is None:
        from capplan.simulator.compiled.kernel.library import MISSING, is_compiled  # needs numpy

        if budget is not None or is_compiled():
            return "compiled"
        say(f"latencies come from the analytic solver; {MISSING}")
        return "analytic"
    return chosen_engine(name, ENGINES, "does not exist")


def _budget_s(text: str | None, engine: PredictionEngine) -> float | None:
    if text is None:
        return None
    if engine == "analytic":
        raise InputError(f"--budget {text} is for a simulation: leave it out, or choose --engine compiled")
    with naming("--budget"):
        return parse_duration_s(text)


def _finish(
    prediction: Prediction, as_json: bool, as_csv: bool, more: Sequence[str], data: str = "", node: str = ""
) -> None:
    """Show a prediction; exit with 1 unless its answer is yes or nothing was judged."""
    print_answer(prediction, lambda: describe(prediction, more, data, node), as_json, as_csv)
    exit_by(None if prediction.verdict is None else prediction.verdict.answer)
