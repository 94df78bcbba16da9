"""Documents: values of the language (and of any type that pydantic validates) from and to TOML, and their schemas.

Whatever is wrong with a document is an `InputError` of one sentence that names the file, the place, the value, the
rule and the nearest right thing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from inspect import cleandoc
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import tomli_w
from pydantic import BaseModel, ValidationError

from capplan.models.errors import InputError
from capplan.models.language.construct import adapter, explained
from capplan.models.language.network import Network
from capplan.models.replaced_file import replace_file

T = TypeVar("T")


def read_network(path: str | Path) -> Network:
    """Read a network from a TOML file.

    Raises
    ------
    InputError
        When the file cannot be read, is no TOML, or breaks a rule of the language.
    """
    return read(Network, path)


def write_network(network: Network, path: str | Path) -> None:
    """Write a network to a TOML file, which is there in full or not at all.

    Raises
    ------
    InputError
        When the network holds arrays of parameter draws, or the file cannot be written.
    """
    write(network, path)


def network_schema() -> dict[str, Any]:
    """Return the JSON schema of a network."""
    return schema(Network)


def read(type_: type[T], path: str | Path) -> T:
    """Read a value of `type_` from a TOML file.

    Raises
    ------
    InputError
        When the file cannot be read, is no TOML, or breaks a rule of the type.
    """
    path = Path(path)
    return load(type_, read_toml(path), str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as plain tables.

    Raises
    ------
    InputError
        When the file is missing (with the nearest name in its folder), cannot be read, or is no TOML (with the line).
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(_missing(path)) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file in UTF-8") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None


def _missing(path: Path) -> str:
    if not path.parent.is_dir():
        return f"{path} does not exist: there is no folder {path.parent}"
    close = get_close_matches(path.name, [each.name for each in path.parent.iterdir()], n=1, cutoff=0.5)
    return f"{path} does not exist" + (f"; did you mean {close[0]!r}?" if close else ": check the path")


def load(type_: type[T], mapping: Mapping[str, Any], where: str) -> T:
    """Make a value of `type_` from plain tables.

    Parameters
    ----------
    type_
        A construct of the language, or any other type that pydantic validates.
    mapping
        Tables, lists, texts and numbers, as TOML has them.
    where
        The file or place they come from, for the message.

    Raises
    ------
    InputError
        When they break a rule of the type.
    """
    wanted: Any = type_  # mypy holds that a type[T] cannot be hashed
    try:
        value: T = adapter(wanted).validate_python(mapping)
    except ValidationError as error:
        raise explained(error, type_, mapping, where) from None
    return value


def write(value: Any, path: str | Path) -> None:
    """Write a value to a TOML file, which is there in full or not at all.

    Raises
    ------
    InputError
        When the value holds arrays of parameter draws, or the file cannot be written.
    """
    replace_file(Path(path), tomli_w.dumps(dump(value)))


def dump(value: Any) -> dict[str, Any]:
    """Return a construct or model as the plain tables that `load` makes it from.

    Fields that have their default are left out, except `kind`, which tells a construct from its alternatives.

    Raises
    ------
    InputError
        When it holds an array of parameter draws, naming the field.
    """
    plain: dict[str, Any] = _plain(value, type(value).__name__)
    return plain


def _plain(value: Any, place: str) -> Any:
    if isinstance(value, np.ndarray):
        raise InputError(f"{place} holds {value.size} parameter draws, which a file cannot: give one number")
    if is_dataclass(value) or isinstance(value, BaseModel):
        names = [name for name, default in _defaults(value) if _is_written(value, name, default)]
        names.sort(key=lambda name: name != "kind")  # what it is comes first, for the reader
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
    """Yield the name and the default of each field; the default is MISSING where there is none."""
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
    """Return the JSON schema of a type, with what the docstrings say of its constructs and fields."""
    found = adapter(type_).json_schema()
    for part in [found, *found.get("$defs", {}).values()]:
        about, attributes = _described(part.get("description", ""))
        if about:
            part["description"] = about
        for name, text in attributes.items():
            if name in part.get("properties", {}):
                part["properties"][name]["description"] = text
        if "const" in part.get("properties", {}).get("kind", {}):
            part["required"] = [*part.get("required", []), "kind"]  # optional in Python alone
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def _described(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a numpy docstring into its prose and the texts of its attributes."""
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
