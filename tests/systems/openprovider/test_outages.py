"""Outages: availability by consistency level, and then the remaining capacity."""

from typing import Any

import numpy as np
import pytest

from capplan.calibration.case.model_error import ModelError
from capplan.calibration.case.uncertainty import Uncertainty
from capplan.calibration.system import Case
from capplan.models.language.scenario import changed
from capplan.models.results import Outage
from capplan.systems.openprovider.outages import outages
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, system

SURE = Uncertainty(ModelError(0.0), ModelError(0.0), 1)
FITTED = system("openprovider").fitted()


def case(uncertainty: Uncertainty = SURE, **fields: Any) -> Case[OpenproviderScenario]:
    """Return a layout with a made-up uncertainty."""
    made: Case[OpenproviderScenario] = resolve(changed(OpenproviderScenario(), **fields), FITTED)
    vars(made)["uncertainty"] = uncertainty
    return made


def after(offered: float = 1000.0, **fields: Any) -> list[Outage]:
    return list(outages(case(**fields), offered))


def summary(rows: list[Outage]) -> list[tuple[dict[str, int], bool, str]]:
    return [(dict(row.lost), row.available, row.assumed) for row in rows]


def capacity(row: Outage) -> float:
    assert row.capacity_tps is not None
    return row.capacity_tps.value


def alone_capacity(**fields: Any) -> float:
    return float(np.median(case(**fields).solution.capacity))


def test_quorum_over_three_data_centres_survives_one_and_not_two() -> None:
    rows = after(consistency_write="QUORUM")
    asked = "reads LOCAL_QUORUM, writes QUORUM as asked"

    assert summary(rows) == [
        ({"node": 1}, True, asked),
        ({"dc": 1}, True, asked),
        ({"dc": 2}, False, asked),
        ({"dc": 2}, True, "levels lowered to reads LOCAL_QUORUM, writes LOCAL_QUORUM"),
    ]
    assert capacity(rows[2]) == 0
    assert rows[2].carries_offered is False
    assert capacity(rows[3]) > 0


def test_each_quorum_fails_with_any_data_centre_until_it_is_lowered() -> None:
    rows = after(consistency_write="EACH_QUORUM")

    assert [(dict(row.lost), row.available) for row in rows] == [
        ({"node": 1}, True),
        ({"dc": 1}, False),
        ({"dc": 1}, True),
        ({"dc": 2}, False),
        ({"dc": 2}, True),
    ]
    for failed, lowered in ((rows[1], rows[2]), (rows[3], rows[4])):
        assert capacity(failed) == 0
        assert failed.assumed.endswith("writes EACH_QUORUM as asked")
        assert capacity(lowered) > 0
        assert lowered.assumed == "levels lowered to reads LOCAL_QUORUM, writes LOCAL_QUORUM"


def test_only_the_level_that_fails_is_lowered() -> None:
    rows = after(consistency_read="LOCAL_ONE", consistency_write="EACH_QUORUM")

    assert rows[2].assumed == "levels lowered to reads LOCAL_ONE, writes LOCAL_QUORUM"


def test_all_fails_with_one_node() -> None:
    rows = after(consistency_write="ALL")

    assert (dict(rows[0].lost), rows[0].available) == ({"node": 1}, False)
    assert (dict(rows[1].lost), rows[1].available) == ({"node": 1}, True)


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


def test_the_low_end_of_the_band_decides_whether_survivors_carry_the_load() -> None:
    unsure = case(Uncertainty(ModelError(0.1), ModelError(0.1), 1))
    row = outages(unsure, 1.0)[0]
    assert row.capacity_tps is not None
    low, value = row.capacity_tps.low, row.capacity_tps.value
    between = outages(unsure, (low + value) / 2)[0]
    below = outages(unsure, 0.999 * low)[0]

    assert low < value
    assert below.carries_offered is True
    assert between.carries_offered is False


def test_of_unequal_data_centres_the_worst_is_lost() -> None:
    """The third data centre has all the spare nodes, so losing it leaves the least, and it is named."""
    rows = after(dcs=3, cass_nodes=(3, 3, 6), client_share=(0.2, 0.2, 0.6), consistency_write="LOCAL_QUORUM")
    lost = next(row for row in rows if dict(row.lost) == {"dc": 1})

    assert "lost: dc3" in lost.assumed
    assert capacity(lost) == pytest.approx(alone_capacity(dcs=2, consistency_write="LOCAL_QUORUM"), rel=0.01)


def test_a_lost_data_centre_without_which_a_level_fails_is_worse_than_any_other() -> None:
    """QUORUM of 3 + 1 + 1 replicas is 3: without the first data centre there are 2."""
    rows = after(rf=(3, 1, 1), consistency_read="LOCAL_ONE")
    first = next(row for row in rows if dict(row.lost) == {"dc": 1})

    assert not first.available
    assert "lost: dc1" in first.assumed


def test_a_standby_takes_over_and_needs_policing_nodes_to_do_so() -> None:
    local: dict[str, Any] = {"dcs": 2, "consistency_write": "LOCAL_QUORUM", "client_share": (1.0, 0.0)}
    ready, bare = after(**local), after(**local, front_nodes=(2, 0))

    assert [(dict(row.lost), row.available) for row in ready] == [({"node": 1}, True), ({"dc": 1}, True)]
    assert capacity(ready[1]) == pytest.approx(alone_capacity(dcs=1), rel=0.01)
    assert [(dict(row.lost), row.available) for row in bare] == [({"node": 1}, True), ({"dc": 1}, False)]
    assert "lost: dc1" in bare[1].assumed


def test_a_level_must_be_met_wherever_clients_are() -> None:
    """LOCAL_QUORUM of one replica does not survive its node, although it does in the other data centre."""
    local: dict[str, Any] = {"dcs": 2, "rf": (3, 1), "consistency_write": "LOCAL_QUORUM"}

    assert not after(**local)[0].available
    assert after(**local, client_share=(1.0, 0.0))[0].available
