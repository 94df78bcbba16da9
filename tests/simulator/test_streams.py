"""Counter-based draws: uniform and independent across neighbouring keys, stable under changes of the layout.

Error rates: a perfect generator fails one of these comparisons with probability 1e-4 (over seeds; they are fixed). Each
finds with probability 0.999 a histogram that is off by 6 % in the root mean square, or a correlation of 0.03.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from capplan.models.language.distribution import Deterministic
from capplan.models.language.step import Acquire, Delay, ForkJoin, Sequence, Step, walk
from capplan.simulator.specification.streams import (
    fold,
    mix,
    name_key,
    replicas,
    replicas_key,
    request_key,
    root_key,
    source_key,
    step_names,
    uniform,
)

ALPHA, BETA, DRAWS = 1e-4, 1e-3, 100_000
READ = name_key("step", "/read")
SOURCE = source_key(root_key(7, 0), "source", "talk")

NEIGHBOURS: dict[str, Callable[[int], float]] = {
    "request after request": lambda n: uniform(request_key(SOURCE, n, 0), READ),
    "position after position": lambda n: uniform(request_key(SOURCE, 5, n), READ),
    "attempt after attempt": lambda n: uniform(request_key(SOURCE, 5, 1, n), READ),
    "seed after seed": lambda n: uniform(request_key(source_key(root_key(n, 0), "talk"), 0, 0), READ),
    "replication after replication": lambda n: uniform(request_key(source_key(root_key(7, n), "talk"), 0, 0), READ),
    "step after step": lambda n: uniform(request_key(SOURCE, 5, 0), name_key("step", f"/replica-{n}")),
    "request and position together": lambda n: uniform(request_key(SOURCE, n // 8, n % 8), READ),
}


@pytest.fixture(scope="module", params=NEIGHBOURS)
def draws(request: pytest.FixtureRequest) -> np.ndarray:
    draw = NEIGHBOURS[request.param]
    return np.array([draw(n) for n in range(DRAWS)])


def assert_flat(counts: np.ndarray) -> None:
    freedom = counts.size - 1
    critical = stats.chi2.ppf(1 - ALPHA, freedom)
    assert stats.ncx2.cdf(critical, freedom, counts.sum() * 0.06**2) <= BETA
    assert stats.chisquare(counts.ravel()).statistic <= critical


@pytest.mark.slow
def test_draws_are_uniform(draws: np.ndarray) -> None:
    assert_flat(np.histogram(draws, bins=256, range=(0, 1))[0])
    assert stats.kstest(draws, "uniform").pvalue > ALPHA


def test_low_bits_are_uniform(draws: np.ndarray) -> None:
    assert_flat(np.histogram(draws * 2.0**40 % 1, bins=256, range=(0, 1))[0])


@pytest.mark.parametrize("lag", [1, 2, 8])
def test_neighbours_are_independent(draws: np.ndarray, lag: int) -> None:
    first, second = draws[:-lag], draws[lag:]
    critical = stats.norm.ppf(1 - ALPHA / 2)
    assert 0.03 * math.sqrt(DRAWS) - critical >= stats.norm.ppf(1 - BETA)
    assert abs(np.corrcoef(first, second)[0, 1]) * math.sqrt(DRAWS - lag) <= critical
    assert_flat(np.histogram2d(first, second, bins=16, range=((0, 1), (0, 1)))[0])


def test_different_steps_of_one_request_are_independent() -> None:
    keys = [request_key(SOURCE, n, 0) for n in range(DRAWS)]
    pairs = np.array([(uniform(key, READ), uniform(key, name_key("step", "/write"))) for key in keys])
    assert_flat(np.histogram2d(pairs[:, 0], pairs[:, 1], bins=16, range=((0, 1), (0, 1)))[0])


def test_every_bit_moves_half_of_the_bits() -> None:
    flips = [(mix(fold(3, n)) ^ mix(fold(3, n) ^ (1 << bit))).bit_count() for bit in range(64) for n in range(200)]
    # Mean of 64 fair bits over 12,800 tries: 32 with standard deviation 4 / sqrt(12,800); 3.9 of them is 1e-4.
    assert abs(np.mean(flips) - 32) < 3.9 * 4 / math.sqrt(len(flips))


def test_published_values_of_splitmix64() -> None:
    """Vigna's splitmix64.c, seed 1234567, as in Rosetta Code's *Pseudo-random numbers/Splitmix64*."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [fold(1234567, n) for n in range(4)] == published


def test_neither_zero_nor_one() -> None:
    assert uniform(0, 0) == 2.0**-53  # the mixing function leaves 0 alone
    largest = uniform_of(2**64 - 1)
    assert largest == 1 - 2.0**-53 < 1


def uniform_of(word: int) -> float:
    """Undo the mixing, to ask for the uniform number of a given 64-bit word."""
    word ^= (word >> 31) ^ (word >> 62)
    for constant, shift in ((0x94D049BB133111EB, 27), (0xBF58476D1CE4E5B9, 30)):
        word = word * pow(constant, -1, 1 << 64) % (1 << 64)
        word ^= (word >> shift) ^ (word >> (2 * shift))
    return uniform(word, 0)


def test_names_hash_the_same_in_every_process() -> None:
    assert name_key("step", "/read") == 0x77BCB73E053944F8
    assert name_key("step", "read") != name_key("step\0read", "") != name_key("stepread")


def step(name: str = "") -> Delay:
    return Delay(Deterministic(1.0), name=name)


def names(flow: Step) -> dict[str, Step]:
    found = step_names(flow)
    steps = list(walk(flow))
    assert len(found) == len(steps) == len(set(found))
    return dict(zip(found, steps, strict=True))


def replica(number: int) -> Sequence:
    return Sequence((step(), step("read")), name=f"replica-{number}")


def test_named_branches_keep_their_names_when_more_come() -> None:
    three = set(names(Acquire("pool", ForkJoin(tuple(replica(n) for n in range(3)), 2))))
    five = set(names(Acquire("pool", ForkJoin(tuple(replica(n) for n in range(5)), 3))))
    assert three < five
    assert {"/replica-0", "/replica-0/0", "/replica-0/read"} < three


def test_unnamed_structure_around_a_named_step_changes_nothing() -> None:
    assert "/read" in names(step("read"))
    assert "/read" in names(Acquire("pool", Sequence((step(), step("read")))))


def test_unnamed_steps_are_named_after_their_place() -> None:
    assert list(names(Sequence((step(), Sequence((step(), step())))))) == ["/0", "/0.0", "/0.1", "/0.1.0", "/0.1.1"]


def test_steps_of_one_name_do_not_share_draws() -> None:
    same = names(ForkJoin((replica(0), replica(0), step("replica-0#2")), 1))
    assert "/replica-0#2/read" in same
    assert "/replica-0#2#2" in same


ROWS = [request_key(SOURCE, number, 0) for number in range(40_000)]
GROUP = replicas_key("node")


@pytest.mark.parametrize("placement", ["ring", "random"])
@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 1), (5, 3), (7, 7), (300, 3)])
def test_replicas_are_distinct_members(count: int, size: int, placement: str) -> None:
    for row in ROWS[:200]:
        found = replicas(row, GROUP, count, size, placement)
        assert len(set(found)) == size
        assert set(found) <= set(range(count))


def test_a_larger_set_continues_a_smaller_one() -> None:
    for placement in ("ring", "random"):
        for row in ROWS[:50]:
            whole = replicas(row, GROUP, 6, 6, placement)
            assert all(replicas(row, GROUP, 6, size, placement) == whole[:size] for size in range(1, 7))


def test_random_replicas_are_uniform_over_all_ordered_sets() -> None:
    """All 5 x 4 x 3 ordered sets of three among five are equally likely."""
    counts = np.zeros((5, 5, 5), dtype=int)
    for row in ROWS:
        counts[replicas(row, GROUP, 5, 3, "random")] += 1
    ordered = np.array([counts[a, b, c] for a in range(5) for b in range(5) for c in range(5) if len({a, b, c}) == 3])
    assert ordered.sum() == len(ROWS)
    assert_flat(ordered)


def test_ring_replicas_start_at_the_owner_of_the_token() -> None:
    counts = np.zeros(8, dtype=int)
    for row in ROWS:
        found = replicas(row, GROUP, 8, 3, "ring")
        assert found == tuple((int(8 * uniform(row, 0)) + place) % 8 for place in range(3))
        counts[found[0]] += 1
    assert_flat(counts)


def test_replicas_of_different_groups_are_independent() -> None:
    """A row's first replica in one data centre says nothing of that in another."""
    counts = np.zeros((6, 6), dtype=int)
    for row in ROWS:
        here, there = (replicas(row, replicas_key(name), 6, 1, "random")[0] for name in ("dc1", "dc2"))
        counts[here, there] += 1
    assert_flat(counts)


@pytest.mark.parametrize("count", [3, 12])
def test_branches_of_members_are_uniform_and_independent(count: int) -> None:
    """The keys of a fan-out's branches, one per member, give draws like those of different requests."""
    draws_ = np.array([uniform(fold(row, member), READ) for row in ROWS[: 90_000 // count] for member in range(count)])
    assert_flat(np.histogram(draws_, bins=64, range=(0, 1))[0])
    assert_flat(np.histogram2d(draws_[:-1], draws_[1:], bins=8, range=((0, 1), (0, 1)))[0])
