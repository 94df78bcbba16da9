"""Reads JSON that a verb saved: a prediction, sizing, check or proposal, identified by its schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from capplan.answers.json_text import NotJsonError, parse_json
from capplan.errors import InputError
from capplan.files import read_file

LARGEST = 20_000_000  # bytes
_PRODUCTION = ("capplan.prediction/4", "capplan.sizing/1", "capplan.check/2", "capplan.proposal/1")


def read_document(path: Path, verbs: Mapping[str, str]) -> dict[str, Any]:
    """Read a document.

    Parameters
    ----------
    path : Path
        The file.
    verbs : mapping of str to str
        The command that writes such a document, by schema; of every schema that is wanted.

    Returns
    -------
    dict
        The JSON, with its `schema`.

    Raises
    ------
    InputError
        If the file cannot be read, is no JSON, is too large, or has another schema.
    """
    wanted = " or ".join(f"'capplan {verb}'" for verb in verbs.values())
    text = read_file(path, LARGEST)
    try:
        found = parse_json(text, str(path))
    except NotJsonError:
        raise InputError(f"{path} is not JSON: it must be what {wanted} wrote") from None
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema in _PRODUCTION:
        raise InputError(
            f"{path} is {schema!r}, and such answers took production to make Cassandra's work 2 to 3 times; figures "
            "are now on data as tested, with that as a condition beside them: ask again (record 0034)"
        )
    if schema not in verbs:
        schemas = " or ".join(map(repr, verbs))
        raise InputError(f"{path} has the schema {schema!r}: it must be {schemas}, as {wanted} writes")
    return dict(found)
