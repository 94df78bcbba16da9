"""`capplan outages`: what remains after a loss, the minutes around it, and whether the system recovers from retries."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated

import typer

from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import given, say_what_has_no_effect, with_options
from capplan.cli.shell.target import DEFAULT_TARGET, TargetOrNetworkText, read_target_or_network
from capplan.cli.shell.terminal import (
    DEFAULT_CONFIDENCE,
    PLOT_HELP,
    Confidence,
    Json,
    NoSolvingLimit,
    check_plot,
    chosen_engine,
    exit_by,
    exit_unless,
    naming,
    print_answer,
    seconds,
)
from capplan.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.units import check_number, parse_count, parse_share
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.outages.outages import DETECTION_S, OutagesQuestion, outages_of_network, outages_of_scenario
from capplan.planner.outages.places import ClientOptions, Return
from capplan.planner.outages.transient import Effort, Times
from capplan.planner.predict.predict import PredictionEngine
from capplan.planner.time_limits import check_layout
from capplan.reports import figure as look
from capplan.reports.document import Block
from capplan.reports.outages import describe
from capplan.reports.outages import plot as drawn
from capplan.reports.population import rests

ENGINES: tuple[PredictionEngine, ...] = ("compiled", "analytic")
_STEPS = (1.0, 3.0)  # of a range of times, in each power of ten


def outages_(
    ctx: typer.Context,
    target: TargetOrNetworkText = DEFAULT_TARGET,
    lose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="What is lost at once, such as node,dc2; of a network, names of stations. May be repeated.",
        ),
    ] = None,
    at: Annotated[str, typer.Option(metavar="TIME", help="When it is lost.")] = "20s",
    lasts: Annotated[str, typer.Option("--for", metavar="TIME", help="How long it is lost.")] = "60s",
    after: Annotated[str, typer.Option(metavar="TIME", help="Time to simulate after its return.")] = "40s",
    detection: Annotated[
        str, typer.Option(metavar="TIME", help="Time until others know of the loss and stop sending.")
    ] = f"{DETECTION_S:g}s",
    cold: Annotated[
        str | None,
        typer.Option(metavar="TIME@SPEED", help="Slower after the return, for hints or cold caches: 30s@70%."),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time until a client gives up an attempt; 2s (RFC 5080, Java driver)."),
    ] = None,
    attempts: Annotated[
        str | None,
        typer.Option(metavar="N", help="Attempts of each request, with the first; with --trigger a range: 1..5."),
    ] = None,
    backoff: Annotated[
        str | None,
        typer.Option(metavar="TIME*FACTOR", help="Wait before the next attempt, and its growth; 600ms*3.1 (RFC 5080)."),
    ] = None,
    within: Annotated[
        str, typer.Option(metavar="SHARE", help="Tolerance of rate and p99 that count as normal again.")
    ] = "10%",
    trigger: Annotated[
        str | None, typer.Option(metavar="TIMES", help="Does it recover from a loss of 1s..60s? A table by attempts.")
    ] = None,
    surge: Annotated[
        float | None,
        typer.Option(metavar="FACTOR", help="With --trigger: multiply the traffic by FACTOR; nothing is lost."),
    ] = None,
    horizon: Annotated[
        str | None, typer.Option(metavar="TIME", help="With --trigger: time to simulate after its end.")
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Computing time of each loss and table, on a nominal machine.")
    ] = "10s",
    replications: Annotated[
        int | None, typer.Option(min=1, help="Runs of each loss or cell; what the budget pays for (3 to 20).")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="Where latencies in the long run come from: compiled or analytic.")
    ] = ENGINES[0],
    confidence: Confidence = DEFAULT_CONFIDENCE,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    processes: Annotated[int | None, typer.Option(min=1, help="Runs at a time; all processors.")] = None,
    no_limits: NoSolvingLimit = False,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Show what a loss leaves in the long run, the minutes around it, and whether retries let the system recover.

    Without --lose, the screen shows every loss that the system knows, and the minutes around the first. Exit code 1
    unless the answer is yes and every simulated loss is back to normal at the end.
    """
    check_plot(plot)
    chosen = read_target_or_network(target)
    triggers = () if trigger is None else read_times(trigger)
    numbers = () if attempts is None else _attempts(attempts)
    if len(numbers) > 1 and not triggers:
        raise InputError(f"--attempts {attempts} are columns of a table: add --trigger, such as 1s..60s, or give one")
    back, times = _backoff(backoff), {"--at": at, "--for": lasts, "--after": after}
    question = OutagesQuestion(
        lose=tuple(lose or ()),
        times=Times(*(seconds(name, text.strip()) for name, text in times.items())),
        how=Return(seconds("--detection", detection.strip()), *_cold(cold)),
        clients=ClientOptions(
            None if timeout is None else _positive("--timeout", timeout),
            numbers[0] if len(numbers) == 1 else None,
            *back,
        ),
        within=parse_share(within),
        effort=Effort(seconds("--budget", budget.strip()), seed, replications),
        engine=chosen_engine(engine, ENGINES, "does not predict outages"),
        confidence=parse_share(confidence),
        triggers_s=triggers,
        attempts=numbers,
        surge=None if surge is None else float(check_number(surge, "--surge", above=1.0, bounded=True)),
        horizon_s=None if horizon is None else _positive("--horizon", horizon),
        processes=processes or os.cpu_count() or 1,
    )
    first: tuple[Block, ...] = ()
    with counting("simulating losses") as progress:
        if isinstance(chosen, Network):
            asked = with_options(NetworkQuestion(), given(ctx))
            if asked.slo:
                raise InputError(f"--slo {asked.slo[0]} is for `capplan predict {target}`: leave it out")
            options = {"--confidence": confidence != DEFAULT_CONFIDENCE, "--engine": engine != ENGINES[0]}
            for option in (each for each, is_given in options.items() if is_given):
                raise InputError(f"{option} is for systems, and {target} is a network: leave it out")
            rate = None if asked.tps is None else float(asked.tps)
            answer = outages_of_network(chosen, question, target, rate)
        else:
            scenario = with_options(chosen.scenario, given(ctx))
            if not no_limits:
                check_layout(scenario)
            answer = outages_of_scenario(scenario, question, chosen.fitted, progress)
            say_what_has_no_effect([scenario])
            first = () if as_json else tuple(rests(scenario, chosen.fitted))
    if plot is not None:
        look.write(plot, f"{answer.system}: outages", lambda page: drawn(answer, page))
    print_answer(answer, lambda: (*first, *describe(answer)), as_json)
    exit_by(None if answer.verdict is None else answer.verdict.answer)
    exit_unless(answer.recovers)


def read_times(text: str) -> tuple[float, ...]:
    """Read lengths of time: one, a list, or a range; `1s..60s` also includes 1 and 3 of each power of ten in between.

    Raises
    ------
    InputError
        If one cannot be read, is not above 0, or a range goes down.
    """
    found = set[float]()
    for item in text.split(","):
        first, dots, last = item.partition("..")
        low = _positive("--trigger", first)
        found.add(low)
        if dots:
            high = _positive("--trigger", last)
            if high <= low:
                raise InputError(f"--trigger {text}: {item.strip()} goes down: write the shorter time first")
            found.update((*_between(low, high), high))
    return tuple(sorted(found))


def _between(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = [step * 10.0**power for power in powers for step in _STEPS]
    return [step for step in steps if low < step < high]


def _attempts(text: str) -> tuple[int, ...]:
    first, dots, last = text.partition("..")
    with naming("--attempts"):
        numbers = tuple(map(parse_count, (first, last) if dots else text.split(",")))
    if dots:
        numbers = tuple(range(numbers[0], numbers[1] + 1))
    if not numbers or min(numbers) < 1:
        raise InputError(f"--attempts {text}: there is at least the first, so give 1 or more, such as 1..5")
    return numbers


def _backoff(text: str | None) -> tuple[float | None, float | None]:
    if text is None:
        return None, None
    wait, star, factor = text.partition("*")
    waits_s = seconds("--backoff", wait.strip())
    if not star:
        return waits_s, 1.0
    try:
        return waits_s, float(check_number(float(factor), "factor", above=0.0, bounded=True))
    except (ValueError, InputError):
        raise InputError(f"--backoff {text}: {factor!r} is no factor above 0: write such as 600ms*3.1") from None


def _cold(text: str | None) -> tuple[float, float]:
    if text is None:
        return 0.0, 1.0
    time, sign, speed = text.partition("@")
    found = parse_share(speed) if sign else 1.0
    if not 0 < found < 1:
        raise InputError(f"--cold {text}: give a time and a relative speed above 0 and below 100 %, such as 30s@70%")
    return _positive("--cold", time), found


def _positive(option: str, text: str) -> float:
    found = seconds(option, text.strip())
    if found <= 0:
        raise InputError(f"{option} {text}: give a time above 0, such as 2s")
    return found
