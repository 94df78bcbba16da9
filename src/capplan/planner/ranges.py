"""Values of a swept option: one value, a list or a range, each written like the option itself.

    values = item {"," item}
    item   = value | value ".." value [":" step]

A range includes both ends, as far as steps reach them. Whole numbers step by one if no step is given. Values and steps
carry the units that the option knows: `1ms..9ms:2ms`, `10%..95%:5%`, `10k..20k:2k`.

A comma separates values; a semicolon does where a value contains commas, such as `auth=1,acct=7`. Three digits after a
comma that begin with 0 are no value, so `10,000` is ten thousand; `1,500` may be one rate or two, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args, get_type_hints

from capplan.errors import InputError
from capplan.models.language.per_dc import SEPARATOR, is_per_dc
from capplan.models.language.scenario import Option, Scenario, options_of
from capplan.models.language.units import parse_count, parse_duration_s, parse_length_m, parse_rate_per_s

MAX_POINTS = 100_000  # of a sweep: more is a typing error, or a job for several calls
_YES, _NO = ("yes", "true", "on"), ("no", "false", "off")


@dataclass(frozen=True)
class ValueType:
    """The notation of an option's values.

    Attributes
    ----------
    read : function
        Reads one value; raises `InputError`. Numbers are fractions, so that a range has no rounding errors.
    give : function
        Turns what was read into the value of the option.
    step : Fraction or None
        The step of a range without one; None: a range must have one.
    example : str
        A range, for messages; empty if values have no order.
    large : bool
        Whether values are often thousands, so that a comma in them may separate either.
    separator : str
        What separates values.
    uncertain : bool
        Whether a range without a step is one value, of which only the ends are known.
    """

    read: Callable[[str], Any]
    give: Callable[[Any], Any]
    step: Fraction | None = None
    example: str = ""
    large: bool = False
    separator: str = ","
    uncertain: bool = False


def parse_values(text: str, its: ValueType) -> tuple[Any, ...]:
    """Read the values of a swept option, without duplicates, in the order of the text.

    Raises
    ------
    InputError
        When a value cannot be read, a range goes down or does not end, or there are too many values.
    """
    found: dict[Any, None] = {}
    for item in (_without_thousands(text, its.large) if its.example else text).split(its.separator):
        if not item.strip():
            raise InputError(f"{text!r} has a comma too many: write values such as {its.example or 'A,B'!r}")
        for value in _item(item.strip(), its):
            found[its.give(value)] = None
            if len(found) > MAX_POINTS:
                raise InputError(f"{text!r} has more than {MAX_POINTS:,} values: take larger steps")
    return tuple(found)


_THOUSANDS = re.compile(r"(?<!\w)(?<!\d\.)\d{1,3}(?:,\d{3})+(?!\d)")


_ONE_OR_TWO = re.compile(r"\d{1,2},\d{3}")


def _without_thousands(text: str, large: bool) -> str:
    """Return a list of numbers without separators of thousands."""
    if not re.search(r"\d,0\d\d(?!\d)", text) and not (large and _ONE_OR_TWO.fullmatch(text.strip())):
        return text

    def joined(match: re.Match[str]) -> str:
        first, *others = match[0].split(",")
        whole = "".join((first, *others))
        if all(other.startswith("0") for other in others):
            return whole
        apart = ", ".join((first, *others))
        raise InputError(f"{match[0]!r} may be one number or several: write {whole}, or '{apart}' with blanks")

    return _THOUSANDS.sub(joined, text)


def _item(item: str, its: ValueType) -> Iterator[Any]:
    if ".." not in item or (its.uncertain and ":" not in item):
        if ":" in item and its.example:
            raise InputError(f"{item!r} has a step and no range: write its two ends, such as {its.example!r}")
        yield its.read(item)
        return
    if not its.example:
        raise InputError(f"{item!r} is a range of words: list them with commas")
    ends, colon, by = item.partition(":")
    low, _, high = (end.strip() for end in ends.partition(".."))
    if not low or not high or ".." in high:
        raise InputError(f"{item!r} is not a range: write its two ends, such as {its.example!r}")
    first, last = its.read(low), its.read(high)
    step = its.read(by.strip()) if colon else its.step
    if step is None:
        raise InputError(f"{item!r} has no step: write one, such as {its.example!r}")
    if step <= 0:
        raise InputError(f"the step of {item!r} is not above 0: ranges go up, such as {its.example!r}")
    if last < first:
        raise InputError(f"{item!r} goes down: write the smaller end first, such as {its.example!r}")
    if (last - first) / step >= MAX_POINTS:
        raise InputError(f"{item!r} has more than {MAX_POINTS:,} values: take a larger step")
    for number in range(int((last - first) / step) + 1):
        yield first + number * step


def _exact(parse: Callable[[str], float]) -> Callable[[str], Fraction]:
    """Return a reader of exact decimal numbers, based on a reader that rounds to doubles."""

    def read(text: str) -> Fraction:
        number = Decimal(repr(float(parse(text))))
        if not number.is_finite():
            raise InputError(f"{text!r} is not a value of a sweep: give a finite number")
        return Fraction(number)

    return read


def _whole(text: str) -> Fraction:
    try:
        return Fraction(parse_count(text))
    except InputError:
        raise InputError(f"{text!r} is not a whole number: write one such as 3, or a range such as '1..5'") from None


def _whole_per_dc(text: str) -> Fraction:
    if SEPARATOR in text:
        raise InputError(
            f"{text!r} has a number for each data centre, and here one holds for all: give one, or predict or sweep "
            "a scenario file with unequal data centres"
        )
    return _whole(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number: write one such as 2.5, or a range such as '1..3:0.5'") from None


def _load(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"{text!r} is not a share of the capacity: write a percentage such as '80%'") from None
    if not 0 < share <= 10:  # a load of 80 without its sign is a typing error
        near = f"; did you mean '{text}%'?" if 10 < share <= 1000 else ""
        raise InputError(f"{text!r} is not a share of the capacity: give more than 0 and at most 1000%{near}")
    return share


def _yes_or_no(text: str) -> bool:
    if text.casefold() in (*_YES, *_NO):
        return text.casefold() in _YES
    raise InputError(f"{text!r} is neither yes nor no")


LOAD = ValueType(_exact(_load), float, None, "10%..95%:5%")
WHOLE = ValueType(_whole, int, Fraction(1), "3..12:3")
WHOLE_PER_DC = ValueType(_whole_per_dc, int, Fraction(1), "3..12:3")
WORDS = ValueType(str, str)
YES_OR_NO = ValueType(_yes_or_no, bool)
READ_IN: dict[str, Callable[[str], float]] = {  # texts with a unit, in this one
    "ms": lambda text: parse_duration_s(text, "ms") * 1e3,
    "km": lambda text: parse_length_m(text) / 1e3,
}
_EXAMPLES = {"RATE": "2000..20000:2000", "SHARE": "5%..20%:5%"}


def numbers(read: Callable[[str], float] = _number, example: str = "1..3:0.5") -> ValueType:
    """Return the type of numbers with a given reader."""
    return ValueType(_exact(read), float, None, example, large=read is parse_rate_per_s)


def quantities(unit: str) -> ValueType:
    """Return the type of texts with a unit, such as `3ms`."""
    parse, example = READ_IN[unit], f"1{unit}..9{unit}:2{unit}"
    return ValueType(
        _exact(lambda text: float(f"{parse(text):.15g}")), lambda x: f"{float(x):.15g}{unit}", None, example
    )


def _uncertain(read: Callable[[str], Any]) -> ValueType:
    """Return the type of numbers of which only the ends of a range may be known, such as `1.2..1.6`."""
    exact = _exact(read)
    return ValueType(
        lambda text: read(text) if ".." in text else exact(text),
        lambda value: value if isinstance(value, str) else float(value),
        example="1..3:0.5",
        uncertain=True,
    )


def value_type(scenario: type[Scenario], field: str) -> ValueType:
    """Return the notation of a scenario field's values."""
    option, hint = options_of(scenario)[field], get_type_hints(scenario)[field]
    kinds = {hint, *get_args(hint)}
    if bool in kinds:
        return YES_OR_NO
    if is_per_dc(hint):
        return WHOLE_PER_DC
    if option.unit:
        return quantities(option.unit)
    if int in kinds:
        return WHOLE
    if {float, str} <= kinds and option.read is not None:
        return _uncertain(option.read)
    if float in kinds:
        return numbers(option.read or _number, _EXAMPLES.get(option.metavar, "1..3:0.5"))
    return replace(WORDS, separator=option.separator)


def as_number(option: Option, value: Any) -> float | None:
    """Return a field's value as a number in its unit, for a matrix the largest; None if it cannot be read."""
    cells = [cell for row in value for cell in row] if isinstance(value, tuple) else [value]
    try:
        return max(float(f"{READ_IN[option.unit](cell):.12g}") for cell in cells)
    except InputError:
        return None
