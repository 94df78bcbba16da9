"""The proposals under docs/examples are what the commands write today."""

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate" / "proposals.py"))
LARGEST = 6e6  # bytes: what a mail takes


@pytest.mark.slow
def test_the_example_proposals_are_those_of_today() -> None:
    for path, content in SCRIPT["generated"]().items():
        assert path.read_bytes() == content, "stale: uv run python docs/generate/proposals.py"
        assert len(content) < LARGEST
