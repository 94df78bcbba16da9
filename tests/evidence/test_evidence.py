"""Rules that the evidence of every documented system follows."""

import math
from collections import Counter

import pytest

from capplan.evidence.table import UNITS, Evidence
from capplan.systems import registry

SI = {unit for unit, _ in UNITS.values()}
EVERY_ROW = [row for system in registry.documented_names() for row in registry.system(system).evidence]


def ids(rows: list[Evidence]) -> list[str]:
    """Return the ids of rows, each with its system."""
    return [f"{row.system} {row.id}" for row in rows]


@pytest.mark.parametrize("system", registry.documented_names())
def test_every_row_is_of_its_system_and_every_source_is_used(system: str) -> None:
    assert {row.system for row in registry.system(system).evidence} == {system}
    assert {row.source for row in registry.system(system).evidence} == {
        source.id for source in registry.system(system).sources
    }


@pytest.mark.parametrize("system", registry.documented_names())
def test_every_source_has_a_citation_its_dating_and_its_defects(system: str) -> None:
    for source in registry.system(system).sources:
        assert source.citation
        assert source.dating
        assert source.kind


def test_every_row_has_its_place_and_unit_and_is_named_for_its_scenario() -> None:
    assert not ids([row for row in EVERY_ROW if not row.locator or row.unit not in SI])
    assert not ids([row for row in EVERY_ROW if not row.id.startswith(f"{row.scenario.lower()}.")])


def test_a_figure_has_an_interval_with_its_rule_and_a_fact_in_words_has_neither() -> None:
    figures = [row for row in EVERY_ROW if not row.text]
    assert not ids([row for row in figures if not row.low <= row.value <= row.high or not row.rounding])
    assert all(math.isnan(row.value) for row in EVERY_ROW if row.text)


def test_what_is_printed_lies_within_its_interval_and_what_is_measured_has_one_of_its_size() -> None:
    measured = [row for row in EVERY_ROW if row.use == "fit" and not row.text]
    assert not ids([row for row in measured if row.high <= row.low])
    assert not ids([row for row in measured if row.value and (row.high - row.low) > 0.4 * abs(row.value)])


def test_rows_that_are_not_fitted_say_why() -> None:
    assert not ids([row for row in EVERY_ROW if row.use in ("check", "excluded") and not row.reason])


def test_what_is_fitted_is_a_number_of_a_fold_that_nothing_refutes() -> None:
    fitted = [row for row in EVERY_ROW if row.use == "fit"]
    assert {row.system for row in fitted} == set(registry.documented_names())
    assert not ids([row for row in fitted if row.text or not row.fold])
    assert not ids([row for row in fitted if row.status not in ("measured", "derived")])


def test_an_experiment_that_is_reported_twice_is_fitted_once() -> None:
    seen = Counter(
        (row.system, row.duplicate_group, row.quantity, row.request_class, row.statistic, tuple(row.layout.items()))
        for row in EVERY_ROW
        if row.use == "fit" and row.duplicate_group
    )
    assert [one for one, count in seen.items() if count > 1] == []


def test_what_the_document_lacks_is_named_and_has_no_figure() -> None:
    missing = [row for row in EVERY_ROW if row.status == "missing"]
    assert not ids([row for row in missing if not row.text or row.use != "excluded"])


def test_figures_that_are_read_from_words_are_not_measured() -> None:
    assert not ids([row for row in EVERY_ROW if row.status == "measured" and "read as" in row.rounding])
