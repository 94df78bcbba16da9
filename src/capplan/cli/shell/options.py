"""Options of several verbs: engine, confidence with the exit code of a verdict, and where tasks run."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Annotated, TypeVar

import typer

from capplan.models.errors import InputError, nearest
from capplan.models.verdict import Answer
from capplan.simulator.experiments import workers as pools
from capplan.simulator.experiments.workers import dask

Confidence = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Probability with which the rate must be carried and the objectives must hold; 90% accepts a risk of 10%.",
    ),
]
DEFAULT_CONFIDENCE = "90%"


def exit_by(answer: Answer | None) -> None:
    """End with exit code 1 if the answer is *no* or *uncertain*; go on if it is *yes*, or nothing was judged."""
    if answer not in (None, "yes"):
        raise typer.Exit(1)


E = TypeVar("E", bound=str)


def chosen_engine(name: str, known: tuple[E, ...], refusal: str) -> E:
    """Return the engine of a name, typed as the verb's engines are.

    Parameters
    ----------
    name : str
        As it was typed.
    known : tuple of str
        The engines of the verb.
    refusal : str
        What another engine fails to do, such as `does not sweep`.

    Raises
    ------
    InputError
        If the verb has no such engine.
    """
    found = next((each for each in known if each == name), None)
    if found is None:
        raise InputError(f"engine {name!r} {refusal}{nearest(name, known)}")
    return found


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
        return dask(cluster, count)
    if count == 1 or tasks < few:
        return pools.in_process()
    return pools.processes(min(count, tasks))
