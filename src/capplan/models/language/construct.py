"""What every construct of the language is: frozen, strict about its keys, and plain-spoken about what is wrong.

Pydantic checks; its reports are turned here into one sentence that names the place, the value, the rule and the
nearest right thing. The place and the known keys are read off the JSON schema, so this works for any type that
pydantic validates.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from capplan.models.errors import InputError, nearest

Name = Annotated[str, Field(min_length=1)]
LANGUAGE = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

_BRIEF = reprlib.Repr()  # of a deep table, only the first levels
_BRIEF.maxstring = _BRIEF.maxother = 100

# A misspelt key is reported twice, as unknown and as missing: the unknown one tells more.
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
# Words of earlier versions of the language, and what replaced them.
_FORMER_KEYS = {"laws": "distributions"}
_FORMER_KINDS = {"hold": "acquire", "latch": "countdown_latch"}
_TOO_DEEP = ("recursion_loop", "recursion_depth_exceeded")
_WANTED = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a table of keys and values",
    "dataclass_type": "must be a table of keys and values",
    "model_type": "must be a table of keys and values",
    "model_attributes_type": "must be a table of keys and values",
    "string_type": "must be a text in quotes",
    "bool_type": "must be true or false",
}


def _names(type_: type) -> list[str]:
    return list(getattr(type_, "__dataclass_fields__", ()))


class _Explained(type):
    """Raises InputError, not pydantic's report, where a construct is made in Python.

    A metaclass, because pydantic replaces `__init__` whenever it completes a class with forward references.
    """

    if not TYPE_CHECKING:  # type checkers read the constructor from the fields

        def __call__(cls, *args: Any, **keywords: Any) -> Any:
            try:
                return super().__call__(*args, **keywords)
            except ValidationError as error:
                named = dict(zip(_names(cls), args, strict=False))
                raise explained(error, cls, {**named, **keywords}, cls.__name__) from None


class Construct(metaclass=_Explained):
    """Base of the language's dataclasses: a wrong value raises `InputError`, from Python as from a file."""


@lru_cache(maxsize=64)
def adapter(type_: Any) -> TypeAdapter[Any]:
    """Return the (cached) reader of values of `type_`."""
    return TypeAdapter(type_)


@lru_cache(maxsize=64)
def _schema(type_: Any) -> dict[str, Any]:
    return adapter(type_).json_schema()


def explained(error: ValidationError, type_: Any, data: Any, where: str) -> InputError:
    """Say in one sentence what is wrong with `data`, which should have been a `type_`.

    Parameters
    ----------
    error
        What pydantic reported; of several mistakes an unknown key is named first, a missing one last.
    type_
        The type that was wanted.
    data
        What was given, for the names in the place (`stations['cassandra'].servers`).
    where
        The file or construct, at the start of the sentence.
    """
    rank = {**dict.fromkeys(_UNKNOWN, 0), "union_tag_invalid": 1, **dict.fromkeys(_MISSING, 3)}
    first = min(error.errors(include_url=False), key=lambda item: rank.get(item["type"], 2))
    location = list(first["loc"])
    if location and isinstance(location[0], int) and isinstance(type_, type) and issubclass(type_, Construct):
        location[0] = _names(type_)[location[0]]  # an argument given by position
    return InputError(f"{where}: {_sentence(dict(first), type_, location, data)}")


def _sentence(error: dict[str, Any], type_: Any, location: list[int | str], data: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _UNKNOWN or kind in _MISSING:
        place, node = _place(_schema(type_), location[:-1], data)
        inside = f" in {place}" if place else ""
        if kind in _MISSING:
            return f"key {location[-1]!r} is missing{inside}"
        return (
            f"unknown key {location[-1]!r}{inside}{_suggested(location[-1], node.get('properties', {}), _FORMER_KEYS)}"
        )
    place, node = _place(_schema(type_), location, data)
    if kind == "value_error":
        return f"{place}: {context['error']}" if place else str(context["error"])
    if kind in _TOO_DEEP:
        return f"nested too deeply, from {_short(place)} on"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key, known = context["discriminator"], node.get("discriminator", {}).get("mapping", {})
        if kind == "union_tag_invalid":
            suggested = _suggested(context["tag"], known, _FORMER_KINDS)
            return f"{place} has the unknown {key.strip(chr(39))} {context['tag']!r}{suggested}"
        return f"key {key} is missing in {place}; known: {', '.join(sorted(known))}"
    rule = _WANTED.get(kind) or re.sub(r"^\w+ should", "must", error["msg"])
    close = nearest(error["input"], node.get("enum", ())) if isinstance(error["input"], str) else ""
    return f"{place or 'it'} = {_short(error['input'])} {rule}{close}"


def _suggested(word: Any, known: Collection[str], former: Mapping[str, str]) -> str:
    """Name the word that replaced a former one, or the nearest known word."""
    replacement = former.get(str(word))
    return f"; it is now called {replacement!r}" if replacement in known else nearest(str(word), known)


def _short(value: Any) -> str:
    text = _BRIEF.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(root: dict[str, Any], location: list[int | str], data: Any) -> tuple[str, dict[str, Any]]:
    """Return where `location` is, in words, and the schema that holds there.

    Pydantic's locations contain the kinds of the unions that they pass (`flow`, `sequence`, `steps`), which are no
    keys of the document: the schema tells them apart.
    """
    node, path = _resolved(root, root), ""
    for part in location:
        kinds = node.get("discriminator", {}).get("mapping", {})
        if part in kinds:
            node = _resolved(root, {"$ref": kinds[part]})
        elif isinstance(part, int):
            data = data[part] if isinstance(data, (list, tuple)) and part < len(data) else None
            path += f"[{_label(data, part)!r}]"
            node = _resolved(root, node.get("items", {}))
        else:
            data = data.get(part) if isinstance(data, Mapping) else getattr(data, part, None)
            path += f".{part}" if path else part
            inside = node.get("properties", {}).get(part) or node.get("additionalProperties")
            node = _resolved(root, inside if isinstance(inside, dict) else {})
    return path, node


def _label(data: Any, index: int) -> str | int:
    """Name an element of a list by its own name where it has one."""
    name = data.get("name") if isinstance(data, Mapping) else getattr(data, "name", None)
    return name if isinstance(name, str) and name else index


def _resolved(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Follow references, and see through `X | None`."""
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[1]]
            continue
        branches = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
        if len(branches) != 1:
            break
        node = branches[0]
    return node
