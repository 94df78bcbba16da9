"""The grammar of a swept option: one value, a list or a range, in the words of the option itself.

    values = item {"," item}
    item   = value | value ".." value [":" step]

A range includes both its ends as far as steps reach them; whole numbers step by one when no step is given. Values and
steps carry the units that the option knows: `1ms..9ms:2ms`, `10%..95%:5%`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from capplan.models.errors import InputError
from capplan.models.language.units import parse_duration_s, parse_length_m, parse_rate_per_s

MOST_POINTS = 100_000  # of a sweep: more is a typing error, or a job for several calls
_YES, _NO = ("yes", "true", "on"), ("no", "false", "off")


@dataclass(frozen=True)
class Kind:
    """What the values of an option are.

    Attributes
    ----------
    read
        Reads one value; raises `InputError`. Numbers come back as fractions, so that a range has no rounding errors.
    give
        Turns what was read into what the option takes.
    step
        The step of a range that names none; None where it must name one.
    example
        A range, for messages; empty where values have no order.
    """

    read: Callable[[str], Any]
    give: Callable[[Any], Any]
    step: Fraction | None = None
    example: str = ""


def parse_values(text: str, kind: Kind) -> tuple[Any, ...]:
    """Read the values of a swept option, each once, in the order of the text.

    Raises
    ------
    InputError
        When a value cannot be read, a range goes the wrong way or never ends, or there are too many values.
    """
    found: dict[Any, None] = {}
    for item in text.split(","):
        if not item.strip():
            raise InputError(f"{text!r} has a comma too many: write values such as {kind.example or 'A,B'!r}")
        for value in _item(item.strip(), kind):
            found[kind.give(value)] = None
            if len(found) > MOST_POINTS:
                raise InputError(f"{text!r} has more than {MOST_POINTS:,} values: take larger steps")
    return tuple(found)


def _item(item: str, kind: Kind) -> Iterator[Any]:
    if ".." not in item:
        if ":" in item:
            raise InputError(f"{item!r} has a step and no range: write its two ends, such as {kind.example!r}")
        yield kind.read(item)
        return
    if not kind.example:
        raise InputError(f"{item!r} is a range of words: list them with commas")
    ends, colon, by = item.partition(":")
    first, last = (kind.read(end.strip()) for end in _ends(item, ends, kind))
    step = kind.read(by.strip()) if colon else kind.step
    if step is None:
        raise InputError(f"{item!r} has no step: write one, such as {kind.example!r}")
    _check(item, (first, last, step), kind)
    for number in range(int((last - first) / step) + 1):
        yield first + number * step


def _ends(item: str, ends: str, kind: Kind) -> tuple[str, str]:
    first, _, last = ends.partition("..")
    if not first.strip() or not last.strip() or ".." in last:
        raise InputError(f"{item!r} is not a range: write its two ends, such as {kind.example!r}")
    return first, last


def _check(item: str, numbers: tuple[Fraction, Fraction, Fraction], kind: Kind) -> None:
    first, last, step = numbers
    if step <= 0:
        raise InputError(f"the step of {item!r} is not above 0: ranges go up, such as {kind.example!r}")
    if last < first:
        raise InputError(f"{item!r} goes down: write the smaller end first, such as {kind.example!r}")
    if (last - first) / step >= MOST_POINTS:
        raise InputError(f"{item!r} has more than {MOST_POINTS:,} values: take a larger step")


def _exact(parse: Callable[[str], float]) -> Callable[[str], Fraction]:
    """Return a reader of the decimal number that was written, from one that rounds it to a double."""

    def read(text: str) -> Fraction:
        number = Decimal(repr(parse(text)))
        if not number.is_finite():
            raise InputError(f"{text!r} is not a value of a sweep: give a finite number")
        return Fraction(number)

    return read


def _whole(text: str) -> Fraction:
    try:
        return Fraction(int(text))
    except ValueError:
        raise InputError(f"{text!r} is not a whole number: write one such as 3, or a range such as '1..5'") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number: write one such as 2.5, or a range such as '1..3:0.5'") from None


def _share(text: str) -> float:
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(f"{text!r} is not a share of the capacity: write a percentage such as '80%'") from None
    if not 0 < share <= 10:  # a load of 80 without its sign is a typing error
        raise InputError(f"{text!r} is not a share of the capacity: give more than 0 and at most 1000%")
    return share


def _yes_or_no(text: str) -> bool:
    if text.casefold() in (*_YES, *_NO):
        return text.casefold() in _YES
    raise InputError(f"{text!r} is neither yes nor no")


def _milliseconds(value: Fraction) -> str:
    return f"{float(value * 1000):.15g}ms"


WHOLE = Kind(_whole, int, Fraction(1), "3..12:3")
RATE = Kind(_exact(parse_rate_per_s), float, None, "2000..20000:2000")
SHARE = Kind(_exact(_share), float, None, "10%..95%:5%")
ROUND_TRIP = Kind(_exact(lambda text: parse_duration_s(text, "ms")), _milliseconds, None, "1ms..9ms:2ms")
DISTANCE = Kind(_exact(parse_length_m), lambda metres: f"{float(metres / 1000):.15g}km", None, "50km..250km:100km")
FACTOR = Kind(_exact(_number), float, None, "1..3:0.5")
WORDS = Kind(str, str)
YES_OR_NO = Kind(_yes_or_no, bool)
