"""Outages: availability by consistency level, and then the remaining capacity."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from capplan.answers.results import Outage
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import MeasuredRange
from capplan.layout.situations import Losses, losses_of
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.language.scenario import changed
from capplan.planner.predict.losses import Whole, outages
from capplan.planner.sustained import Conditions, Strained
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, system

SURE = Uncertainty(ModelError(0.0), ModelError(0.0), 1)
ALL_DRAWS = system("openprovider").fitted()
FITTED = replace(ALL_DRAWS, draws=ALL_DRAWS.draws[::32])
"""Few draws: which levels survive doesn't depend on them, and capacities are compared between alike ensembles."""


def case(uncertainty: Uncertainty = SURE, **fields: Any) -> Case[OpenproviderScenario]:
    """Return a layout with a made-up uncertainty."""
    made: Case[OpenproviderScenario] = resolve(changed(OpenproviderScenario(), **fields), FITTED)
    vars(made)["uncertainty"] = replace(uncertainty, offset=made.layout.as_tested.offset)
    return made


@cache
def after(offered: float = 1000.0, lose: tuple[str, ...] = (), **fields: Any) -> list[Outage]:
    """Return the outages of nodes and data centres, or those that are named."""
    made = case(**fields)
    found = answered(made, offered, lose)
    return [row for row in found if lose or "front" not in row.lost]


def answered(made: Case[OpenproviderScenario], offered: float, lose: tuple[str, ...] = ()) -> tuple[Outage, ...]:
    there = made.at(offered)
    vars(there)["uncertainty"] = made.uncertainty  # a case at another rate has other model errors by itself
    losses = losses_of(lose, made.system.component(Losses).kinds, made.scenario.dcs)
    return outages(Whole(there, made.solution.at(offered), {}), losses)


def summary(rows: list[Outage]) -> list[tuple[dict[str, int], bool, str]]:
    return [(dict(row.lost), row.available, row.assumed) for row in rows]


def capacity(row: Outage) -> float:
    assert row.capacity_tps is not None
    return row.capacity_tps.value


def alone_capacity(**fields: Any) -> float:
    return float(np.median(case(**fields).solution.capacity))


def test_quorum_over_three_data_centres_survives_one_and_not_two() -> None:
    rows = after(consistency_write="QUORUM")
    asked = "reads LOCAL_QUORUM, writes QUORUM"

    assert summary(rows) == [
        ({"node": 1}, True, asked),
        ({"dc": 1}, True, asked),
        ({"dc": 2}, False, "unavailable at QUORUM"),
        ({"dc": 2}, True, "writes at LOCAL_QUORUM"),
    ]
    assert capacity(rows[2]) == 0
    assert (rows[2].risk, rows[2].answer) == (1.0, "no")
    assert rows[3].lowered == {"write": "LOCAL_QUORUM"}
    assert capacity(rows[3]) > 0


def test_each_quorum_without_a_data_centre_is_lowered_to_quorum_which_reads_still_find() -> None:
    """QUORUM is 5 of 9 replicas and 6 are left, at least 2 in each data centre; LOCAL_QUORUM reads 2 of its 3."""
    rows = after(consistency_write="EACH_QUORUM")

    assert [(dict(row.lost), row.available, dict(row.lowered)) for row in rows] == [
        ({"node": 1}, True, {}),
        ({"dc": 1}, False, {}),
        ({"dc": 1}, True, {"write": "QUORUM"}),
        ({"dc": 2}, False, {}),
        ({"dc": 2}, True, {"write": "LOCAL_QUORUM"}),
    ]
    assert rows[2].cost == "confirmed by 5 replicas, not 6; reads still find them"


def test_only_the_level_that_fails_is_lowered_and_weak_reads_may_miss_writes() -> None:
    _, row = after(consistency_read="LOCAL_ONE", consistency_write="EACH_QUORUM", lose=("dc",))

    assert row.lowered == {"write": "QUORUM"}
    assert row.cost.endswith("reads may miss them")


def test_all_fails_with_one_node() -> None:
    rows = after(consistency_write="ALL", lose=("node",))

    assert (dict(rows[0].lost), rows[0].available) == ({"node": 1}, False)
    assert (dict(rows[1].lost), rows[1].lowered) == ({"node": 1}, {"write": "EACH_QUORUM"})


def test_two_of_four_data_centres_may_be_lost() -> None:
    """QUORUM of 12 is 7, and 6 replicas are left: only LOCAL_QUORUM and below survive."""
    rows = after(dcs=4, lose=("dc,dc",))

    assert {tuple(row.lost.items()) for row in rows} == {(("dc", 2),)}
    assert [(row.available, dict(row.lowered)) for row in rows] == [(False, {}), (True, {"write": "LOCAL_QUORUM"})]


def test_a_lost_policing_node_leaves_cassandra_whole() -> None:
    made = case()
    (front,) = [row for row in answered(made, 1000.0) if "front" in row.lost]

    assert front.name == "1 RADIUS server/DC"
    assert capacity(front) == pytest.approx(float(np.median(case(front_nodes=1).solution.capacity)), rel=0.01)
    assert capacity(front) <= float(np.median(made.solution.capacity))


def test_what_is_lost_at_once_may_be_named() -> None:
    """Four replicas of nine are left: two in each of two data centres, so QUORUM fails and LOCAL_QUORUM does not."""
    failed, row = after(lose=("node,dc2,front",))
    (alone,) = after(lose=("dc2",))

    assert not failed.available
    assert row.lowered == {"write": "LOCAL_QUORUM"}
    assert dict(row.lost) == {"node": 1, "front": 1, "dc": 1}
    assert row.lost_dcs == ("dc2",)
    assert capacity(alone) == pytest.approx(capacity(after()[1]), rel=0.01)


@pytest.mark.parametrize("text", ["", "disk", "dc4", "dc,dc,dc,dc", "node,"])
def test_a_loss_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--lose"):
        after(lose=(text,))


def test_survivors_answer_later_and_are_busier_at_the_same_levels() -> None:
    """A lost RADIUS server changes next to nothing; the solver interpolates states of its pool, to some 1e-4 of p99."""
    made = case(cass_nodes=6)
    offered = 0.8 * float(np.median(made.solution.capacity))
    figures = made.solution.at(offered)
    p99 = float(np.median(figures.latency_s("acct", "p99"))) * 1e3
    for row in answered(made, offered):
        if row.latency_ms and not row.lowered:
            found = row.latency_ms["acct"].p99
            assert found is not None
            assert found.value >= 0.999 * p99
            assert capacity(row) <= float(np.median(made.solution.capacity))


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"consistency_write": "QUORUM"}, {"lower levels", "fewer replicas"}),
        ({"consistency_write": "LOCAL_QUORUM"}, set()),  # the same levels on fewer machines: nothing gets better
        (
            {"consistency_write": "ALL", "rtt": "dc1-dc2=1ms,dc1-dc3=30ms,dc2-dc3=30ms"},
            {"lower levels", "fewer replicas", "nearer replicas"},
        ),
    ],
)
def test_why_survivors_do_better_than_the_whole(fields: dict[str, Any], reasons: set[str]) -> None:
    """With two of three data centres lost: writes reach a third of the replicas, and none 30 ms away."""
    assert set(after(**fields)[-1].eased) == reasons


@pytest.mark.parametrize(
    ("lost", "waits_ms"),
    [
        ("dc3", 1.0),  # the two that are left are near each other
        ("dc2", 30.0),  # and these are not
        ("node", 30.0),  # two near replicas and two of the next data centre are not five
        ("dc2,dc3", 0.0),  # the lone survivor writes at LOCAL_QUORUM
    ],
)
def test_survivors_wait_for_the_round_trips_that_they_have_and_no_others(lost: str, waits_ms: float) -> None:
    """Of all three data centres whole, two wait 1 ms for a write at QUORUM and the third 30 ms."""
    far = case(consistency_write="QUORUM", rtt="dc1-dc2=1ms,dc1-dc3=30ms,dc2-dc3=30ms")
    values = far.system.median_values(far.fitted, far.scenario)
    *_, left = far.system.component(Losses).remainders(far, losses_of((lost,), far.system.component(Losses).kinds, 3))
    assert left.offset is not None
    survivors, whole = left.offset(values), far.system.component(MeasuredRange).offset(far.scenario, values)

    assert whole.time_s["acct"]["mean"] == pytest.approx((1e-3 + 1e-3 + 30e-3) / 3, rel=1e-3)
    assert survivors.time_s["acct"]["mean"] == pytest.approx(waits_ms * 1e-3, rel=1e-3, abs=1e-7)
    assert survivors.time_s["acct"]["p99"] == pytest.approx(waits_ms * 1e-3, rel=5e-3, abs=1e-6)
    assert survivors.time_s["auth"]["mean"] == pytest.approx(0.0, abs=1e-7)  # reads at LOCAL_QUORUM


def test_bands_of_survivors_exempt_the_round_trips_that_they_have() -> None:
    """The model error may make a band threefold as wide, but no write at QUORUM takes less than 30 ms without dc2."""
    fields: dict[str, Any] = {"rtt": "dc1-dc2=1ms,dc1-dc3=30ms,dc2-dc3=30ms", "slo": ("acct.mean<1s",)}
    unsure = case(Uncertainty(ModelError(0.1), ModelError(1.0), 1), consistency_write="QUORUM", **fields)
    (row,) = answered(unsure, 100.0, ("dc2",))
    (loss,) = losses_of(("dc2",), unsure.system.component(Losses).kinds, 3)
    reached = Strained(unsure, Conditions("dc2", loss), 100.0).reached_ms(0.05)["acct.mean"]

    assert row.latency_ms["acct"].mean is not None
    assert reached is not None
    assert 30.0 < row.latency_ms["acct"].mean.low < 32.0
    assert 30.0 < reached < 32.0


def test_one_replica_has_nothing_left_for_a_lost_node() -> None:
    """With RF 1 some tokens have no living replica in any data centre: no level helps."""
    rows = after(rf=1, cass_nodes=3, consistency_read="LOCAL_ONE", consistency_write="ONE")

    assert (dict(rows[0].lost), rows[0].available, capacity(rows[0])) == ({"node": 1}, False, 0)
    assert dict(rows[1].lost) == {"dc": 1}


def test_two_data_centres_lose_one() -> None:
    """QUORUM of RF 3 in each of two needs 4 of 6: one data centre is not enough."""
    rows = after(dcs=2)

    assert [(dict(row.lost), row.available) for row in rows] == [
        ({"node": 1}, True),
        ({"dc": 1}, False),
        ({"dc": 1}, True),
    ]


def test_one_data_centre_loses_a_node_only() -> None:
    assert [dict(row.lost) for row in after(dcs=1)] == [{"node": 1}]


def test_the_only_node_cannot_be_lost() -> None:
    assert after(dcs=1, cass_nodes=1, rf=1, consistency_read="LOCAL_ONE", consistency_write="LOCAL_ONE") == []


def test_the_more_is_lost_the_less_is_left() -> None:
    whole = float(np.median(case().solution.capacity))
    rows = [row for row in after() if row.available]

    assert whole > capacity(rows[0]) > 0  # a node of each
    assert whole > capacity(rows[1]) > capacity(rows[2]) > 0  # one data centre, two


def test_a_lone_survivor_is_a_layout_of_one_data_centre() -> None:
    """Everything goes to the one that is left, at the lowered level: nothing crosses the WAN any more."""
    alone = float(np.median(case(dcs=1).solution.capacity))

    # The same queueing network but for hints and failed replicas, which are not modelled.
    assert capacity(after()[-1]) == pytest.approx(alone, rel=0.01)


def test_the_band_decides_whether_survivors_carry_the_load() -> None:
    unsure = case(Uncertainty(ModelError(0.1), ModelError(0.1), 1))
    row = answered(unsure, 1.0, ("node",))[0]
    assert row.capacity_tps is not None
    low, value, high = row.capacity_tps.low, row.capacity_tps.value, row.capacity_tps.high
    words = [answered(unsure, rate, ("node",))[0].answer for rate in (0.98 * low, (low + value) / 2, 1.02 * high)]

    assert words == ["yes", "uncertain", "no"]


@pytest.mark.slow
def test_of_unequal_data_centres_the_worst_is_lost() -> None:
    """The third data centre has all the spare nodes, so losing it leaves the least, and it is named."""
    rows = after(dcs=3, cass_nodes=(3, 3, 6), client_share=(0.2, 0.2, 0.6), consistency_write="LOCAL_QUORUM")
    lost = next(row for row in rows if dict(row.lost) == {"dc": 1})

    assert lost.lost_dcs == ("dc3",)
    assert capacity(lost) == pytest.approx(alone_capacity(dcs=2, consistency_write="LOCAL_QUORUM"), rel=0.01)


@pytest.mark.slow
def test_a_lost_data_centre_without_which_a_level_fails_is_worse_than_any_other() -> None:
    """QUORUM of 3 + 1 + 1 replicas is 3: without the first data centre there are 2."""
    rows = after(rf=(3, 1, 1), consistency_read="LOCAL_ONE")
    first = next(row for row in rows if dict(row.lost) == {"dc": 1})

    assert not first.available
    assert first.lost_dcs == ("dc1",)


def test_a_lost_data_centre_that_lowers_levels_is_worse_though_more_is_carried_without_it() -> None:
    """QUORUM of 3 + 1 + 1 replicas is 3: without the first data centre there are 2, and fewer writes for each."""
    made = case(rf=(3, 1, 1), consistency_read="LOCAL_ONE", consistency_write="QUORUM")
    failed, lowered = made.system.component(Losses).remainders(
        made, losses_of(("dc",), made.system.component(Losses).kinds, 3)
    )

    assert failed.lost_dcs == lowered.lost_dcs == ("dc1",)
    assert failed.solved is None


def test_the_cost_of_a_lower_level_is_that_of_the_data_centre_where_the_fewest_answer() -> None:
    """QUORUM of 18 is 10 and 8 are left: LOCAL_QUORUM is 3 of 5 in the third data centre and 2 of 3 in the fourth."""
    made = case(dcs=4, rf=(5, 5, 5, 3), cass_nodes=5, consistency_write="QUORUM")
    _, row = made.system.component(Losses).remainders(
        made, losses_of(("dc1,dc2",), made.system.component(Losses).kinds, 4)
    )

    assert row.lowered == {"write": "LOCAL_QUORUM"}
    assert row.cost.startswith("confirmed by 2 replicas, not 10;")


@pytest.mark.parametrize(("dcs", "found"), [(3, True), (4, False)])
def test_local_quorums_find_what_was_written_in_their_own_data_centre_only(dcs: int, found: bool) -> None:
    """Of three data centres one is left, which reads what it writes; of four two are, and each may miss the other's."""
    made = case(dcs=dcs, consistency_write="QUORUM")
    _, row = made.system.component(Losses).remainders(
        made, losses_of(("dc,dc",), made.system.component(Losses).kinds, dcs)
    )

    assert row.lowered == {"write": "LOCAL_QUORUM"}
    assert row.cost.endswith("reads still find them" if found else "reads may miss them")


@pytest.mark.parametrize(
    ("fields", "kinds"),
    [
        ({"front_nodes": (1, 2), "cass_nodes": 3}, ["node", "front", "dc"]),
        ({"front_nodes": 1, "cass_nodes": (3, 1), "rf": (3, 1)}, ["node", "dc"]),
        ({"front_nodes": 1, "cass_nodes": 1, "rf": 1}, ["dc"]),
    ],
)
def test_a_kind_of_machine_is_lost_if_any_data_centre_has_more_than_one(
    fields: dict[str, Any], kinds: list[str]
) -> None:
    made = case(dcs=2, consistency_read="LOCAL_ONE", consistency_write="LOCAL_ONE", **fields)
    rows = made.system.component(Losses).remainders(made, ())

    assert list(dict.fromkeys(next(iter(row.lost)) for row in rows)) == kinds


def test_a_standby_takes_over_and_needs_policing_nodes_to_do_so() -> None:
    local: dict[str, Any] = {"dcs": 2, "consistency_write": "LOCAL_QUORUM", "client_share": (1.0, 0.0)}
    ready, bare = after(**local), after(**local, front_nodes=(2, 0))

    assert [(dict(row.lost), row.available) for row in ready] == [({"node": 1}, True), ({"dc": 1}, True)]
    assert capacity(ready[1]) == pytest.approx(alone_capacity(dcs=1), rel=0.01)
    assert [(dict(row.lost), row.available) for row in bare] == [({"node": 1}, True), ({"dc": 1}, False)]
    assert bare[1].lost_dcs == ("dc1",)


@pytest.mark.slow
def test_a_level_must_be_met_wherever_clients_are() -> None:
    """LOCAL_QUORUM of one replica does not survive its node, although it does in the other data centre."""
    local: dict[str, Any] = {"dcs": 2, "rf": (3, 1), "consistency_write": "LOCAL_QUORUM"}

    assert not after(**local)[0].available
    assert after(**local, client_share=(1.0, 0.0))[0].available
