"""`verify`: recomputes a proposal and names the figures that differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError
from capplan.layout.fitted_file import Fitted
from capplan.layout.system import System
from capplan.models.language.document import load
from capplan.planner.demand.demand import Demand
from capplan.planner.proposal.details import Details
from capplan.planner.proposal.proposal import Proposal, digest
from capplan.planner.proposal.propose import ProposalQuestion, Stage, propose
from capplan.planner.saved_document import read_document
from capplan.planner.size.machines import Prices, Shapes, checked_shapes
from capplan.planner.size.size import SizingQuestion
from capplan.simulator.workers import Workers
from capplan.systems.registry import scenario, system

TOLERANCE = 2e-3
"""Relative difference up to which figures are equal: four digits may be rounded apart on another machine."""
_NEAR_ZERO = 1e-4  # of shares and probabilities
_ORIGIN = ("version", "seed")  # in every part, but reported once
_NOT_FIGURES = ("schema", "digest", "provenance", "details")
_WORDS = {"version": "version of capplan", "seed": "seed", "evidence": "evidence", "calibration": "fitted parameters"}


@dataclass(frozen=True)
class Change:
    """A figure that differs.

    Attributes
    ----------
    figure
        Its place in the proposal, such as `sizing.chosen.cost`.
    stored
        What the file has.
    computed
        What is computed now.
    """

    figure: str
    stored: Any
    computed: Any


@dataclass(frozen=True)
class Verification(VerbAnswer):
    """The result of recomputing a proposal.

    Attributes
    ----------
    verified
        Whether the file is intact and its version, evidence and figures match.
    intact
        Whether the file is as it was written: its digest matches its content.
    origins
        What differs in the origin of the figures: version, seed, evidence or fitted parameters.
    changes
        Figures that differ.
    figures
        How many figures were compared.
    """

    SCHEMA = "capplan.verification/1"

    verified: bool
    intact: bool
    origins: tuple[Change, ...]
    changes: tuple[Change, ...]
    figures: int


def read_proposal(path: Path) -> dict[str, Any]:
    """Read the JSON of a proposal.

    Raises
    ------
    InputError
        If it cannot be read or is no proposal.
    """
    return read_document(path, {Proposal.SCHEMA: "proposal -o proposal.json"})


def verify(
    content: Mapping[str, Any], workers: Workers, fitted: Fitted | None = None, stage: Stage = lambda _: None
) -> Verification:
    """Recompute a proposal and compare.

    Parameters
    ----------
    content : mapping
        The proposal as JSON has it.
    workers : Workers
        Where layouts are searched.
    fitted : Fitted, optional
        The calibration to use; the system's own by default.
    stage : function
        Told the name of each stage as it starts.

    Raises
    ------
    InputError
        If the question in it cannot be read, or has no answer any more.
    """
    return compared(content, propose(question_of(content, fitted), workers, stage).to_json())


def compared(content: Mapping[str, Any], again: Mapping[str, Any]) -> Verification:
    """Compare a stored proposal with a recomputed one, both in JSON."""
    stored, computed = (
        {name: value for name, value in each.items() if name not in _NOT_FIGURES} for each in (content, again)
    )
    intact = content.get("digest") == digest(content)
    origins = tuple(
        Change(_WORDS.get(each.figure, each.figure), each.stored, each.computed)
        for each in _differences(content.get("provenance", {}), again["provenance"], "")
    )
    changes = tuple(_differences(stored, computed, ""))
    return Verification(
        verified=intact and not origins and not changes,
        intact=intact,
        origins=origins,
        changes=changes,
        figures=_figures(computed),
    )


def question_of(content: Mapping[str, Any], fitted: Fitted | None = None) -> ProposalQuestion:
    """Return the question of a proposal in JSON.

    Raises
    ------
    InputError
        If a part of it is missing or cannot be read.
    """
    try:
        asked, details = content["asked"], Details(**content["details"])
        fields = dict(asked["scenario"])
        base = scenario(fields.pop("system"), **{name: _tuples(value) for name, value in fields.items()})
        its: System[Any] = system(base.system)
        shapes = None if asked["shapes"] is None else load(Shapes, asked["shapes"], "the shapes of the proposal")
        same = ("confidence", "growth_per_year", "years", "engine", "seed")
        sizing = SizingQuestion(
            **{name: asked[name] for name in same},
            survive=tuple(asked["survive"]),
            sized={name: (int(low), int(high)) for name, (low, high) in asked["sized"].items()},
            families={name: tuple(map(_tuples, values)) for name, values in asked["families"].items()},
            prices=Prices() if shapes is not None else Prices(asked["currency"], asked["prices"], asked["period"]),
            shapes=None if shapes is None else checked_shapes(shapes, its, "the shapes of the proposal"),
            cells=tuple(asked["cells"]),
            demand=None if asked["demand"] is None else load(Demand, asked["demand"], "the demand of the proposal"),
        )
        return ProposalQuestion(details, base, sizing, fitted, asked["command"])
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the question in this proposal cannot be read ({error!r}): make the proposal again") from None


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _differences(stored: Any, computed: Any, where: str) -> Iterator[Change]:
    """Yield the differences, figure by figure."""
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        for name in dict.fromkeys((*stored, *computed)):
            if where and name in _ORIGIN:
                continue
            inside = f"{where}.{name}" if where else str(name)
            yield from _differences(stored.get(name), computed.get(name), inside)
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        for place, (one, other) in enumerate(zip(stored, computed, strict=True)):
            yield from _differences(one, other, f"{where}[{place}]")
    elif not _same(stored, computed):
        yield Change(where, stored, computed)


def _same(stored: Any, computed: Any) -> bool:
    numbers = [isinstance(each, int | float) and not isinstance(each, bool) for each in (stored, computed)]
    if all(numbers):
        return math.isclose(stored, computed, rel_tol=TOLERANCE, abs_tol=_NEAR_ZERO)
    return bool(stored == computed)


def _figures(value: Any) -> int:
    """Return how many values of JSON are neither an object nor a list."""
    parts = value.values() if isinstance(value, Mapping) else value
    return sum(map(_figures, parts)) if isinstance(value, Mapping | list) else 1
