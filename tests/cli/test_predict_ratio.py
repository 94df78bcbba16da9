"""`capplan predict vcider`: a system of ratios as text, JSON and CSV."""

import csv
import io

import pytest
from tests.cli.commands import answered
from tests.planner.predictions import predicted

ASKED = ("vcider", "--rf", "3", "--column-bytes", "512")
MADE = predicted("vcider", "compiled", rf=3, column_bytes=512)


def test_csv_has_the_ratio_to_each_reference(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(answered(capsys, "predict", *ASKED, "--csv"))))

    assert [row["quantity"] for row in rows] == [f"throughput_ratio.{name}" for name in MADE.throughput_ratios]
    for row, band in zip(rows, MADE.throughput_ratios.values(), strict=True):
        shown = [float(row[name]) for name in ("value", "low", "high")]
        assert shown == pytest.approx([band.value, band.low, band.high], rel=1e-3)
        assert (row["unit"], row["basis"]) == ("1", "extrapolated")
