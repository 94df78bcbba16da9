"""What a loss leaves of a fitted cluster: exact capacities, levels that fail, and the same from the engine."""

import numpy as np
import pytest
from tests.systems.prior_draws import prior_draws

from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.situations import Loss, Losses, Remainder
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.language.traffic import Open
from capplan.models.solver.analytic import Analysis
from capplan.planner.outages.outages import levels_left
from capplan.planner.predict.predict import predict
from capplan.planner.size.size import SizingQuestion, size
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.network import network
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.registry import resolve

VALUES: Values = {**defaults(PARAMETERS), "generator_s": 1e-7, "message_share": 1e-9}
READS = CassandraScenario(cass_nodes=6, rf=3, read_fraction=1.0, consistency_read="ONE")
WRITES = CassandraScenario(cass_nodes=6, rf=3, read_fraction=0.0, consistency_write="ONE", token_aware=False)
BOTH = CassandraScenario(cass_nodes=6, rf=3)
TWO_DCS = changed(BOTH, dcs=2, rtt="20ms")
ROW = LoadTestRow(cass_nodes=6, rf=3, read_fraction=0.5, clients=8, load_kind="closed", throughput_tps=1000.0)
FITTED = prior_draws(SYSTEM, [ROW])
NODE, DC = Loss({"node": 1}), Loss({"dc": 1})


def capacity(scenario: CassandraScenario, *down: int) -> float:
    """Return the highest rate with some nodes down, per second."""
    return float(Analysis(network(scenario, VALUES, 1.0, down)).drift_per_s[0])


def remainders(scenario: CassandraScenario, *losses: Loss) -> tuple[Remainder, ...]:
    """Return what losses leave."""
    return SYSTEM.component(Losses).remainders(resolve(scenario, FITTED), losses)


def test_reads_of_one_replica_lose_the_share_of_the_lost_nodes() -> None:
    """Each read costs one node the same work, and the driver asks live replicas only."""
    assert capacity(READS, 1) == pytest.approx(5 / 6 * capacity(READS))
    assert capacity(changed(READS, cass_nodes=4, rf=4), 1) == pytest.approx(
        3 / 4 * capacity(changed(READS, cass_nodes=4))
    )


def test_writes_lose_the_coordinator_of_a_lost_node_and_not_its_replicas() -> None:
    """A live node applies as many mutations as before, and coordinates 6 / 5 as many: the same at any RF."""
    lost = [1 / capacity(changed(WRITES, rf=rf), 1) - 1 / capacity(changed(WRITES, rf=rf)) for rf in (2, 3, 4)]
    assert lost == pytest.approx([lost[0]] * 3)
    assert lost[0] > 0


@pytest.mark.parametrize(
    ("level", "lowered"),
    [("LOCAL_QUORUM", None), ("ONE", None), ("ALL", "EACH_QUORUM"), ("THREE", "TWO")],
)
def test_a_level_that_needs_the_lost_replica_is_unavailable(level: str, lowered: str | None) -> None:
    """And the least lowering of it is tried next."""
    found = remainders(changed(BOTH, consistency_read=level, consistency_write=level), NODE)
    assert [each.solved is not None for each in found] == ([True] if lowered is None else [False, True])
    if lowered is not None:
        assert level in found[0].assumed
        assert found[1].lowered == {"read": lowered, "write": lowered}


def test_the_only_replica_of_a_row_leaves_nothing() -> None:
    """No level of one replica is left for its rows."""
    (found,) = remainders(changed(BOTH, rf=1, consistency_read="LOCAL_ONE", consistency_write="LOCAL_ONE"), NODE)
    assert found.solved is None


def test_levels_of_what_the_traffic_does_not_have_do_not_matter() -> None:
    """Reads at ONE succeed whatever writes would need."""
    (found,) = remainders(changed(READS, consistency_write="ALL"), NODE)
    assert found.solved is not None
    (levels,) = levels_left(resolve(READS, FITTED), [found])
    assert levels.write == {}
    assert levels.read["QUORUM"]
    assert not levels.read["ALL"]


def test_a_lost_data_centre_leaves_local_levels_and_no_majority_of_all_replicas() -> None:
    """Of two with three replicas each, a quorum is four."""
    (local,) = remainders(TWO_DCS, DC)
    assert local.solved is not None
    first, second = remainders(changed(TWO_DCS, consistency_write="QUORUM"), DC)
    assert first.solved is None
    assert second.lowered == {"write": "LOCAL_QUORUM"}


def test_the_standby_takes_over_the_clients() -> None:
    """The data centre with all clients is the worst one to lose; the other one serves then."""
    (found,) = remainders(changed(TWO_DCS, client_share=(1.0, 0.0)), DC)
    assert found.lost_dcs == ("dc1",)
    assert found.solved is not None
    left = found.solved(VALUES, None)
    assert "cassandra/dc2" in {each.name for each in left.network.stations}
    assert left.capacity[0] == pytest.approx(capacity(BOTH), rel=0.2)  # writes no longer go to two data centres


def test_rows_without_a_live_replica_here_are_read_in_the_other_data_centre() -> None:
    """No request fails: a driver that finds none asks any node of its data centre. 2,000 requests show it."""
    scenario = changed(TWO_DCS, rf=(1, 3), consistency_read="ONE", consistency_write="ONE", client_share=(1.0, 0.0))
    composed = network(scenario, VALUES, 200.0, (1, 0))
    assert isinstance(composed.traffic, Open)
    run = simulate(composed, 10.0, seed=1)
    assert run.drop_rate() == 0
    assert run.report(None).completed > 1_900


def test_what_is_lost_by_default_depends_on_the_layout() -> None:
    """A node of each data centre, a data centre, and two of three; nothing where nothing would be left."""
    assert [each.lost for each in remainders(BOTH)] == [{"node": 1}]
    assert [each.lost for each in remainders(changed(TWO_DCS, dcs=3, rtt="5ms"))] == [{"node": 1}, {"dc": 1}, {"dc": 2}]
    assert remainders(changed(BOTH, cass_nodes=1, rf=1)) == ()


def test_predict_and_size_say_what_is_left() -> None:
    """A lost node takes capacity; to survive it takes no fewer nodes, and a level that needs it has no layout."""
    rate = 0.7 * float(np.median(resolve(BOTH, FITTED).solution.capacity))
    asked = changed(BOTH, tps=rate)
    predicted = predict(asked, fitted=FITTED, engine="analytic")
    (outage,) = predicted.outages
    assert outage.capacity_tps is not None
    assert predicted.peak_tps is not None
    assert 5 / 6 < outage.capacity_tps.value / predicted.peak_tps.value < 1

    def nodes(scenario: CassandraScenario, *survive: str) -> int | None:
        question = SizingQuestion(survive=survive, sized={"cass_nodes": (4, 9)}, engine="analytic")
        found = size(scenario, question, fitted=FITTED)
        assert found.not_asked == (() if survive else ("node",))  # a lone data centre cannot be lost
        return None if found.chosen is None else sum(found.chosen.machines.values())

    alone, survived = nodes(asked), nodes(asked, "node")
    assert alone is not None
    assert survived is not None
    assert alone <= survived <= alone + 1
    assert nodes(changed(asked, consistency_write="ALL"), "node") is None


def test_two_values_of_a_loss_add_up() -> None:
    """Two nodes leave less than one."""
    one, two = (remainders(BOTH, Loss({"node": count})) for count in (1, 2))
    assert one[0].solved is not None
    assert [each.solved is not None for each in two] == [False, True]
    assert two[1].lowered == {"read": "LOCAL_ONE", "write": "LOCAL_ONE"}
    assert "1 replica" in two[1].cost
