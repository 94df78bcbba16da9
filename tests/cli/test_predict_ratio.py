"""`capplan predict vcider`: a system of ratios as text, JSON and CSV."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest
from tests.planner.predictions import predicted

from capplan.cli.main import main
from capplan.models.number_words import significant
from capplan.planner.predict.prediction import Prediction

ASKED = ("vcider", "--rf", "3", "--column-bytes", "512")
MADE = predicted("vcider", "compiled", rf=3, column_bytes=512)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["predict", *ASKED, *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("columns", [80, 120])
def test_people_read_it_in_so_many_columns(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out = ran(capsys)

    assert max(map(len, out.splitlines())) <= columns
    assert "…" not in out
    assert "\x1b" not in out
    for name, band in MADE.throughput_ratios.items():
        (line,) = [line for line in out.splitlines() if line.strip().startswith(name)]
        assert significant(band.value) in line


def test_json_is_the_prediction_and_valid(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--json"))

    jsonschema.Draft202012Validator(Prediction.json_schema()).validate(document)
    assert document == json.loads(json.dumps(MADE.to_json()))
    assert document["capacity"] is None
    assert document["scenario"]["column_bytes"] == 512


def test_csv_has_the_ratio_to_each_reference(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, "--csv"))))

    assert [row["quantity"] for row in rows] == [f"throughput_ratio.{name}" for name in MADE.throughput_ratios]
    for row, band in zip(rows, MADE.throughput_ratios.values(), strict=True):
        shown = [float(row[name]) for name in ("value", "low", "high")]
        assert shown == pytest.approx([band.value, band.low, band.high], rel=1e-3)
        assert (row["unit"], row["basis"]) == ("1", "extrapolated")


def test_its_plot_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran(capsys, "--plot", str(tmp_path / "ratios.html"))

    assert "native, internode encryption" in (tmp_path / "ratios.html").read_text(encoding="utf-8")
