"""One entry for all: the same figures as from the whole network, for every layout that folds."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capplan.models.cassandra.consistency import READ_LEVELS, WRITE_LEVELS
from capplan.models.errors import InputError
from capplan.systems.openprovider.network import folds
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

OPENPROVIDER = system("openprovider")
VALUES = {
    name: value[::60] if isinstance(value, np.ndarray) else value
    for name, value in OPENPROVIDER.fitted().values(OPENPROVIDER.parameters).items()
}


@st.composite
def scenarios(draw: st.DrawFn) -> OpenproviderScenario:
    """Return small layouts of every kind."""
    nodes = draw(st.integers(1, 5))
    try:
        return OpenproviderScenario(
            dcs=draw(st.integers(1, 3)),
            cass_nodes=nodes,
            rf=draw(st.integers(1, min(nodes, 3))),
            front_nodes=draw(st.integers(1, 3)),
            front_workers=draw(st.sampled_from([4, 64, 1000])),
            consistency_read=draw(st.sampled_from(READ_LEVELS)),
            consistency_write=draw(st.sampled_from(WRITE_LEVELS)),
            rtt=draw(st.sampled_from([None, "0", "3ms", "50ms"])),
            proxy=draw(st.booleans()),
            ldap=draw(st.booleans()),
        )
    except InputError:  # a level that asks for more replicas than there are
        assume(False)
        raise


@settings(max_examples=20, deadline=None)
@given(scenarios(), st.sampled_from([0.3, 0.9, 1.2]))
def test_figures_are_those_of_the_whole_network(scenario: OpenproviderScenario, load_share: float) -> None:
    assume(folds(scenario))
    folded, whole = (OPENPROVIDER.solution(scenario, VALUES, folded=each) for each in (True, False))

    assert folded.capacity == pytest.approx(whole.capacity, rel=3e-6)  # the width of its last bracket
    assert folded.analysis.drift_per_s == pytest.approx(whole.analysis.drift_per_s, rel=1e-9)
    assert folded.bottleneck == whole.bottleneck
    assert set(folded.resources) == set(whole.resources)
    rate = float(np.median(whole.capacity)) * load_share
    one, every = folded.at(rate), whole.at(rate)
    assert one.point.drop_rate == pytest.approx(every.point.drop_rate, rel=1e-6, abs=1e-12)
    assert one.busy_workers() == pytest.approx(every.busy_workers(), rel=1e-9)
    for resource in whole.resources:
        assert one.utilisation(resource) == pytest.approx(every.utilisation(resource), rel=1e-9)
    for name in ("auth", "acct"):
        assert one.latencies_s(name) == pytest.approx(every.latencies_s(name), rel=1e-5)


def test_layouts_whose_entries_differ_do_not_fold() -> None:
    matrix = (("0", "2ms", "8ms"), ("2ms", "0", "3ms"), ("8ms", "3ms", "0"))

    assert folds(OpenproviderScenario())
    assert not folds(OpenproviderScenario(rtt=matrix))
    assert not folds(OpenproviderScenario(consistency_read="QUORUM"))
    assert folds(OpenproviderScenario(dcs=1, consistency_read="QUORUM"))
    assert not folds(OpenproviderScenario(dcs=2, consistency_read="ALL"))
