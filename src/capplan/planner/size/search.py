"""The search for the cheapest layout of a family, whose layouts differ in numbers of machines only.

The best layout of a family, confirmed: simulated in each situation, and searched for again with those latencies.

All layouts are simulated with the same random numbers.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from capplan.answers.results import Band
from capplan.answers.verdict import DATA, NORMAL
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.uncertainty import Uncertainty
from capplan.models.cassandra.storage import NodeLoad, fullest
from capplan.models.language.scenario import Scenario, changed, options_of
from capplan.models.language.units import FloatArray
from capplan.planner.demand.demand import Demand, growth_factors
from capplan.planner.demand.forecast import GROWTH, Volume, months_until, volume
from capplan.planner.node_needs import limited, node_needs, risk_of
from capplan.planner.predict.capacity import Relations
from capplan.planner.size.machines import Prices
from capplan.planner.size.sizing import Refusal, Safety, SizedLayout, steady
from capplan.planner.sustained import (
    NONE,
    Conditions,
    JudgingEngine,
    Strained,
    Strains,
    at_confidence,
    band_of_rates,
    nodes_of,
    strained,
)
from capplan.systems.registry import resolve, system

DISK = "disk"
"""What limits it."""


@dataclass(frozen=True, eq=False)
class Disks:
    """A demand's data, and the disks to store them.

    Attributes
    ----------
    volume : Volume
        One copy of the data today, and its growth.
    growth_factor : array (draws,)
        Growth of the rate in one year.
    years : float
        Planned time.
    disk_gib : float or None
        Disk of a node, GiB; None: any amount of data fits.
    """

    volume: Volume | None
    growth_factor: FloatArray
    years: float
    disk_gib: float | None = None

    def need_gib(self, scenario: Scenario, cells: int) -> FloatArray | None:
        """Return the disk that the fullest node needs at the planned time, GiB (draws,); None without data."""
        nodes, found = scenario.cassandra_nodes(), self.volume
        if found is None or nodes is None:
            return None
        grown = found.data_gib * found.growth_factor**self.years / found.room
        return np.asarray(fullest(*nodes) * grown / cells)

    def risk(self, scenario: Scenario, cells: int) -> float:
        """Return the probability that the data do not fit."""
        need = self.need_gib(scenario, cells)
        return 0.0 if need is None or self.disk_gib is None else float(np.mean(need > self.disk_gib))

    def months(self, scenario: Scenario, cells: int) -> Band | None:
        """Return the months from today until the data fill the disks; None without data or disks."""
        nodes = scenario.cassandra_nodes()
        if self.volume is None or self.disk_gib is None or nodes is None:
            return None
        return months_until(self.volume, *nodes, self.disk_gib * cells)


def disks_of(demand: Demand | None, seed: int, base: Scenario) -> Disks | None:
    """Return the growth of a demand, and its data and disks unless they are fields of the base; None without one."""
    if demand is None:
        return None
    data = None if demand.stated and "keep" in options_of(type(base)) else demand.data
    return Disks(
        volume=None if data is None else volume(demand, data, seed),
        growth_factor=growth_factors(demand.growth, seed, GROWTH),
        years=demand.years,
        disk_gib=None if data is None or data.disk_gib is None else float(data.disk_gib),
    )


MOST_EVALUATED = 200
"""Layouts of a family that a search evaluates; it then answers with the best of them."""
_STEPS = (2.0, 8.0)  # times as many machines in a step towards a safe layout


@dataclass(frozen=True)
class SizingTarget:
    """The requirements for a layout.

    Attributes
    ----------
    base : Scenario
        The fields that are not sized, with the objectives.
    fitted : Fitted
        The calibration.
    conditions : tuple of Conditions
        What it must survive; normal conditions first.
    offered_per_s : float
        Peak rate at the end of the planned time, requests per second over all data centres.
    confidence : float
        Probability with which the objectives must hold, under each of the conditions.
    seed : int
        Seed of all random numbers.
    disks : Disks or None
        Data that must fit on the nodes; None: no data are known.
    """

    base: Scenario
    fitted: Fitted
    conditions: tuple[Conditions, ...]
    offered_per_s: float
    confidence: float
    seed: int = 1
    disks: Disks | None = None

    @property
    def accepted_risk(self) -> float:
        """Highest accepted probability that the objectives are not met."""
        return round(1 - self.confidence, 9)  # as the verdict counts it

    def in_cells(self, cells: int) -> SizingTarget:
        """Return the requirements for one of several equal cells."""
        return replace(self, offered_per_s=self.offered_per_s / cells)

    def case(self, scenario: Scenario) -> Case[Any]:
        """Return the case of a layout at the target's rate, which says how much data there are."""
        if scenario.tps is not None:
            scenario = changed(scenario, tps=self.offered_per_s)
        return resolve(scenario, self.fitted, self.seed).at(self.offered_per_s)

    def strains(self, scenario: Scenario) -> Strains:
        """Return a layout under all conditions."""
        return strained(self.case(scenario), self.conditions, self.offered_per_s)


@dataclass(frozen=True)
class Family:
    """Layouts that differ only in numbers of machines.

    Attributes
    ----------
    fixed : mapping
        The fields that they share.
    sized : mapping of (int, int)
        Lowest and highest values of the others.
    prices : Prices
        What machines cost.
    shapes : mapping of str
        Names of their shapes by kind of machine, where shapes are chosen from.
    cells : int
        Equal layouts that share the traffic, each with its own machines; the numbers of machines are those of one.
    disk_gib : float or None
        Disk of a node of the chosen shape, GiB; None: that of the demand.
    """

    fixed: Mapping[str, Any]
    sized: Mapping[str, tuple[int, int]]
    prices: Prices = Prices()  # noqa: RUF009  # frozen
    shapes: Mapping[str, str] = field(default_factory=dict)
    cells: int = 1
    disk_gib: float | None = None

    def disks_of(self, target: SizingTarget) -> Disks | None:
        """Return a target's data requirement with the disks of this family."""
        disks = target.disks
        return disks if disks is None or self.disk_gib is None else replace(disks, disk_gib=self.disk_gib)

    @property
    def layouts(self) -> int:
        """The number of layouts."""
        return math.prod(high - low + 1 for low, high in self.sized.values())

    @property
    def first(self) -> tuple[int, int]:
        """The range of the first kind of machine."""
        return next(iter(self.sized.values()))

    def fields(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the fields of a layout."""
        return {**self.fixed, **dict(zip(self.sized, numbers, strict=True))}

    def cost(self, scenario: Scenario) -> float:
        """Return the cost of the machines of all cells."""
        return self.cells * self.prices.of(scenario)


Simulated = dict[str, Relations]
"""Simulated over analytic latencies, by the word of the conditions."""
Numbers = tuple[int, ...]
"""Numbers of machines by kind, in the order of `Family.sized`."""


@dataclass(frozen=True)
class Candidate:
    """A layout with its risk.

    Attributes
    ----------
    numbers : tuple of int
        Numbers of machines by kind.
    scenario : Scenario
        The layout.
    cost : float
        What its machines cost.
    risk : float
        The highest risk under the conditions that were looked at: only as many as it takes to refuse it.
    unavailable : tuple of (str, str)
        Conditions under which no request succeeds, and why; empty if there are none.
    """

    numbers: Numbers
    scenario: Scenario
    cost: float
    risk: float
    unavailable: tuple[str, str] | tuple[()] = ()


class Search:
    """Searches a family, and remembers every layout that it has solved.

    It first follows the bottleneck to a safe layout, then takes away what is not needed, and then refutes what is
    cheaper, box by box: more machines never raise the risk by themselves, so no layout of a box is safe if the largest
    is not with the narrowest bands in the box.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    family : Family
        The layouts to choose from.
    """

    def __init__(self, target: SizingTarget, family: Family) -> None:
        self.target, self.family, self.disks = target, family, family.disks_of(target)
        self.relations: Simulated = {}
        self.order = [each.word for each in target.conditions]
        self.layouts: dict[Numbers, tuple[Scenario, Strains] | str] = {}
        self.seen: dict[Numbers, Candidate | str] = {}
        self.scores: dict[Numbers, float] = {}
        self.evaluated: set[Numbers] = set()

    @property
    def refused(self) -> tuple[str, str] | None:
        """Why the largest layout fails or is invalid: conditions and reason; None if some layout serves."""
        if self.evaluated or not self.seen:
            return None
        largest = self.seen[max(self.seen)]
        return ("", largest) if isinstance(largest, str) else (largest.unavailable or None)

    def safe(self, found: Candidate | str) -> TypeGuard[Candidate]:
        """Return whether a layout is safe enough."""
        return isinstance(found, Candidate) and found.risk <= self.target.accepted_risk

    def cheapest(self, start: Numbers | None = None) -> Candidate | None:
        """Return the cheapest layout that is safe enough; None if there is none. It may lie near a start."""
        low, high = self._ends()
        largest = self.at(high)
        if isinstance(largest, str) or largest.unavailable:
            return None
        return self._cheapest(low, high, low if start is None else tuple(map(min, start, high)))

    def cheapest_at(self, confidence: float, near: Candidate, relations: Simulated) -> Candidate | None:
        """Return the cheapest layout at another confidence; what is solved already is not solved again."""
        if confidence == self.target.confidence:
            return near
        other = Search(replace(self.target, confidence=confidence), self.family)
        other.relations, other.layouts = relations, self.layouts
        return other.cheapest(near.numbers)

    def serves(self) -> bool:
        """Return whether adding the machines that help most leads to a safe layout."""
        low, high = self._ends()
        return self._first_safe(low, high, low) is not None

    def _ends(self) -> tuple[Numbers, Numbers]:
        """Return the fewest and the most machines of each kind."""
        low, high = (tuple(ends) for ends in zip(*self.family.sized.values(), strict=True))
        return low, self._valid(low, high)

    def _valid(self, low: Numbers, high: Numbers) -> Numbers:
        """Return the upper ends; where no layout of that size exists, they are lowered to the largest that does."""
        for at, (first, last) in enumerate(zip(low, high, strict=True)):  # such as more of each kind than a system has
            alone = (
                number
                for number in range(last, first, -1)
                if isinstance(self._scenario(_with(low, at, number)), Scenario)
            )
            high = _with(high, at, next(alone, last))
        for at, (first, last) in enumerate(zip(low, high, strict=True)):
            for number in range(last, first - 1, -1):
                lowered = (*high[:at], number, *high[at + 1 :])
                if isinstance(self._scenario(lowered), Scenario):
                    return lowered
        return high

    def cheapest_near(self, start: Candidate, relations: Simulated) -> Candidate | None:
        """Return the cheapest safe layout by simulated latencies, with `start`'s numbers of the other machines."""
        self.relations, self.seen, self.scores = relations, {}, {}
        (low, high), others = self.family.first, start.numbers[1:]
        return self._cheapest((low, *others), (high, *others), start.numbers)

    def nearest(self) -> Candidate | None:
        """Return the unsafe layout that comes nearest to being safe."""
        known = {each for each in (*self.scores, *self.seen) if math.isfinite(self._score(each))}
        unsafe = [found for each in known if isinstance(found := self.at(each), Candidate) and not self.safe(found)]
        return min(unsafe, key=lambda each: (self._score(each.numbers), each.cost), default=None)

    def at(self, numbers: Numbers) -> Candidate | str:
        """Return a layout with its risk, or the reason if it is invalid."""
        if numbers not in self.seen:
            self.seen[numbers] = self._candidate(numbers)
        return self.seen[numbers]

    def strains(self, numbers: Numbers) -> tuple[Scenario, Strains] | str:
        """Return a layout under all conditions, or the reason if it is invalid."""
        if numbers not in self.layouts:
            self.layouts[numbers] = self._strained(numbers)
        return self.layouts[numbers]

    def _strained(self, numbers: Numbers) -> tuple[Scenario, Strains] | str:
        scenario = self._scenario(numbers)
        try:
            return scenario if isinstance(scenario, str) else (scenario, self.target.strains(scenario))
        except InputError as error:
            return str(error)

    def _scenario(self, numbers: Numbers) -> Scenario | str:
        try:
            return changed(self.target.base, **self.family.fields(numbers))
        except InputError as error:
            return str(error)

    def _cheapest(self, low: Numbers, high: Numbers, start: Numbers) -> Candidate | None:
        """Return the cheapest safe layout of a box."""
        best, boxes = self._first_safe(low, high, start), [(0.0, low, high)]
        while boxes and len(self.evaluated) < MOST_EVALUATED:
            _, low, high = heapq.heappop(boxes)
            if best is not None:
                if self._cost(low) >= best.cost:
                    continue
                high = self._cheaper(low, high, best.cost)
            if best is not None and all(a >= b for a, b in zip(high, best.numbers, strict=True)):
                parts = _halves(low, high, best.numbers)
            elif self._refuted(low, high):
                continue
            else:
                if self.safe(found := self.at(high)):
                    fewest = self._fewest(found, low)
                    best = fewest if best is None or fewest.cost < best.cost else best
                parts = _halves(low, high)
            for part in parts:
                heapq.heappush(boxes, (self._cost(part[0]), *part))
        return best

    def _first_safe(self, low: Numbers, high: Numbers, start: Numbers) -> Candidate | None:
        """Return a safe layout, reached from a start by adding the machines that help most; None if none helps."""
        numbers = self._first_valid(low, high, start)
        while (score := self._score(numbers)) > self.target.accepted_risk:
            factor = float(np.clip(math.exp(min(score, 9.0) - 1), *_STEPS)) if score > 1 else _STEPS[0]
            more = tuple(min(max(math.ceil(factor * n), n + 1), top) for n, top in zip(numbers, high, strict=True))
            each = [step for kind, number in enumerate(more) if (step := _with(numbers, kind, number)) != numbers]
            helps = min(each, key=self._score, default=numbers)
            helps = helps if self._score(helps) < score else more
            if self._score(helps) >= score:
                return None
            numbers = helps
        found = self.at(numbers)
        return self._fewest(found, low) if self.safe(found) else None

    def _first_valid(self, low: Numbers, high: Numbers, numbers: Numbers) -> Numbers:
        """Return the start if requests succeed there, else the smallest layout where they do; nothing is solved."""
        if self._serves(numbers):
            return numbers
        numbers = high
        for kind in range(len(high)):
            fewer = [_with(numbers, kind, number) for number in range(low[kind], high[kind])]
            numbers = _with(numbers, kind, low[kind] + bisect_left(fewer, True, key=self._serves))
        return numbers

    def _serves(self, numbers: Numbers) -> bool:
        layout = self.strains(numbers)
        return not isinstance(layout, str) and not _unavailable(layout[1])

    def _fewest(self, found: Candidate, low: Numbers) -> Candidate:
        """Return a safe layout that is minimal: fewer machines of any one kind make it unsafe."""
        for kind, lowest in enumerate(low):
            number = found.numbers[kind]
            refused = (
                n for n in range(number - 1, lowest - 1, -1) if self._known_unsafe(_with(found.numbers, kind, n))
            )
            lowest = next(refused, lowest - 1) + 1
            while lowest < number:
                middle = math.isqrt(lowest * number)
                smaller = self.at(_with(found.numbers, kind, middle))
                if self.safe(smaller):
                    found, number = smaller, middle
                else:
                    lowest = middle + 1
        return found

    def _known_unsafe(self, numbers: Numbers) -> bool:
        return self.scores.get(numbers, 0.0) > self.target.accepted_risk or (
            numbers in self.seen and not self.safe(self.seen[numbers])
        )

    def _score(self, numbers: Numbers) -> float:
        """Return a layout's distance from safety: its risk; above 1 if its capacity is too low in too many draws.

        The capacity falls short by a factor whose logarithm is what exceeds 1. Infinite if it is no layout.
        """
        if numbers not in self.scores:
            self.scores[numbers] = self._scored(numbers)
        return self.scores[numbers]

    def _scored(self, numbers: Numbers) -> float:
        layout = self.strains(numbers)
        if isinstance(layout, str) or any(strain.why for strain in layout[1].values()):
            return math.inf
        self.evaluated.add(numbers)
        short = max(strain.shortfall(self.target.confidence) for strain in layout[1].values())
        if short > 0:
            return 1 + short
        found = self.at(numbers)
        return math.inf if isinstance(found, str) else found.risk

    def _cheaper(self, low: Numbers, high: Numbers, cost: float) -> Numbers:
        """Return the largest numbers of each kind in a box with which a layout may still cost less."""
        return tuple(
            number + bisect_left(range(number + 1, most + 1), cost, key=lambda each: self._cost(_with(low, kind, each)))
            for kind, (number, most) in enumerate(zip(low, high, strict=True))
        )

    def _cost(self, numbers: Numbers) -> float:
        layout = self.strains(numbers)
        return 0.0 if isinstance(layout, str) else self.family.cost(layout[0])

    def _refuted(self, low: Numbers, high: Numbers) -> bool:
        """Whether a box contains no safe layout, because its largest is unsafe even with the box's narrowest bands."""
        if self._below_a_safe_one(low, high):
            return not self.safe(self.at(high))
        near = self.strains(self._nearest_to_tests(low, high))
        bands = {} if isinstance(near, str) or _unavailable(near[1]) else near[1]
        return self._unsafe(high, lambda each: each.narrowed(bands.get(each.conditions.word)))

    def hopeless(self, numbers: Numbers) -> bool:
        """Return whether a layout is invalid, or unsafe even with the narrow bands of tested ones, which are quick.

        Narrower bands lower a risk below a half and raise one above it, so where more than a half is accepted they
        decide nothing.
        """
        return self.target.accepted_risk <= 0.5 and self._unsafe(numbers, lambda each: each.uncertainty_as_tested)

    def _unsafe(self, numbers: Numbers, errors: Callable[[Strained], Uncertainty]) -> bool:
        layout = self.strains(numbers)
        if isinstance(layout, str) or _unavailable(layout[1]):
            return True
        return self._risk(numbers, layout, errors) > self.target.accepted_risk

    def _below_a_safe_one(self, low: Numbers, high: Numbers) -> bool:
        """Whether layouts differ in one kind of machine only, and a layout with more of that kind is known to be safe.

        Along one kind the risk falls until wider bands raise it: fewer machines than an unsafe layout are unsafe, too.
        """
        kinds = [kind for kind, number in enumerate(low) if number < high[kind]]
        if len(kinds) != 1:
            return False
        (kind,) = kinds
        line = (each for each in self.seen if each[kind] > high[kind] and _with(each, kind, high[kind]) == high)
        return any(self.safe(self.seen[each]) for each in line)

    def _nearest_to_tests(self, low: Numbers, high: Numbers) -> Numbers:
        """Return the layout of a box nearest to the tested ones; the distance is convex along each kind."""
        numbers = low
        for kind, most in enumerate(high):
            ends = range(low[kind], most)
            nearer = bisect_left(ends, True, key=partial(self._nearest_from, numbers, kind))
            numbers = _with(numbers, kind, low[kind] + nearer)
        return numbers

    def _nearest_from(self, numbers: Numbers, kind: int, number: int) -> bool:
        """Whether one more machine of a kind does not bring the layout nearer to the tested ones."""
        return self._distance(_with(numbers, kind, number + 1)) >= self._distance(_with(numbers, kind, number))

    def _distance(self, numbers: Numbers) -> float:
        layout = self.strains(numbers)
        if isinstance(layout, str):
            return math.inf
        case = layout[1][NORMAL].case
        return case.system.extrapolation(case.scenario, self.target.offered_per_s).doublings

    def _candidate(self, numbers: Numbers) -> Candidate | str:
        layout = self.strains(numbers)
        if isinstance(layout, str):
            return layout
        scenario, every = layout
        why = _unavailable(every)
        return Candidate(
            numbers, scenario, self.family.cost(scenario), 1.0 if why else self._risk(numbers, layout), why
        )

    def _risk(
        self,
        numbers: Numbers,
        layout: tuple[Scenario, Strains],
        errors: Callable[[Strained], Uncertainty | None] = lambda _: None,
    ) -> float:
        """Return the highest risk over the conditions, stopping once the layout is refused."""
        (scenario, every), accepted = layout, self.target.accepted_risk
        highest = 0.0 if self.disks is None else self.disks.risk(scenario, self.family.cells)
        highest = max(highest, risk_of(nodes_of(every)))
        if highest > accepted:
            return highest
        self.evaluated.add(numbers)
        for word in list(self.order):
            highest = max(highest, every[word].risk(self.relations.get(word, NONE), errors(every[word])))
            if highest > accepted:  # check first the conditions that refused the last layout
                self.order.remove(word)
                self.order.insert(0, word)
                break
        return highest


def _unavailable(strains: Strains) -> tuple[str, str] | tuple[()]:
    """Return the first conditions under which no request succeeds, and the reason; empty if there are none."""
    return next(((word, strain.why) for word, strain in strains.items() if strain.why), ())


def _with(numbers: Numbers, kind: int, number: int) -> Numbers:
    return (*numbers[:kind], number, *numbers[kind + 1 :])


def _halves(low: Numbers, high: Numbers, around: Numbers | None = None) -> list[tuple[Numbers, Numbers]]:
    """Return the two parts of a box, cut below a layout in it or at the geometric mean; none for a single layout."""
    kinds = range(len(low))
    if around is not None:
        kind = next(kind for kind in kinds if around[kind] > low[kind])
        middle = around[kind] - 1
    else:
        kind = max(kinds, key=lambda kind: high[kind] / max(low[kind], 1))  # some kinds of machines may have none
        middle = math.isqrt(low[kind] * high[kind])
    if low[kind] == high[kind]:
        return []
    return [(low, _with(high, kind, middle)), (_with(low, kind, middle + 1), high)]


_ROUNDS = 4
_LOCAL = "LOCAL_QUORUM"


@dataclass(frozen=True)
class FamilyResult:
    """The search result for a family.

    Attributes
    ----------
    family : Family
        The family.
    best : SizedLayout or None
        The cheapest layout that is safe enough; None if there is none.
    miss : SizedLayout or None
        The next smaller layout; without a safe one the layout with the lowest risk. None if it is safe, or none is
        possible.
    refused : Refusal or None
        Why no layout serves; None if some does.
    solved : int
        How many layouts were solved.
    relations : dict
        Simulated over analytic latencies that its figures rest on, by situation.
    at_confidences : mapping
        The cheapest layout at each confidence that was asked for, with the same draws; None where there is none.
    """

    family: Family
    best: SizedLayout | None
    miss: SizedLayout | None
    refused: Refusal | None
    solved: int
    relations: Simulated = field(default_factory=dict)
    at_confidences: Mapping[float, Candidate | None] = field(default_factory=dict)


CONFIDENCES = (0.5, 0.8, 0.9, 0.95)
"""Confidences whose cost is compared."""


def best_of(
    target: SizingTarget,
    family: Family,
    engine: JudgingEngine,
    confidences: Sequence[float] = (),
) -> FamilyResult:
    """Find the cheapest safe layout of a family.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    family : Family
        The layouts to choose from.
    engine : str
        `compiled` confirms the layout by simulation; `analytic` does not.
    confidences : sequence of float
        Other confidences whose cheapest layouts are wanted, too.
    """
    search = search_of(target, family)
    best, relations = confirmed(search, search.cheapest(), engine)
    sizes = _Sizes(search, relations)
    chosen = None if best is None else sizes.at(best.numbers)
    if best is None:
        nearest = search.nearest()
        miss = None if nearest is None else sizes.at(nearest.numbers)
    else:
        first, *others = best.numbers
        miss = sizes.at((first - 1, *others))
    refused = None if search.refused is None else Refusal(family.fixed, *search.refused)
    miss = None if miss is None or miss.safe else miss
    compared = {} if best is None else {each: search.cheapest_at(each, best, relations) for each in confidences}
    return FamilyResult(family, chosen, miss, refused, len(search.evaluated), relations, compared)


def would_help(target: SizingTarget, results: Sequence[FamilyResult]) -> dict[str, str]:
    """Return, by field, changes outside the families that would make the nearest or largest layout safe.

    Tried are more machines of each kind, one data centre more, and the local level for writes and for reads. Where no
    layout of a family serves at all, its largest may be too far from the tests: then smaller ones are tried, too.
    """
    misses = [(each.miss, each.family) for each in results if each.miss is not None]
    miss, family = max(misses, key=lambda each: each[0].held_tps, default=(None, results[0].family))
    most, found = {**family.fixed, **{name: high for name, (_, high) in family.sized.items()}}, dict[str, str]()
    fields = most if miss is None else miss.fields
    try:
        base, own = changed(target.base, **fields), target.in_cells(family.cells)
    except InputError:  # the largest layout is invalid, such as with more replicas than nodes
        return {}

    def helps(**fields: Any) -> bool:
        if _is_safe(own, base, **fields):
            return True
        tried = replace(family, fixed={**family.fixed, **fields})
        return miss is None and Search(own, tried).serves()

    for name, (_, high) in family.sized.items():
        more = [high * factor for factor in (2, 4, 8)]
        enough = next((number for number in more if _is_safe(own, base, **{name: number})), None)
        if enough is not None:
            found[name] = f"{high}..{enough}"
    if "dcs" in family.fixed and helps(dcs=(dcs := family.fixed["dcs"] + 1)):
        found["dcs"] = str(dcs)
    for name in ("consistency_write", "consistency_read"):
        if getattr(base, name, _LOCAL) not in (_LOCAL, "LOCAL_ONE", "ONE") and helps(**{name: _LOCAL}):
            found[name] = _LOCAL
    return found


def _is_safe(target: SizingTarget, base: Scenario, **fields: Any) -> bool:
    """Return whether a layout is safe enough; False if it is invalid."""
    search = Search(replace(target, base=base), Family(fields, {}))
    return not search.hopeless(()) and search.safe(search.at(()))


def search_of(target: SizingTarget, family: Family) -> Search:
    """Return a search among a family's layouts in its cells."""
    return Search(target.in_cells(family.cells), family)


def confirmed(search: Search, best: Candidate | None, engine: JudgingEngine) -> tuple[Candidate | None, Simulated]:
    """Return the cheapest safe layout near the best of a search, and the simulated latencies that it rests on.

    The layout is simulated, and the search repeated with its latencies, until it stays the same, four times at most.
    With `analytic`, and for a question without objectives, the best is returned as it is.
    """
    relations: Simulated = {}
    if best is None or engine == "analytic" or not search.target.base.slo:
        return best, relations
    for _ in range(_ROUNDS):
        relations = simulated(search.target, best.scenario)
        again = search.cheapest_near(best, relations)
        if again is None or again.numbers == best.numbers:
            return again, relations
        best = again
    return best, relations


def simulated(target: SizingTarget, scenario: Scenario) -> Simulated:
    """Return a layout's simulated-to-analytic latency relations at the target's rate, by word of the conditions."""
    return {word: strain.simulated(target.seed) for word, strain in target.strains(scenario).items()}


def sized(target: SizingTarget, family: Family, numbers: Numbers, relations: Simulated) -> SizedLayout | None:
    """Return a layout of a family with its final figures under all conditions of a target; None if it is invalid."""
    return _Sizes(Search(target, family), relations).at(numbers)


class _Sizes:
    """A family's layouts with their figures over all draws."""

    def __init__(self, search: Search, relations: Simulated) -> None:
        self.search, self.target, self.family, self.relations = search, search.target, search.family, relations
        self.system, self.disks = system(self.target.base.system), search.disks

    def at(self, numbers: Numbers) -> SizedLayout | None:
        """Return a layout with its figures; None if it is invalid."""
        layout = self.search.strains(numbers)
        if isinstance(layout, str):
            return None
        scenario, every = layout
        loads = nodes_of(every)
        load = loads.get(NORMAL)
        safety = (*(self._safety(each) for each in every.values()), *self._data(scenario), *self._limited(loads))
        need = None if self.disks is None else self.disks.need_gib(scenario, self.family.cells)
        return SizedLayout(
            layout=self.system.layout(scenario, self.system.values(self.target.fitted, scenario)),
            fields=self.family.fields(numbers),
            machines={
                kind: self.family.cells * count
                for kind, count in self.system.component(Machines).counts(scenario).items()
            },
            shapes=self.family.shapes,
            cells=self.family.cells,
            cost=self.family.cost(scenario),
            safe=all(each.risk <= self.target.accepted_risk for each in safety),
            safety=safety,
            confirmed=any(self.relations.values()),
            disk_gib_per_node=None if need is None else -at_confidence(-need, self.target.confidence),
            months_of_data=None if self.disks is None else self.disks.months(scenario, self.family.cells),
            node=None if load is None else node_needs(load),
        )

    def _limited(self, loads: Mapping[str, NodeLoad]) -> Iterator[Safety]:
        """Yield the safety of what else nodes have."""
        of_demand = self.disks is not None and self.disks.volume is not None
        for each in (one for one in limited(loads) if not (of_demand and one.conditions == DATA)):
            rates = self.target.offered_per_s * self.family.cells * each.times
            yield Safety(
                conditions=each.conditions,
                risk=each.risk,
                held_tps=steady(at_confidence(rates, self.target.confidence)),
                capacity_tps=band_of_rates(rates),
                reached_ms={},
                limit=each.limit,
                bottleneck=each.name,
                guessed=False,
            )

    def _data(self, scenario: Scenario) -> Iterator[Safety]:
        """Yield the safety of the disks if the target has data to store."""
        disks, cells = self.disks, self.family.cells
        need = None if disks is None else disks.need_gib(scenario, cells)
        if disks is None or disks.disk_gib is None or need is None:
            return
        rates = self.target.offered_per_s * cells * disks.disk_gib / need
        yield Safety(
            conditions=DATA,
            risk=disks.risk(scenario, cells),
            held_tps=steady(at_confidence(rates, self.target.confidence)),
            capacity_tps=band_of_rates(rates),
            reached_ms={},
            limit=f"{DISK} of {disks.disk_gib:,.0f} GiB",
            bottleneck=DISK,
            guessed=False,
        )

    def _safety(self, strain: Strained) -> Safety:
        bottleneck, confidence = None, self.target.confidence
        relations = self.relations.get(strain.conditions.word, NONE)
        if not strain.why:
            bottleneck = self.system.component(Notes).resource_name(strain.case.scenario, strain.solution.bottleneck)
        rates = self.family.cells * strain.sustained_rates(relations)
        return Safety(
            conditions=strain.conditions.word,
            risk=strain.risk(relations),
            held_tps=steady(self.family.cells * strain.sustained_per_s(confidence, relations)),
            capacity_tps=band_of_rates(rates),
            reached_ms={
                name: None if value is None else steady(value)
                for name, value in strain.reached_ms(confidence, relations).items()
            },
            limit=strain.limit(confidence, relations),
            bottleneck=bottleneck,
            guessed=strain.conditions.guessed,
        )
