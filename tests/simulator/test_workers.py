"""Workers: results, errors, and processes that die or are abandoned."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial

import pytest
from tests.simulator.small_experiments import WORKERS
from tests.simulator.small_tasks import end_worker, half, process, wait_for_ever

from capplan.errors import InputError
from capplan.simulator.dask_cluster import dask
from capplan.simulator.workers import Workers, processes, run_all, run_tasks, threads

pytestmark = pytest.mark.usefixtures("workers_find_tests")


@pytest.mark.parametrize("name", ["in process", "threads", "processes"])
def test_results_come_in_order_and_errors_as_they_are(name: str) -> None:
    with WORKERS[name]() as workers:
        for _ in range(2):
            assert run_all(workers, [partial(half, 2 * number) for number in range(9)]) == list(range(9))
            with pytest.raises(InputError, match="3 is odd"):
                run_all(workers, [partial(half, 3)])


def test_processes_are_others() -> None:
    with processes(2) as workers:
        seen = set(run_all(workers, [process] * 8))

    assert os.getpid() not in seen
    assert 1 <= len(seen) <= 2


def test_a_worker_process_that_dies_is_noticed_while_the_others_go_on() -> None:
    with pytest.raises(InputError), processes(2) as workers:
        run_all(workers, [wait_for_ever, end_worker])


@pytest.mark.parametrize("error", [KeyboardInterrupt, None])
def test_processes_left_in_the_middle_of_a_task_are_gone(error: type[KeyboardInterrupt] | None) -> None:
    before = {*threading.enumerate(), *multiprocessing.active_children()}
    tasks: Iterator[tuple[str, Callable[[], object]]] = iter([("endless", wait_for_ever), ("short", partial(half, 2))])
    with suppress(KeyboardInterrupt), processes(2) as workers:
        assert next(run_tasks(workers, lambda: next(tasks, None))) == ("short", 1.0)
        if error:
            raise error

    assert {*threading.enumerate(), *multiprocessing.active_children()} <= before


@pytest.mark.parametrize("start", [threads, processes, partial(dask, "local")])
def test_no_workers(start: Callable[[int], AbstractContextManager[Workers]]) -> None:
    with pytest.raises(InputError), start(0):
        pass
