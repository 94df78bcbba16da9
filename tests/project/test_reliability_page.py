"""The page on reliability says what the last `just faults` counted."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date() -> None:
    script = runpy.run_path(str(DOCS / "generate" / "reliability.py"))

    assert (DOCS / "reference" / "reliability.md").read_text(encoding="utf-8") == script["generated"]()
