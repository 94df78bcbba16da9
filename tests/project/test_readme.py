"""The numbers that the README copies by hand are those of the system and of the pages that measure it."""

import re
from pathlib import Path

import numpy as np
import pytest

from capplan.systems.registry import resolve, scenario

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("front_s", "0.1 ms CPU"),
        ("coordinator_s", "0.15 ms CPU"),
        ("replica_read_s", "1.26 ms CPU a read"),
        ("mutation_s", "0.77 ms CPU a write"),
        ("storage_s", "0.13 ms commit log"),
    ],
)
def test_the_drawing_shows_medians_of_the_default_system(name: str, shown: str) -> None:
    number = shown.split()[0]

    assert shown in README
    assert f"{1e3 * float(np.median(resolve(scenario()).values[name])):.{len(number) - 2}f}" == number


def test_reasons_to_trust_it_stand_on_the_pages_that_measure() -> None:
    texts = ((ROOT / "docs" / name).read_text("utf-8") for name in ("validation.md", "live-validation.md"))
    lines = [line.replace("\u00a0", " ") for text in texts for line in text.splitlines()]
    row = r"^\| .* \| ([\d.,]+)(?: ms|/s) \(([^)]+)\) \| ([\d.,]+)(?: ms|/s) \| ([-+\d.]+ %) \|$"
    rows = re.findall(row, README, re.MULTILINE)

    assert len(rows) == 5
    for predicted, band, measured, error in rows:
        wanted = f"| {measured}", f"{predicted} ({band})", f"| {error} |"
        assert any(all(each in line for each in wanted) for line in lines), band
