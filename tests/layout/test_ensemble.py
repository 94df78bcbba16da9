"""Thinning an ensemble: draws spread over all of them, or evenly along a figure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.layout.ensemble import evenly_along, representatives, thinned
from capplan.models.cassandra.encryption import INTERNODE_S
from capplan.models.cassandra.pauses import OF_PAUSES
from capplan.systems.registry import resolve, scenario, system

FITTED = system("openprovider").fitted()


def test_representatives_stand_for_their_neighbours() -> None:
    """Of all parameters but those of pauses, which each draw has of its own."""
    values = FITTED.values(system("openprovider").parameters)
    few, fewer = representatives(values, 40), representatives(values, 10)
    logs = np.log(np.array(FITTED.draws)[:, [name not in OF_PAUSES for name in FITTED.names]])
    points = logs / logs.std(axis=0)
    distance = np.linalg.norm(points[:, None] - points[few.chosen][None], axis=-1)

    assert len(set(few.chosen.tolist())) == 40
    assert list(few.chosen[:10]) == list(fewer.chosen)
    assert distance[np.arange(len(points)), few.place] == pytest.approx(distance.min(axis=1))
    every = representatives(values, 10**6)
    assert list(every.chosen) == list(every.place) == list(range(len(FITTED.draws)))


def test_draws_are_told_apart_by_the_cost_of_encryption_too() -> None:
    """The other parameters hardly matter beside it: without encryption, capacities of draws differ by 1 %."""
    values = resolve(scenario("openprovider", encryption="internode")).values
    few = representatives(values, 40)
    share = np.log(np.asarray(values[INTERNODE_S]))

    assert np.corrcoef(share, share[few.chosen][few.place])[0, 1] > 0.8


@given(st.integers(1, 128), st.integers(20, 500))
def test_the_first_draws_of_rounds_are_even(count: int, draws: int) -> None:
    """No gap between neighbours, nor at an end, is wider than twice the mean and a place."""
    figure = np.random.default_rng(draws).permutation(draws).astype(float)
    ranks = np.sort(figure[evenly_along(figure, 128, in_rounds=True)[:count]])

    assert np.max(np.diff(np.concatenate([[0], ranks, [draws]]))) <= 2 * draws / (count + 1) + 1


@given(st.integers(1, 128), st.integers(128, 500))
def test_a_fixed_number_of_draws_is_the_middles_of_equal_parts(count: int, draws: int) -> None:
    figure = np.random.default_rng(draws).permutation(draws).astype(float)
    ranks = figure[evenly_along(figure, count)]

    assert np.abs(ranks - (np.arange(count) + 0.5) * draws / count).max() <= 1


def test_a_small_ensemble_keeps_numbers_and_takes_few_draws() -> None:
    small = thinned({"draws": np.arange(512.0), "number": 3.0}, 4)

    assert small["number"] == 3.0
    assert list(np.asarray(small["draws"])) == [0.0, 128.0, 256.0, 384.0]
