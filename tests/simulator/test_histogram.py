"""Histograms count exactly, and their quantiles are those of the sorted latencies to 1/256."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.simulator.histograms import histogram_of

from capplan.errors import InputError
from capplan.simulator.results.histogram import BINS, bin_middles, bin_of, bin_starts


# As many short ones as long ones: durations are drawn by their number of bits.
def durations(most_bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, most_bits).flatmap(lambda bits: st.integers(2**bits >> 1, 2**bits - 1))


MANY = arrays(np.int64, st.integers(0, 60), elements=durations(63))
SOME = arrays(np.int64, st.integers(1, 60), elements=durations(63))
SHORT = arrays(np.int64, st.integers(1, 60), elements=durations(50))  # 13 days: beyond, floats join neighbouring ticks
NONE = np.array([], dtype=np.int64)


def plain_bin(ticks: int) -> int:
    shift = max(ticks.bit_length() - 9, 0)
    return shift * 256 + (ticks >> shift)


@given(MANY)
def test_the_bin_is_the_leading_nine_bits(ticks: np.ndarray) -> None:
    assert bin_of(ticks).tolist() == [plain_bin(each) for each in ticks.tolist()]


def test_bins_join_and_reach_63_bits() -> None:
    starts = bin_starts()
    assert bin_of(starts).tolist() == list(range(BINS))
    assert bin_of(starts[1:] - 1).tolist() == list(range(BINS - 1))
    assert plain_bin(2**63 - 1) == BINS - 1
    assert starts[:514].tolist() == [*range(512), 512, 514]


@given(durations(63))
def test_the_middle_of_a_bin_is_within_a_512th(ticks: int) -> None:
    assert 512 * abs(int(bin_middles()[plain_bin(ticks)]) - ticks) <= ticks


@given(MANY)
def test_count_mean_and_maximum_are_exact(ticks: np.ndarray) -> None:
    histogram = histogram_of(ticks)
    assert histogram.count == ticks.size
    assert histogram.total_ticks == sum(ticks.tolist())
    if ticks.size:
        assert histogram.mean_s == sum(ticks.tolist()) / ticks.size / 1e9
        assert histogram.max_s == max(ticks.tolist()) / 1e9
    else:
        assert math.isnan(histogram.mean_s)
        assert math.isnan(histogram.max_s)
        assert math.isnan(histogram.quantile_s(0.5))


@given(SOME, st.integers(0, 1000))
def test_quantiles_are_those_of_the_sorted_latencies(ticks: np.ndarray, per_mille: int) -> None:
    rank = max(math.ceil(Fraction(per_mille, 1000) * ticks.size), 1)
    exact = sorted(ticks.tolist())[rank - 1]
    found = histogram_of(ticks).quantile_s(per_mille / 1000)
    assert abs(found * 1e9 - exact) <= exact / 256 * (1 + 1e-12)
    assert found <= max(ticks.tolist()) / 1e9


def test_latencies_spread_over_a_bin_are_told_apart() -> None:
    """A bin of 4,096 ticks; its middle would be wrong by half of that."""
    first = 1 << 20
    histogram = histogram_of(np.arange(first, first + 4096))
    assert [histogram.quantile_s(share) * 1e9 - first for share in (0.25, 0.5, 0.99)] == pytest.approx(
        [1023, 2047, 4055], abs=1
    )


def test_quantiles_by_hand() -> None:
    histogram = histogram_of(np.arange(1, 101))
    shares = (0.0, 0.01, 0.07, 0.5, 0.501, 0.99, 1.0)
    assert [round(histogram.quantile_s(share) * 1e9) for share in shares] == [1, 1, 7, 50, 51, 99, 100]
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError):
            histogram.quantile_s(wrong)


@given(MANY, MANY)
def test_adding_is_counting_both(one: np.ndarray, other: np.ndarray) -> None:
    added = histogram_of(one) + histogram_of(other)
    both = histogram_of(np.concatenate([one, other]))
    assert np.array_equal(added.counts, both.counts)
    assert (added.total_ticks, added.largest_ticks) == (both.total_ticks, both.largest_ticks)


@settings(max_examples=25)  # counting below every bin takes long
@given(SHORT)
def test_the_distribution_function_rises_to_one_at_the_maximum(ticks: np.ndarray) -> None:
    latencies_s, shares = histogram_of(ticks).cdf()
    assert latencies_s[-1] == max(ticks.tolist()) / 1e9
    assert shares[-1] == 1
    assert np.all(np.diff(shares) > 0)
    assert np.all(np.diff(latencies_s) >= 0)
    for latency_s, share in zip(latencies_s[:-1], shares[:-1], strict=True):
        assert np.count_nonzero(ticks / 1e9 <= latency_s) / ticks.size == pytest.approx(share)


def test_no_latencies_no_points() -> None:
    assert [points.size for points in histogram_of(NONE).cdf()] == [0, 0]


@pytest.mark.slow
@settings(max_examples=25)  # filling one takes milliseconds
@given(SOME)
def test_the_exported_histogram_has_the_same_quantiles_up_to_a_bin(ticks: np.ndarray) -> None:
    histogram = histogram_of(ticks)
    exported = histogram.to_hdr()
    assert exported.get_total_count() == ticks.size
    for share in np.arange(1, ticks.size + 1) / ticks.size:  # in between, the other's ranks are rounded to the nearest
        expected = histogram.quantile_s(float(share)) * 1e9
        assert exported.get_value_at_percentile(100 * share) == pytest.approx(expected, rel=1 / 256, abs=0.5)


def test_the_encoded_histogram_is_read_back() -> None:
    histogram = histogram_of(np.array([0, 5, 1_000_000, 1_000_000, 2_500_000]))
    read = HdrHistogram.decode(histogram.encoded())
    assert read.get_total_count() == 5
    assert read.get_value_at_percentile(50) == pytest.approx(1_000_000, rel=5e-3)
    assert histogram_of(NONE).to_hdr().get_total_count() == 0
