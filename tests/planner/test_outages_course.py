"""When a run is back to normal: exact cases of courses that are written down."""

import numpy as np
import pytest

from capplan.planner.outages.transient import Course, back_to_normal, normal_of, usual_share

LOST, RETURNED, END = 30.0, 60.0, 100


def course(completed: list[int], bins: list[int]) -> Course:
    """Return a course with intervals of a second: how many complete, and whether in 1 or in 1000 ms."""
    counts = np.zeros((len(completed), 2), dtype=np.int64)
    counts[np.arange(len(completed)), bins] = completed
    started = np.full(len(completed), 100)
    rows = np.array(completed, dtype=np.int64)
    return Course(
        np.arange(len(completed) + 1.0), started, rows, started - rows, rows * 0, counts, np.array([1.0, 1000.0])
    )


def outage(lost_to: int, slow_to: int) -> Course:
    """Return a course in which no request completes from the loss on, and requests are slow for a while after that."""
    completed = [0 if LOST <= second < lost_to else 100 for second in range(END)]
    return course(completed, [int(LOST <= second < slow_to) for second in range(END)])


def back(run: Course) -> tuple[float | None, float | None]:
    """Return when a run is back, with a tolerance of a tenth."""
    return back_to_normal(run, (LOST, RETURNED), normal_of([run], (10.0, LOST), 0.1))


@pytest.mark.parametrize(
    ("lost_to", "slow_to", "after_loss", "after_return"),
    [
        (30, 30, 0.0, 0.0),  # nothing happens
        (48, 48, 18.0, 0.0),  # noticed after 18 s
        (48, 55, 25.0, 0.0),  # the survivors are slow at first
        (60, 72, 42.0, 12.0),  # until the return, and slow afterwards
        (100, 100, None, None),  # for ever
    ],
)
def test_a_run_is_back_at_the_first_normal_second(
    lost_to: int, slow_to: int, after_loss: float | None, after_return: float | None
) -> None:
    assert back(outage(lost_to, slow_to)) == (after_loss, after_return)


def test_nothing_is_normal_where_no_request_was_answered_before_the_loss() -> None:
    silent = course([0 if second < RETURNED else 100 for second in range(END)], [0] * END)
    assert back(silent) == (None, None)


def test_a_rate_within_the_tolerance_is_normal_and_below_it_is_not() -> None:
    for rate, expected in ((91, 0.0), (89, None)):
        completed = [100 if second < LOST else rate for second in range(END)]
        assert back(course(completed, [0] * END))[0] == expected


def test_a_short_lull_is_no_recovery() -> None:
    completed = [100 if second < LOST or 40 <= second < 47 else 0 for second in range(END)]
    assert back(course(completed, [0] * END))[0] is None


def test_the_usual_share_of_answers_is_not_that_of_a_single_bad_part() -> None:
    """Eighty seconds in eight parts: one without an answer leaves the median, five without one do not."""
    for bad, expected in ((10, 1.0), (50, 0.0)):
        completed = [0 if second < bad else 100 for second in range(80)]
        assert usual_share(course(completed, [0] * 80), 0.0) == expected
    assert usual_share(course([0] * 20 + [50] * 80, [0] * 100), 20.0) == 0.5


def test_percentiles_are_those_of_the_summed_counts() -> None:
    found = course([98, 2], [0, 1])
    assert found.percentile_ms(0.5).tolist() == [1.0, 1000.0]
    assert found.percentile_ms(0.99, look=2).tolist() == [1000.0]
    assert found.percentile_ms(0.98, look=2).tolist() == [1.0]
