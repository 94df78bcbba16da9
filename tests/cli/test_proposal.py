"""`capplan proposal` writes what its endings say, `capplan verify` checks it, and bad input is one sentence."""

import json
import sys
from pathlib import Path

import pytest

from capplan.cli.main import main

ASKED = ["proposal", "fedora4", "--customer", "A & <b>B</b>", "--tps", "200", "--nodes", "1..4", "--engine", "analytic"]
ASKED += ["--processes", "1"]


@pytest.mark.slow
def test_every_ending_is_written_and_an_edited_proposal_is_not_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    endings = (".html", ".pdf", ".xlsx", ".json")
    assert main([*ASKED, *(word for ending in endings for word in ("-o", str(tmp_path / f"proposal{ending}")))]) == 0
    beginnings = {path.suffix: path.read_bytes()[:4] for path in tmp_path.iterdir()}
    assert beginnings == {".html": b"<!do", ".pdf": b"%PDF", ".xlsx": b"PK\x03\x04", ".json": b'{\n "'}
    content = json.loads((tmp_path / "proposal.json").read_text(encoding="utf-8"))
    content["sizing"]["chosen"]["cost"] = 0
    content["provenance"]["version"] = "0.0.1"
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert main(["verify", str(path), "--processes", "1"]) == 1
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert "digest" in out
    assert "0.0.1" in out
    assert "sizing.chosen.cost: 0 in the file" in out
    assert "\n1 of " in out  # no other value differs


def test_nothing_is_written_without_a_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "proposal.json"
    assert main([*ASKED, "--tps", "90000", "-o", str(path)]) == 1
    assert not path.exists()
    assert capsys.readouterr().err.startswith("capplan: there is nothing to propose")


@pytest.mark.parametrize(("ending", "library"), [("html", "matplotlib"), ("pdf", "typst"), ("xlsx", "xlsxwriter")])
def test_a_missing_library_is_named_before_anything_is_computed(
    ending: str, library: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    assert main([*ASKED, "-o", f"proposal.{ending}"]) == 2
    error = capsys.readouterr().err
    assert "--extra proposal" in error
    assert error.count("\n") == 1
