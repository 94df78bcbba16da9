"""The architecture page: its tree is that of the code, and the files that it names exist."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


def test_the_tree_is_that_of_the_code() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate" / "architecture.py"))["page"]()

    assert PAGE.read_text("utf-8") == made, "stale: uv run python docs/generate/architecture.py"


def test_every_file_that_is_named_exists() -> None:
    named = re.findall(r"`((?:cli|planner|systems|lab|calibration|simulator|models)/[\w/.]+)`", PAGE.read_text("utf-8"))

    assert named
    assert [path for path in named if not (ROOT / "src" / "capplan" / path).exists()] == []
