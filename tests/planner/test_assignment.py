"""How far the assignment of requests to cores leaves latencies open: more, the higher the load."""

from capplan.planner.predict.predict import assignment_note, difference
from capplan.systems import registry


def test_queues_of_their_own_take_longer_the_higher_the_load() -> None:
    for name in ("fedora4", "openprovider"):
        found = difference(registry.resolve(registry.scenario(name)))
        assert found
        assert all(0 < half < most for half, most in found.values())


def test_stalls_hide_the_cores_of_rhino_shcm() -> None:
    found = difference(registry.resolve(registry.scenario("rhino-shcm")))
    assert found
    assert all(0 < each < 0.1 for each in found["request"])


def test_a_system_without_pooled_servers_says_nothing() -> None:
    case = registry.resolve(registry.scenario("arion"))
    assert difference(case) is None
    assert assignment_note(case) == ()
