"""Replications and draws: the same with any engine, any number at a time, and a program that is lowered once."""

import json
import os
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np
import pytest
from tests.simulator.same_path import assert_same
from tests.simulator.small_networks import network, timeline, visit

from capplan.answers.results import plain
from capplan.errors import InputError, RefusedError
from capplan.models.language.construct import at_draw
from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Exponential, Mixture
from capplan.models.language.network import Network
from capplan.models.language.scenario import changed
from capplan.models.language.station import Background, Pauses, Station
from capplan.models.language.step import Delay, ForkJoin, Sequence, Step, Visit
from capplan.models.language.traffic import Bursty, Closed, Open, Poisson, RequestClass, Session
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.compiled import lowering
from capplan.simulator.engine import Engine, simulate
from capplan.simulator.replications import DrawRun, ReplicationPlan, replicate, simulate_draws
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Requests
from capplan.simulator.specification.clock import to_ticks
from capplan.systems.openprovider import SYSTEM as OPENPROVIDER
from capplan.systems.openprovider.network import network as openprovider
from capplan.systems.openprovider.scenario import OpenproviderScenario

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


PLAIN = Network(
    "plain",
    (Station("server", 2), Station("shared", 2, discipline="ps")),
    (RequestClass("ask", Visit("server", Exponential(0.01))),),
    Open(50.0, {"ask": 1.0}),
)


def several(*values: float) -> Any:
    return np.array(values)


def asking(*steps: Step) -> Network:
    return replace(PLAIN, classes=(RequestClass("ask", Sequence(steps)),))


def exchanged(many: Network, draw: int, duration_s: float, first: int = 0) -> Run:
    """Run a draw with the program that was lowered for another one."""
    lowered = lowering.lower(many, first).with_draw(draw)
    course = compiled.begin(lowered, (to_ticks(duration_s / 8), to_ticks(duration_s)), (3, draw))
    return compiled.run(course, trace=True, progress=None, sink=None)


def afresh(many: Network, draw: int, duration_s: float) -> Run:
    single = at_draw(many, draw)
    return compiled.simulate(single, duration_s, seed=3, replication=draw, warmup_s=duration_s / 8, trace=True)


def test_a_program_is_kept_at_another_rate_and_for_no_other_network() -> None:
    flows = {"ask": Visit("server", Exponential(several(0.01, 0.02))), "tell": Visit("shared", Exponential(0.01))}
    half = Open(50.0, {"ask": 0.5, "tell": 0.5})
    known = lowering.lower(replace(PLAIN, classes=tuple(starmap(RequestClass, flows.items())), traffic=half), 0)
    network = known.network
    others = [
        replace(network, classes=(network.classes[0], RequestClass("tell", flows["ask"]))),
        replace(network, traffic=replace(half, mix={"ask": 0.4, "tell": 0.6})),
        replace(network, traffic=replace(half, arrivals=Bursty(1.2, 0.3, 60.0))),
        replace(network, traffic=Closed(5, Deterministic(0.1), half.mix)),
    ]
    for kept in (known.with_rate_of, known.with_traffic_of):
        faster = kept(replace(network, traffic=replace(half, rate_per_s=100.0)))
        assert faster is not None
        assert faster.base.code is known.base.code
        assert [kept(other) for other in others] == [None] * len(others)


LAW: Distribution = Mixture((0.3, 0.7), (Exponential(several(0.01, 0.02, 0.02)), Exponential(0.02)))
CASES = {
    "laws of other scale": asking(
        Visit("server", Exponential(several(0.01, 0.02, 0.03))), Visit("shared", Erlang(several(0.01, 0.03, 0.02), 2))
    ),
    "laws that are one law in some draws": asking(
        Visit("server", Exponential(several(0.01, 0.01, 0.02))), Visit("shared", Exponential(several(0.01, 0.02, 0.02)))
    ),
    "a mixture whose parts are alike in some draws": asking(Visit("server", LAW), Visit("shared", Exponential(0.02))),
    "fixed waits that are alike in some draws": asking(
        *(Delay(Deterministic(wait)) for wait in (several(0.001, 0.002, 0.001), 0.001, several(0.003, 0.001, 0.003))),
        Visit("server", Exponential(0.01)),
    ),
    "more kinds of fixed waits than there are lists": asking(
        ForkJoin(tuple(Delay(Deterministic(several(0.001 * k, 0.001 * (k // 2 + 1), 0.001))) for k in range(1, 25)), 3),
        Visit("server", Deterministic(several(0.01, 0.02, 0.03))),
    ),
    "rates and bursts": replace(
        PLAIN,
        traffic=Open(
            several(20.0, 50.0, 90.0), {"ask": 1.0}, Bursty(several(1.0, 1.5, 2.0), 0.1, several(1.0, 0.5, 2))
        ),
    ),
    "gaps of a session": replace(
        PLAIN,
        sessions=(Session("pair", ("ask", "ask"), (Exponential(several(0.1, 0.2, 0.3)),)),),
        traffic=Open(several(20.0, 50.0, 90.0), {"pair": 1.0}, Poisson()),
    ),
    "thinking clients": replace(PLAIN, traffic=Closed(3, Exponential(several(0.1, 0.2, 0.3)), {"ask": 1.0})),
    "pauses and background work": replace(
        PLAIN,
        stations=(
            Station("server", 2, pauses=(Pauses(Exponential(several(0.5, 0.4, 1.0)), Deterministic(0.02), name="gc"),)),
            Station("shared", 2, background=(Background(Exponential(0.5), Exponential(several(0.1, 0.2, 0.3)), 0.5),)),
        ),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_exchanged_program_runs_as_one_lowered_afresh(case: str) -> None:
    for draw in range(3):
        run = afresh(CASES[case], draw, 10.0)
        assert len(run.requests.start_ticks) > 100
        assert_same(run, exchanged(CASES[case], draw, 10.0))
        assert_same(run, exchanged(CASES[case], draw, 10.0, first=2))


def test_draws_of_a_cluster_run_as_lowered_afresh() -> None:
    values = OPENPROVIDER.fitted().values(OPENPROVIDER.parameters)
    mine = {name: value[[0, 60, 200]] if isinstance(value, np.ndarray) else value for name, value in values.items()}
    many = openprovider(changed(OpenproviderScenario(), dcs=2, ldap=True), mine, several(4000.0, 6000.0, 5000.0))

    for draw in range(3):
        assert_same(afresh(many, draw, 0.3), exchanged(many, draw, 0.3))


@pytest.mark.parametrize("processors", [1, 3])
def test_runs_come_in_the_order_asked_for_whatever_the_threads(
    monkeypatch: pytest.MonkeyPatch, processors: int
) -> None:
    many = CASES["rates and bursts"]
    asked = [DrawRun(draw, 7 + draw, 5.0 + draw, 1.0) for draw in (2, 0, 1, 2)]
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    found = simulate_draws(many, asked, lambda run: run, seed=4)

    for each, run in zip(asked, found, strict=True):
        alone = compiled.simulate(
            at_draw(many, each.draw), each.duration_s, seed=4, replication=each.replication, warmup_s=1.0
        )
        assert run.replication == each.replication
        assert run.report().completed == alone.report().completed > 0
        assert np.array_equal(run.report().intended.counts, alone.report().intended.counts)


def test_both_engines_run_a_draw_alike() -> None:
    many = CASES["laws of other scale"]
    asked = [DrawRun(draw, draw, 5.0, 1.0) for draw in range(3)]
    counted = [
        simulate_draws(many, asked, lambda run: run.report().intended.counts.tolist(), seed=4, engine=engine)
        for engine in ("compiled", "simpy")
    ]

    assert counted[0] == counted[1]
    assert counted[0][0] != counted[0][1]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            replace(PLAIN, stations=(Station("server", 1, expiry_s=several(1.0, 2.0)),)),
            "expiry_s",
        ),
        (
            asking(
                Visit("server", Exponential(several(1.0, 2.0))), Visit("server", Exponential(several(1.0, 2.0, 3.0)))
            ),
            "give each as many",
        ),
    ],
)
def test_draws_that_differ_in_more_are_refused(wrong: Network, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        simulate_draws(wrong, [DrawRun(0, 0, 1.0, 0.1)], lambda run: run, seed=1)


def test_a_run_that_makes_no_sense_is_refused_before_any_has_begun() -> None:
    read: list[Run] = []
    with pytest.raises(InputError, match="warm-up 2 s of a run of 1 s"):
        simulate_draws(PLAIN, [DrawRun(0, 0, 1.0, 0.1), DrawRun(0, 1, 1.0, 2.0)], read.append, seed=1)
    assert not read


@pytest.mark.parametrize("engine", ["compiled", "simpy"])
def test_progress_is_told_run_by_run(engine: Engine) -> None:
    told: list[tuple[int, int]] = []
    runs = [DrawRun(0, number, 1.0, 0.1) for number in range(5)]
    simulate_draws(PLAIN, runs, lambda run: run, seed=1, engine=engine, progress=lambda *done: told.append(done))

    assert told == [(done, 5) for done in range(1, 6)]


def test_a_run_that_fails_stops_the_others() -> None:
    """The others would take minutes."""

    def fail(run: Run) -> None:
        raise OSError(f"cannot read {run.network}")

    asked = [DrawRun(0, 0, 0.1, 0.01), *(DrawRun(0, number, 1e5, 0.0) for number in range(1, 4))]
    with pytest.raises(OSError, match="cannot read plain"):
        simulate_draws(PLAIN, asked, fail, seed=1)
