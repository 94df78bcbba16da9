"""Load tests that documents print, as rows of a load-test table: the figures, and rules that see planted faults."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from capplan.evidence.audit.audit import audit_documents
from capplan.evidence.documented_runs import DocumentedRow, documented_runs
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.table import Evidence
from capplan.systems import registry


def rows_of(system: str) -> Mapping[tuple[str | None, str | None], DocumentedRow]:
    """The rows by run and class."""
    return {
        (each.row.run_id, each.row.request_class): each for each in documented_runs(registry.system(system).evidence)
    }


def test_rows_hold_what_the_documents_print() -> None:
    shcm = rows_of("rhino-shcm")["T4", "request"]
    assert (shcm.row.offered_tps, shcm.row.duration_s, shcm.row.load_kind) == (1800.0, 7200.0, "open")
    assert (shcm.row.latency_p50_ms, shcm.row.latency_p99_ms, shcm.row.latency_max_ms) == (4.3, 119.0, 837.9)
    assert shcm.rounding["latency_max_ms"] == pytest.approx(0.05)
    assert {"t4.p50", "t4.rps"} <= set(shcm.figures)
    whole, acct = rows_of("openprovider")["TS1", "all"], rows_of("openprovider")["TS1", "acct"]
    assert (whole.row.offered_tps, whole.row.cass_nodes, whole.row.load_kind) == (7000.0, 3, None)
    assert (acct.row.offered_tps, acct.row.latency_mean_ms) == (None, 4.0)
    reads = rows_of("fedora4")["throttled nodes=1 requests=3000", "read"].row
    assert (reads.offered_tps, reads.clients, reads.latency_mean_ms) == (50.0, 100, 21.0)


def test_claims_and_ratios_are_no_load_tests() -> None:
    assert not rows_of("vcider")
    claimed = {row.id for row in registry.system("arion").evidence if row.status == "claimed"}
    assert not claimed & {name for each in rows_of("arion").values() for name in each.figures}


@pytest.mark.parametrize("system", registry.documented_names())
def test_every_run_has_a_name_of_its_own_and_fits_the_table(system: str) -> None:
    found = documented_runs(registry.system(system).evidence)
    names = [(each.row.run_id, each.row.request_class) for each in found]
    assert len(set(names)) == len(names)
    assert list(LOAD_TESTS.rows(LOAD_TESTS.frame(each.row for each in found))) == [each.row for each in found]


def planted(system: str, row: str, figure_s: float, half_s: float) -> list[tuple[str, tuple[str, ...]]]:
    """Return what the rules refuse when a documented time is another."""

    def changed(each: Evidence) -> Evidence:
        return replace(each, value=figure_s, low=figure_s - half_s, high=figure_s + half_s) if each.id == row else each

    found = audit_documents(lambda _: (), map(changed, registry.system(system).evidence))
    return [(each.rule, each.figures) for each in found.refused]


def test_the_rules_for_tables_find_a_fault_in_a_document_and_allow_for_its_rounding() -> None:
    ((rule, figures),) = planted("rhino-shcm", "t4.p99", 0.030, 0.0005)  # below the 95th percentile of 37.1 ms
    assert rule == "percentile-order"
    assert "t4.p99" in figures
    assert not planted("rhino-shcm", "t4.p99", 0.030, 0.010)
    assert not planted("rhino-shcm", "t4.p99", 0.119, 0.0005)
