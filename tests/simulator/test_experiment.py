"""Experiments: the same results with all workers and in every order, and resumption from any part."""

import json
import multiprocessing
import random
import signal
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.simulator.small_experiments import (
    CONFIGURATIONS,
    EXPERIMENT,
    FIRST,
    Subject,
    configurations,
    in_another_process,
    plain_results,
    results,
    run,
)

from capplan.errors import InputError
from capplan.simulator import workers as pools
from capplan.simulator.experiment import Configuration, ExperimentProgress, Rows, open_store, perform
from capplan.simulator.workers import Workers, in_process, processes, threads

pytestmark = pytest.mark.usefixtures("workers_find_tests")
PLAIN = plain_results()
PLACES = [(key, number) for key, seen in PLAIN.items() for number in range(len(seen))]


def performed(workers: Workers, **options: Any) -> dict[str, list[Rows]]:
    return {each.key: seen for each, seen in perform(EXPERIMENT, configurations(), workers, **options)}


def ran(folder: Path) -> list[str]:
    """Return what has run, in the order of keys and numbers."""
    return sorted((folder / "log").read_text().splitlines())


def lines(places: Collection[tuple[str, int]]) -> list[str]:
    return sorted(f"{key} {number}" for key, number in places)


def test_the_experiment_is_worth_testing() -> None:
    assert len(PLAIN) == CONFIGURATIONS
    assert len({len(seen) for seen in PLAIN.values()}) > 2  # configurations want different numbers of replications
    assert any(row["counts"] == [] for seen in PLAIN.values() for rows in seen for row in rows)


@pytest.mark.parametrize("workers", ["in process", "threads", "processes"])  # Dask: below
def test_all_workers_give_the_same(workers: str, tmp_path: Path) -> None:
    assert json.dumps(results(workers, tmp_path), sort_keys=True) == json.dumps(PLAIN, sort_keys=True)
    assert ran(tmp_path) == lines(PLACES)


@pytest.mark.slow
def test_dask_repeats_the_tasks_of_a_killed_worker(tmp_path: Path) -> None:
    assert results("dask", tmp_path, "end_worker") == PLAIN
    assert ran(tmp_path).count("2 1") == 2


def test_a_killed_worker_process_leaves_what_is_finished(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        results("processes", tmp_path, "end_worker")

    assert_resumes(tmp_path)


@pytest.mark.parametrize("workers", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_an_interrupt_leaves_what_is_finished_and_no_workers(workers: str, tmp_path: Path) -> None:
    assert in_another_process(workers, tmp_path, "interrupt_and_wait") == (130, "")
    assert_resumes(tmp_path)


def test_where_interrupts_are_ignored_they_stay_ignored(tmp_path: Path) -> None:
    assert in_another_process("processes", tmp_path, "interrupt_all", ignore_interrupts=True) == (0, "")
    assert ran(tmp_path) == lines(PLACES)


@pytest.mark.parametrize("workers", ["processes", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_killed_experiment_leaves_what_is_finished_and_no_workers(workers: str, tmp_path: Path) -> None:
    code, errors = in_another_process(workers, tmp_path, "end_parent")

    assert code == -signal.SIGKILL
    assert [line for line in errors.splitlines() if "resource_tracker" not in line] == []  # Python's own clean-up
    assert_resumes(tmp_path)


def assert_resumes(folder: Path) -> None:
    """Finish the experiment: what has been saved must not run again, and the results must be as without accident."""
    with open_store(folder / "store") as store:
        saved = {place for place in PLACES if store.rows(*place) is not None}
    (folder / "log").unlink()

    assert 0 < len(saved) < len(PLACES)
    assert results("in process", folder) == PLAIN
    assert ran(folder) == lines({*PLACES} - saved)


class Interrupted(Executor):
    """Ctrl-C when a task has been submitted and its future is not known yet."""

    def __init__(self, executor: Executor, after: int) -> None:
        self.executor, self.left = executor, after

    def submit(self, *call: Any, **options: Any) -> Future[Any]:
        future = self.executor.submit(*call, **options)
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return future


@pytest.mark.parametrize("start", [in_process, lambda: threads(2), lambda: processes(2)])
def test_an_interrupt_while_a_task_is_submitted(start: Callable[[], Any], tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store:
        with pytest.raises(KeyboardInterrupt), start() as workers:
            performed(replace(workers, executor=Interrupted(workers.executor, after=6)), store=store)
        assert multiprocessing.active_children() == []
        assert 0 < len(store) <= 6
        with in_process() as workers:
            assert performed(workers, store=store) == PLAIN


class InAnyOrder(Executor):
    """Completes tasks in an order that is drawn; `wait` stands in for that of `concurrent.futures`."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        self.draw, self.most = draw, 0
        self.calls: dict[Future[Any], Callable[[], Any]] = {}
        self.begun: list[str] = []

    def submit(self, call: Any, /, *_: Any, **__: Any) -> Future[Any]:
        future = Future[Any]()
        self.calls[future] = call
        self.begun.append(call.args[0].name)
        self.most = max(self.most, len(self.calls))
        return future

    def wait(self, *_: Any) -> tuple[set[Future[Any]], set[Future[Any]]]:
        future = list(self.calls)[self.draw(len(self.calls))]
        future.set_result(self.calls.pop(future)())
        return {future}, set(self.calls)


@example(in_flight=2, seed=0)
@given(in_flight=st.integers(1, 40), seed=st.integers(0, 2**32))
def test_results_do_not_depend_on_the_order_of_completion(in_flight: int, seed: int) -> None:
    executor = InAnyOrder(random.Random(seed).randrange)
    with patch.object(pools, "wait", executor.wait):
        assert performed(Workers(executor, in_flight)) == PLAIN

    assert executor.most <= in_flight


def test_workers_stay_busy_and_earlier_configurations_go_first() -> None:
    executor = InAnyOrder(lambda _: 0)
    with patch.object(pools, "wait", executor.wait):
        first = next(perform(EXPERIMENT, configurations(), Workers(executor, 4)))

    assert executor.most == 4
    assert executor.begun[:FIRST] == ["0"] * FIRST
    assert first[0].key in ("0", "1")


@settings(max_examples=40)
@given(st.sets(st.sampled_from(PLACES)))
def test_any_part_of_the_results_resumes_to_the_same(kept: set[tuple[str, int]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "log").touch()
        with open_store(folder / "store") as store:
            for key, number in kept:
                store.save(key, number, PLAIN[key][number])

        assert results("in process", folder) == PLAIN
        assert ran(folder) == lines({*PLACES} - kept)


def test_more_is_stored_than_is_requested(tmp_path: Path) -> None:
    with open_store(tmp_path / "store") as store, in_process() as workers:
        store.save("another configuration", 0, [])
        store.save("0", 99, run(Subject("0"), 99))
        assert performed(workers, store=store) == PLAIN
        assert len(store) == len(PLACES) + 2


def test_configurations_of_one_key_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    twice = [Configuration("same", Subject("0", str(log))), Configuration("same", Subject("0", str(log), "other"))]
    with in_process() as workers:
        found = list(perform(EXPERIMENT, twice, workers))

    assert [each for each, _ in found] == twice
    assert [seen for _, seen in found] == [PLAIN["0"]] * 2
    assert len(ran(tmp_path)) == len(PLAIN["0"])


def test_nothing_to_do() -> None:
    with in_process() as workers:
        assert list(perform(EXPERIMENT, [], workers)) == []
        enough = replace(EXPERIMENT, wanted=lambda _, __: 0)
        assert [seen for _, seen in perform(enough, configurations(), workers)] == [[]] * CONFIGURATIONS


def test_progress_grows_to_the_whole(tmp_path: Path) -> None:
    told: list[ExperimentProgress] = []
    with open_store(tmp_path / "store") as store, in_process() as workers:
        store.save("0", 1, PLAIN["0"][1])
        performed(workers, store=store, progress=told.append)

    done = [each.stored + each.run for each in told]
    assert told[0] == ExperimentProgress(0, CONFIGURATIONS, 0, 0, 0)
    assert done == sorted(done)
    assert told[-1] == ExperimentProgress(CONFIGURATIONS, CONFIGURATIONS, 1, len(PLACES) - 1, len(PLACES))
    assert all(each.stored + each.run <= each.requested for each in told)


def test_workers_can_be_used_again_after_an_experiment_that_was_left() -> None:
    with threads(2) as workers:
        assert len(list(islice(perform(EXPERIMENT, configurations(), workers), 2))) == 2
        assert performed(workers) == PLAIN


def test_an_error_ends_the_experiment_and_what_is_there_stays(tmp_path: Path) -> None:
    def fail(subject: Subject, replication: int) -> Rows:
        if subject.name == "3":
            raise ArithmeticError("3")
        return run(subject, replication)

    with open_store(tmp_path / "store") as store, in_process() as workers:
        with pytest.raises(ArithmeticError, match="3"):
            list(perform(replace(EXPERIMENT, run=fail), configurations(), workers, store=store))
        assert len(store) > 0
        assert performed(workers, store=store) == PLAIN


def test_results_are_as_they_are_when_read_again() -> None:
    """A store keeps tuples as lists, so results have lists without a store, too."""

    def tuples(_: Subject, __: int) -> Rows:
        return [{"value": 1.0, "counts": (1, 2), "what": None}]

    def once(_: Subject, __: Sequence[Rows]) -> int:
        return 1

    with in_process() as workers:
        ((_, (rows,)),) = perform(replace(EXPERIMENT, run=tuples, wanted=once), configurations()[:1], workers)

    assert rows == [{"value": 1.0, "counts": [1, 2], "what": None}]
