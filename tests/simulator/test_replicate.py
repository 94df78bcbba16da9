"""Replications: the same with any engine and any number at a time, and stopped on request."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.simulator.small_networks import network, timeline, visit

from capplan.models.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open
from capplan.models.results import plain
from capplan.simulator.engine import Engine, simulate
from capplan.simulator.experiments.replications import ReplicationPlan, replicate
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.trace import Requests

ENGINES: tuple[Engine, ...] = ("compiled", "simpy")


def queue() -> Network:
    """A single server at 60 % load that is down for a tenth of a second."""
    made = network(Visit("server", Exponential(0.006)))
    return replace(
        made, traffic=Open(100.0, {"ask": 1.0}), timeline=timeline((500, "down", "server"), (600, "up", "server"))
    )


def plan(**changed: Any) -> ReplicationPlan:
    return replace(ReplicationPlan(queue(), 2.0, 0.2, seed=3, replications=3), **changed)


def figures(run: Run) -> str:
    """Everything in a run that both engines know."""
    reports = {name: (each.started, each.completed, each.little()) for name, each in run.reports.items()}
    latencies = {name: each.intended.counts.tolist() for name, each in run.reports.items()}
    series = {name: column.tolist() for name, column in vars(run.series).items()}
    pools = {name: (each.taken, each.busy_share.tolist()) for name, each in run.pools.items()}
    return json.dumps([plain(reports), latencies, plain(run.stations), plain(pools), str(series), run.marks])


def all_figures(seen: list[Run]) -> list[str]:
    return [figures(run) for run in seen]


@pytest.mark.parametrize("engine", ENGINES)
def test_results_do_not_depend_on_how_many_run_at_a_time(engine: Engine) -> None:
    alone = replicate(plan(engine=engine), processes=1)
    together = replicate(plan(engine=engine), processes=2)

    assert all_figures(alone) == all_figures(together)
    assert [run.replication for run in together] == [0, 1, 2]
    assert len(set(all_figures(alone))) == 3  # replications differ


@pytest.mark.parametrize("engine", ENGINES)
def test_single_requests_come_in_order_whatever_runs_at_a_time(engine: Engine) -> None:
    rows: list[tuple[int, IntArray, Requests]] = []
    seen = replicate(
        plan(engine=engine), processes=2, write=lambda requests, number, own: rows.append((number, own, requests))
    )

    assert [number for number, _, _ in rows] == sorted(number for number, _, _ in rows)
    for run in seen:
        mine = [(own, requests) for number, own, requests in rows if number == run.replication]
        ends = np.concatenate([requests.end_ticks for _, requests in mine])
        places = np.concatenate([own for own, _ in mine])
        kept = simulate(queue(), 2.0, seed=3, replication=run.replication, warmup_s=0.2, trace=True, engine="simpy")
        assert sorted(places) == list(range(len(places)))
        assert ends[np.argsort(places)].tolist() == kept.requests.end_ticks.tolist()
        assert run.trace is None


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("engine", ENGINES)
def test_progress_grows_to_the_whole(engine: Engine, processes: int) -> None:
    told: list[tuple[float, int]] = []
    seen = replicate(
        plan(engine=engine), processes=processes, progress=lambda seconds, requests: told.append((seconds, requests))
    )

    assert told == sorted(told)
    assert told[-1][0] == pytest.approx(6.0)
    assert told[-1][1] >= sum(run.report().started for run in seen)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupt_ends_all(processes: int) -> None:
    """Only the first report interrupts; the other replication must end because of it, long before its own end."""
    simulated: list[float] = []

    def interrupt(seconds: float, _: int) -> None:
        simulated.append(seconds)
        if len(simulated) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replicate(plan(duration_s=2e5), processes=processes, progress=interrupt)

    assert max(simulated) < 1e5


def test_an_error_in_a_process_is_the_callers() -> None:
    with pytest.raises(InputError, match="warm-up 5 s of a run of 2 s"):
        replicate(plan(engine="simpy", warmup_s=5.0), processes=2)


@pytest.mark.parametrize(("replications", "processes"), [(0, 1), (1, 0)])
def test_nothing_to_run(replications: int, processes: int) -> None:
    with pytest.raises(InputError, match="there must be at least one each"):
        replicate(plan(replications=replications), processes=processes)


def test_an_unknown_engine() -> None:
    with pytest.raises(InputError, match="engine 'compield' does not exist; did you mean 'compiled'"):
        simulate(network(visit(1)), 1.0, seed=1, engine="compield")  # type: ignore[arg-type]  # that is the point


def test_only_a_trace_keeps_requests() -> None:
    for engine in ENGINES:
        assert simulate(queue(), 0.5, seed=1, engine=engine).trace is None
        assert simulate(queue(), 0.5, seed=1, engine=engine, trace=True).trace is not None
