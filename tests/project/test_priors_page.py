"""docs/reference/priors.md agrees with the kept predictions, and these with the packaged fitted files."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from capplan.systems.registry import documented_names, system

AGAIN = "uv run python docs/generate/priors.py"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate" / "priors.py"))


@pytest.fixture(scope="module")
def kept(script: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(script["KEPT"].read_text(encoding="utf-8"))
    return found


def test_the_page_is_up_to_date(script: dict[str, Any], kept: dict[str, Any]) -> None:
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](kept), f"stale: {AGAIN} --page"


@pytest.mark.parametrize("name", documented_names())
def test_every_scored_figure_was_predicted_in_every_run(
    name: str, script: dict[str, Any], kept: dict[str, Any]
) -> None:
    documented, runs = kept[name]["documented"], kept[name]["runs"]

    assert documented == script["scored"](system(name), system(name).fitted()), f"stale: {AGAIN}"
    assert len(runs) == len(script["runs_of"](name))
    assert all(documented.keys() <= run[which].keys() for run in runs for which in ("fitted", "left_out"))
