"""`capplan systems` and `capplan evidence`: tables for people in 80 columns, JSON and CSV for programs."""

import csv
import io
import json
from typing import Any

import jsonschema
import pytest

from capplan.cli import evidence
from capplan.cli.main import main
from capplan.evidence.audit.audit import Audit
from capplan.planner.audit import audit
from capplan.systems import registry

ROWS = registry.system("openprovider").evidence


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run, and return stdout. Every documented system contradicts itself somewhere, so that its audit exits with 1."""
    assert main(arguments) == (1 if "audit" in arguments else 0)
    out, err = capsys.readouterr()
    assert err == ""
    return out


def in_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(said(capsys, *arguments, "--json"))


def in_csv(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(said(capsys, *arguments, "--csv"))))


def test_the_list_for_programs_is_in_si(capsys: pytest.CaptureFixture[str]) -> None:
    mean = next(row for row in in_json(capsys, "evidence", "list")["figures"] if row["id"] == "ts1.acct_mean")
    cells = next(row for row in in_csv(capsys, "evidence", "list") if row["id"] == "ts1.acct_mean")

    assert (mean["value"], mean["low"], mean["high"], mean["unit"]) == (0.004, 0.00375, 0.00425, "s")
    assert (cells["value"], cells["unit"], cells["written"]) == ("0.004", "s", "4 ms")


@pytest.mark.parametrize("arguments", [["t4.p99"], ["t4.p99", "rhino-shcm"], ["rhino-shcm", "t4.p99"]])
def test_an_id_is_found_in_any_system_and_in_either_order(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_json(capsys, "evidence", "show", *arguments)["figures"][0]["system"] == "rhino-shcm"


def test_an_id_that_two_systems_have_needs_the_system(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evidence, "system", lambda _: registry.system("openprovider"))

    assert main(["evidence", "show", ROWS[0].id]) == 2
    assert capsys.readouterr().err == (
        f"capplan: {ROWS[0].id!r} is the id of rows of {' and '.join(registry.names())}: name the system after it\n"
    )


@pytest.mark.parametrize("system", registry.documented_names())
def test_the_footer_of_a_list_has_a_command_that_works(system: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = " ".join(said(capsys, "evidence", "list", system).split()).rpartition("All of one: capplan ")[2]

    assert said(capsys, *command.split()).splitlines()[0] == registry.system(system).evidence[0].id


def test_words_and_open_ends_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["id"]: row for row in in_json(capsys, "evidence", "list")["figures"]}

    assert rows["all.cass_version"]["value"] is None
    assert rows["all.dc_distance"]["high"] is None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_can_be_shown(row: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert row.locator.split()[0] in said(capsys, "evidence", "show", row.id)


def test_the_audit_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    report = audit("openprovider")
    rows = in_csv(capsys, "evidence", "audit")
    whole = in_json(capsys, "evidence", "audit")

    jsonschema.validate(whole, Audit.json_schema())
    assert len(rows) == len(whole["findings"]) == len(report.findings)
    assert whole["data_hash"] == report.data_hash
