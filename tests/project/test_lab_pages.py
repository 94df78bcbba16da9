"""Pages of what a lab was measured for agree with their tables."""

import runpy
from pathlib import Path

import pytest

GENERATE = Path(__file__).parents[2] / "docs" / "generate"


@pytest.mark.parametrize("name", ["maintenance", "load_generators"])
def test_the_page_is_up_to_date(name: str) -> None:
    script = runpy.run_path(str(GENERATE / f"{name}.py"))
    assert script["PAGE"].read_text("utf-8") == script["page"](), f"uv run python docs/generate/{name}.py"


@pytest.mark.parametrize("name", ["maintenance", "load_generators", "data_volume"])
def test_what_measured_for_a_page_can_be_loaded(name: str) -> None:
    assert callable(runpy.run_path(str(GENERATE / f"{name}_runs.py"))["main"])
