"""Reports in JSON: one object in a file, and the values in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from capplan.answers.json_text import with_single_keys
from capplan.errors import InputError
from capplan.evidence.text_file import TextFile

_LAST_WORD = 8  # characters: a number or a word such as `false` at the end of a file may be cut


def json_with(*keys: str) -> Callable[[TextFile], bool]:
    """Return a function that recognises JSON by keys near its start."""
    return lambda file: is_json(file) and all(f'"{key}"' in file.head for key in keys)


def is_json(file: TextFile) -> bool:
    """Return whether a file begins as a JSON object does."""
    return file.head.lstrip().startswith("{")


def read_json(file: TextFile, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Mapping[str, Any]:
    """Read a file that holds one JSON object.

    Parameters
    ----------
    file : TextFile
        The file.
    hook : function, optional
        Makes a value of each object's pairs, as in `json.loads`; by default, no key may stand twice in one.

    Raises
    ------
    InputError
        If it is not JSON, has a key twice, or is something else than an object.
    """
    try:
        report = json.loads(file.text(), object_pairs_hook=hook or with_single_keys)
    except json.JSONDecodeError as error:
        raise InputError(f"{file.path}, line {error.lineno}: {_fault(error)}") from None
    except InputError as error:
        raise InputError(f"{file.path}: {error}") from None
    except RecursionError:
        raise InputError(f"{file.path} is nested too deeply for a report: it must be the JSON of a tool") from None
    if not isinstance(report, dict):
        raise InputError(f"{file.path} must be a JSON object, as a tool reports it")
    return report


def _fault(error: json.JSONDecodeError) -> str:
    """Return why a text is no JSON: it ends too early, a second value follows, or it has something else in it."""
    if error.msg == "Extra data":
        return "something follows the JSON object, such as a second report: save each in a file of its own"
    if error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) - _LAST_WORD:
        return "the JSON ends in the middle: the file is cut off"
    return f"{error.msg.lower()} in JSON, column {error.colno}: the file must be as the tool wrote it"


def at(value: Any, file: TextFile, *keys: str | int) -> Any:
    """Return a value inside JSON.

    Raises
    ------
    InputError
        If it is not there.
    """
    for place, key in enumerate(keys):
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            path = ".".join(map(str, keys[: place + 1]))
            raise InputError(f"{file.path}: {path!r} is missing: the report of the tool has it") from None
    return value


def real(report: Any, file: TextFile, *keys: str | int) -> float:
    """Return a number inside JSON.

    Raises
    ------
    InputError
        If it is not there, or something else.
    """
    value = at(report, file, *keys)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{file.path}: {'.'.join(map(str, keys))!r} has {value!r}: it must be a number")
    return float(value)
