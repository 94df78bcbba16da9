"""How close the model of `fedora4` comes to its document, paced load tests, and claims."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from capplan.calibration.fit.posterior import Problem, Scatter, maximum, rows_to_fit
from capplan.evidence.table import Evidence, by_id
from capplan.layout.notes import Notes
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, from_log
from capplan.models.language.step import Delay, Sequence
from capplan.models.language.traffic import Event, Throttled, Timeline
from capplan.simulator.compiled.engine import simulate
from capplan.systems.fedora4.network import network
from capplan.systems.fedora4.observations import throttled_mean_s
from capplan.systems.fedora4.priors import PARAMETERS
from capplan.systems.fedora4.scenario import Fedora4Scenario
from capplan.systems.registry import resolve, system

ITS, ROWS = system("fedora4").observations, by_id(system("fedora4").evidence)
TESTS = ITS.load_tests()
USERS, RUN_S = 100, 60.0


@lru_cache
def fitted() -> Values:
    """Most probable parameters."""
    rows = rows_to_fit([row for test in TESTS for row in test.rows])

    def scatter(row: Evidence) -> Scatter:
        return Scatter(ITS.repeatability(row))

    best = maximum(Problem(PARAMETERS, rows, lambda values: ITS.predicted(TESTS, values), scatter))
    return from_log(PARAMETERS, best.log_point)


@lru_cache
def said() -> dict[str, float]:
    """Return what the fitted model says of each figure."""
    return {name: float(value[0]) for name, value in ITS.predicted(TESTS, fitted()).items()}


def test_creates_scatter_more_than_anything_else() -> None:
    """13, 21 and 13 ms on 1, 3 and 4 nodes; 15, 29 and 14 ms among reads (test objective 7)."""
    logs = np.log([ROWS[f"{table}.n{n}.create"].value for table in ("alone", "mixed") for n in (1, 3, 4)])

    assert ITS.repeatability(ROWS["mixed.n3.create"]) == pytest.approx(float(logs.std(ddof=1)), abs=0.05)
    assert all(ITS.repeatability(row) <= 0.12 for test in TESTS for row in test.rows if row.request_class != "create")


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("mix", ["read", "mixed"])
def test_objectives_5_and_7_capacities_within_3_percent_or_the_range_that_is_printed(nodes: int, mix: str) -> None:
    row = ROWS[f"capacity.n{nodes}.{mix}"]
    published = {"read": (525, 650, 725, 810), "mixed": (480, 590, 680, 780)}[mix][nodes - 1]

    assert row.value == published
    high = 550 if row.id == "capacity.n1.read" else 1.03 * published
    assert 0.97 * published <= said()[row.id] <= high


@pytest.mark.parametrize("region", ["us-east", "us-west", "asia", "eu"])
def test_objective_6_times_of_regions_within_5_percent(region: str) -> None:
    for rate in (100, 300, 600):
        row = ROWS[f"region.{region}.r{rate}.mean"]
        assert said()[row.id] == pytest.approx(row.value, rel=0.05), row.id


def test_objective_3_times_of_throttled_runs_within_10_percent() -> None:
    """No goal; the errors of the best fit, so that a change of the model is seen."""
    rows = [row for row in ROWS.values() if row.id.startswith("throttled.n")]

    assert len(rows) == 12
    for row in rows:
        assert said()[row.id] == pytest.approx(row.value, rel=0.10), row.id


def test_objective_7_deletes_within_8_percent_and_creates_on_three_nodes_far_off() -> None:
    """No goal: creates on three nodes take longer than on one and on four, which no law of the model can say."""
    for row in (row for test in TESTS for row in test.rows if row.request_class == "delete"):
        assert said()[row.id] == pytest.approx(row.value, rel=0.08), row.id
    for nodes in (1, 4):
        for table in ("alone", "mixed"):
            assert said()[f"{table}.n{nodes}.create"] == pytest.approx(ROWS[f"{table}.n{nodes}.create"].value, rel=0.25)
    assert said()["alone.n3.create"] < 0.8 * ROWS["alone.n3.create"].value
    assert said()["mixed.n3.create"] < 0.6 * ROWS["mixed.n3.create"].value


def test_the_mean_of_a_cold_run_by_hand() -> None:
    """100 users whose first requests take 170 ms more: 17 s spread over all requests of the run."""
    found = [throttled_mean_s(0.02, 0.17, users=USERS, requests=n) for n in (50, 100, 1000, 10_000)]

    assert found == pytest.approx([0.19, 0.19, 0.037, 0.0217])


def throttled(nodes: int, requests: int, values: Values) -> Network:
    """Return a run of objective 3: off-site users on an even beat, whose first requests are slower."""
    near = network(Fedora4Scenario(nodes=nodes), values, 1.0)
    apart = float(values["rtt_campus_s"]) - float(values["rtt_us_east_s"])
    before = (
        Delay(Deterministic(values["first_request_s"]), name="first"),
        Delay(Deterministic(apart), name="campus"),
    )
    request = replace(near.classes[0], flow=Sequence((*before, near.classes[0].flow)))
    rate = requests / RUN_S
    over = Event(USERS / rate, "scale_delay", "first", 1e-9)  # from each user's second request on
    traffic = Throttled(USERS, rate, {"read": 1.0})
    return replace(near, classes=(request,), traffic=traffic, timeline=Timeline((over,)))


@pytest.mark.parametrize(("nodes", "requests"), [(1, 1000), (3, 1000), (3, 6000), (4, 10_000)])
def test_the_closed_form_of_a_throttled_run_beside_the_compiled_engine(nodes: int, requests: int) -> None:
    """60 s from a cold start, averaged over all of them: within 0.3 ms.

    A read's 4.4 ms have a coefficient of variation of 0.18, so the mean of 1,000 has a standard error of 0.03 ms: a
    correct program fails less than once in 10^20. The rest is queueing, which the closed form leaves out.
    """
    values = fitted()
    run = simulate(throttled(nodes, requests, values), RUN_S, seed=2026)
    name = f"throttled.n{nodes}.r{requests}.mean"

    report = run.report("read")
    assert report.started == report.completed == requests
    assert said()[name] == pytest.approx(report.intended.mean_s, abs=0.3e-3)


@pytest.mark.parametrize("rate_per_s", [100.0, 300.0, 600.0])
def test_objective_6_a_paced_load_takes_the_documented_5_ms_where_a_random_one_queues(rate_per_s: float) -> None:
    """Four nodes, clients in US-East: "5ms" at every rate is 4.5 to 5.5 ms.

    The standard error over 300 s is below 0.01 ms (six seeds), a fifth of the nearest distance to a bound.
    """
    near = network(Fedora4Scenario(nodes=4), fitted(), rate_per_s)
    paced = replace(near, traffic=Throttled(USERS, rate_per_s, {"read": 1.0}))
    evenly, randomly = (simulate(each, 310.0, seed=2026, warmup_s=10.0).report("read") for each in (paced, near))

    row = ROWS[f"region.us-east.r{rate_per_s:.0f}.mean"]
    assert row.low < evenly.intended.mean_s < row.high
    if rate_per_s == 600.0:
        assert randomly.intended.mean_s > 1.2 * row.high


NOTES = system("fedora4").component(Notes)


@pytest.mark.parametrize(("write_share", "expected"), [(0.0, "1,003"), (0.05, "979")])
def test_the_document_s_line_stands_beside_larger_clusters(write_share: float, expected: str) -> None:
    """525, 650, 725, 810: the least-squares line is 445 + 93 n (objective 5), so 1,003 on six nodes, or 979 mixed."""
    (claim,) = NOTES.claims(resolve(Fedora4Scenario(nodes=6, write_share=write_share)))

    assert f"{expected} TPS" in claim


@pytest.mark.parametrize("layout", [Fedora4Scenario(nodes=4), Fedora4Scenario(nodes=6, write_share=0.5)])
def test_nothing_is_claimed_of_layouts_that_the_document_measured_or_left_out(layout: Fedora4Scenario) -> None:
    assert NOTES.claims(resolve(layout)) == ()
