"""What a number looks like in a file: decided once, from all of its numbers and from what must hold between them.

A tool that prints in the locale of its machine writes 5,358.7 as 5.358,7 or as 5 358,7. Alone, `5.358` may be five or
five thousand; together the numbers of a file show which, or the file is refused:

    texts = ["5.358", "2,8", "52,3"]
    read = number_format("run.txt", texts, [whole("5.358"), rising("2,8", "52,3")])
    read.value("5.358")                                # 5358.0
    read.remarks(texts)                                # one sentence; none for numbers with a decimal point

A number that one reading cannot have decides: `2,8` has no group of three digits, so its comma is decimal. Where all
numbers have both readings, relations decide: `whole`, `rising`, `quotient`, or any function that gets `read` (from a
text, or from a number that is sure, to a float) and returns whether it holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from capplan.errors import InputError

Operand = str | float
"""A number as the file has it, or one whose reading is sure."""
Relation = Callable[[Callable[[Operand], float]], bool]
NUMBER = r"(?:[-+]?[0-9](?:[0-9.,'\u2019\u00a0\u202f]*[0-9])?|NaN)"
"""A pattern of a number of any locale, for a line's regular expression; it begins and ends with a digit."""
_WORDS = re.compile(r"[-+]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_SAME_SIZE = 10**0.5  # a wrong reading is off by ten at least


@dataclass(frozen=True)
class NumberFormat:
    """A decimal mark, and the marks that may stand between thousands.

    Attributes
    ----------
    decimal : str
        The decimal mark.
    grouping : str
        The other marks.
    """

    decimal: str
    grouping: str

    def reads(self, text: str) -> bool:
        """Return whether a text is a number in this format."""
        mark, groups = re.escape(self.decimal), rf"[1-9][0-9]{{0,2}}([{self.grouping}])[0-9]{{3}}(?:\1[0-9]{{3}})*"
        pattern = rf"[-+]?(?:{groups}(?:{mark}[0-9]+)?|[0-9]+(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][-+]?[0-9]+)?"
        return bool(re.fullmatch(pattern, text.strip()) or _WORDS.fullmatch(text.strip()))

    def value(self, text: Operand) -> float:
        """Return the number that a text is.

        Raises
        ------
        ValueError
            If it is none in this format.
        """
        if not isinstance(text, str):
            return text
        if not self.reads(text):
            raise ValueError(text)
        return float(re.sub(f"[{self.grouping}]", "", text.strip()).replace(self.decimal, "."))

    def remarks(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Return how numbers are read, where that is not obvious, with one of them."""
        if self == POINT:
            return ()
        marked = max(texts, key=lambda text: (text.count(".") + text.count(","), "." in text))
        return (f"its numbers have a decimal comma: {marked.strip()} is read as {_shown(self.value(marked))}",)


_APART = "'\u2019\u00a0\u202f"  # marks that are never decimal: apostrophes, and spaces that do not break
POINT = NumberFormat(".", "," + _APART)
COMMA = NumberFormat(",", "." + _APART)
_LET_THE_TOOL = "let the tool print with a decimal point (LC_ALL=C; in Java -Duser.language=en)"


def number(text: str, where: str, what: str, read: NumberFormat = POINT) -> float:
    """Read a number that may have separators of thousands.

    Parameters
    ----------
    text : str
        The number.
    where : str
        Its place in the file, for a refusal.
    what : str
        What it says, for a refusal.
    read : NumberFormat
        How the numbers of its file are read: that of `number_format` where the tool prints in a locale.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return read.value(text)
    except ValueError:
        raise InputError(f"{where}: {text.strip()!r} must be a number: {what} was expected") from None


def number_format(
    where: str, texts: Iterable[str], relations: Sequence[Relation] = (), remedy: str = _LET_THE_TOOL
) -> NumberFormat:
    """Decide how the numbers of a file are read.

    Parameters
    ----------
    where : str
        The file, for a refusal.
    texts : iterable of str
        Its numbers, without those whose mark does not depend on the locale.
    relations : sequence of Relation
        What holds between them. They are asked only where the numbers themselves have both readings.
    remedy : str
        What to do where two readings remain.

    Raises
    ------
    InputError
        If the numbers have no reading in common, or two that nothing tells apart.
    """
    every = dict.fromkeys(map(str.strip, texts))
    possible = [each for each in (POINT, COMMA) if all(map(each.reads, every))]
    if not possible:
        raise InputError(f"{where}: {_clash(every)}")
    marked = [text for text in every if len(possible) > 1 and set(text) & set(".,")]
    unsure = [text for text in marked if POINT.value(text) != COMMA.value(text)]
    if not unsure:
        return possible[0]
    found = [each for each in possible if all(relation(each.value) for relation in relations)]
    if len(found) == 1:
        return found[0]
    said = "fit its other numbers" if found else "contradict its other numbers"
    either = " or ".join(_shown(each.value(unsure[0])) for each in possible)
    raise InputError(f"{where}: {unsure[0]} may be {either}, and both {said}: {remedy}")


def _shown(value: float) -> str:
    return f"{value:,}".removesuffix(".0")


def _clash(texts: Iterable[str]) -> str:
    """Return which numbers have no reading in common."""
    every = list(texts)
    for text in every:
        if not (POINT.reads(text) or COMMA.reads(text)):
            return f"{text!r} must be a number, with a decimal point or a decimal comma"
    with_point, with_comma = (next(text for text in every if not other.reads(text)) for other in (COMMA, POINT))
    return f"{with_point} has a decimal point and {with_comma} a decimal comma: save what each tool printed apart"


def whole(*operands: Operand) -> Relation:
    """Return the relation that numbers are counts, without a fraction."""
    return lambda read: all(math.isnan(value) or value % 1 == 0 for value in map(read, operands))


def rising(*operands: Operand) -> Relation:
    """Return the relation that each number is at least the one before, such as percentiles, or a mean and a maximum."""

    def holds(read: Callable[[Operand], float]) -> bool:
        values = [value for value in map(read, operands) if not math.isnan(value)]
        return values == sorted(values)

    return holds


def quotient(count: Operand, by: Operand, rate: Operand) -> Relation:
    """Return the relation that a count by a time is a rate, as to its size: tools differ in what they count."""

    def holds(read: Callable[[Operand], float]) -> bool:
        counted, expected = read(count), read(by) * read(rate)
        if not (counted > 0 and expected > 0):
            return True
        return 1 / _SAME_SIZE < counted / expected < _SAME_SIZE

    return holds
