"""Executors: what comes back, what is raised, and what is said when workers or clusters are not there."""

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import create_server

import dask.config
import distributed
import pytest
from tests.simulator.small_experiments import ROOT, by_name
from tests.simulator.small_tasks import GATES, end_worker, end_worker_once, half, process, wait_for_ever, wait_for_gate

from capplan.models.errors import InputError
from capplan.simulator.experiments import dask_executor, executors


@pytest.fixture(autouse=True)
def _workers_find_this(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker process runs, it imports by name; it searches where its parent does."""
    monkeypatch.syspath_prepend(ROOT)


@pytest.fixture
def cluster() -> Iterator[distributed.LocalCluster]:
    """A cluster that runs already, as one of another machine does: one worker with two threads."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=None
    ) as running:
        yield running


def check_tasks(executor: executors.Executor) -> None:
    """Results come with their tags, errors as they are, and both leave the executor usable."""
    for number in (0, 2, 4, 6):
        executor.submit(("tag", number), half, number)
    assert sorted(executor.finished() for _ in range(4)) == [(("tag", number), number / 2) for number in (0, 2, 4, 6)]
    executor.submit("odd", half, 3)
    with pytest.raises(InputError, match="3 is odd"):
        executor.finished()
    with pytest.raises(LookupError, match="no task"):
        executor.finished()
    executor.submit("even", half, 8)
    assert executor.finished() == ("even", 4.0)


def check_executor(executor: executors.Executor) -> None:
    """Tasks that are abandoned, some of them ended or begun, are not heard of again."""
    check_tasks(executor)
    for number in range(50):
        executor.submit(number, half, 2 * number)
    executor.abandon()
    check_tasks(executor)


@pytest.mark.parametrize("name", ["in process", "threads", "processes"])
def test_tasks_are_done(name: str) -> None:
    with by_name(name) as executor:
        assert executor.workers == (1 if name == "in process" else 2)
        check_executor(executor)


def test_processes_are_others() -> None:
    with executors.processes(2) as executor:
        for number in range(8):
            executor.submit(number, process)
        seen = {executor.finished()[1] for _ in range(8)}

    assert os.getpid() not in seen
    assert 1 <= len(seen) <= 2


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_killed_one_after_another_cost_time_only(workers: int, tmp_path: Path) -> None:
    with executors.processes(workers) as executor:
        for number in range(executors.MOST_LOSSES):
            executor.submit(number, end_worker_once, str(tmp_path / str(number)))
        seen = sorted(executor.finished() for _ in range(executors.MOST_LOSSES))

    assert seen == [(number, "done") for number in range(executors.MOST_LOSSES)]


def test_a_task_that_always_loses_its_worker_is_given_up() -> None:
    with executors.processes(1) as executor:
        executor.submit("fatal", end_worker)
        with pytest.raises(
            InputError, match="workers were lost 4 times in a row before any task ended: they are killed"
        ):
            executor.finished()


@pytest.mark.parametrize("error", [KeyboardInterrupt, None])
def test_workers_left_in_the_middle_of_a_task_are_gone(error: type[KeyboardInterrupt] | None) -> None:
    before = {*threading.enumerate(), *multiprocessing.active_children()}
    with suppress(KeyboardInterrupt), executors.processes(2) as executor:
        executor.submit("endless", wait_for_ever)
        executor.submit("short", half, 2)
        assert executor.finished() == ("short", 1.0)
        if error:
            raise error

    assert {*threading.enumerate(), *multiprocessing.active_children()} <= before


def test_a_cluster_that_runs_already(cluster: distributed.LocalCluster) -> None:
    with executors.dask(cluster.scheduler_address) as executor:
        assert executor.workers == 2  # its own number
        check_executor(executor)


def test_leaving_a_cluster_leaves_it_running(cluster: distributed.LocalCluster) -> None:
    for _ in range(2):
        with executors.dask(cluster.scheduler_address) as executor:
            executor.submit(0, half, 2)
            assert executor.finished() == (0, 1.0)


def test_a_cluster_that_goes_away(cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = GATES["gate"] = threading.Event()
    with executors.dask(cluster.scheduler_address) as executor:
        executor.submit("never", wait_for_gate)
        timeouts = dask.config.config["distributed"]["comm"]["timeouts"]
        monkeypatch.setitem(timeouts, "connect", 1)  # else the rest of the cluster looks for its scheduler for long
        assert cluster.scheduler is not None
        cluster.sync(cluster.scheduler.close)
        gate.set()
        with pytest.raises(InputError, match=r"the Dask cluster 'tcp://.*' has dropped its tasks: see whether its"):
            executor.finished()


@pytest.mark.parametrize(
    "address", ["tcp://host", "tcp:/x", "host", "host:8786", "http://host:8786", "tcp://host:port", ""]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="is no Dask scheduler: write tcp://host:port, or 'local'"):
        executors.dask(address).__enter__()


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "PATIENCE_S", 0.5)
    with closing(create_server(("127.0.0.1", 0))) as silent:  # takes connections, says nothing
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(InputError, match=rf"the Dask scheduler '{address}' cannot be reached \(.*\): see whether"):
            executors.dask(address).__enter__()


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "PATIENCE_S", 0.5)
    with closing(create_server(("127.0.0.1", 0))) as taken:
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(InputError, match="cannot be reached"):
        executors.dask(address).__enter__()


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "PATIENCE_S", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address=None
        ) as empty,
        pytest.raises(InputError, match=rf"has no workers: start one with 'dask worker {empty.scheduler_address}'"),
    ):
        executors.dask(empty.scheduler_address).__enter__()


def test_workers_with_another_capplan(cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_executor, "version", other_version)
    with pytest.raises(InputError, match=r"has capplan 0.0.9: install 'capplan==9.9.9' there, as it is here"):
        executors.dask(cluster.scheduler_address).__enter__()


def other_version(_: str) -> str:
    return "9.9.9" if threading.current_thread() is threading.main_thread() else "0.0.9"


def test_without_dask_its_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['distributed'] = None\n"
        "from capplan.simulator.experiments.executors import dask, in_process, threads, processes\n"
        "in_process(), threads(2), processes(2)\n"
        "for _ in range(2):\n"
        "    try: dask('local')\n"
        "    except ValueError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert said == "Dask is not installed: pip install 'capplan[dask]' brings it\n" * 2


def test_what_is_not_used_is_not_imported() -> None:
    script = "import sys, capplan.simulator.experiments.experiment; print(*sys.modules, sep='\\n')"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert {"dask", "distributed", "multiprocessing", "numba", "pandas", "pyarrow"} & set(said.split()) == set()


@pytest.mark.parametrize(
    "make", [executors.threads, executors.processes, lambda workers: executors.dask("local", workers)]
)
def test_no_workers(make: Callable[[int], executors.Executor]) -> None:
    with pytest.raises(InputError, match="0 workers: there must be at least one"):
        make(0)


def test_logs_are_as_loud_afterwards_as_before(cluster: distributed.LocalCluster) -> None:
    logger = logging.getLogger("distributed.client")
    before = logger.level
    with executors.dask(cluster.scheduler_address):
        assert logger.level == logging.CRITICAL

    assert logger.level == before != logging.CRITICAL
