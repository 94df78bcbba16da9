"""The answer of a verb as JSON, with the name and version of its schema, which the class defines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from capplan.answers.results import plain


class VerbAnswer:
    """Base class of the frozen data that a verb prints with `--json`.

    Attributes
    ----------
    SCHEMA : str
        Name and version of its schema, such as `capplan.sizing/1`.
    UNBOUNDED : iterable of (str, str)
        Classes and fields whose numbers may be unbounded or missing: JSON has no infinity, so they are null there.
    """

    SCHEMA: ClassVar[str]
    UNBOUNDED: ClassVar[Iterable[tuple[str, str]]] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types: tables, lists and finite numbers."""
        return {"schema": self.SCHEMA, **plain(self)}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema (draft 2020-12) of `to_json`, in which every key is required."""
        from capplan.models.language.document import schema  # it imports the whole language

        published = schema(cls)
        published["properties"] = {"schema": {"const": cls.SCHEMA, "type": "string"}, **published["properties"]}
        for part in (published, *published.get("$defs", {}).values()):
            part["additionalProperties"] = False
            part["required"] = list(part["properties"])
            for field in part["properties"].values():
                field.pop("default", None)  # what Python may leave out stands in the document
        for part, number in cls.UNBOUNDED:
            published["$defs"][part]["properties"][number]["type"] = ["number", "null"]
        return published


UNBOUNDED_BANDS = tuple(("Band", number) for number in ("value", "low", "high"))
"""The numbers of bands, which grow without bound where a layout is overloaded."""
