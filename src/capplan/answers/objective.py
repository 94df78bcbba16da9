"""Objectives: the grammar of `--slo`, parsed and never evaluated as code.

    objective  = all {"or" all}
    all        = one {"and" one}
    one        = "(" objective ")" | metric relation value | metric "in" value ".." value
    relation   = "<" | "<=" | ">" | ">="
    metric     = class "." ("mean" | "p50" | "p90" | "p95" | "p99" | "p999")       a duration: 20ms
               | resource ".utilisation" | "drop_rate"                             a share: 80% or 0.8
               | resource ".busy_workers"                                          a number
               | "capacity"                                                        a rate: 7000, 7000/s

Figures and bounds are SI: seconds, per second, shares from 0 to 1.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from capplan.answers.results import STATISTICS, Band, ComparedFigure, ObjectiveVerdict, Parts
from capplan.answers.verdict import answer
from capplan.errors import InputError, nearest, one_of
from capplan.models.language.units import parse_duration_s, parse_rate_per_s, parse_share

MetricKind = Literal["duration", "share", "number", "rate"]
Comparator = Literal["<", "<=", ">", ">=", "in"]

_ALONE: dict[str, MetricKind] = {"capacity": "rate", "drop_rate": "share"}
_OF_RESOURCE: dict[str, MetricKind] = {"utilisation": "share", "busy_workers": "number"}
_UNITS = {"duration": "ms", "share": "1", "number": "1", "rate": "1/s"}  # of figures in a verdict
_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_TOKEN = re.compile(r"\s*(?:([()])|([<>=!]+)|([^\s()<>=!]+))")
_END = NormalDist().inv_cdf(0.95)  # standard deviations from the middle to an end of a band
_BEYOND_DOUBT = 2.0  # half-widths from the middle: the probability is then 0 or 1 to 0.05 %
_LONGEST = 1000  # characters; an objective is a line, not a program


@dataclass(frozen=True)
class Metric:
    """A figure that an objective can be about; `subject` is a request class, a resource, or empty."""

    subject: str
    statistic: str
    kind: MetricKind

    @property
    def name(self) -> str:
        """The metric as written: `acct.p99`, `capacity`."""
        return ".".join(filter(None, (self.subject, self.statistic)))


Lookup = Callable[[Metric], Band | None]
MetricValues = Callable[[Metric], Any]


@dataclass(frozen=True)
class Comparison:
    """A metric compared with one bound, or two for `in`; bounds are SI."""

    text: str
    metric: Metric
    relation: Comparator
    bounds: tuple[float, ...]

    def holds(self, value: Any) -> Any:
        """Return whether `value` (SI; a number or an array of draws) satisfies the comparison."""
        if self.relation == "in":
            return (self.bounds[0] <= value) & (value <= self.bounds[1])
        return _RELATIONS[self.relation](value, self.bounds[0])

    def holds_throughout(self, band: Band) -> bool | None:
        """Return whether it holds everywhere in `band` (True), nowhere (False), or in part of it (None)."""
        if self.holds(band.low) and self.holds(band.high):
            return True
        if self.relation == "in":
            outside = band.high < self.bounds[0] or band.low > self.bounds[1]
        else:
            outside = not self.holds(band.low if self.relation.startswith("<") else band.high)
        return False if outside else None


@dataclass(frozen=True)
class Combination:
    """Objectives joined by one word."""

    word: Literal["and", "or"]
    parts: tuple[Comparison | Combination, ...]


@dataclass(frozen=True)
class Objective:
    """A parsed objective: its text and the tree of its comparisons."""

    text: str
    root: Comparison | Combination

    def comparisons(self) -> tuple[Comparison, ...]:
        """Return every comparison, in the order of the text."""
        return tuple(_leaves(self.root))

    def metrics(self) -> tuple[Metric, ...]:
        """Return every metric once, in the order of the text."""
        return tuple(dict.fromkeys(each.metric for each in self.comparisons()))

    def holds(self, values: MetricValues) -> Any:
        """Return whether the objective is met; with arrays of draws, for each draw.

        Parameters
        ----------
        values
            Gives the value of a metric, SI: a number or an array.
        """
        return _fold(self.root, lambda each: each.holds(values(each.metric)))

    def met(self, lookup: Lookup) -> bool | None:
        """Return whether the medians meet the objective; None if that depends on a figure that is not modelled."""
        return _three_valued(self.root, lambda each, band: bool(each.holds(band.value)), self._bands(lookup))

    def sure(self, lookup: Lookup) -> bool:
        """Return whether the bands decide the objective: met everywhere or nowhere in them."""
        return _three_valued(self.root, Comparison.holds_throughout, self._bands(lookup)) is not None

    def risk(self, lookup: Lookup) -> float | None:
        """Return the probability of a miss, from bands alone; None if a figure is not modelled.

        Each half of a band counts as that of a normal law. Of several comparisons, the likeliest miss decides: the
        figures of one run are high or low together.
        """
        bands = self._bands(lookup)
        if self.met(lookup) is None:
            return None
        return float(_fold(self.root, lambda each: _Miss(_miss(each, bands[each.metric]))).risk)

    def judged(self, lookup: Lookup, risk: float | None, confidence: float) -> ObjectiveVerdict:
        """Return the verdict on the objective.

        Parameters
        ----------
        lookup
            Gives the band of a metric, SI, or None where it is not modelled.
        risk
            Probability that it is not met; None if no figure decides it.
        confidence
            The confidence that is asked for.
        """
        found = None if risk is None else answer(risk, confidence)
        return ObjectiveVerdict(
            self.text, found, risk, tuple(_compared(each, lookup(each.metric)) for each in self.comparisons())
        )

    def _bands(self, lookup: Lookup) -> dict[Metric, Band | None]:
        return {metric: lookup(metric) for metric in self.metrics()}


def _leaves(node: Comparison | Combination) -> Iterator[Comparison]:
    if isinstance(node, Comparison):
        yield node
    else:
        for part in node.parts:
            yield from _leaves(part)


def _fold(node: Comparison | Combination, judge: Callable[[Comparison], Any]) -> Any:
    """Combine judgements with `&` and `|`, which work for truth values and for arrays of them."""
    if isinstance(node, Comparison):
        return judge(node)
    first, *rest = (_fold(part, judge) for part in node.parts)
    for each in rest:
        first = first & each if node.word == "and" else first | each
    return first


def _three_valued(
    node: Comparison | Combination,
    judge: Callable[[Comparison, Band], bool | None],
    bands: dict[Metric, Band | None],
) -> bool | None:
    """Combine judgements that may be unknown (None) by Kleene's rules: one False decides an `and`, one True an `or`."""
    if isinstance(node, Comparison):
        band = bands[node.metric]
        return None if band is None else judge(node, band)
    found = [_three_valued(part, judge, bands) for part in node.parts]
    decisive = node.word == "or"
    if decisive in found:
        return decisive
    return None if None in found else not decisive


class _Miss(NamedTuple):
    """The risk of missing part of an objective, combined like truth values; NaN (not modelled) decides nothing."""

    risk: float

    def __and__(self, other: _Miss) -> _Miss:
        return other if math.isnan(self.risk) else max(self, other)

    def __or__(self, other: _Miss) -> _Miss:
        return other if math.isnan(self.risk) else min(self, other)


def _miss(comparison: Comparison, band: Band | None) -> float:
    """Return the probability that a comparison fails; NaN if its figure is not modelled."""
    if band is None:
        return math.nan
    below = [chance_of_less(band, bound) for bound in comparison.bounds]
    if comparison.relation == "in":
        return below[0] + 1 - below[1]
    return 1 - below[0] if comparison.relation.startswith("<") else below[0]


def chance_of_less(band: Band, level: float) -> float:
    """Return the probability that a figure is below a level; each half of its band is taken as normal."""
    half = band.high - band.value if level > band.value else band.value - band.low
    if not abs(level - band.value) <= _BEYOND_DOUBT * half < math.inf:
        return float(level > band.value)
    return NormalDist().cdf(_END * (level - band.value) / half) if half else 0.0


def _compared(comparison: Comparison, band: Band | None) -> ComparedFigure:
    metric = comparison.metric
    shown = scaled(band, 1e3) if band is not None and metric.kind == "duration" else band
    return ComparedFigure(comparison.text, metric.name, _UNITS[metric.kind], _bare(shown))


def _bare(band: Band | None) -> Band | None:
    return None if band is None else Band(band.value, band.low, band.high, band.parts, band.basis)


def scaled(band: Band, factor: float) -> Band:
    """Return the band in another unit."""
    widths = {name: None if part is None else part * factor for name, part in vars(band.parts).items()}
    return replace(
        band, value=band.value * factor, low=band.low * factor, high=band.high * factor, parts=Parts(**widths)
    )


def parse(text: str, classes: Collection[str] = (), resources: Collection[str] = ()) -> Objective:
    """Read an objective such as `acct.p99<20ms and drop_rate<0.1%`.

    Parameters
    ----------
    text
        The objective, in the grammar of this module.
    classes, resources
        The request classes and resources of the system; any name is taken where none are given.

    Raises
    ------
    InputError
        When the text breaks the grammar, a name is unknown, or a value is not of its metric's kind.
    """
    if len(text) > _LONGEST:
        raise InputError(f"an objective of {len(text)} characters is too long: at most {_LONGEST}")
    try:
        return Objective(text.strip(), _Reader(text, classes, resources).whole())
    except RecursionError:
        raise InputError("an objective is nested too deeply: remove parentheses") from None
    except InputError as error:
        raise InputError(f"objective {text!r}: {error}") from None


class _Reader:
    """Reads tokens from left to right, one method a rule of the grammar."""

    def __init__(self, text: str, classes: Collection[str], resources: Collection[str]) -> None:
        self.tokens: list[str] = [match[match.lastindex or 0] for match in _TOKEN.finditer(text)]
        self.classes, self.resources = classes, resources
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Return a token without taking it; empty at the end."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else ""

    def take(self) -> str:
        """Return the next token and go on."""
        self.at += 1
        return self.tokens[self.at - 1]

    def whole(self) -> Comparison | Combination:
        """Read all of the text."""
        if not self.tokens:
            raise InputError("it is empty: give a comparison, such as 'acct.p99<20ms'")
        found = self.joined("or")
        if self.peek():
            raise InputError(f"{self.peek()!r} has no matching parenthesis: remove it")
        return found

    def joined(self, word: Literal["and", "or"]) -> Comparison | Combination:
        """Read parts joined by `word`."""
        parts = [self.part(word)]
        while self.peek().casefold() == word:
            self.take()
            parts.append(self.part(word))
        return parts[0] if len(parts) == 1 else Combination(word, tuple(parts))

    def part(self, word: Literal["and", "or"]) -> Comparison | Combination:
        """Read one operand of `word`; `and` binds closer than `or`."""
        if word == "or":
            return self.joined("and")
        if self.peek() != "(":
            return self.comparison()
        self.take()
        found = self.joined("or")
        if self.peek() != ")":
            raise InputError("a parenthesis is not closed: add ')' after its last comparison")
        self.take()
        return found

    def comparison(self) -> Comparison:
        """Read a metric, a relation and a value."""
        if not self.peek() or self.peek() == ")" or self.peek().casefold() in ("and", "or"):
            raise InputError(
                f"a comparison is missing before {self.peek() or 'the end'!r}: give one, such as 'acct.p99<20ms'"
            )
        metric = _metric(self.take(), self.classes, self.resources)
        relation = self.relation(metric)
        written = self.value(f"{metric.name}{relation}")
        spaced = f" {relation} " if relation == "in" else relation
        return Comparison(f"{metric.name}{spaced}{written}", metric, relation, _bounds(written, metric, relation))

    def relation(self, metric: Metric) -> Comparator:
        """Read a relation."""
        token = self.take().casefold() if self.peek() else "the end"
        for known in ("<", "<=", ">", ">=", "in"):
            if token == known:
                return known
        raise InputError(f"{token!r} after {metric.name!r} is not a comparison: use one of <, <=, >, >=, in")

    def value(self, before: str) -> str:
        """Read the words up to the next `and`, `or`, parenthesis or end."""
        words: list[str] = []
        while self.peek() and self.peek() not in "()" and self.peek().casefold() not in ("and", "or"):
            if self.peek(1) in _RELATIONS and words:
                raise InputError(f"'and' or 'or' is missing before {self.peek()!r}")
            words.append(self.take())
        if not words or self.peek() == "(":
            raise InputError(f"a value is missing after {before!r}: give one, such as 20ms, 80% or 7000")
        return " ".join(words)


def _metric(name: str, classes: Collection[str], resources: Collection[str]) -> Metric:
    if name in _ALONE:
        return Metric("", name, _ALONE[name])
    if name[0].isdigit():
        raise InputError(f"{name!r} is not a metric: put the metric first, such as 'acct.p99<20ms'")
    subject, dot, statistic = name.partition(".")
    statistic = "p999" if statistic == "p99.9" else statistic
    if not dot or not subject:
        raise InputError(f"{name!r} is not a metric{nearest(name, _known_metrics(classes, resources))}")
    if statistic in STATISTICS:
        _check_subject(subject, classes, "request class", resources)
        return Metric(subject, statistic, "duration")
    if statistic in _OF_RESOURCE:
        _check_subject(subject, resources, "resource", classes)
        return Metric(subject, statistic, _OF_RESOURCE[statistic])
    known = STATISTICS if subject in classes else tuple(_OF_RESOURCE) if subject in resources else ()
    close = nearest(statistic, known or (*STATISTICS, *_OF_RESOURCE))
    raise InputError(f"{statistic!r} in {name!r} is not a statistic{close}")


def _check_subject(subject: str, known: Collection[str], what: str, others: Collection[str]) -> None:
    if known:
        one_of(known, subject, f"{subject!r} is not a {what}")
    if not known and subject in others:
        raise InputError(f"{subject!r} is not a {what}")


def _known_metrics(classes: Collection[str], resources: Collection[str]) -> list[str]:
    latencies = [f"{name}.{statistic}" for name in classes or ("CLASS",) for statistic in STATISTICS]
    of_resources = [f"{name}.{statistic}" for name in resources or ("RESOURCE",) for statistic in _OF_RESOURCE]
    return [*_ALONE, *latencies, *of_resources]


def _bounds(text: str, metric: Metric, relation: Comparator) -> tuple[float, ...]:
    if relation != "in":
        return (_value(text, metric),)
    low, dots, high = text.partition("..")
    if not dots:
        raise InputError(f"{text!r} is not a range: give both ends, such as '5ms..20ms'")
    bounds = (_value(low.strip(), metric), _value(high.strip(), metric))
    if bounds[0] > bounds[1]:
        raise InputError(f"{text!r} is not a range: the first end must not exceed the second")
    return bounds


def _value(text: str, metric: Metric) -> float:
    """Read a value of the metric's kind, SI."""
    readers = {"duration": _duration_s, "share": parse_share, "number": _number, "rate": parse_rate_per_s}
    found = readers[metric.kind](text)
    if not 0 <= found < math.inf:
        raise InputError(f"{text!r} is not a {metric.kind}: give a finite number of at least 0")
    return found


def _duration_s(text: str) -> float:
    if re.fullmatch(r"[\d.]+", text):
        raise InputError(f"{text!r} is not a duration: it needs a unit, such as '{text}ms'")
    return parse_duration_s(text, "ms")


def _number(text: str) -> float:
    if not re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text):
        raise InputError(f"{text!r} is not a number: write digits, such as '32'")
    return float(text)
