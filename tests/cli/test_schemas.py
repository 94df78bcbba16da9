"""JSON names its schema and follows it, also where no other test looks, and CSV has the same gaps."""

import csv
import io
import json

import jsonschema
import pytest

from capplan.answers.verb_answer import VerbAnswer
from capplan.cli.main import main
from capplan.evidence.table import DocumentedFigures
from capplan.lab.collectors.collector import CollectorList
from capplan.planner.sweep import SweepTable
from capplan.systems.registry import KnownSystems

OVERLOADED = ["sweep", "rhino-shcm", "--tps", "8000", "--engine", "analytic", "--processes", "1"]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (OVERLOADED, SweepTable),
        (["systems"], KnownSystems),
        (["collect"], CollectorList),
        (["evidence", "list", "fedora4"], DocumentedFigures),
        (["evidence", "show", "ts1.acct_mean"], DocumentedFigures),
    ],
)
def test_json_follows_its_schema(
    command: list[str], answer: type[VerbAnswer], capsys: pytest.CaptureFixture[str]
) -> None:
    main([*command, "--json"])
    jsonschema.validate(json.loads(capsys.readouterr().out), answer.json_schema())


def test_unbounded_numbers_are_empty_cells_where_json_has_null(capsys: pytest.CaptureFixture[str]) -> None:
    main([*OVERLOADED, "--json"])
    points = json.loads(capsys.readouterr().out)["points"]
    main([*OVERLOADED, "--csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert any(point["request_p99_ms"] is None for point in points)
    assert [{name for name, cell in row.items() if not cell} for row in rows] == [
        {name for name, cell in point.items() if cell is None} for point in points
    ]
