"""Experiments: the same results by every executor and in every order, resumed from any part of them."""

import random
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.simulator.small_experiments import (
    CASES,
    EXPERIMENT,
    FIRST,
    ROOT,
    SCHEMA,
    Subject,
    apart,
    by_name,
    cases,
    files,
    killer,
    plain_results,
    results,
    run,
)

from capplan.simulator.experiments import executors
from capplan.simulator.experiments.experiment import IN_FLIGHT, Configuration, ExperimentProgress, Rows, perform
from capplan.simulator.experiments.store import open_store, record, record_schema

EXECUTORS = ("in process", "threads", "processes", "dask")
PLAIN = plain_results()
PLACES = [(key, number) for key, seen in PLAIN.items() for number in range(len(seen))]


@pytest.fixture(autouse=True)
def _workers_find_this(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker process runs, it imports by name; it searches where its parent does."""
    monkeypatch.syspath_prepend(ROOT)


class AnyOrder(executors.Executor):
    """Ends tasks in an order that is drawn."""

    def __init__(self, workers: int, draw: Callable[[int], int]) -> None:
        self.workers, self._draw = workers, draw
        self.tasks: list[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = []
        self.most, self.begun = 0, list[Any]()

    def submit(self, tag: Any, work: Callable[..., Any], *arguments: Any) -> None:
        self.tasks.append((tag, work, arguments))
        self.begun.append(arguments[0].name)
        self.most = max(self.most, len(self.tasks))

    def finished(self) -> tuple[Any, Any]:
        tag, work, arguments = self.tasks.pop(self._draw(len(self.tasks)))
        return tag, work(*arguments)

    def abandon(self) -> None:
        self.tasks.clear()


def performed(executor: executors.Executor, **options: Any) -> dict[str, list[Rows]]:
    return {case.key: seen for case, seen in perform(EXPERIMENT, cases(), executor, **options)}


def test_the_experiment_is_worth_testing() -> None:
    assert len(PLAIN) == CASES
    assert len({len(seen) for seen in PLAIN.values()}) > 2  # cases want different numbers of replications
    assert any(row["counts"] == [] for seen in PLAIN.values() for rows in seen for row in rows)


@pytest.mark.parametrize("name", EXECUTORS)
def test_all_executors_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = results(by_name(name), tmp_path / "found", log)
    results(by_name("in process"), tmp_path / "plain")

    assert found == PLAIN
    assert files(tmp_path / "found") == files(tmp_path / "plain")
    assert sorted(log.read_text().splitlines()) == sorted(f"{key} {number}" for key, number in PLACES)


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_killed_worker_costs_time_only(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with killer(tmp_path / "trap"):
        found = results(by_name(name), tmp_path / "found", log, tmp_path / "trap")
    results(by_name("in process"), tmp_path / "plain")

    assert found == PLAIN
    assert files(tmp_path / "found") == files(tmp_path / "plain")
    assert log.read_text().splitlines().count("case 2 1") == 2


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_an_interrupt_leaves_what_is_finished(name: str, tmp_path: Path) -> None:
    with apart(name, tmp_path / "found", tmp_path / "log", tmp_path / "trap") as experiment:
        code, said = experiment.interrupt()

    assert (code, said) == (130, "")
    assert_resumes(tmp_path)


@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_killed_experiment_leaves_what_is_finished_and_no_workers(name: str, tmp_path: Path) -> None:
    with apart(name, tmp_path / "found", tmp_path / "log", tmp_path / "trap") as experiment:
        code, said = experiment.kill()

    assert code == -signal.SIGKILL
    assert [line for line in said.splitlines() if "resource_tracker" not in line] == []  # Python's own, which cleans up
    assert_resumes(tmp_path)


def assert_resumes(path: Path) -> None:
    """Finish the experiment; what has been saved must not run again, and all must be as if nothing had happened."""
    folder, log = path / "found", path / "log"
    with open_store(folder, SCHEMA) as store:
        saved = [place for place in PLACES if store.rows(*place) is not None]
    log.unlink()

    assert 0 < len(saved) < len(PLACES)
    assert results(executors.in_process(), folder, log) == PLAIN
    assert sorted(log.read_text().splitlines()) == sorted(f"{key} {n}" for key, n in set(PLACES) - set(saved))
    results(executors.in_process(), path / "plain")
    assert files(folder) == files(path / "plain")


@example(workers=1, seed=0)
@given(workers=st.integers(1, 20), seed=st.integers(0, 2**32))
def test_results_do_not_depend_on_the_order_of_ending(workers: int, seed: int) -> None:
    executor = AnyOrder(workers, random.Random(seed).randrange)

    assert performed(executor) == PLAIN
    assert executor.most <= IN_FLIGHT * workers


def test_as_many_are_in_flight_as_keep_workers_busy_and_earlier_cases_go_first() -> None:
    executor = AnyOrder(2, lambda _: 0)
    first = next(perform(EXPERIMENT, cases(), executor))

    assert executor.most == IN_FLIGHT * 2
    assert executor.begun[:FIRST] == ["case 0"] * FIRST
    assert first[0].key in ("case 0", "case 1")


@settings(max_examples=40)
@given(kept=st.sets(st.sampled_from(PLACES)), compacted=st.sets(st.sampled_from(PLACES)))
def test_any_part_of_the_results_resumes_to_the_same(
    kept: set[tuple[str, int]], compacted: set[tuple[str, int]]
) -> None:
    """Some records stand in the common file, some in files of their own, some in both."""
    with TemporaryDirectory() as name:
        folder, log = Path(name, "found"), Path(name, "log")
        schema = record_schema(SCHEMA)
        for places in (compacted, kept):
            with open_store(folder, SCHEMA) as store:
                for key, number in places:
                    store.save(record(key, number, PLAIN[key][number], schema))
                if places is compacted:
                    store.compact()
        found = results(executors.in_process(), folder, log)
        ran = log.read_text().splitlines() if log.exists() else []
        results(executors.in_process(), Path(name, "plain"))

        assert found == PLAIN
        assert files(folder) == files(Path(name, "plain"))
        assert sorted(ran) == sorted(f"{key} {number}" for key, number in set(PLACES) - kept - compacted)


def test_more_is_stored_than_is_asked_for(tmp_path: Path) -> None:
    with open_store(tmp_path, SCHEMA) as store:
        store.save(record("another case", 0, [], record_schema(SCHEMA)))
        store.save(record("case 0", 99, run(Subject("case 0"), 99), record_schema(SCHEMA)))
        assert performed(executors.in_process(), store=store) == PLAIN
        assert len(store) == len(PLACES) + 2


def test_cases_of_one_key_run_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    twice = [
        Configuration("same", Subject("case 0", str(log))),
        Configuration("same", Subject("case 0", str(log), "another object")),
    ]
    found = list(perform(EXPERIMENT, twice, executors.in_process()))

    assert [case for case, _ in found] == twice
    assert [seen for _, seen in found] == [PLAIN["case 0"]] * 2
    assert len(log.read_text().splitlines()) == len(PLAIN["case 0"])


def test_nothing_to_do() -> None:
    assert list(perform(EXPERIMENT, [], executors.in_process())) == []
    enough = replace(EXPERIMENT, wanted=lambda _, __: 0)
    assert [seen for _, seen in perform(enough, cases(), executors.in_process())] == [[]] * CASES


def test_progress_grows_to_the_whole(tmp_path: Path) -> None:
    told: list[ExperimentProgress] = []
    with open_store(tmp_path, SCHEMA) as store:
        store.save(record("case 0", 1, PLAIN["case 0"][1], record_schema(SCHEMA)))
        performed(executors.in_process(), store=store, progress=told.append)

    done = [each.found + each.run for each in told]
    assert told[0] == ExperimentProgress(0, CASES, 0, 0, 0)
    assert done == sorted(done)
    assert told[-1] == ExperimentProgress(CASES, CASES, 1, len(PLACES) - 1, len(PLACES))
    assert all(each.found + each.run <= each.asked for each in told)


def test_what_is_not_waited_for_is_forgotten() -> None:
    """A generator that is closed in the middle leaves an executor that can be used."""
    with executors.threads(2) as executor:
        assert len(list(islice(perform(EXPERIMENT, cases(), executor), 2))) == 2
        assert performed(executor) == PLAIN


def test_an_error_ends_the_experiment_and_what_is_there_stays(tmp_path: Path) -> None:
    def fail(subject: Subject, replication: int) -> Rows:
        if subject.name == "case 3":
            raise ArithmeticError("case 3")
        return run(subject, replication)

    with open_store(tmp_path, SCHEMA) as store:
        with pytest.raises(ArithmeticError, match="case 3"):
            list(perform(replace(EXPERIMENT, run=fail), cases(), executors.in_process(), store=store))
        assert performed(executors.in_process(), store=store) == PLAIN


@pytest.mark.parametrize("row", [{"value": 1.0}, {"value": 1.0, "counts": [], "what": "", "more": 1}])
def test_rows_have_the_columns_of_the_schema(row: dict[str, Any]) -> None:
    def wrong(_: Subject, __: int) -> Rows:
        return [row]

    with pytest.raises(ValueError, match="those of the experiment are"):
        list(perform(replace(EXPERIMENT, run=wrong), cases(), executors.in_process()))


def test_results_are_as_they_are_when_read_again() -> None:
    """The columns' types hold with and without a store: an integer in a column of floats is a float."""

    def integers(_: Subject, __: int) -> Rows:
        return [{"value": 1, "counts": (1, 2), "what": None}]

    def once(_: Subject, __: Sequence[Rows]) -> int:
        return 1

    experiment = replace(EXPERIMENT, run=integers, wanted=once)
    ((_, (rows,)),) = perform(experiment, cases()[:1], executors.in_process())

    assert repr(rows) == "[{'value': 1.0, 'counts': [1, 2], 'what': None}]"
