"""What a proposal promises of failures follows from consistency levels, from the demand and from simulated losses."""

import pytest

from capplan.models.language.scenario import changed
from capplan.planner.demand.demand import BusyHour, Demand
from capplan.planner.demand.forecast import forecast
from capplan.planner.proposal.failures import first_minute, keeps_writes, losses_to_simulate, mass_return
from capplan.systems.registry import scenario, system


@pytest.mark.parametrize(
    ("level", "word", "kept"),
    [
        ("QUORUM", "dc", True),  # 5 of 9 replicas: at least 2 elsewhere
        ("EACH_QUORUM", "dc", True),
        ("LOCAL_QUORUM", "dc", False),  # both may be where the coordinator was
        ("THREE", "dc", False),
        ("ALL", "dc", True),
        ("LOCAL_QUORUM", "node", True),  # 2 of 3, and one is lost
        ("LOCAL_ONE", "node", False),
        ("THREE", "node", False),  # one in each of three data centres
        ("LOCAL_ONE", "front", True),
    ],
)
def test_a_write_is_kept_if_more_replicas_confirm_it_than_are_lost(level: str, word: str, kept: bool) -> None:
    layout = changed(scenario("openprovider"), dcs=3, rf=3, consistency_write=level)
    assert keeps_writes(layout, word) is kept


def test_a_system_without_levels_says_nothing_of_writes() -> None:
    assert keeps_writes(scenario("fedora4"), "node") is None


def test_requests_fail_until_a_lost_node_is_noticed_and_are_served_afterwards() -> None:
    its = system("openprovider")
    layout = changed(scenario("openprovider"), dcs=1, cass_nodes=3, tps=1_000.0)
    assert losses_to_simulate(its, layout, ("normal", "dc")) == ("node", "front")  # there is one data centre only
    assert losses_to_simulate(its, changed(layout, tps=0.2), ("normal",)) == ()  # seconds without a request
    found = first_minute(layout, its.fitted(), 1, "node")
    assert found.completed_until_noticed < 0.95 < found.completed_afterwards
    assert found.back_after_s is not None
    assert found.back_after_s <= found.lasts_s
    assert 0 < found.unanswered < 1 - found.completed_until_noticed


def test_subscribers_that_return_ask_as_much_as_the_demand_says() -> None:
    demand = Demand(subscribers=1e6, busy_hour=BusyHour(sessions=0.6, length_s=3000.0))
    found, storm = mass_return(demand, 3000.0), forecast(demand).reattach
    assert storm is not None
    assert found.peak_tps == pytest.approx(storm.peak.rates.total_per_s, rel=1e-3)
    assert found.times_busy_hour == pytest.approx(storm.times_busy_hour, rel=1e-3)
    assert found.served_after_s is not None
    slower = mass_return(demand, 2500.0)
    assert slower.served_after_s is None or slower.served_after_s > found.served_after_s
