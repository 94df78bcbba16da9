"""Reads JSON that people or programs give: with every key once, and of bounded depth and size."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn

from capplan.errors import InputError

DEEPEST = 64  # networks of many steps inside each other have a third of it


class NotJsonError(InputError):
    """A text that is not JSON, or too deep or too large to be read as JSON."""


def parse_json(text: str | bytes, where: str, most_parts: int | None = None) -> Any:
    """Return the values of a JSON text.

    Parameters
    ----------
    text : str or bytes
        The text.
    where : str
        What it is, for the message.
    most_parts : int, optional
        The largest number of values, where more would take too long to check.

    Raises
    ------
    NotJsonError
        If it is not JSON (NaN and Infinity are not), nested too deeply, or has too many values.
    InputError
        If an object has a key twice.
    """
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    parts = content.count(b",") + content.count(b"[") + content.count(b"{")
    if most_parts is not None and parts > most_parts:
        raise NotJsonError(f"{where} has about {parts:,} values, and at most {most_parts:,} are read: give fewer")
    too_deep = NotJsonError(f"{where} is nested too deeply: at most {DEEPEST} lists and objects stand in each other")
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=with_single_keys)
    except RecursionError:
        raise too_deep from None
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except ValueError as error:  # bad UTF-8 and numbers with thousands of digits, too
        raise NotJsonError(f"{where} is not JSON: {error}") from None
    if _is_deep(value):
        raise too_deep
    return value


def with_single_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON.

    Raises
    ------
    InputError
        If it has a key twice: readers of JSON differ in which one counts.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InputError(f"key {twice!r} stands twice in one object: leave one of them out")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _is_deep(value: Any) -> bool:
    """Whether values are nested too deeply; level by level, because recursion would have a limit of its own."""
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return False
    return True


def _parts(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
