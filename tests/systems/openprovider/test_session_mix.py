"""Sessions of another mix: their mean numbers of requests are exact, and the usual mix is the network of the tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.language.document import dump
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.language.traffic import Open
from capplan.models.solver.analytic import Analysis, request_shares
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, solve
from capplan.simulator.compiled.engine import simulate
from capplan.simulator.results.tally import Status
from capplan.systems.openprovider import SYSTEM
from capplan.systems.openprovider.network import REPORTED, network
from capplan.systems.openprovider.notes import excess
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import (
    TRAIN,
    USUAL,
    OpenproviderScenario,
    SessionMix,
    read_mix,
    sent_sessions,
)

VALUES: Values = {**defaults(PARAMETERS), "burst_excess": 1e-9}
TESTED = ("auth", "start", "update", "update", "update", "update", "update", "update")


def test_the_usual_mix_is_the_session_of_the_load_tests() -> None:
    assert [tuple(each) for each in sent_sessions(USUAL)] == [("session", TESTED, 1.0)]
    assert OpenproviderScenario(mix="acct=7, auth=1") == OpenproviderScenario()
    found = network(OpenproviderScenario(), VALUES, 1000.0)
    assert [(each.name, each.classes) for each in found.sessions] == [("session", TESTED)]
    assert isinstance(found.traffic, Open)
    assert found.traffic.mix == {"session": 1.0}


def test_a_mix_changes_nothing_but_the_sessions() -> None:
    usual, other = (dump(network(OpenproviderScenario(mix=mix), VALUES, 1000.0)) for mix in (None, "auth=2,acct=3"))
    assert {name for name in usual if usual[name] != other[name]} == {"sessions"}


@given(st.floats(0.01, 40), st.floats(1, 400))
def test_the_mean_numbers_of_requests_are_those_of_the_mix(auth: float, acct: float) -> None:
    sent = sent_sessions(SessionMix(auth, acct))
    each = {name: sum(one.weight * one.classes.count(name) for one in sent) for name in ("auth", "start", "update")}
    assert each["auth"] == pytest.approx(auth)
    assert each["start"] == pytest.approx(1)
    assert each["update"] == pytest.approx(acct - 1, abs=1e-9)
    assert max(len(one.classes) for one in sent) <= TRAIN
    assert len({one.name for one in sent}) == len(sent)


def test_a_number_that_is_not_whole_is_a_mixture_of_two_kinds_of_session() -> None:
    sent = sent_sessions(SessionMix(1.0, 3.25))
    assert [(each.classes.count("update"), each.weight) for each in sent] == [(3, 0.25), (2, 0.75)]


def test_a_long_session_is_sent_in_trains() -> None:
    """A day of updates every ten minutes: eight requests as in the load tests, and 138 updates in trains of eight."""
    begin, train = sent_sessions(SessionMix(1.0, 145.0))
    assert begin == ("session", TESTED, 1.0)
    assert train == ("update-train", ("update",) * 8, 138 / 8)


@pytest.mark.parametrize("mix", [(1.0, 7.0), (1.0, 6.5), (2.0, 6.0), (1.0, 40.0), (8.0, 2.0)])
def test_capacity_is_a_continuous_function_of_the_mix(mix: tuple[float, float]) -> None:
    def capacity(auth: float, acct: float) -> float:
        scenario = OpenproviderScenario(dcs=1, mix=f"auth={auth!r},acct={acct!r}")
        return float(np.max(capacity_per_s(Analysis(network(scenario, VALUES, 1.0)), MAX_DROP_RATE)))

    auth, acct = mix
    around = [capacity(auth + a, acct + b) for a in (-1e-6, 0.0, 1e-6) for b in (-1e-6, 0.0, 1e-6)]
    assert max(around) == pytest.approx(min(around), rel=1e-4)


@pytest.mark.parametrize("mix", ["auth=2,acct=3", "auth=1,acct=1", "auth=0.5,acct=2.5", "auth=1.5,acct=200"])
def test_the_load_of_nodes_by_hand(mix: str) -> None:
    """The storage path takes writes only: every accounting request writes, to each replica."""
    scenario = OpenproviderScenario(mix=mix)
    found, read = network(scenario, VALUES, 1000.0), read_mix(mix)
    assert request_shares(found)["auth"] == pytest.approx(read.auth / read.total)
    writes = read.acct / read.total
    expected = writes * 3 * float(VALUES["storage_s"]) / 3
    assert float(Analysis(found).load("cassandra-storage/dc1")[0]) == pytest.approx(expected)
    assert scenario.statements_per_request() == pytest.approx((read.total - 1 + read.acct) / read.total)


def test_solver_and_simulation_agree_on_a_mixture() -> None:
    """Some 60,000 requests at 40 % load: the shares of classes are within 5 standard deviations, the means within 5 %.

    A correct program fails with a probability below 1e-5; a share that is off by 2 % or a mean by 8 % is found.
    """
    scenario = OpenproviderScenario(mix="auth=1.5,acct=3.25")
    made = network(scenario, VALUES, 3000.0)
    run, point = simulate(made, 21.0, seed=1, warmup_s=1.0), solve(Analysis(made), np.array([3000.0]))
    counted = {name: run.count(Status.COMPLETED, name) for name in ("auth", "start", "update")}
    total, share = sum(counted.values()), 1.5 / 4.75
    assert counted["auth"] / total == pytest.approx(share, abs=5 * (share * (1 - share) / total) ** 0.5)
    for name in counted:
        assert run.latency_mean_s(name) == pytest.approx(float(point.response_s(name)[0]), rel=0.05), name


def test_sessions_without_updates_have_times_of_accounting() -> None:
    point = solve(Analysis(network(OpenproviderScenario(mix="auth=1,acct=1"), VALUES, 1000.0)), np.array([1000.0]))
    assert float(point.response_s(*REPORTED["acct"])[0]) == float(point.response_s("start")[0])


def test_another_mix_is_an_extrapolation() -> None:
    tests = SYSTEM.observations.load_tests()
    scenario = OpenproviderScenario(mix="auth=2,acct=7", data_factor=1.0)
    (found,) = excess(scenario, tests)
    assert found.doublings == pytest.approx(1)
    assert found.inside == changed(scenario, mix=None)
    assert not excess(OpenproviderScenario(mix="auth=1,acct=7", data_factor=1.0), tests)


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        ("auth=1", "no acct"),
        ("auth=1,acct=7,auth=2", "auth twice"),
        ("auth=1,act=7", "did you mean 'acct'"),
        ("auth=1,acct=0.5", "at least its start"),
        ("auth=0,acct=7", "auth above 0"),
        ("auth=1,acct=many", "'many'"),
        ("auth,acct", "not a name with a number"),
        ("auth=1,acct=1e9", "at most 10,000"),
        ("auth=nan,acct=7", "'nan'"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(mix: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        OpenproviderScenario(mix=mix)
