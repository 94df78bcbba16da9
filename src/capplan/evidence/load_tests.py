"""The load-test table `capplan.load-tests/1`: one row per run and request class, of any tool and any system.

Its rows are in a module of their own, which does without pandas: a prediction from a fitted file reads no table.
"""

from __future__ import annotations

from typing import Any

from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.typed_table import TypedTable
from capplan.models.language.document import schema

SCHEMA = "capplan.load-tests/1"
LOAD_TESTS = TypedTable(LoadTestRow, "a load-test table", SCHEMA)
"""The load-test table: `LOAD_TESTS.read(path)` returns a data frame, `LOAD_TESTS.rows(frame)` typed rows."""


def load_tests_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a load-test table as an array of rows."""
    return table_schema(LoadTestRow, SCHEMA)


def table_schema(row: type, name: str) -> dict[str, Any]:
    """Return the JSON schema of an array of rows; every cell may be missing, no other is allowed."""
    found = schema(row)
    dialect = found.pop("$schema")
    for field in found["properties"].values():
        field.pop("default", None)
    return {"$schema": dialect, "title": name, "type": "array", "items": {**found, "additionalProperties": False}}
