"""The base class of all constructs, error messages about bad ones, and constructs with arrays as numbers."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from capplan.errors import InputError, nearest
from capplan.visible_text import broken_name_rule

LANGUAGE = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

_BRIEF = reprlib.Repr()  # shows only the first levels of a deep table
_BRIEF.maxstring = _BRIEF.maxother = 100


def checked_name(text: str) -> str:
    """Return a name if terminals, tables and spreadsheets display it unchanged; refuse it otherwise.

    Raises
    ------
    InputError
        If it breaks a rule of names.
    """
    rule = broken_name_rule(text)
    if rule is not None:
        raise InputError(f"the name {_BRIEF.repr(text)} {rule}")
    return text


Name = Annotated[str, Field(min_length=1), AfterValidator(checked_name)]
"""A name: shown characters only, and none in front that begins a formula in a spreadsheet."""
StepName = Annotated[str, AfterValidator(lambda text: checked_name(text) if text else text)]
"""The name of a step; empty if its place names it."""

# Pydantic reports a misspelt key twice, as unknown and as missing; the unknown one is more helpful.
_UNKNOWN = ("unexpected_keyword_argument", "extra_forbidden")
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")
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
    "bool_parsing": "must be true or false",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    "finite_number": "must be a finite number",
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_too_short": "must not be empty",
    "too_short": "must have at least {min_length} of them",
}


def _names(type_: type) -> list[str]:
    return list(getattr(type_, "__dataclass_fields__", ()))


class _Explained(type):
    """Raises `InputError` instead of pydantic's report when a construct is created in Python.

    It is a metaclass because pydantic replaces `__init__` when it completes a class with forward references.
    """

    if not TYPE_CHECKING:  # type checkers infer the constructor from the fields

        def __call__(cls, *args: Any, **keywords: Any) -> Any:
            try:
                return super().__call__(*args, **keywords)
            except ValidationError as error:
                named = dict(zip(_names(cls), args, strict=False))
                raise explained(error, cls, {**named, **keywords}, cls.in_messages()) from None


class Construct(metaclass=_Explained):
    """Base class of the language's dataclasses: a bad value raises `InputError`, in Python as in a file."""

    @classmethod
    def in_messages(cls) -> str:
        """Return how a refusal begins: with the name that the construct has in Python and in a file."""
        return cls.__name__


@lru_cache(maxsize=64)
def adapter(type_: Any) -> TypeAdapter[Any]:
    """Return pydantic's validator for `type_`; cached."""
    return TypeAdapter(type_)


@lru_cache(maxsize=64)
def _schema(type_: Any) -> dict[str, Any]:
    return adapter(type_).json_schema()


def explained(error: ValidationError, type_: Any, data: Any, where: str) -> InputError:
    """Convert a pydantic report to an `InputError` of one sentence.

    Parameters
    ----------
    error : ValidationError
        The report. Of several mistakes, unknown keys come first and missing keys last.
    type_ : type
        The type that `data` should have had.
    data : Any
        The rejected data, for the names in the place (`stations['cassandra'].servers`).
    where : str
        File or construct, for the start of the sentence; empty if the rest says enough.

    Returns
    -------
    InputError
        To be raised by the caller.
    """
    rank = {**dict.fromkeys(_UNKNOWN, 0), "union_tag_invalid": 1, **dict.fromkeys(_MISSING, 3)}
    first = min(error.errors(include_url=False), key=lambda item: rank.get(item["type"], 2))
    location = list(first["loc"])
    if location and isinstance(location[0], int) and isinstance(type_, type) and issubclass(type_, Construct):
        location[0] = _names(type_)[location[0]]  # a positional argument
    sentence = _sentence(dict(first), type_, location, data)
    return InputError(f"{where}: {sentence}" if where else sentence)


def _sentence(error: dict[str, Any], type_: Any, location: list[int | str], data: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _UNKNOWN or kind in _MISSING:
        place, node = _place(_schema(type_), location[:-1], data)
        inside = f" in {place}" if place else ""
        if kind in _MISSING:
            return f"key {location[-1]!r} is missing{inside}"
        return f"unknown key {location[-1]!r}{inside}{nearest(str(location[-1]), node.get('properties', {}))}"
    place, node = _place(_schema(type_), location, data)
    if kind == "value_error":
        return f"{place}: {context['error']}" if place else str(context["error"])
    if kind in _TOO_DEEP:
        return f"{_short(place)} is nested too deeply"
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        key, known = context["discriminator"], node.get("discriminator", {}).get("mapping", {})
        if kind == "union_tag_invalid":
            close = nearest(str(context["tag"]), known)
            return f"{place} has the unknown {key.strip(chr(39))} {context['tag']!r}{close}"
        return f"key {key} is missing in {place}; known: {', '.join(sorted(known))}"
    rule = _WANTED[kind].format(**context) if kind in _WANTED else re.sub(r"^\w+ should", "must", error["msg"])
    close = nearest(error["input"], node.get("enum", ())) if isinstance(error["input"], str) else ""
    return f"{place or 'it'} = {_short(error['input'])} {rule}{close}"


def _short(value: Any) -> str:
    text = _BRIEF.repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(root: dict[str, Any], location: list[int | str], data: Any) -> tuple[str, dict[str, Any]]:
    """Return a location as text, and its schema.

    Pydantic's locations contain the kinds of unions (`flow`, `sequence`, `steps`), which are not keys of the document.
    The schema distinguishes them from keys.
    """
    node, path = _resolved(root, root), ""
    for part in location:
        kinds = node.get("discriminator", {}).get("mapping", {})
        if part in kinds:
            node = _resolved(root, {"$ref": kinds[part]})
        elif "anyOf" in node and isinstance(part, str):
            node = {}  # the branch of a union that pydantic tried
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
    """Return the name of a list element, or its index if it has no name."""
    name = data.get("name") if isinstance(data, Mapping) else getattr(data, "name", None)
    return name if isinstance(name, str) and name else index


def _resolved(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Follow references, and reduce `X | None` to X."""
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[1]]
            continue
        branches = [branch for branch in node["anyOf"] if branch.get("type") != "null"]
        if len(branches) != 1:
            break
        node = branches[0]
    return node


Value = TypeVar("Value")


def at_draw(value: Value, number: int) -> Value:
    """Replace every array over draws in a value by its element for one draw.

    Parts without arrays stay the same objects. An object that occurs several times is converted once.

    Parameters
    ----------
    value : number, array or construct
        A number, an array (draws,), or a construct that contains them: a distribution, a step, a network.
    number : int
        Index of the draw, from 0.

    Returns
    -------
    Value
        Of the same type; a float for an array.
    """
    return cast("Value", _at_draw(value, number, {}))


def _at_draw(value: object, number: int, made: dict[int, object]) -> object:
    if isinstance(value, np.ndarray):
        return float(value[number])
    if not isinstance(value, tuple) and not is_dataclass(value):
        return value
    if id(value) not in made:
        made[id(value)] = _remade(value, number, made)
    return made[id(value)]


def _remade(value: object, number: int, made: dict[int, object]) -> object:
    if isinstance(value, tuple):
        parts = tuple(_at_draw(part, number, made) for part in value)
        return value if all(map(_same, parts, value)) else parts
    if not is_dataclass(value) or isinstance(value, type):
        return value
    before = {field.name: getattr(value, field.name) for field in fields(value)}
    after = {name: _at_draw(part, number, made) for name, part in before.items()}
    return value if all(map(_same, before.values(), after.values())) else replace(value, **after)


def _same(one: object, other: object) -> bool:
    return one is other


def as_key(value: object) -> Hashable:
    """Return a hashable key for a value: the value itself, or its contents if it holds arrays."""
    try:
        hash(value)
    except TypeError:
        return _parts(value)
    return value


def _parts(value: object) -> Hashable:
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(map(as_key, value))
    if is_dataclass(value):
        return type(value), tuple(as_key(getattr(value, field.name)) for field in fields(value))
    raise TypeError(f"{value!r} is not a construct of the language")
