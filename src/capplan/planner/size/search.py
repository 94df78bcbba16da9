"""The search for the cheapest layout of a family: one that differs from its siblings in numbers of machines only.

More machines carry more, but the bands grow with the distance from the measured layouts. So a search follows the risk,
not the capacity: it brackets the smallest number of the first kind of machine that is safe enough, and adds machines of
the other kinds while that lets it remove some.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import Case
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.predict.sustained_rate import Relations
from capplan.planner.situations.conditions import Conditions
from capplan.planner.situations.sustained import NONE, Strains, strained
from capplan.planner.size.disks import Disks
from capplan.planner.size.prices import Prices

FEW_DRAWS = 16
"""Representative draws of the search: risks up to 0.3 are within 0.02 of those with all 512, higher ones 0.05."""
_HELPS = 0.003  # of the risk: what a machine more must improve
_COARSE = 1.5  # times fewer machines: the next size that is tried while none is safe
_FARTHEST = 4.0  # standard deviations: what a risk of 0 or 1 counts as


@dataclass(frozen=True)
class SizingTarget:
    """What a layout must do.

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
        """Highest probability that the objectives are not met."""
        return 1 - self.confidence

    def in_cells(self, cells: int) -> SizingTarget:
        """Return what one of several equal cells must do."""
        return replace(self, offered_per_s=self.offered_per_s / cells)

    def case(self, scenario: Scenario, draws: int | None = None) -> Case[Any]:
        """Return the case of a layout at the rate of the target; with all draws unless told otherwise."""
        from capplan.systems.registry import resolve  # reads the systems

        return replace(resolve(scenario, self.fitted, self.seed), draws=draws).at(self.offered_per_s)

    def strains(self, scenario: Scenario, draws: int | None) -> Strains:
        """Return a layout under all conditions."""
        return strained(self.case(scenario, draws), self.conditions, self.offered_per_s)


@dataclass(frozen=True)
class Family:
    """Layouts that differ in numbers of machines.

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
        """Return the data that must fit, with the disks of the family."""
        disks = target.disks
        return disks if disks is None or self.disk_gib is None else replace(disks, disk_gib=self.disk_gib)

    @property
    def layouts(self) -> int:
        """How many there are."""
        return math.prod(high - low + 1 for low, high in self.sized.values())

    @property
    def first(self) -> tuple[int, int]:
        """The range of the first kind of machine."""
        return next(iter(self.sized.values()))

    @property
    def others(self) -> list[tuple[int, int]]:
        """The ranges of the other kinds."""
        return list(self.sized.values())[1:]

    def fields(self, numbers: Sequence[int]) -> dict[str, Any]:
        """Return the fields of a layout."""
        return {**self.fixed, **dict(zip(self.sized, numbers, strict=True))}

    def cost(self, scenario: Scenario) -> float:
        """Return what the machines of all cells cost."""
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
    """A search in a family; it remembers every layout that it has solved.

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
        self.solved = 0  # layouts

    @property
    def refused(self) -> tuple[str, str] | None:
        """Conditions and reason for which the largest layout is none, or fails; None if some layout serves."""
        if self.solved or not self.seen:
            return None
        largest = self.seen[max(self.seen)]
        return ("", largest) if isinstance(largest, str) else (largest.unavailable or None)

    def safe(self, found: Candidate | str) -> bool:
        """Whether a layout is safe enough."""
        return isinstance(found, Candidate) and found.risk <= self.target.accepted_risk

    def cheapest(self) -> Candidate | None:
        """Return the cheapest layout that is safe enough; None if there is none."""
        best: Candidate | None = None
        for others in itertools.product(*(range(low, high + 1) for low, high in self.family.others)):
            found = self._cheapest_with(others, best)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
            elif not self._helps(others, best):
                break
        return best

    def cheapest_near(self, start: Candidate, relations: Simulated) -> Candidate | None:
        """Return the same with simulated latencies, and with as many machines of the other kinds as `start` has."""
        self.relations, self.seen = relations, {}
        number, *others = start.numbers
        step, (low, high) = 1, self.family.first
        if not self.safe(self.at(start.numbers)):
            while number < high and not self.safe(self.at((number, *others))):
                low, number, step = number + 1, min(number + step, high), 2 * step
        else:
            while number > low and self.safe(self.at((max(number - step, low), *others))):
                number, step = max(number - step, low), 2 * step
            low = max(low, number - step + 1)
        return self._bisected(low, number, tuple(others))

    def nearest(self) -> Candidate | None:
        """Return the layout with the lowest risk of those that are not safe enough; of equal ones the cheapest."""
        known = (each for each in self.seen.values() if isinstance(each, Candidate) and not each.unavailable)
        unsafe = [each for each in known if not self.safe(each)]
        return min(unsafe, key=lambda each: (each.risk, each.cost), default=None)

    def at(self, numbers: Numbers) -> Candidate | str:
        """Return a layout with its risk, or why it is none."""
        if numbers not in self.seen:
            self.seen[numbers] = self._solved(numbers)
        return self.seen[numbers]

    def _helps(self, others: Numbers, best: Candidate | None) -> bool:
        """Whether a machine more of the other kinds lowers the risk of the layout just below."""
        if not others:
            return False
        number = self.family.first[1] if best is None else max(best.numbers[0] - 1, self.family.first[0])
        more = tuple(min(value + 1, high) for value, (_, high) in zip(others, self.family.others, strict=True))
        now, then = self.at((number, *others)), self.at((number, *more))
        if isinstance(now, str) or isinstance(then, str):
            return True  # not a layout yet
        if more == others:
            return False
        return then.risk < now.risk - _HELPS

    def _cheapest_with(self, others: Numbers, best: Candidate | None) -> Candidate | None:
        """Return the cheapest safe layout with some numbers of the other machines, if it is cheaper than `best`."""
        low, high = self.family.first
        while high > low and best is not None and self._cost((high, *others)) >= best.cost:
            high -= 1
        return self._bisected(low, high, others)

    def _bisected(self, low: int, high: int, others: Numbers) -> Candidate | None:
        """Return the safe layout with the fewest machines of the first kind; None if there is none."""
        top = self._safest(low, high, others)
        if top is None:
            return None
        high = top.numbers[0]
        while low < high:
            number = self._between(low, high, others)
            found = self.at((number, *others))
            if not isinstance(found, str) and self.safe(found):
                high, top = number, found
            else:
                low = number + 1
        return top

    def _safest(self, low: int, high: int, others: Numbers) -> Candidate | None:
        """Return a safe layout with as many machines of the first kind as possible; None if there is none.

        Far outside the load tests the bands grow faster than the capacity, so the largest layout need not be the
        safest: fewer machines are tried as long as that lowers the risk.
        """
        number, lowest = high, math.inf
        while number >= low:
            found = self.at((number, *others))
            if isinstance(found, str) or found.risk > lowest:
                return None
            if self.safe(found):
                return found
            number, lowest = int(number / _COARSE), found.risk
        return None

    def _between(self, low: int, high: int, others: Numbers) -> int:
        """Return a number in [low, high): by the risks around it where both are known, else their geometric mean."""
        middle = int(math.sqrt(low * high))
        below, above = self.seen.get((low - 1, *others)), self.seen.get((high, *others))
        if isinstance(below, Candidate) and isinstance(above, Candidate) and high - low > 2:
            ends = [_score(below.risk), _score(above.risk)]
            if ends[0] > ends[1]:
                share = (ends[0] - _score(self.target.accepted_risk)) / (ends[0] - ends[1])
                logs = math.log(low) + min(max(share, 0.05), 0.95) * (math.log(high) - math.log(low))
                middle = round(math.exp(logs))
        return min(max(middle, low), high - 1)

    def _cost(self, numbers: Numbers) -> float:
        found = self._layout(numbers)
        return 0.0 if isinstance(found, str) else self.family.cost(found[0])

    def _layout(self, numbers: Numbers) -> tuple[Scenario, Strains] | str:
        if numbers not in self.layouts:
            try:
                scenario = changed(self.target.base, **self.family.fields(numbers))
                self.layouts[numbers] = (scenario, self.target.strains(scenario, FEW_DRAWS))
            except InputError as error:
                self.layouts[numbers] = str(error).removeprefix(f"{type(self.target.base).__name__}: ")
        return self.layouts[numbers]

    def _solved(self, numbers: Numbers) -> Candidate | str:
        layout = self._layout(numbers)
        if isinstance(layout, str):
            return layout
        scenario, every = layout
        cost, highest = self.family.cost(scenario), 0.0
        for word, strain in every.items():  # that costs nothing to know
            if strain.why:
                return Candidate(numbers, scenario, cost, 1.0, (word, strain.why))
        if self.disks is not None:
            highest = self.disks.risk(scenario, self.family.cells)
            if highest > self.target.accepted_risk:
                return Candidate(numbers, scenario, cost, highest)
        self.solved += not self.relations
        for word in list(self.order):
            highest = max(highest, every[word].risk(self.relations.get(word, NONE)))
            if highest > self.target.accepted_risk:  # what refused the last one is asked first of the next
                self.order.remove(word)
                self.order.insert(0, word)
                break
        return Candidate(numbers, scenario, cost, highest)


def _score(risk: float) -> float:
    return float(np.clip(ndtri(risk), -_FARTHEST, _FARTHEST))
