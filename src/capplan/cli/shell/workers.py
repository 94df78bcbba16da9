"""Where tasks run: in this process, in several processes, or on a Dask cluster."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager

from capplan.errors import InputError
from capplan.simulator import workers as pools


def check_workers(processes: int | None, cluster: str | None) -> None:
    """Refuse a number of processes for a cluster, which has its own workers."""
    if cluster is not None and processes is not None and cluster != "local":
        raise InputError("--processes is for --dask local and without --dask: a cluster has its own workers")


def workers_for(
    tasks: int, processes: int | None, cluster: str | None, few: int = 2
) -> AbstractContextManager[pools.Workers]:
    """Return workers for some tasks; the answer does not depend on them.

    Parameters
    ----------
    tasks : int
        How many tasks there are.
    processes : int or None
        Processes to use; as many as processors if left out.
    cluster : str or None
        `local` or the address of a Dask scheduler; None: no cluster.
    few : int
        Fewer tasks than this run in this process, as starting others takes longer.

    Raises
    ------
    InputError
        If processes are given for a cluster, or the cluster cannot be reached.
    """
    check_workers(processes, cluster)
    count = processes or os.cpu_count() or 1
    if cluster is not None:
        from capplan.simulator.dask_cluster import dask  # slow to import

        return dask(cluster, count)
    if count == 1 or tasks < few:
        return pools.in_process()
    return pools.processes(min(count, tasks))
