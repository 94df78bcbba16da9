"""Answers that consistency levels need (Apache Cassandra documentation, "Data consistency"), and when they come."""

import itertools
from collections.abc import Iterator, Sequence

import pytest

from capplan.errors import InputError, RefusedError
from capplan.models.cassandra.consistency import (
    CONSISTENCY_LEVELS,
    always_found,
    answers,
    available,
    check_level,
    lower_levels,
    need,
    quorum,
)

THREE_DCS = [3, 3, 3]


def test_quorums_are_majorities() -> None:
    assert [quorum(n) for n in (1, 2, 3, 4, 5, 6, 9)] == [1, 2, 2, 3, 3, 4, 5]


@pytest.mark.parametrize(
    ("level", "total", "by_dc"),
    [
        ("ONE", 1, {}),
        ("TWO", 2, {}),
        ("THREE", 3, {}),
        ("QUORUM", 5, {}),
        ("ALL", 9, {}),
        ("LOCAL_ONE", 0, {1: 1}),
        ("LOCAL_QUORUM", 0, {1: 2}),
        ("EACH_QUORUM", 0, {0: 2, 1: 2, 2: 2}),
    ],
)
def test_needs_with_three_replicas_in_each_of_three_data_centres(level: str, total: int, by_dc: dict[int, int]) -> None:
    wanted = need(level, THREE_DCS, 1)
    assert (wanted.total, dict(wanted.by_dc)) == (total, by_dc)


def test_needs_follow_unequal_replication_factors() -> None:
    assert dict(need("EACH_QUORUM", [3, 5, 1], 0).by_dc) == {0: 2, 1: 3, 2: 1}
    assert need("QUORUM", [3, 2], 0).total == 3
    assert [dict(need("LOCAL_QUORUM", [3, 5, 1], dc).by_dc) for dc in range(3)] == [{0: 2}, {1: 3}, {2: 1}]


@pytest.mark.parametrize(
    ("alive", "met"),
    [
        ((3, 3, 3), set(CONSISTENCY_LEVELS)),
        ((2, 2, 2), set(CONSISTENCY_LEVELS) - {"ALL"}),
        ((3, 3, 0), {"ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "QUORUM"}),  # a data centre is lost
        ((3, 1, 1), {"ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "QUORUM"}),  # 5 of 9
        ((2, 1, 1), {"ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM"}),  # 4 of 9
        ((3, 0, 0), {"ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM"}),  # all but one are lost
        ((1, 3, 3), {"ONE", "LOCAL_ONE", "TWO", "THREE", "QUORUM"}),
        ((1, 0, 0), {"ONE", "LOCAL_ONE"}),
    ],
)
def test_what_is_available_when_replicas_are_lost(alive: tuple[int, ...], met: set[str]) -> None:
    assert {level for level in CONSISTENCY_LEVELS if available(level, THREE_DCS, alive, 0)} == met


def test_levels_are_read_in_any_case() -> None:
    assert check_level("local_quorum") == "LOCAL_QUORUM"
    assert tuple(map(check_level, CONSISTENCY_LEVELS)) == CONSISTENCY_LEVELS


@pytest.mark.parametrize(
    ("level", "why"), [("ANY", "hint"), ("serial", "lightweight"), ("LOCAL_SERIAL", "lightweight")]
)
def test_levels_that_are_not_modelled_are_refused_by_name(level: str, why: str) -> None:
    with pytest.raises(RefusedError, match=f"{level.upper()!r} is refused.*{why}"):
        check_level(level)


@pytest.mark.parametrize(
    ("level", "suggested"),
    [("QUORAM", "QUORUM"), ("EACH_QUORM", "EACH_QUORUM"), ("LOCAL_QUORM", "LOCAL_QUORUM")],
)
def test_no_level_is_answered_with_the_nearest(level: str, suggested: str) -> None:
    with pytest.raises(InputError, match=f"{level!r}.*{suggested!r}"):
        check_level(level)


def test_more_answers_than_replicas_are_an_error() -> None:
    with pytest.raises(InputError, match=r"THREE.*3.*2"):
        need("THREE", [1, 1], 0)


def answered(level: str, replicas: Sequence[int], alive: Sequence[int], local: int) -> Iterator[tuple[int, ...]]:
    """Yield every number of replicas by data centre that completes an operation."""
    wanted = need(level, replicas, local)
    for counts in itertools.product(*(range(count + 1) for count in alive)):
        if sum(counts) >= wanted.total and all(counts[dc] >= each for dc, each in wanted.by_dc.items()):
            yield counts


@pytest.mark.parametrize(
    ("replicas", "alive"),
    [((3, 3, 3), (3, 3, 3)), ((3, 3, 3), (3, 3, 0)), ((3, 3), (2, 3)), ((3, 2, 1), (3, 2, 1)), ((3, 2, 1), (2, 2, 1))],
)
def test_reads_always_find_a_write_if_no_two_sets_of_answers_are_disjoint(
    replicas: tuple[int, ...], alive: tuple[int, ...]
) -> None:
    """Replicas that confirm a write and that answer a read can be disjoint if they fit beside each other in each DC."""
    living = [dc for dc, count in enumerate(alive) if count]
    for read, write in itertools.product(CONSISTENCY_LEVELS, CONSISTENCY_LEVELS):
        for reader, writer in itertools.product(living, living):
            sets = (answered(write, replicas, alive, writer), answered(read, replicas, alive, reader))
            apart = any(
                all(one + other <= left for one, other, left in zip(*counts, alive, strict=True))
                for counts in itertools.product(*sets)
            )
            possible = available(read, replicas, alive, reader) and available(write, replicas, alive, writer)
            if possible:
                assert always_found(read, write, replicas, alive, reader, writer) is not apart, (read, write)


@pytest.mark.parametrize("level", CONSISTENCY_LEVELS)
def test_a_lower_level_needs_fewer_answers(level: str) -> None:
    needed = [answers(each, THREE_DCS, 0) for each in (level, *lower_levels(level))]

    assert needed == sorted(needed, reverse=True)
    assert len(set(needed)) == len(needed)
