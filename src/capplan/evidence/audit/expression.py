"""Arithmetic over documented figures: a small grammar for the expected and found values of an audit.

=============================== ======================================================================================
`[ts3.incoming]`                the row of that id, with the interval of its rounding
`[r1.none.c*]`, `[a, b, c]`     several rows, in the order of the table; in the order given
`[ts3.incoming].dcs`            a cell of a row: a count of its layout, or a key of its `layout` column
`+ - * / **`, `( )`, numbers    interval arithmetic; a power takes plain numbers only
`name`                          a definition of the audit (`let`)
`function(...)`                 one of `FUNCTIONS`, or a function that the audit brings
=============================== ======================================================================================

Nothing else is accepted. An expression is parsed, never run as Python.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TypeAlias

from capplan.evidence.audit.finding import at_least, at_most, shown
from capplan.evidence.interval import Interval
from capplan.evidence.table import PERCENTILES, Evidence
from capplan.models.errors import InputError, look_up, nearest, one_of

Number: TypeAlias = Interval | float
_SHOWN_IN = ("1", "s", "1/s", "B")


@dataclass(frozen=True)
class Figure:
    """A number, the rows that it comes from, and its printed text if that is not the number itself."""

    number: Number
    rows: tuple[Evidence, ...] = ()
    text: str = ""

    @property
    def interval(self) -> Interval:
        """The number as an interval; a plain number is exact.

        Raises
        ------
        InputError
            If the figure is words.
        """
        if math.isnan(self.number.value if isinstance(self.number, Interval) else self.number):
            raise InputError(f"{self.text!r} is no number")
        return self.number if isinstance(self.number, Interval) else Interval.exactly(self.number)

    @property
    def value(self) -> float:
        """The number without its rounding."""
        return self.interval.value


Group: TypeAlias = tuple[Figure, ...]
Function: TypeAlias = Callable[..., Number | Figure]


@dataclass(frozen=True)
class Names:
    """The meaning of the names in an expression.

    Attributes
    ----------
    rows : mapping
        Rows of evidence by id.
    let : mapping
        Definitions: expressions by name.
    functions : mapping
        Functions by name; they take figures and groups of figures.
    values : mapping
        Figures and groups that have been computed, by name.
    """

    rows: Mapping[str, Evidence]
    let: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    values: Mapping[str, Figure | Group] = field(default_factory=dict)


def evaluate(text: str, scope: Names) -> Figure | Group:
    """Compute an expression.

    Raises
    ------
    InputError
        If `text` is not an expression, or names what `scope` does not have.
    """
    references: list[str] = []

    def name_of(match: re.Match[str]) -> str:
        references.append(match[1])
        return f" _{len(references) - 1} "

    plain = re.sub(r"\[([^\[\]]*)\]", name_of, text)
    try:
        tree = ast.parse(plain.strip(), mode="eval")
        found = {f"_{number}": _rows(each, scope.rows) for number, each in enumerate(references)}
        return _value(tree.body, replace(scope, values={**scope.values, **found}))
    except (SyntaxError, RecursionError):
        raise InputError(f"{text!r} is not an expression that an audit can compute") from None
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise InputError(f"{text!r} has no value: {error}") from None


def figure(text: str, scope: Names) -> Figure:
    """Compute an expression that stands for one figure; raise `InputError` where it stands for several."""
    found = evaluate(text, scope)
    if not isinstance(found, Figure):
        raise InputError(f"{text!r} must be one figure: it is {len(found)} figures")
    return found


def fill(sentence: str, scope: Names) -> str:
    """Fill in the expressions between the braces of a sentence.

    A row prints as its document writes it. What follows a colon is an SI unit, in which an interval is shown, or the
    format of a plain number.

    Raises
    ------
    InputError
        If an expression cannot be computed, or a brace or a format is wrong.
    """
    parts: list[str] = []
    try:
        for text, expression, form, _ in string.Formatter().parse(sentence):
            parts.append(text)
            if expression is not None:
                parts.append(_printed(figure(expression, scope), form or ""))
    except ValueError as error:  # a brace that is not closed, an unknown format
        raise InputError(f"the sentence {sentence!r} cannot be filled in: {error}") from None
    return "".join(parts)


def _printed(found: Figure, form: str) -> str:
    if found.text and not form:
        return found.text
    if form in ("", *_SHOWN_IN):
        return shown(found.interval, form or "1")
    return format(found.value, form)


def _rows(reference: str, rows: Mapping[str, Evidence]) -> Figure | Group:
    """Return the row or rows that a reference in brackets names."""
    if "*" not in reference and "," not in reference:
        return _row(reference.strip(), rows)
    found: list[Figure] = []
    for name in (part.strip() for part in reference.split(",")):
        ids = [each for each in rows if fnmatchcase(each, name)] if "*" in name else [name]
        if not ids:
            raise InputError(f"no row of evidence has an id like {name!r}")
        found += [_row(each, rows) for each in ids]
    return tuple(found)


def _row(name: str, rows: Mapping[str, Evidence]) -> Figure:
    row = look_up(rows, name, f"{name!r} is not the id of a row of evidence")
    return Figure(row.interval, (row,), row.written)


def _value(node: ast.expr, scope: Names) -> Figure | Group:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Figure(float(number))
        case ast.Name(id=name):
            return _named(name, scope)
        case ast.Attribute(value=inner, attr=name):
            return _cell(_one(inner, scope), name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _combine(operator.mul, Figure(-1.0), _one(inner, scope))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _combine(_OPERATORS[type(sign)], _one(left, scope), _one(right, scope))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, [_value(each, scope) for each in arguments], scope)
    raise InputError(f"{ast.unparse(node)!r} is not allowed in an expression of an audit")


def _one(node: ast.expr, scope: Names) -> Figure:
    found = _value(node, scope)
    if not isinstance(found, Figure):
        raise InputError(f"{ast.unparse(node)!r} must be one figure: it is {len(found)} figures")
    return found


def _named(name: str, scope: Names) -> Figure | Group:
    if name in scope.values:
        return scope.values[name]
    if name not in scope.let:
        raise InputError(f"{name!r} is not defined{nearest(name, [*scope.let, *scope.values])}")
    others = {each: text for each, text in scope.let.items() if each != name}  # a definition cannot use itself
    return evaluate(scope.let[name], replace(scope, let=others))


def _cell(found: Figure, name: str) -> Figure:
    """Return a cell of the row that `found` comes from."""
    if len(found.rows) != 1:
        raise InputError(f"{name!r} must be asked of one row of evidence: the figure comes from {len(found.rows)}")
    (row,) = found.rows
    cells = {each: getattr(row, each) for each in ("dcs", "front_nodes", "cass_nodes", "rf")}
    cells = {each: str(count) for each, count in cells.items() if count is not None} | dict(row.layout)
    one_of(cells, name, f"the layout of row {row.id!r} has no {name!r}")
    try:
        number = float(cells[name])
    except ValueError:
        number = math.nan
    return Figure(number, found.rows, cells[name])


_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def _combine(apply: Callable[..., Number], left: Figure, right: Figure) -> Figure:
    rows = _union(left, right)
    if not isinstance(left.number, Interval) and not isinstance(right.number, Interval):
        return Figure(apply(left.value, right.value), rows)
    if apply is math.pow:
        raise InputError("a power takes plain numbers: write printed(...) to leave the rounding out")
    return Figure(apply(left.interval, right.interval), rows)


def _call(name: str, arguments: list[Figure | Group], scope: Names) -> Figure:
    function = look_up({**FUNCTIONS, **scope.functions}, name, f"{name!r} is not a function of audits")
    try:
        found = function(*arguments)
    except (TypeError, AttributeError):
        raise InputError(f"{name!r} cannot take these {len(arguments)} arguments") from None
    return found if isinstance(found, Figure) else Figure(found, _union(*_flat(arguments)))


def _flat(arguments: list[Figure | Group]) -> Group:
    return tuple(each for one in arguments for each in ((one,) if isinstance(one, Figure) else one))


def _union(*figures: Figure) -> tuple[Evidence, ...]:
    return tuple({row.id: row for each in figures for row in each.rows}.values())


def _total(group: Group) -> Number:
    first, *others = group
    total = first.number
    for each in others:
        total = _combine(operator.add, Figure(total), each).number
    return total


def _mean(group: Group) -> Number:
    return Interval.exactly(1 / len(group)) * Figure(_total(group)).interval


def _mean_from_percentiles(*percentiles: Figure) -> Interval:
    """Return bounds of a mean time from the percentiles p50, p75, p90, p95, p99 and the maximum.

    Between two percentiles every time is at least the lower and at most the higher; `value` is half way.
    """
    shares = [0.0, *PERCENTILES.values(), 1.0]
    points = [Interval.exactly(0.0), *(each.interval for each in percentiles)]
    steps = [(high - low, below, above) for (low, below), (high, above) in pairwise(zip(shares, points, strict=True))]
    least = sum(share * below.low for share, below, _ in steps)
    most = sum(share * above.high for share, _, above in steps)
    return Interval((least + most) / 2, least, most)


def _between(first: Figure, last: Figure) -> Interval:
    low, high = first.interval, last.interval
    return Interval((low.value + high.value) / 2, low.low, high.high)


def _period(rate: Figure) -> Interval:
    """Return the mean time between events at a rate; unbounded where the rate may be zero."""
    fast, slow = rate.interval.high, rate.interval.low
    return Interval(*(1 / each if each > 0 else math.inf for each in (rate.value, fast, slow)))


def _differing(group: Group, others: Group) -> float:
    return float(sum(one.value != other.value for one, other in zip(group, others, strict=True)))


FUNCTIONS: Mapping[str, Function] = {
    "at_least": lambda found: at_least(found.interval),
    "at_most": lambda found: at_most(found.interval),
    "printed": lambda found: found.value,  # the rounding left out
    "low": lambda found: found.interval.low,
    "high": lambda found: found.interval.high,
    "interval": lambda value, low, high: Interval(value.value, low.value, high.value),
    "between": _between,
    "log": lambda found: math.log(found.value),
    "period": _period,
    "mean_from_percentiles": _mean_from_percentiles,
    "sum": _total,
    "mean": _mean,
    "highest": lambda group: max(group, key=lambda each: each.value),
    "lowest": lambda group: min(group, key=lambda each: each.value),
    "count": lambda group: float(len(group)),
    "count_above": lambda group, bound: float(sum(each.interval.low > bound.value for each in group)),
    "count_below": lambda group, bound: float(sum(each.interval.high < bound.value for each in group)),
    "differing": _differing,
}
