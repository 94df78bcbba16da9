"""Sizings in the process of the test."""

from typing import Any

from capplan.models.language.scenario import changed
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing
from capplan.simulator.workers import in_process
from capplan.systems.registry import scenario


def sized(name: str, question: SizingQuestion, **fields: Any) -> Sizing:
    """Return the answer of `size` in this process."""
    with in_process() as workers:
        return size(changed(scenario(name), **fields), question, workers)
