"""docs/reference/data-volume.md agrees with the tables of its runs, and these with each other."""

import runpy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[2] / "docs" / "generate" / "data_volume.py"))


@pytest.fixture(scope="module")
def runs(script: dict[str, Any]) -> pd.DataFrame:
    found: pd.DataFrame = script["runs"]()
    return found


def test_the_page_is_up_to_date(script: dict[str, Any]) -> None:
    assert script["PAGE"].read_text(encoding="utf-8") == script["page"](), "uv run python docs/generate/data_volume.py"


def test_every_cell_was_measured_equally_often_and_answered_everything(runs: pd.DataFrame) -> None:
    counts = runs.groupby(["request_class", "load_kind", "state", "size"]).size()
    assert counts.nunique() == 1
    assert len(counts) == len(runs) / counts.iloc[0]
    assert not runs["errors"].any()
    assert not runs["generator_limited"].any()


def test_factors_are_against_the_smallest_compacted_data_of_the_same_repeat(runs: pd.DataFrame) -> None:
    fresh = (runs["state"] == "compacted") & (runs["size"] == 0.2)
    assert (runs.loc[fresh, "factor"] == 1.0).all()
    assert runs["factor"].notna().all()


def test_two_clocks_agree_on_the_cpu_of_a_request(runs: pd.DataFrame) -> None:
    """The column that load tests have, and user and system time that the kernel counts in ticks."""
    ratio = (runs["user_us"] + runs["system_us"]) / runs["cpu_us"]
    assert ratio.between(0.9, 1.15).all(), ratio.describe()
