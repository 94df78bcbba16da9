"""The load-test table `capplan.load-tests/1`: one row per run and request class, of any tool and any system.

Its rows are in a module of their own, which does without pandas: a prediction from a fitted file reads no table.
"""

from __future__ import annotations

from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.typed_table import TypedTable

LOAD_TESTS = TypedTable(LoadTestRow, "a load-test table", "capplan.load-tests/1")
"""The load-test table: `LOAD_TESTS.read(path)` returns a data frame, `LOAD_TESTS.rows(frame)` typed rows."""
