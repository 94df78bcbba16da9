"""`capplan proposal` writes what its endings say, `capplan verify` checks it, and bad input is one sentence."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.systems.prior_draws import prior_draws

from capplan.cli.main import main
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import write
from capplan.systems.registry import system

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


CLOSED = LoadTestRow(rf=3, cass_nodes=3, clients=8, load_kind="closed", throughput_tps=900.0)
FITTED = {
    "cassandra": [replace(CLOSED, read_fraction=0.0)],
    "two-tier": [replace(CLOSED, request_class="write", node_cores=8.0, front_nodes=3, front_cores=8.0)],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        *(f"openprovider --dcs 2 --rf {rf} --cass-nodes 7..8 --tps 1000 --data-factor 1" for rf in (1, 6, 7)),
        "openprovider --dcs 2 --rf 4 --cass-nodes 4..6 --tps 3000 --data-factor 1",
        "openprovider --dcs 3 --rf 3/3/2 --cass-nodes 6 --tps 1000 --data-factor 1",
        "openprovider --dcs 2 --client-share 60%/40% --cass-nodes 4 --front-nodes 2 --tps 500",
        *(
            f"openprovider --cass-nodes 5 --consistency-read {level} --tps 500 --data-factor 1"
            for level in ("ONE", "ALL")
        ),
        *(
            f"openprovider --cass-nodes 6 --consistency-write {level} --tps 500 --data-factor 1"
            for level in ("TWO", "EACH_QUORUM")
        ),
        "openprovider --rf 2 --cass-nodes 4 --consistency-write THREE --tps 500 --data-factor 1",
        "rhino-shcm --rf 5 --cass-nodes 5..6 --tps 300",
        "fedora4 --nodes 1..3 --tps 100",
        "arion --servers 1..4 --tps 1000",
        "cassandra.json --rf 5 --cass-nodes 5..6 --read-fraction 50% --tps 1000",
        "cassandra.json --dcs 2 --rf 4/2 --cass-nodes 6 --consistency-write QUORUM --tps 1000",
        "two-tier.json --rf 5 --store-nodes 5..6 --tps 300",
    ],
)
def test_what_is_sized_is_proposed_in_every_format(
    layout: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows in FITTED.items():
        write(prior_draws(system(name), rows), tmp_path / f"{name}.json")  # type: ignore[arg-type]  # both are of tables
    asked = [*layout.split(), "--engine", "analytic", "--processes", "1"]
    sized = main(["size", *asked])
    outputs = [f"p{ending}" for ending in (".json", ".html", ".pdf", ".xlsx")]
    code = main(["proposal", *asked, "--customer", "Example Ltd", *(word for path in outputs for word in ("-o", path))])
    assert (code, sized) == (0, 0), capsys.readouterr().err
    assert all(Path(path).stat().st_size for path in outputs)
