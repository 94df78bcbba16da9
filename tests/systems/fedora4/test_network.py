"""The network of `fedora4`: exact times at light load, demands by hand, laws of capacity, both solvers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from capplan.errors import InputError
from capplan.models.language.parameter import Values, defaults
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, solve
from capplan.simulator.compiled.engine import simulate
from capplan.systems.fedora4.network import REPORTED, THREADS, WAITING, network
from capplan.systems.fedora4.priors import PARAMETERS
from capplan.systems.fedora4.scenario import CORES, REGIONS, Fedora4Scenario

MAX_DROP_RATE = 1e-3
VALUES: Values = {
    **defaults(PARAMETERS),
    "read_s": 3.6e-3,
    "send_s": 0.8e-3,
    "peer_s": 1.8e-3,
    "write_s": 10.6e-3,
    "delete_wait_s": 48e-3,
    "delete_wait_four_s": 186e-3,
    "delete_wait_beyond": 1.5,
    "rtt_us_east_s": 0.5e-3,
    "rtt_asia_s": 274e-3,
}  # near what calibration finds
FEW_NODES = st.integers(1, 8)
WRITES = st.sampled_from([0.0, 0.05, 0.3, 1.0])


def system(nodes: int, write_share: float = 0.0, region: str = "us-east", **changes: float) -> Analysis:
    scenario = Fedora4Scenario(nodes=nodes, write_share=write_share, region=region)
    return Analysis(network(scenario, {**VALUES, **changes}, 1.0))


def capacity(analysis: Analysis) -> float:
    return float(capacity_per_s(analysis, MAX_DROP_RATE)[0])


def core_seconds(nodes: int, write_share: float) -> float:
    """Core seconds of all nodes together for one request."""
    v = {name: float(value) for name, value in VALUES.items()}
    return v["read_s"] + (nodes > 1) * v["send_s"] + (nodes - 1) * v["peer_s"] + write_share * v["write_s"]


@pytest.mark.parametrize("written", ["5%", "5 %", "0.05", 0.05])
def test_a_share_of_writes_is_a_percentage_or_a_number(written: str | float) -> None:
    assert Fedora4Scenario(write_share=written).write_share == 0.05  # type: ignore[arg-type]  # text is read


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"write_share": "five"}, "'five' is not a share"),
        ({"write_share": "5"}, "'5%'"),
        ({"write_share": 5}, "at most 1"),
        ({"write_share": "-1%"}, "-0.01"),
        ({"write_share": np.array([0.1, 0.2])}, "array"),
        ({"nodes": 65}, "nodes = 65"),
        ({"region": "aisa"}, "'asia'"),
        ({"system": "fedora"}, "'fedora4'"),
    ],
)
def test_a_layout_that_cannot_be_is_refused_in_one_sentence(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as refused:
        Fedora4Scenario(**fields)  # type: ignore[arg-type]  # the point

    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("nodes", "read_ms", "create_ms", "delete_ms"),
    [
        (1, 4.1, 14.7, 62.7),
        (2, 4.9, 15.5, 63.5),
        (3, 4.9, 15.5, 63.5),
        (4, 4.9, 15.5, 201.5),
        (5, 4.9, 15.5, 294.5),  # 1.5 times the wait on four nodes
        (64, 4.9, 15.5, 294.5),
    ],
)
def test_times_when_nobody_else_asks(nodes: int, read_ms: float, create_ms: float, delete_ms: float) -> None:
    """A round trip, a core for the request's own work, and a delete's wait; peers are not waited for."""
    alone = system(nodes, 0.5).unloaded

    found = [1e3 * float(alone[name].total) for name in ("read", "create", "delete")]
    assert found == pytest.approx([read_ms, create_ms, delete_ms], rel=1e-12)


def test_clients_far_away_wait_for_the_round_trip_and_nothing_else() -> None:
    near, far = (system(3, 0.1, region).unloaded for region in ("us-east", "asia"))

    for name in REPORTED:
        assert float(far[name].total - near[name].total) == pytest.approx(0.2735, rel=1e-12)


@pytest.mark.parametrize(("nodes", "write_share"), [(1, 0.0), (1, 0.05), (2, 0.0), (4, 0.05), (6, 1.0)])
def test_load_of_each_node_by_hand(nodes: int, write_share: float) -> None:
    analysis = system(nodes, write_share)

    assert analysis.members == {"repository": nodes}
    assert analysis.load("repository") == pytest.approx(core_seconds(nodes, write_share) / CORES / nodes, rel=1e-12)


@pytest.mark.parametrize(
    ("write_share", "classes"), [(0.0, ["read"]), (0.05, ["read", "create", "delete"]), (1.0, ["create", "delete"])]
)
def test_only_what_is_asked_is_in_the_traffic(write_share: float, classes: list[str]) -> None:
    found = network(Fedora4Scenario(write_share=write_share), VALUES, 100.0)

    assert [request.name for request in found.classes] == list(found.traffic.mix) == classes
    assert sum(found.traffic.mix.values()) == pytest.approx(1.0)


def test_the_capacity_of_a_single_node_is_that_of_two_servers_with_300_places() -> None:
    """Reads of clients at the node itself: M/M/2/300, whose loss is known in closed form (PS: whatever the law)."""
    analysis = system(1, rtt_us_east_s=0.0)
    rate = capacity(analysis)
    offered = rate * float(VALUES["read_s"])
    inside = np.arange(THREADS + WAITING + 1)
    log_weight = inside * np.log(offered) - np.where(
        inside < CORES, special.gammaln(inside + 1), special.gammaln(CORES + 1) + (inside - CORES) * np.log(CORES)
    )
    chance = np.exp(log_weight - special.logsumexp(log_weight))

    assert chance[-1] == pytest.approx(MAX_DROP_RATE, rel=1e-3)
    assert float(solve(analysis, rate).drop_rate[0]) == pytest.approx(MAX_DROP_RATE, rel=1e-3)


@pytest.mark.parametrize("nodes", [1, 2, 4, 16])
@pytest.mark.parametrize("write_share", [0.0, 0.05])
def test_the_capacity_is_just_below_that_of_the_cores(nodes: int, write_share: float) -> None:
    bound = nodes * CORES / core_seconds(nodes, write_share)

    assert 0.99 * bound < capacity(system(nodes, write_share)) <= bound * (1 + 1e-12)


def test_no_number_of_nodes_carries_more_than_a_peers_work_allows() -> None:
    """Each request costs each peer the same, so all nodes together never answer more than cores / peer_s."""
    assert capacity(system(64)) < CORES / float(VALUES["peer_s"])


@given(FEW_NODES, WRITES)
@settings(max_examples=20, deadline=None)
def test_more_nodes_carry_more(nodes: int, write_share: float) -> None:
    assert capacity(system(nodes + 1, write_share)) > capacity(system(nodes, write_share))


@given(FEW_NODES, st.tuples(WRITES, WRITES).filter(lambda pair: pair[0] < pair[1]))
@settings(max_examples=20, deadline=None)
def test_more_writes_carry_less(nodes: int, shares: tuple[float, float]) -> None:
    fewer, more = (capacity(system(nodes, share)) for share in shares)

    assert more < fewer


@given(FEW_NODES, st.sampled_from(REGIONS))
@settings(max_examples=20, deadline=None)
def test_where_clients_are_changes_the_capacity_by_little(nodes: int, region: str) -> None:
    """The analytic solver counts requests under way to a pool as inside it, which costs a single node up to 2 %."""
    assert capacity(system(nodes, region=region)) == pytest.approx(capacity(system(nodes)), rel=0.02)


@given(FEW_NODES, WRITES, st.sampled_from(["read_s", "send_s", "peer_s", "write_s"]))
@settings(max_examples=20, deadline=None)
def test_dearer_work_never_carries_more(nodes: int, write_share: float, name: str) -> None:
    dearer = {**VALUES, name: 1.2 * float(VALUES[name])}
    scenario = Fedora4Scenario(nodes=nodes, write_share=write_share)

    assert capacity(Analysis(network(scenario, dearer, 1.0))) <= capacity(system(nodes, write_share)) * (1 + 1e-6)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_every_request_costs_each_peer_its_handling_once(nodes: int) -> None:
    """Visits of a node: those of its own requests, and one for each request of another node."""
    made = network(Fedora4Scenario(nodes=nodes), VALUES, 50.0)
    run = simulate(made, 10.0, seed=3)

    completed = run.report("read").completed
    assert sum(report.visits for report in run.stations.values()) == completed * nodes


@pytest.mark.parametrize(
    ("nodes", "load", "low", "high"),
    [
        (1, 0.5, -0.02, 0.02),  # Poisson arrivals at one processor-sharing station: exact
        (1, 0.8, -0.07, 0.07),
        (4, 0.5, -0.12, 0.05),  # four small nodes are taken as one large one, and take turns: approximate
        (4, 0.8, -0.12, 0.15),
    ],
)
def test_the_analytic_solver_beside_the_compiled_engine(nodes: int, load: float, low: float, high: float) -> None:
    """Mean times of reads among 5 % of writes, 200,000 requests, seed fixed.

    The standard error is 0.3 % at half load and 1.2 % at 80 % (twelve seeds). On one node the bounds are 6 of these:
    a correct program fails less than once in 10^8; one that is wrong by twice a bound passes as rarely. On four nodes
    the approximation errs by -4 % and -3 % (twelve seeds); its bounds lie 8 % and 9 % beyond, so the standard error
    does not matter; queueing (13 % and 80 % of the time) taken wrong by its whole fails.
    """
    analysis = system(nodes, 0.05)
    rate = load * capacity(analysis)
    model = network(Fedora4Scenario(nodes=nodes, write_share=0.05), VALUES, rate)
    run = simulate(model, 10.0 + 200_000 / rate, seed=2026, warmup_s=10.0)

    error = float(solve(analysis, rate).response_s("read")[0]) / run.report("read").intended.mean_s - 1
    assert low < error < high
    busy = [report.utilisation for report in run.stations.values()]
    assert np.mean(busy) == pytest.approx(rate * float(analysis.load("repository")[0]), rel=0.015)
    assert run.drop_rate() == 0.0
