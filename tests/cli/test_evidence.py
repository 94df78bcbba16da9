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


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


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


@pytest.mark.parametrize(
    "arguments",
    [
        ["systems"],
        *(["evidence", verb, system] for verb in ("list", "audit") for system in registry.documented_names()),
        ["evidence", "show", "ts4-ldap.auth_ratio"],
        ["evidence", "show", "t4.p99", "rhino-shcm"],
        ["evidence", "show", "region.asia.r600.mean", "fedora4"],
        ["evidence", "show", "r1.both.c128"],
        ["evidence", "show", "steps.table", "arion"],
    ],
)
def test_people_read_it_in_eighty_columns(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, *arguments)

    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "…" not in out


def test_the_list_has_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "evidence", "list", "openprovider")

    shown = [line.split()[0] for line in out.splitlines()[2 : 2 + len(ROWS)]]
    assert shown == [row.id for row in ROWS]
    assert "7000/s  [6900, 7100]" in out
    assert "15 min  [14.5, 15.5]" in out
    assert "150 km  or more" in out


def test_the_list_for_programs_is_in_si(capsys: pytest.CaptureFixture[str]) -> None:
    mean = next(row for row in in_json(capsys, "evidence", "list") if row["id"] == "ts1.acct_mean")
    cells = next(row for row in in_csv(capsys, "evidence", "list") if row["id"] == "ts1.acct_mean")

    assert (mean["value"], mean["low"], mean["high"], mean["unit"]) == (0.004, 0.00375, 0.00425, "s")
    assert (cells["value"], cells["unit"], cells["written"]) == ("0.004", "s", "4 ms")


def test_the_layout_is_text_for_people_and_tables_and_an_object_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    text, layout = "region=asia tps=600", {"region": "asia", "tps": "600"}
    name = ("region.asia.r600.mean", "fedora4")

    assert in_json(capsys, "evidence", "show", *name)["row"]["layout"] == layout
    assert in_csv(capsys, "evidence", "show", *name)[0]["layout"] == text
    assert text in said(capsys, "evidence", "show", *name)
    assert "  layout" not in said(capsys, "evidence", "show", "ts1.auth_mean")


@pytest.mark.parametrize("arguments", [["t4.p99"], ["t4.p99", "rhino-shcm"], ["rhino-shcm", "t4.p99"]])
def test_an_id_is_found_in_any_system_and_in_either_order(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_json(capsys, "evidence", "show", *arguments)["row"]["system"] == "rhino-shcm"


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
    rows = {row["id"]: row for row in in_json(capsys, "evidence", "list")}

    assert rows["all.cass_version"]["value"] is None
    assert rows["all.dc_distance"]["high"] is None


def test_show_has_the_fields_and_the_source(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "evidence", "show", "ts1.proxy.outgoing")

    assert "14000/s [13800, 14200]" in out
    assert "contradictory" in out
    assert "vendor blog post" in out
    assert in_json(capsys, "evidence", "show", "ts1.proxy.outgoing")["source"]["id"] == "openprovider"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_can_be_shown(row: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert row.locator.split()[0] in said(capsys, "evidence", "show", row.id)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "ts1.acct_men"], "'ts1.acct_men' is not the id of a row of evidence; did you mean 'ts1.acct_mean'?"),
        (["show", "?"], "'?' is not the id of a row of evidence; see 'capplan evidence list SYSTEM'"),
        (["show", "?", "fedora4"], "'?' is not the id of a row of evidence; see 'capplan evidence list fedora4'"),
        (["show", "t4.p99", "fedora5"], "system 'fedora5' does not exist; did you mean 'fedora4'?"),
        (["list", "openprovidr"], "system 'openprovidr' does not exist; did you mean 'openprovider'?"),
        (["audit", "openprovidr"], "system 'openprovidr' does not exist; did you mean 'openprovider'?"),
    ],
)
def test_unknown_names(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evidence", *arguments]) == 2
    assert capsys.readouterr().err == f"capplan: {sentence}\n"


def test_the_audit_prints_every_contradiction_and_every_gap(capsys: pytest.CaptureFixture[str]) -> None:
    report = audit("openprovider")
    out = said(capsys, "evidence", "audit")

    for finding in (*report.refused, *report.readings):
        assert finding.rule in out
    for busy in ("26.7 [24.6, 28.8]", "15.8 [14.6, 16.9]", "14.4 [13.4, 15.4]", "10.1 [9.4, 10.8]"):
        assert busy in out
    table = out[out.index("Busy workers") : out.index("Register")]
    assert all(gap.scenario in table for gap in report.worker_gaps)


@pytest.mark.parametrize("system", ["rhino-shcm", "fedora4", "vcider", "arion"])
def test_the_audit_of_the_other_systems_prints_every_contradiction_and_no_workers(
    system: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report = audit(system)
    out = said(capsys, "evidence", "audit", system)

    assert report.refused
    for finding in (*report.refused, *report.readings):
        assert finding.rule in out
    assert "Busy workers" not in out


def test_the_audit_lists_what_the_document_does_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    report = audit("arion")
    out = said(capsys, "evidence", "audit", "arion")
    missing = out[out.index("its text does not have") :]

    assert len(report.missing) == 18
    assert all(row.id in missing for row in report.missing)
    assert "2 charts (QPS, latency)" in " ".join(missing.split())
    assert [row["id"] for row in in_json(capsys, "evidence", "audit", "arion")["missing"]] == [
        row.id for row in report.missing
    ]
    assert "does not have" not in said(capsys, "evidence", "audit", "fedora4")


def test_the_audit_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    report = audit("openprovider")
    rows = in_csv(capsys, "evidence", "audit")
    whole = in_json(capsys, "evidence", "audit")

    jsonschema.validate(whole, Audit.json_schema())
    assert len(rows) == len(whole["findings"]) == len(report.findings)
    assert whole["data_hash"] == report.data_hash
    assert len(whole["worker_gaps"]) == len(report.worker_gaps)


def test_systems(capsys: pytest.CaptureFixture[str]) -> None:
    system = next(each for each in in_json(capsys, "systems") if each["name"] == "openprovider")
    cells = {each["name"]: each for each in in_csv(capsys, "systems")}

    assert cells["openprovider"]["models"] == system["models"]
    assert set(cells) == set(registry.names())
    assert system["evidence"]["figures"] == len(ROWS)
    assert "--cass-nodes" in system["options"]
    assert "--rtt" in said(capsys, "systems")
