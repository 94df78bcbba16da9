"""The claims of a saved answer: what a prediction, a sizing, a check or a proposal says of the running system."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.models.errors import InputError
from capplan.models.objective import Comparison, parse
from capplan.models.results import STATISTICS
from capplan.planner.predict.prediction import SCHEMA as PREDICTION
from capplan.planner.proposal.proposal import SCHEMA as PROPOSAL
from capplan.planner.saved_document import read_document
from capplan.planner.situations.check import NO_OVERLOAD
from capplan.planner.situations.check import SCHEMA as CHECK
from capplan.planner.situations.conditions import NORMAL
from capplan.planner.size.sizing import SCHEMA as SIZING

_VERBS = {
    PREDICTION: "predict --json",
    SIZING: "size --json",
    CHECK: "check --json",
    PROPOSAL: "proposal -o proposal.json",
}


@dataclass(frozen=True)
class Range:
    """What an answer says of a figure; an end may be infinite.

    Attributes
    ----------
    value : float
        The median, or the limit where the answer has only that.
    low, high : float
        Ends of the band.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SavedAnswer:
    """What measurements can test of an answer.

    Attributes
    ----------
    system : str
        Its system.
    layout : str
        Its layout in words.
    scenario : mapping
        The fields of its scenario that are known.
    capacity_tps : Range or None
        What it says can be carried, requests per second.
    offered_tps : float or None
        The rate at which its latencies hold.
    latencies_ms : mapping of (str, str) to Range
        By request class and statistic.
    """

    system: str
    layout: str
    scenario: Mapping[str, Any]
    capacity_tps: Range | None
    offered_tps: float | None
    latencies_ms: Mapping[tuple[str, str], Range]

    @property
    def closed(self) -> bool:
        """Whether it is about clients that wait for their answers, instead of an offered rate."""
        return self.offered_tps is None and self.scenario.get("clients") is not None


def read_answer(path: Path) -> SavedAnswer:
    """Read an answer.

    Raises
    ------
    InputError
        If the file is none, or a part of it is missing.
    """
    content = read_document(path, _VERBS)
    makers: Mapping[str, Callable[[Mapping[str, Any]], SavedAnswer]] = {
        PREDICTION: predicted,
        SIZING: _sized,
        CHECK: _checked,
        PROPOSAL: lambda proposal: predicted(proposal["prediction"]),
    }
    try:
        return makers[content["schema"]](content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path} lacks a part of its answer ({error!r}): save it again") from None


def predicted(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a prediction as JSON has it."""
    capacity = content.get("capacity") or {}
    # beyond the capacity with objectives a layout still completes more, so measurements test the one without
    carried = capacity.get("overload_tps") or capacity.get("peak_tps")
    return SavedAnswer(
        system=content["system"],
        layout=content["layout"],
        scenario=content["scenario"],
        capacity_tps=None if carried is None else _range(carried),
        offered_tps=(content.get("offered") or {}).get("peak_tps"),
        latencies_ms={
            (name, statistic): _range(band)
            for name, statistics in (content.get("latency_ms") or {}).items()
            for statistic, band in statistics.items()
            if band is not None
        },
    )


def _range(band: Mapping[str, Any]) -> Range:
    return Range(band["value"], band["low"], math.inf if band["high"] is None else band["high"])


def _sized(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a sizing: the sustained rate, and what latencies do not exceed at the planned rate."""
    chosen = content["chosen"]
    if chosen is None:
        raise InputError("the sizing found no layout, so that it claims nothing: size again")
    if chosen["cells"] > 1:
        raise InputError(
            f"the sizing has {chosen['cells']} cells, and a load test measures one: save a prediction of one cell"
        )
    normal = next(each for each in chosen["safety"] if each["conditions"] == NORMAL.word)
    sustained = normal["held_tps"]
    limits = {name: value for name, value in normal["reached_ms"].items() if value is not None}
    return SavedAnswer(
        system=content["system"],
        layout=chosen["layout"],
        scenario={**content["scenario"], **chosen["fields"]},
        capacity_tps=Range(sustained, sustained, math.inf),
        offered_tps=content["planned_tps"],
        latencies_ms={_class_and_statistic(name): Range(value, 0.0, value) for name, value in limits.items()},
    )


def _class_and_statistic(name: str) -> tuple[str, str]:
    request_class, _, statistic = name.rpartition(".")
    return request_class, statistic


def _checked(content: Mapping[str, Any]) -> SavedAnswer:
    """Return the claims of a check: the objectives that it says hold in normal operation."""
    held = [each["objective"] for each in content["verdicts"] if each["conditions"] == NORMAL.word and each["met"]]
    rate = content["offered_tps"]
    return SavedAnswer(
        system=content["system"],
        layout=content["layout"],
        scenario=content["scenario"],
        capacity_tps=Range(rate, rate, math.inf) if held else None,
        offered_tps=rate,
        latencies_ms=dict(each for text in held for each in _limits(text)),
    )


def _limits(objective: str) -> Iterator[tuple[tuple[str, str], Range]]:
    """Yield the upper limits of latencies that an objective sets for certain: not those behind an `or`."""
    if objective == NO_OVERLOAD:
        return
    waiting = [parse(objective).root]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, Comparison):
            if each.relation.startswith("<") and each.metric.statistic in STATISTICS:
                limit_ms = 1000 * each.bounds[0]
                yield (each.metric.subject, each.metric.statistic), Range(limit_ms, 0.0, limit_ms)
        elif each.word == "and":
            waiting.extend(each.parts)
