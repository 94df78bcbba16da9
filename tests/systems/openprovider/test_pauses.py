"""Pauses of Cassandra nodes in the percentiles of `openprovider`."""

import numpy as np
import pytest

from capplan.models.language.parameter import Values
from capplan.systems.openprovider import SYSTEM as OPENPROVIDER
from capplan.systems.openprovider.scenario import OpenproviderScenario

THREE_DCS = OpenproviderScenario(dcs=3)
VALUES = OPENPROVIDER.prior_values(THREE_DCS)


def test_means_have_no_pauses_and_percentiles_grow_by_them() -> None:
    figures = OPENPROVIDER.solution(THREE_DCS, VALUES).at(5000.0)
    paused, plain = (each.latencies_s("auth") for each in (figures, figures.without_pauses))
    assert paused[0] == plain[0]
    assert np.all(paused[1:] > plain[1:])
    assert paused[-1] > 5 * plain[-1]


def test_beyond_capacity_pauses_add_no_more_than_they_last() -> None:
    """All workers are taken there, so the queue behind a paused node is no longer than without the pause."""
    solution = OPENPROVIDER.solution(THREE_DCS, VALUES)
    figures = solution.at(2 * float(solution.capacity[0]))
    paused, plain = (each.latency_s("auth", "p50")[0] for each in (figures, figures.without_pauses))
    assert plain < paused < plain + float(VALUES["pause_s"])


def test_each_draw_has_its_own_pauses_also_where_another_represents_it() -> None:
    shares = np.array([0.002, 0.01, 0.05])
    every: Values = {**VALUES, "pause_share": shares, "mutation_s": np.full(3, VALUES["mutation_s"])}
    one: Values = {**VALUES, "pause_share": shares[:1]}
    few = OPENPROVIDER.solution(THREE_DCS, one, np.zeros(3, dtype=np.intp), every).at(5000.0)
    whole = OPENPROVIDER.solution(THREE_DCS, every).at(5000.0)
    assert few.latencies_s("acct") == pytest.approx(np.broadcast_to(whole.latencies_s("acct"), (6, 3)), rel=1e-5)
