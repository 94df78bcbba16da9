"""Latencies of simulated draws: phases by their shares, percentiles by draw, and of all draws pooled to one scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.case.solution import LEVELS
from capplan.planner.predict.draw_relation import samples
from capplan.simulator.results.histogram import Histogram

MS = 10**6


def milliseconds(*values: float) -> Histogram:
    return Histogram.from_ticks((np.array(values) * MS).astype(np.int64))


def test_phases_are_weighted_by_their_shares_whatever_their_counts() -> None:
    """Nine tenths of the requests at 1 ms, a tenth at 3 ms."""
    seen = samples([[(0.9, milliseconds(*[1.0] * 10)), (0.1, milliseconds(*[3.0] * 1000))]] * 2)

    assert seen.figures(None) == pytest.approx([1.2e-3] * 2)
    assert seen.figures(0.4) == pytest.approx([1e-3] * 2, rel=0.004)
    assert seen.figures(0.999) == pytest.approx([3e-3] * 2, rel=0.004)


def test_percentiles_are_finer_than_the_bins_of_a_histogram() -> None:
    """Of even latencies; bins are 0.4 % wide."""
    seen = samples([[(1.0, Histogram.from_ticks(np.arange(1, 10**6) * 10))]] * 2)

    for level in LEVELS.values():
        assert seen.figures(level) == pytest.approx([level * 1e-2] * 2, rel=1e-3)


def test_one_empty_phase_has_no_mean() -> None:
    seen = samples(
        [[(0.9, milliseconds(1.0)), (0.1, milliseconds())], [(0.9, milliseconds(1.0)), (0.1, milliseconds(1))]]
    )

    assert np.isnan(seen.mean_s).tolist() == [True, False]


def test_draws_with_nothing_have_no_percentile() -> None:
    assert np.isnan(samples([[(1.0, milliseconds())], [(1.0, milliseconds(1.0))]]).figures(0.5)).tolist() == [
        True,
        False,
    ]


@given(st.lists(st.floats(0.1, 100), min_size=3, max_size=6), st.sampled_from([None, 0.5, 0.99]))
def test_draws_that_differ_in_scale_only_are_one_when_pooled(scales: list[float], level: float | None) -> None:
    """Bins are 0.4 % wide, and fall elsewhere for each scale."""
    latencies = 1 + np.arange(2000) / 500
    seen = samples([[(1.0, milliseconds(*(latencies * scale)))] for scale in scales])
    expected = 1e-3 * float(latencies.mean() if level is None else np.quantile(latencies, level))
    figure, without = seen.pooled(np.array(scales), level)

    assert figure == pytest.approx(expected, rel=0.005)
    assert without == pytest.approx([expected] * len(scales), rel=0.005)


@pytest.mark.parametrize("level", [None, 0.5])
def test_each_draw_is_left_out_once(level: float | None) -> None:
    seen = samples([[(1.0, milliseconds(*[value] * 5))] for value in (1.0, 2.0, 9.0)])
    _, without = seen.pooled(np.ones(3), level)

    assert without == pytest.approx([5.5e-3, 5e-3, 1.5e-3], rel=0.01)


def test_pooled_percentiles_are_not_biased_by_short_clustered_runs() -> None:
    """One run in five is slow throughout (10 ms), the others are fast (1 ms).

    The 90th percentile of all is slow; the mean of the logarithms of the runs' own percentiles is not.
    """
    seen = samples([[(1.0, milliseconds(*[10.0 if run % 5 == 0 else 1.0] * 100))] for run in range(10)])

    assert seen.pooled(np.ones(10), 0.9)[0] == pytest.approx(10e-3, rel=0.01)
    assert np.exp(np.log(seen.figures(0.9)).mean()) < 2e-3
