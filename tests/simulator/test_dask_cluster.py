"""Running Dask clusters, and clusters that cannot be used."""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from socket import create_server
from types import SimpleNamespace

import dask.config
import distributed
import pytest
from tests.simulator.small_tasks import GATES, half, wait_for_gate

from capplan.errors import InputError
from capplan.simulator import dask_cluster
from capplan.simulator import workers as pools
from capplan.simulator.workers import run_all


@pytest.fixture
def cluster() -> Iterator[distributed.LocalCluster]:
    """A cluster that runs already, as one of another machine does: one worker with two threads."""
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),  # a worker looks no longer for a lost scheduler
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            processes=False,
            host="127.0.0.1",
            protocol="tcp",
            dashboard_address="127.0.0.1:0",
        ) as running,
    ):
        yield running


def test_a_cluster_that_runs_already_goes_on_running(cluster: distributed.LocalCluster) -> None:
    logger = logging.getLogger("distributed.client")
    loudness = logger.level
    for _ in range(2):
        with dask_cluster.dask(cluster.scheduler_address) as workers:
            assert workers.in_flight == 2 * pools.IN_FLIGHT  # by its own number of threads
            assert run_all(workers, [partial(half, 2 * number) for number in range(9)]) == list(range(9))
            with pytest.raises(InputError, match="3 is odd"):
                run_all(workers, [partial(half, 3)])
            assert logger.level == logging.CRITICAL

    assert logger.level == loudness != logging.CRITICAL


def test_a_cluster_that_goes_away(cluster: distributed.LocalCluster) -> None:
    gate = GATES["gate"] = threading.Event()

    def tasks() -> Iterator[Callable[[], None]]:
        yield wait_for_gate
        assert cluster.scheduler is not None
        cluster.sync(cluster.scheduler.close)
        gate.set()

    with pytest.raises(InputError, match="dropped"), dask_cluster.dask(cluster.scheduler_address) as workers:
        run_all(workers, tasks())


def kill_workers() -> None:
    raise distributed.KilledWorker("task", SimpleNamespace(address="tcp://host:1"), 3)  # type: ignore[arg-type]  # a stand-in


def test_a_task_that_ends_every_worker_is_given_up(cluster: distributed.LocalCluster) -> None:
    with pytest.raises(InputError), dask_cluster.dask(cluster.scheduler_address) as workers:
        run_all(workers, [kill_workers])


@pytest.mark.parametrize(
    "address", ["tcp://host", "tcp:/x", "host", "host:8786", "http://host:8786", "tcp://host:port", ""]
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match="tcp://host:port"), dask_cluster.dask(address):
        pass


@pytest.mark.parametrize("listens", [True, False])
def test_a_scheduler_that_does_not_answer(listens: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "PATIENCE_S", 0.5)
    with closing(create_server(("127.0.0.1", 0))) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        if not listens:
            server.close()
        with pytest.raises(InputError, match=f"'{address}' cannot be reached"), dask_cluster.dask(address):
            pass


def test_a_cluster_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "PATIENCE_S", 0.5)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address="127.0.0.1:0"
        ) as empty,
        pytest.raises(InputError, match=f"'dask worker {empty.scheduler_address}'"),
        dask_cluster.dask(empty.scheduler_address),
    ):
        pass


def other_version(_: str) -> str:
    return "9.9.9" if threading.current_thread() is threading.main_thread() else "0.0.9"


def test_workers_with_another_capplan(cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "version", other_version)
    with (
        pytest.raises(InputError, match=r"capplan 0\.0\.9.*capplan==9\.9\.9"),
        dask_cluster.dask(cluster.scheduler_address),
    ):
        pass


def test_without_dask_its_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['distributed'] = None\n"
        "from capplan.simulator.dask_cluster import dask\n"
        "try: dask('local').__enter__()\n"
        "except ValueError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert "--extra dask" in output
