"""The two-tier system: exact values at vanishing load and at its ceilings, and what its rows leave open."""

import math
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
import simpy
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.identifiability import Judge
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import Solved
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.fitted_file import Fitted
from capplan.layout.table_components import LayoutFactors
from capplan.layout.table_rows import cells_of
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.parameter import defaults
from capplan.models.language.scenario import changed as changed_layout
from capplan.models.language.traffic import Closed
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.simulator.engine import simulate
from capplan.systems.two_tier import SYSTEM
from capplan.systems.two_tier.network import LAN_S, LANES_PER_CORE, USUAL_NODES, network
from capplan.systems.two_tier.scenario import TwoTierScenario

VALUES: dict[str, Any] = {**defaults(SYSTEM.parameters), "rounds": 4.0}
LONG_BATCHES = {**VALUES, "append_s": 1e-7}
"""A store whose logs never limit it."""
MOSTLY_COMMITS = {
    **VALUES,
    **dict.fromkeys(("delay_s", "front_write_s", "store_write_s"), 1e-6),
    **{"commit_s": 10e-3, "append_s": 0.1e-3, "node_exponent": 1.0},
}
"""A store whose writes take their commit, and little else."""
_TURNAROUND_S = 0.05e-3
"""Mean time of a client between two writes, in the plain simulation."""
ONE_LOG = TwoTierScenario(front_nodes=0, store_nodes=1, rf=1, read_fraction=0.0)
NEAR = pytest.approx


def analysis(values: dict[str, Any] = VALUES, **fields: Any) -> Analysis:
    """Return the analysed network of a layout."""
    return Analysis(network(TwoTierScenario(**fields), values, 1.0))


def closed(clients: int, layout: TwoTierScenario = ONE_LOG, values: dict[str, Any] = MOSTLY_COMMITS) -> Network:
    """Return the network of a layout with closed clients that do not think."""
    composed = network(layout, values, 1.0)
    return replace(composed, traffic=Closed(clients, Deterministic(0.0), composed.traffic.mix))


def solved_per_s(whole: Network) -> float:
    """Return the throughput of a network with closed clients."""
    return float(solve_clients(Analysis(whole)).rate_per_s[0, 0])


def batches_per_s(clients: int, commit_s: float, append_s: float, until_s: float) -> float:
    """Return the writes per second of a log in a plain simulation: clients write again at once, and all that wait go.

    A log that is idle begins with the first write that comes, so that clients split into two batches that take turns.
    """
    env, waiting, done, random = simpy.Environment(), [], 0, Random(1)
    idle = env.event()

    def client() -> Any:
        nonlocal done
        while True:
            answered = env.event()
            waiting.append(answered)
            if not idle.triggered:
                idle.succeed()
            yield answered
            done += 1
            yield env.timeout(random.expovariate(1 / _TURNAROUND_S))

    def log() -> Any:
        nonlocal idle
        while True:
            if not waiting:
                idle = env.event()
                yield idle
            batch = waiting.copy()
            waiting.clear()
            yield env.timeout(commit_s + append_s * len(batch))
            for answered in batch:
                answered.succeed()

    env.process(log())
    for _ in range(clients):
        env.process(client())
    env.run(until_s)
    return done / until_s


def unloaded_s(name: str, found: Analysis) -> float:
    """Return the mean time of a request that is alone."""
    time = found.unloaded[name]
    return float(np.max(time.floor + time.mean))


def test_an_unloaded_read_takes_the_work_of_both_tiers_and_three_trips() -> None:
    alone = unloaded_s("read", analysis(read_fraction=1.0))
    work = VALUES["front_read_s"] + VALUES["store_read_s"]
    assert alone == NEAR(VALUES["delay_s"] + work + 2 * LAN_S)


def test_a_write_of_one_copy_takes_its_commit() -> None:
    alone = unloaded_s("write", analysis(read_fraction=0.0, rf=1))
    work = VALUES["front_write_s"] + VALUES["store_write_s"] + VALUES["commit_s"] + VALUES["append_s"]
    assert alone == NEAR(VALUES["delay_s"] + work + 2 * LAN_S)


@pytest.mark.parametrize("copies", [1, 2, 3, 5])
def test_the_store_is_full_when_its_lanes_have_no_time_left(copies: int) -> None:
    found = analysis(LONG_BATCHES, read_fraction=0.0, rf=copies, store_nodes=5, front_nodes=50)
    work = VALUES["store_write_s"] * (1 + VALUES["unseen"] * VALUES["store_unseen"])
    work *= (5 / USUAL_NODES) ** (1 - VALUES["node_exponent"])
    work *= 1 + VALUES["copy_share"] * (copies - 1)
    assert float(found.drift_per_s[0]) == NEAR(5 * 16 * LANES_PER_CORE / work)


def test_the_front_is_full_in_proportion_to_its_nodes() -> None:
    work = VALUES["front_read_s"] * (1 + VALUES["unseen"])
    for nodes in (1, 3):
        found = analysis(read_fraction=1.0, front_nodes=nodes, store_nodes=60, rf=3)
        assert float(found.drift_per_s[0]) == NEAR(nodes * 16 * LANES_PER_CORE / work)


def test_a_front_on_the_nodes_of_the_store_takes_their_lanes() -> None:
    found = analysis(read_fraction=1.0, front_nodes=0)
    work = VALUES["front_read_s"] + VALUES["store_read_s"]
    work *= 1 + VALUES["unseen"] * VALUES["store_unseen"]
    assert float(found.drift_per_s[0]) == NEAR(3 * 16 * LANES_PER_CORE / work)


@pytest.mark.parametrize("clients", [1, 4, 16, 64, 256, 1024])
def test_longer_queues_make_longer_batches(clients: int) -> None:
    """A log completes n / (F + b n) writes per second, half of what it can at n = F / b, and so never has a knee."""
    commit, append = MOSTLY_COMMITS["commit_s"], MOSTLY_COMMITS["append_s"]
    assert solved_per_s(closed(clients)) == NEAR(clients / (commit + append * clients), rel=0.02)


@pytest.mark.parametrize("clients", [8, 64, 512])
def test_a_log_is_as_fast_as_batches_that_are_simulated(clients: int) -> None:
    """Clients that write again at once wait for the batch before, so that a commit takes them twice as long."""
    commit, append = MOSTLY_COMMITS["commit_s"], MOSTLY_COMMITS["append_s"]
    plain = batches_per_s(clients, commit / 2, append, 5.0)
    assert solved_per_s(closed(clients)) == NEAR(plain, rel=0.04)


def test_closed_writes_are_solved_as_they_are_simulated() -> None:
    """Throughput of 20,000 writes, whose standard error is below 0.5 %: a right solver fails once in 1,000 times."""
    three = TwoTierScenario(front_nodes=0, node_cores=2, read_fraction=0.0)
    whole = closed(64, three, {**MOSTLY_COMMITS, "store_write_s": 0.1e-3})
    solved = solved_per_s(whole)
    run = simulate(whole, 20_000 / solved, warmup_s=1000 / solved, seed=1)
    assert solved == NEAR(run.throughput_per_s(), rel=0.05)  # of which the solver's own error is 3 %


def test_more_nodes_carry_less_each() -> None:
    """As the power says: nine nodes carry 3 ** 0.7 times as much as three."""
    lossy = {**LONG_BATCHES, "node_exponent": 0.7}
    three, nine = (analysis(lossy, read_fraction=1.0, front_nodes=0, store_nodes=each) for each in (3, 9))
    assert float(nine.drift_per_s[0] / three.drift_per_s[0]) == NEAR(3**0.7)


def test_more_copies_to_wait_for_never_answer_sooner() -> None:
    times = [
        unloaded_s("write", analysis(read_fraction=0.0, rf=5, store_nodes=5, write_waits=waits))
        for waits in ("one", "majority", "all")
    ]
    assert times == sorted(times)
    assert times[0] < times[2]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"front_nodes": None}, "front_nodes"),
        ({"cass_nodes": None}, "cass_nodes"),
        ({"node_cores": None}, "node_cores"),
        ({"rf": None}, "rf"),
        ({"front_cores": None}, "front_cores"),
        ({"read_fraction": None}, "read_fraction"),
        ({"dcs": 2}, "dcs"),
        ({"cass_nodes": (3, 3)}, "cass_nodes"),
        ({"rf": 4}, "rf"),
    ],
)
def test_a_row_that_lacks_something_is_refused_by_the_name_of_the_column(changed: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        SYSTEM.row_scenario(replace(layout(), run_id="r1", **changed))


@pytest.fixture(scope="session")
def reads() -> Fitted:
    """Reads whose front was at its limit and whose store never was."""
    rows = measured([layout(clients=each, front_nodes=1, cass_nodes=12) for each in (2, 16, 64, 256, 512)])
    return fit_table(SYSTEM, rows)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"front_nodes": 12, "cass_nodes": 3, "clients": 4000}, "store"),
        ({"read_fraction": 0.0}, "no writes"),
        ({"read_fraction": 0.9}, "no writes"),
        ({"front_nodes": 0}, "share their nodes"),
        ({"node_cores": 32}, "cores on each store node"),
        ({"front_cores": 32}, "cores on each front node"),
    ],
)
def test_what_the_rows_do_not_decide_is_said_with_the_row_that_would(reads: Fitted, changed: Any, named: str) -> None:
    row = replace(layout(front_nodes=1, cass_nodes=12), run_id="wanted", **changed)
    found = predict_table(SYSTEM, reads, [row])
    assert not any(each.identifiable for each in found)
    assert all(named in each.reason and "would decide" in each.reason for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [1.0, 4.0, 16.0])
def test_the_fit_finds_how_often_a_request_takes_a_lane(rounds: float) -> None:
    """By the 95th percentile beside throughput and mean, at rates at which requests wait, with a scatter of 2 %."""
    rows = [layout(clients=each, front_nodes=1, cass_nodes=6) for each in (8, 64, 128, 192, 256, 320, 384, 512)]
    found = fit_table(SYSTEM, measured(rows, {"rounds": rounds}, scatter=0.02))
    assert found.middle()["rounds"] == NEAR(rounds, rel=0.05)


def test_a_front_that_was_at_its_limit_predicts_twice_as_many_nodes_and_says_that_nothing_shows_it(
    reads: Fitted,
) -> None:
    row = replace(layout(front_nodes=2, cass_nodes=12, clients=512), run_id="wanted")
    (truth,) = measured([row])
    found = {each.quantity: each for each in predict_table(SYSTEM, reads, [row])}
    assert "all had 1 front nodes; a row with 2 would decide" in found["throughput_tps"].reason
    assert found["throughput_tps"].predicted.value == NEAR(truth.throughput_tps, rel=0.1)
    assert np.isfinite(found["latency_p95_ms"].predicted.high)


@pytest.mark.parametrize(
    ("trained", "asked", "known"),
    [
        ((2,), 4, False),
        ((2, 4), 3, True),
        ((2, 4), 6, False),
        ((2, 4), 1, False),
        ((2, 3, 4), 6, True),
    ],
)
def test_beyond_the_rows_three_counts_decide_and_two_do_not(
    reads: Fitted, trained: tuple[int, ...], asked: int, known: bool
) -> None:
    rows = [layout(front_nodes=each, cass_nodes=12, clients=8) for each in trained]
    fitted = replace(reads, table=replace(reads.its_table, rows=tuple(map(cells_of, rows))))
    (row,) = SYSTEM.read([layout(front_nodes=asked, cass_nodes=12, clients=8)])
    solved = Solved({}, np.ones(1), {"front": np.array([0.1])}, {}, uneven=False)
    assert ("front nodes" not in Judge(SYSTEM, fitted).reason(row, solved)) == known


def test_the_distance_along_nodes_and_cores_is_in_the_draws_and_not_in_the_scatter(reads: Fitted) -> None:
    """Capacity is surer of the fitted layout than of a larger one; the scatter of a repeat is the same."""
    system = SYSTEM.of(reads)
    near = SYSTEM.usual_scenario(reads)
    far = changed_layout(near, front_nodes=4 * near.front_nodes, store_nodes=4 * near.store_nodes, node_cores=64)
    cases = [Case(system, each, reads) for each in (near, far)]
    assert cases[1].extrapolation.basis == "extrapolated"
    assert cases[0].uncertainty.rate == cases[1].uncertainty.rate
    sure, unsure = (float(np.log(case.solution.capacity).std()) for case in cases)
    assert unsure > 1.5 * sure


def test_a_layout_has_factors_on_the_work_of_its_nodes_and_on_its_delays() -> None:
    """Twice the work halves the highest rate, and longer delays leave it."""
    rates = [
        float(
            analysis(
                dict(SYSTEM.component(LayoutFactors).applied(LONG_BATCHES, effects)), read_fraction=0.0
            ).drift_per_s[0]
        )
        for effects in ({"work": 1.0, "delay": 1.0}, {"work": 2.0, "delay": 1.0}, {"work": 1.0, "delay": 2.0})
    ]
    assert rates[1] == NEAR(rates[0] / 2)
    assert rates[2] == NEAR(rates[0])


def test_percentiles_scatter_more_with_more_clients_than_any_row_had(reads: Fitted) -> None:
    widths = {}
    for clients in (512, 1024, 2048):
        row = replace(layout(front_nodes=1, cass_nodes=12, clients=clients), run_id="wanted")
        found = {each.quantity: each.predicted for each in predict_table(SYSTEM, reads, [row])}
        widths[clients] = {name: math.log(band.high / band.low) for name, band in found.items()}
    p95 = [widths[clients]["latency_p95_ms"] for clients in sorted(widths)]
    assert p95 == sorted(p95)
    assert p95[2] > 1.5 * p95[0]
    assert widths[2048]["throughput_tps"] < 1.5 * widths[512]["throughput_tps"]
