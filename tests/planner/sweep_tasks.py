"""A task of a sweep whose worker is killed the first time, in a module that a worker process imports."""

from pathlib import Path

from tests.simulator.small_tasks import end_worker_once

from capplan.planner.explore.sweep import Task, rows_of_task
from capplan.planner.explore.sweep_table import Row

Marked = tuple[Task, str]


def rows_after_a_kill(subject: Marked, replication: int) -> list[Row]:
    """Note the start in a log; the worker of the second task is killed in the middle of it, once."""
    task, folder = subject
    with Path(folder, "log").open("a", encoding="utf-8") as log:
        log.write(f"{task.scenario.dcs}\n")
    if task.scenario.dcs == 2:
        end_worker_once(str(Path(folder, "killed")))
    return rows_of_task(task, replication)
