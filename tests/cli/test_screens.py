"""Answers for people fit the screen, and have nothing that is cut off, coloured or no number."""

import re
import shlex
from pathlib import Path

import pytest

from capplan.cli.main import main

ROOT = Path(__file__).parents[2]
NARROW = (
    "predict vcider --rf 3 --column-bytes 512",
    "predict docs/examples/pauses-and-a-lost-node.toml --budget 20ms",
    "size fedora4 --tps 200 --nodes 1..6 --survive node,node+cold --growth 30%/y --years 2 --processes 1",
    "outages fedora4 --tps 100 --engine analytic --replications 2 --at 20s --for 20s --after 20s --processes 1",
    "demand docs/examples/demand.toml",
)
USUAL = (
    "simulate fedora4 --tps 60 --duration 2s --replications 2 --processes 1",
    "simulate fedora4 --tps 20 --duration 1s --warmup 999ms",
    "simulate docs/examples/pauses-and-a-lost-node.toml --engine simpy --duration 3s --tps 2500",
    "sweep --dcs 1..2 --cass-nodes 2,3 --load 50%,110% --draws 2 --processes 1",
    "systems",
    "evidence list arion",
    "evidence audit openprovider",
    "evidence audit arion",
    "evidence audit docs/examples/measured-later.csv",
    "evidence show steps.table arion",
    "validate vcider",
)
BAD = re.compile(r"\x1b|…|\bnan\b|\binf\b")


@pytest.mark.parametrize(
    ("command", "columns"), [(each, 60) for each in NARROW] + [(each, 80) for each in NARROW + USUAL]
)
def test_an_answer_fits_the_screen(
    command: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(shlex.split(command)) in (0, 1)
    lines = capsys.readouterr().out.splitlines()

    assert lines
    assert [line for line in lines if len(line) > columns or BAD.search(line)] == []
    assert command not in NARROW or all(line == line.rstrip() for line in lines)
