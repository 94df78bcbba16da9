"""`capplan validate`: every documented figure beside the prediction; exit 1 where a goal is missed."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import pytest

import capplan.calibration.validate as validation
from capplan.calibration.fitted_file import load
from capplan.calibration.openprovider_figures import STUDY
from capplan.calibration.validate import validate
from capplan.cli.main import main

FITTED = load("openprovider")
REPORT = validate(FITTED)


def ran(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["validate", *arguments]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.fixture
def missed(monkeypatch: pytest.MonkeyPatch) -> str:
    """The system, as if its model said one rate 4 % too high and everything else as documented."""
    said = {figure.id: np.array([figure.documented]) for figure in FITTED.figures}
    said["ts2.incoming"] = 1.04 * said["ts2.incoming"]
    monkeypatch.setattr(validation, "study", lambda _: replace(STUDY, predicted=lambda *_: said))
    return "openprovider"


def test_the_packaged_fit_passes(capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, "openprovider")

    line = " ".join(out.split())
    assert line.startswith("openprovider: 15 of 15 figures with a goal are met; 5 others are compared without one, the")
    assert "MISSED" not in out
    assert " ".join(REPORT.verdict.split()) in " ".join(out.split())


@pytest.mark.parametrize("columns", ["80", "120"])
def test_people_read_it_in_eighty_columns(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out = ran(capsys)

    assert max(map(len, out.splitlines())) <= int(columns)
    assert "\x1b" not in out
    assert "…" not in out
    for figure in REPORT.figures:
        assert f"{figure.error:+.1%}" in out
    for name in ("persistence", "linear", "affine", "USL"):
        assert name in out


def test_a_missed_goal_is_a_no(missed: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = ran(capsys, missed, code=1)

    assert "14 of 15" in out
    (line,) = [line for line in out.splitlines() if "MISSED" in line]
    assert line.split()[0] == "TS2"
    assert "+4.0%" in line


@pytest.mark.parametrize("format_", ["--json", "--csv"])
def test_a_missed_goal_is_a_no_for_programs_too(missed: str, format_: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "ts2.incoming" in ran(capsys, missed, format_, code=1)


def test_the_other_systems_in_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rhino, fedora = ran(capsys, "rhino-shcm"), ran(capsys, "fedora4")

    for out in (rhino, fedora):
        assert max(map(len, out.splitlines())) <= 80
        assert "…" not in out
    assert "7 of 7 figures with a goal are met, and 3 of 3 goals that figures share; 45 others" in " ".join(
        rhino.split()
    )
    assert "20 of 20 figures with a goal are met; 37 others are compared without one, the largest error -4" in " ".join(
        fedora.split()
    )
    assert "2.80 cores" in rhino
    assert "request latency max" in rhino
    assert "90 % of parameters" not in rhino  # medians only


def test_the_band_of_what_is_left_out_is_that_of_the_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ran(capsys, "openprovider").splitlines()
    place = next(number for number, line in enumerate(lines) if "capplan, 90 %" in line)

    assert "of parameters" in lines[place + 1]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ran(capsys, "--json"))

    assert [figure["id"] for figure in document["figures"]] == [figure.id for figure in REPORT.figures]
    assert [figure["error"] for figure in document["figures"]] == pytest.approx([f.error for f in REPORT.figures])
    assert document["verdict"] == REPORT.verdict
    assert set(document["left_out"][0]["baselines"]) == {"persistence", "linear", "affine", "USL"}


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(ran(capsys, "--csv"))))

    assert [row["id"] for row in rows] == [figure.id for figure in REPORT.figures]
    assert {row["met"] for row in rows} == {"True", ""}
    for row in rows:
        assert float(row["error"]) == pytest.approx(float(row["predicted"]) / float(row["documented"]) - 1, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["openprovidr"], "did you mean 'openprovider'?"),
        (["missing.json"], "'missing.json' cannot be read"),
        (["--json", "--csv"], "exclude each other"),
        (["--sead", "1"], "'--sead'"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", *arguments]) == 2
    out, err = capsys.readouterr()

    assert out == ""
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert wanted in err
