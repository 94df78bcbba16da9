"""How often a layout meets its objectives in each situation, and the rate that it holds at a confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any, Literal
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from capplan.answers.objective import Metric, Objective
from capplan.answers.results import Band
from capplan.answers.verdict import CONFIDENCE, NORMAL, OVERLOAD, JudgedSituation, Verdict, answer, verdict
from capplan.errors import InputError, nearest
from capplan.layout.case import Case
from capplan.layout.components import Simulations
from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import Loss, Losses, Remainder, Situation
from capplan.layout.solution import Solution
from capplan.layout.system import System
from capplan.layout.uncertainty import Uncertainty
from capplan.models.cassandra.storage import NodeLoad
from capplan.models.language.units import FloatArray
from capplan.planner.node_needs import judged_limits, node_load
from capplan.planner.predict.capacity import (
    Relations,
    held_at_rate,
    objectives_at_a_rate,
    repeated_at_rate,
    sustained_rate,
)

_JOINED = "+"

JudgingEngine = Literal["compiled", "analytic"]


@dataclass(frozen=True)
class Conditions:
    """Conditions under which the objectives must hold.

    Attributes
    ----------
    word : str
        As they are asked for, such as `dc+compaction`.
    loss : Loss or None
        What is lost.
    situations : tuple of Situation
        What else differs from the load tests.
    fitted : Fitted or None
        The calibration under these conditions; None if no parameter differs.
    """

    word: str
    loss: Loss | None = None
    situations: tuple[Situation, ...] = ()
    fitted: Fitted | None = None

    @property
    def guessed(self) -> bool:
        """Whether the conditions include a guess."""
        return any(each.guessed for each in self.situations)


def read_conditions(texts: Iterable[str], system: System[Any], fitted: Fitted) -> tuple[Conditions, ...]:
    """Read what to survive; normal conditions always come first.

    Parameters
    ----------
    texts : iterable of str
        Lists such as `dc,node,dc+compaction`: words of losses or situations, `+` between those at the same time.
    system : System
        The system, which knows the words.
    fitted : Fitted
        Its calibration.

    Raises
    ------
    InputError
        If a word is unknown.
    """
    return (Conditions(NORMAL), *(_conditions(word, system, fitted) for word in words_of(texts)))


def words_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the normalised words of what to survive, without duplicates and normal conditions."""
    words = [word.strip().casefold() for text in texts for word in text.split(",")]
    return tuple(dict.fromkeys(word for word in words if word not in ("", NORMAL)))


def _conditions(word: str, system: System[Any], fitted: Fitted) -> Conditions:
    parts = [part.strip() for part in word.split(_JOINED)]
    its = system.component(Losses)
    known = (*its.kinds, *its.situations)
    for part in parts:
        if part not in known:
            listed = f"known are {', '.join(known)}" if known else "no loss and no situation of it is modelled"
            raise InputError(
                f"--survive {word}: {part!r} is nothing that {system.name} can survive{nearest(part, known)}; {listed}"
            )
    lost = [part for part in parts if part in its.kinds]
    counts = reduce(lambda found, part: {**found, part: found.get(part, 0) + 1}, lost, dict[str, int]())
    situations = tuple(its.situations[part] for part in dict.fromkeys(parts) if part in its.situations)
    stressed = reduce(lambda found, each: each.applied_to(found), (each for each in situations if each.factors), fitted)
    return Conditions(
        _JOINED.join(parts), Loss(counts) if counts else None, situations, None if stressed is fitted else stressed
    )


NONE: Relations = MappingProxyType({})
"""Nothing is simulated."""


@dataclass(frozen=True)
class Strained:
    """A layout under some conditions; `why` is the reason if it cannot serve at all.

    Attributes
    ----------
    case : Case
        The layout, whole and under normal conditions.
    conditions : Conditions
        The conditions.
    offered_per_s : float
        Offered peak rate under normal conditions, requests per second.

    Methods take simulated over analytic latencies, `relations`, as `sustained_rate` does.
    """

    case: Case[Any]
    conditions: Conditions
    offered_per_s: float

    @cached_property
    def _left(self) -> Remainder | str | None:
        """The remainder of a loss at the requested levels; a text if none remains; None without a loss."""
        if self.conditions.loss is None:
            return None
        try:
            first = self._stressed.system.component(Losses).remainders(self._stressed, (self.conditions.loss,))[0]
        except InputError as error:
            return str(error)
        return first.assumed if first.solved is None else first

    @cached_property
    def _stressed(self) -> Case[Any]:
        """The case with its situations' parameters."""
        stressed = self.conditions.fitted
        return self.case if stressed is None else replace(self.case, fitted=stressed)

    @property
    def why(self) -> str:
        """The reason if no request succeeds; empty if requests do."""
        return self._left if isinstance(self._left, str) else ""

    @property
    def node(self) -> NodeLoad | None:
        """What the busiest node that is left stores and moves; None if nobody says anything of it."""
        down = self._left.down if isinstance(self._left, Remainder) else ()
        return None if self.why else node_load(self.case.scenario, self.offered_per_s, self.case.seed, down)

    @cached_property
    def solution(self) -> Solution:
        """The analysed layout."""
        left, case = self._left, self._stressed
        if isinstance(left, str):
            raise ValueError(f"nothing is left to analyse: {left}")
        if left is None or left.solved is None:
            return case.solution
        return left.solved(case.values, None if case.representatives is None else case.representatives.place)

    def simulated(self, seed: int) -> Relations:
        """Return the relations of simulated to analytic latency at the offered rate; some may have no simulation.

        Parameters
        ----------
        seed : int
            Seed of the simulation: the same for all layouts (common random numbers).
        """
        from capplan.planner.predict.simulated_latency import SimulationSettings, simulated_latency  # slow to import

        if self.why:
            return NONE
        case, left = self._stressed, self._left
        settings = SimulationSettings(seed, "compiled", case.system.component(Simulations).budget_s, threads=1)
        figures = self.solution.at(self.offered_per_s * self.rate_factor)
        if not isinstance(left, Remainder) or left.solved is None:
            return simulated_latency(case, figures, settings).relations
        solved = left.solved
        return simulated_latency(case, figures, settings, lambda values: solved(values, None).network).relations

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The model errors of the figures."""
        return self._of_what_is_left(self.case.uncertainty)

    @property
    def uncertainty_as_tested(self) -> Uncertainty:
        """The model errors if the layout were a tested one."""
        return self._of_what_is_left(self.case.layout.as_tested)

    def _of_what_is_left(self, errors: Uncertainty) -> Uncertainty:
        left = self._left
        if not isinstance(left, Remainder) or left.offset is None:
            return errors
        return replace(errors, offset=left.offset(self.case.system.values(self.case.fitted, self.case.scenario)))

    @cached_property
    def rate_factor(self) -> FloatArray:
        """The offered rate relative to normal conditions (draws,)."""
        count = len(self.case.fitted.draws)
        surging = [(each.rate, each.name) for each in self.conditions.situations if each.rate is not None]
        rates = [rate.draws(count, crc32(name.encode())) for rate, name in surging]
        return reduce(np.multiply, rates, np.ones(count))

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """Objectives about figures at one rate."""
        return objectives_at_a_rate(self.case)

    def risk(self, relations: Relations = NONE, errors: Uncertainty | None = None) -> float:
        """Return the probability that a repeat of the load test does not sustain the offered rate.

        Figures are solved at the offered rate only. Model errors are those of the layout, and objectives those of the
        scenario, unless given.
        """
        if self.why:
            return 1.0
        return self._missed(relations, self.objectives, errors)

    def risks(self, relations: Relations = NONE) -> dict[str, float]:
        """Return the probability of overload, and of missing each objective in a repeat, by objective."""
        if self.why:
            return dict.fromkeys((OVERLOAD, *(each.text for each in self.objectives)), 1.0)
        alone: dict[str, tuple[Objective, ...]] = {OVERLOAD: (), **{each.text: (each,) for each in self.objectives}}
        return {name: self._missed(relations, each) for name, each in alone.items()}

    def narrowed(self, other: Strained | None) -> Uncertainty:
        """Return the model errors, capped at another layout's (or at a tested layout's if it is None)."""
        own, its = self.uncertainty, self.uncertainty_as_tested if other is None else other.uncertainty
        by_class = {name: min(error, its.by_class.get(name, its.time)) for name, error in own.by_class.items()}
        return replace(own, rate=min(own.rate, its.rate), time=min(own.time, its.time), by_class=by_class)

    def shortfall(self, confidence: float) -> float:
        """Return the log ratio of the offered rate to the sustained capacity without objectives."""
        rates = self.uncertainty.repeated_rate(self.solution.capacity) / self.rate_factor
        return float(np.log(self.offered_per_s / max(at_confidence(rates, confidence), 1e-9 * self.offered_per_s)))

    def sustained_per_s(self, confidence: float, relations: Relations = NONE) -> float:
        """Return the highest normal peak rate, requests per second, that meets the objectives at a confidence."""
        return at_confidence(self.sustained_rates(relations), confidence)

    def sustained_rates(self, relations: Relations = NONE) -> FloatArray:
        """Return the normal peak rates that repeats of the load test sustain, requests per second (draws,)."""
        if self.why:
            return np.zeros(len(self.case.fitted.draws))
        found = self._repeated(self.objectives, relations)
        if self.solution.place is not None:
            return found
        held = self._held(relations, self.objectives)
        offered = self.offered_per_s  # rates are interpolated, but each draw is solved at this one
        return np.where(held, np.maximum(found, offered), np.minimum(found, np.nextafter(offered, 0.0)))

    def limit(self, confidence: float, relations: Relations = NONE) -> str:
        """Return what limits that rate: `overload`, an objective, or the reason for no service."""
        if self.why:
            return self.why
        alone = {OVERLOAD: self._repeated((), relations)}
        alone |= {each.text: self._repeated((each,), relations) for each in self.objectives}
        lowest = {name: at_confidence(rates, confidence) for name, rates in alone.items()}
        return min(lowest, key=lambda name: (lowest[name], name != OVERLOAD))

    def reached_ms(self, confidence: float, relations: Relations = NONE) -> dict[str, float | None]:
        """Return each objective's latency as a repeat at the offered rate keeps it at a confidence, ms.

        Parameters
        ----------
        confidence : float
            Share of the repeats that keep it.

        Returns
        -------
        dict
            By name, such as `acct.p99`; None where too many repeats are overloaded.
        """
        metrics = {m.name: m for each in self.objectives for m in each.metrics() if m.kind == "duration"}
        if self.why:
            return dict.fromkeys(metrics)
        rate, found = self.offered_per_s * self.rate_factor, {}
        for name, metric in metrics.items():
            each = repeated_at_rate(self.solution, self.uncertainty, metric, rate, relations)
            value = -at_confidence(-each, confidence)
            found[name] = value * 1e3 if np.isfinite(value) else None
        return found

    def _repeated(self, objectives: Sequence[Objective], relations: Relations) -> FloatArray:
        """Return the normal rates that repeats sustain under these conditions (draws,)."""
        found = sustained_rate(self.solution, self.uncertainty, objectives, relations).repeated
        return np.minimum(found, self._most) / self.rate_factor

    def _missed(
        self, relations: Relations, objectives: Sequence[Objective], errors: Uncertainty | None = None
    ) -> float:
        return float(np.mean(~self._held(relations, objectives, errors)))

    def _held(
        self, relations: Relations, objectives: Sequence[Objective], errors: Uncertainty | None = None
    ) -> NDArray[np.bool_]:
        """Return whether repeats carry the offered rate (draws,); by default with the layout's own model errors."""
        rate = self.offered_per_s * self.rate_factor
        if self.solution.place is not None:  # few draws are solved
            return np.asarray(self._repeated(objectives, relations) >= self.offered_per_s)
        held = held_at_rate(self.solution, errors or self.uncertainty, objectives, rate, relations)
        return held if errors is not None else held & (self._most >= rate)

    @cached_property
    def _most(self) -> FloatArray | float:
        """The rates that repeats with the upper-bound layout would sustain (draws,)."""
        bound = self.case.upper_bound
        if bound is None:
            return np.inf
        other = replace(self, case=bound)
        return np.inf if other.why else other.uncertainty.repeated_rate(other.solution.capacity)


def at_confidence(rates: FloatArray, confidence: float) -> float:
    """Return the rate that at least a share `confidence` of the draws reaches."""
    allowed = int((1 - confidence) * len(rates) + 1e-9)
    return float(np.sort(rates)[min(allowed, len(rates) - 1)])


def band_of_rates(rates: FloatArray) -> Band:
    """Return the median and 90 % band of rates (draws,), by the shares of draws that reach them."""
    return Band(at_confidence(rates, 0.5), at_confidence(rates, 0.95), at_confidence(rates, 0.05))


Strains = Mapping[str, Strained]
"""A layout under all its conditions, by their word."""


def strained(case: Case[Any], conditions: Sequence[Conditions], offered_per_s: float) -> Strains:
    """Return a layout under all its conditions."""
    return {each.word: Strained(case, each, offered_per_s) for each in conditions}


def nodes_of(strains: Strains) -> dict[str, NodeLoad]:
    """Return what the busiest node stores and moves under each of the conditions in which requests succeed."""
    return {word: load for word, each in strains.items() if (load := each.node) is not None}


class Judged:
    """A layout at an offered rate, under all conditions that count.

    Parameters
    ----------
    case : Case
        The layout, whole, with its objectives.
    conditions : sequence of Conditions
        Normal conditions first.
    offered_per_s : float
        Offered peak rate, requests per second.
    confidence : float
        Confidence of the verdict.
    given : bool
        Whether somebody gave the rate. A default one is only where objectives are judged: whether it is carried does
        not count by itself.
    """

    def __init__(
        self,
        case: Case[Any],
        conditions: Sequence[Conditions],
        offered_per_s: float,
        confidence: float = CONFIDENCE,
        *,
        given: bool = True,
    ) -> None:
        self.case, self.offered_per_s, self.confidence, self.given = case, offered_per_s, confidence, given
        self.relations: dict[str, Relations] = {}
        self.strains = strained(case.at(offered_per_s), conditions, offered_per_s)

    def simulate(self, seed: int, known: Mapping[str, Relations] = MappingProxyType({})) -> None:
        """Simulate the latencies of the objectives under each condition; do nothing if no objective has a latency.

        Parameters
        ----------
        seed : int
            Seed of the simulation: the same for all conditions (common random numbers).
        known : mapping
            Simulated over analytic latencies that are known already, by the word of the conditions.
        """
        timed = any(metric.kind == "duration" for each in self.case.objectives for metric in each.metrics())
        for word, strain in self.strains.items() if timed else ():
            self.relations[word] = known[word] if word in known else strain.simulated(seed)

    def verdict(self) -> Verdict:
        """Return the verdict over all conditions of service; `conditions.verdict_of` adds what it takes for granted."""
        conditions = [each.conditions for each in self.strains.values()]
        return verdict(
            [*(self.situation(each) for each in self.strains.values()), *self.limits],
            self.confidence,
            not_asked=not_asked(self.case.system, conditions),
        )

    @cached_property
    def limits(self) -> list[JudgedSituation]:
        """The verdict on what else nodes have than CPU, at a rate that was given."""
        return judged_limits(nodes_of(self.strains), self.confidence) if self.given else []

    def situation(self, strain: Strained) -> JudgedSituation:
        """Return the verdict under one of the conditions: that the rate is carried and all objectives hold at once."""
        risks = self.risks(strain)
        if not self.given and len(risks) > 1 and not strain.why:
            del risks[OVERLOAD]
        counted = self.given or bool(strain.objectives)
        risk = max(strain.risk(self._relations(strain)) if counted else 0.0, *risks.values())
        return JudgedSituation(
            situation=strain.conditions.word,
            answer=answer(risk, self.confidence),
            risk=risk,
            limit=strain.why or max(risks, key=lambda name: (risks[name], name == OVERLOAD)),
            available=not strain.why,
            guessed=strain.conditions.guessed,
        )

    def risks(self, strain: Strained) -> dict[str, float]:
        """Return the risk of overload and of missing each objective alone, under one of the conditions."""
        own, at_a_rate = self.case.objectives, objectives_at_a_rate(self.case)
        of_capacity = {each.text: self._risk_of_capacity(each, strain) for each in own if each not in at_a_rate}
        return {**strain.risks(self._relations(strain)), **of_capacity}

    def _relations(self, strain: Strained) -> Relations:
        return self.relations.get(strain.conditions.word, NONE)

    def _risk_of_capacity(self, objective: Objective, strain: Strained) -> float:
        if strain.why:
            return 1.0
        held = objective.holds(lambda metric: self._draws(metric, strain))
        return float(1 - np.mean(np.broadcast_to(held, strain.solution.capacity.shape)))

    def _draws(self, metric: Metric, strain: Strained) -> FloatArray:
        """Return what repeats of the load test would measure of a figure at the offered rate, SI (draws,)."""
        relations = self._relations(strain)
        if metric.name == "capacity":
            return strain.sustained_rates(relations)
        rate = self.offered_per_s * strain.rate_factor
        if metric.kind == "duration":
            return repeated_at_rate(strain.solution, strain.uncertainty, metric, rate, relations)
        return np.asarray(strain.solution.at(rate).value(metric))


def not_asked(its: System[Any], conditions: Sequence[Conditions]) -> tuple[str, ...]:
    """Return the kinds of loss that the system models but no condition includes."""
    losses = [each.loss for each in conditions if each.loss is not None]
    asked = {kind for loss in losses for kind in (*loss.counts, *(["dc"] if loss.dcs else []))}
    return tuple(kind for kind in its.component(Losses).kinds if kind not in asked)
