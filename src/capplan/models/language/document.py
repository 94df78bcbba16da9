"""Reads and writes constructs of the language, and other types that pydantic validates, as TOML; their JSON schemas.

Every mistake in a document raises `InputError` with one sentence: file, place, value, rule and the nearest valid word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tomli_w
from pydantic import BaseModel, ValidationError

from capplan.errors import InputError
from capplan.files import read_file, replace_file
from capplan.models.language.construct import adapter, explained
from capplan.models.language.network import Network

T = TypeVar("T")


def read_network(path: str | Path) -> Network:
    """Read a network from a TOML file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, or breaks a rule of the language.

    Examples
    --------
    >>> read_network("docs/examples/pauses-and-a-lost-node.toml").name
    'pauses-and-a-lost-node'
    """
    return read(Network, path)


def write_network(network: Network, path: str | Path) -> None:
    """Write a network to a TOML file atomically.

    Parameters
    ----------
    network : Network
        The network; single numbers only.
    path : str or Path
        The file; it is replaced if it exists.

    Raises
    ------
    InputError
        If the network holds arrays of parameter draws, or the file cannot be written.
    """
    write(network, path)


def network_schema() -> dict[str, Any]:
    """Return the JSON schema of a network."""
    return schema(Network)


def read(type_: type[T], path: str | Path) -> T:
    """Read a value of a type from a TOML file.

    Parameters
    ----------
    type_ : type
        A construct of the language, or any other type that pydantic validates.
    path : str or Path
        The file.

    Returns
    -------
    type_
        The validated value.

    Raises
    ------
    InputError
        If the file cannot be read, is not TOML, or breaks a rule of the type.
    """
    path = Path(path)
    return load(type_, read_toml(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as a dictionary.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        If the file is missing (the message suggests the nearest name in its folder), unreadable or not TOML.
    """
    return parse_toml(read_file(path), str(path))


DEEPEST = 64
"""Most parts of a dotted name in a TOML file; the time to read one grows with their square."""
_DEEP_NAME = re.compile(rf"(?<![\w-])(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}")


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the tables of a TOML text; `where` names it in messages.

    Raises
    ------
    InputError
        If it is not TOML.
    """
    if _DEEP_NAME.search(text):
        raise InputError(f"{where} is nested too deeply: a name has at most {DEEPEST} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}") from None
    except ValueError:  # Python reads integers of up to 4,300 digits
        raise InputError(f"{where} has a number of thousands of digits: write a shorter one") from None


def load(type_: type[T], mapping: Mapping[str, Any], where: str) -> T:
    """Validate a dictionary and convert it to a value of a type.

    Parameters
    ----------
    type_ : type
        A construct of the language, or any other type that pydantic validates.
    mapping : mapping
        Dictionaries, lists, strings and numbers, as read from TOML.
    where : str
        File or place that the data come from, for the message.

    Returns
    -------
    type_
        The validated value.

    Raises
    ------
    InputError
        If the data break a rule of the type.
    """
    wanted: Any = type_  # mypy thinks that a type[T] cannot be hashed
    try:
        value: T = adapter(wanted).validate_python(mapping)
    except ValidationError as error:
        raise explained(error, type_, mapping, where) from None
    return value


def write(value: Any, path: str | Path) -> None:
    """Write a construct or pydantic model to a TOML file atomically.

    Parameters
    ----------
    value : construct or pydantic model
        The value; single numbers only.
    path : str or Path
        The file; it is replaced if it exists.

    Raises
    ------
    InputError
        If the value holds arrays of parameter draws, or the file cannot be written.
    """
    replace_file(Path(path), tomli_w.dumps(dump(value)))


def dump(value: Any) -> dict[str, Any]:
    """Convert a construct or pydantic model to a dictionary; the inverse of `load`.

    Fields with their default value are left out, except `kind`.

    Parameters
    ----------
    value : construct or pydantic model
        The value; single numbers only.

    Returns
    -------
    dict

    Raises
    ------
    InputError
        If a field holds an array of parameter draws.
    """
    plain: dict[str, Any] = _plain(value, type(value).__name__)
    return plain


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, np.ndarray):
        raise InputError(f"{place} holds {value.size} parameter draws: a file takes single numbers only")
    if is_dataclass(value) or isinstance(value, BaseModel):
        names = [name for name, default in _defaults(value) if _is_written(value, name, default)]
        names.sort(key=lambda name: name != "kind")  # the kind comes first, for the reader
        return {name: _plain(getattr(value, name), f"{place}.{name}") for name in names}
    if isinstance(value, Mapping):
        return {key: _plain(item, f"{place}.{key}") for key, item in value.items() if item is not None}
    if isinstance(value, (tuple, list)):
        return [_plain(item, f"{place}[{index}]") for index, item in enumerate(value)]
    return value


def _is_written(value: Any, name: str, default: Any) -> bool:
    field = getattr(value, name)
    if name == "kind":
        return True
    return field is not None and (isinstance(field, np.ndarray) or type(field) is not type(default) or field != default)


def _defaults(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and default of each field; MISSING if it has no default."""
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            yield (
                name,
                MISSING if info.is_required() else info.get_default(call_default_factory=True, validated_data={}),
            )
        return
    for field in fields(value):
        yield field.name, field.default if field.default_factory is MISSING else field.default_factory()


def schema(type_: type) -> dict[str, Any]:
    """Return the JSON schema of a type, with the descriptions of constructs and fields from their docstrings.

    Parameters
    ----------
    type_ : type
        A construct of the language, or any other type that pydantic validates.

    Returns
    -------
    dict
        JSON schema, draft 2020-12.
    """
    found = adapter(type_).json_schema()
    for part in [found, *found.get("$defs", {}).values()]:
        about, attributes = _described(part.get("description", ""))
        if about:
            part["description"] = about
        for name, text in attributes.items():
            if name in part.get("properties", {}):
                part["properties"][name]["description"] = text
        if "const" in part.get("properties", {}).get("kind", {}):
            part["required"] = [*part.get("required", []), "kind"]  # optional in Python only
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a numpydoc docstring into its prose and the descriptions of its attributes."""
    sections = cleandoc(docstring).split("\n----------\n", 1)
    about = sections[0].removesuffix("\nAttributes").split("\n\nRaises\n", 1)[0].strip()
    attributes: dict[str, str] = {}
    name = ""
    for line in sections[1].split("\n\nRaises\n", 1)[0].splitlines() if len(sections) > 1 else ():
        if line and not line.startswith(" "):
            name, attributes[line] = line, ""
        elif line:
            attributes[name] = f"{attributes[name]} {line.strip()}".strip()
    return about, attributes
