"""What a proposal says of its load tests: predictions of rows that a refit has not seen, and the next test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from tests.planner.proposals import of_a_table
from tests.systems.prior_draws import prior_draws

from capplan.calibration.tables.row_predictions import predict_table
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import Fitted
from capplan.models.language.scenario import changed
from capplan.planner.next_test import next_test
from capplan.planner.proposal.evidence import fold_of, next_load_test, predicted_unseen, unseen_rows
from capplan.planner.proposal.proposal import Proposal, UnseenRows
from capplan.systems.cassandra import SYSTEM
from capplan.systems.registry import resolve

USUAL = LoadTestRow(rf=3, read_fraction=0.0, cass_nodes=3, load_kind="closed")


def curve(*clients: int, **cells: Any) -> list[LoadTestRow]:
    """Return rows with throughputs in proportion to their clients, and latencies."""
    return [replace(USUAL, clients=each, throughput_tps=900.0 * each, latency_p99_ms=9.0, **cells) for each in clients]


def test_of_one_layout_the_highest_quarter_of_the_loads_is_left_out() -> None:
    """All repeats of a load; at least one load, and none where two or fewer were tested."""
    rows = [*curve(1, 2, 4, 8, 16, 32, 64), *curve(64)]
    fold = fold_of(SYSTEM, rows)
    assert fold is not None
    assert fold.unseen == (5, 6, 7)
    assert fold_of(SYSTEM, curve(1, 2, 4)) is not None
    assert fold_of(SYSTEM, [*curve(1, 2), *curve(1, 2)]) is None


def test_of_several_layouts_the_fastest_is_left_out() -> None:
    fold = fold_of(SYSTEM, [*curve(8, 16, cass_nodes=6), *curve(4, 32), *curve(2, cass_nodes=9)])
    assert fold is not None
    assert fold.unseen == (2, 3)
    assert "3 nodes" in fold.words


def test_a_refit_sees_none_of_the_rows_that_it_predicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are those of the predictions of such a refit: errors of medians, and how many figures lie in bands."""
    rows, seen = curve(4, 16, 64), list[LoadTestRow]()

    def refit(its: Any, trained: Sequence[LoadTestRow], seed: int) -> Fitted:
        del seed
        seen.extend(trained)
        return prior_draws(its, trained)

    monkeypatch.setattr("capplan.planner.proposal.evidence.fit_table", refit)
    fold = fold_of(SYSTEM, rows)
    assert fold is not None
    found = predicted_unseen(SYSTEM, rows, fold, 1)
    assert [each.clients for each in seen] == [4, 16]
    assert {each.quantity for each in found} == {"throughput_tps", "latency_p99_ms"}
    known = {each.quantity: each.predicted for each in predict_table(SYSTEM, prior_draws(SYSTEM, rows[:2]), rows[2:])}
    assert {each.quantity: each.predicted.value for each in found} == pytest.approx(
        {each.quantity: known[each.quantity].value for each in found}
    )
    decided = [replace(each, identifiable=True, reason="") for each in found]
    scores = unseen_rows(fold, decided)
    errors = [each.median_abs_error for each in scores.answer.values()]
    assert errors == pytest.approx([abs(each.error) for each in found])
    held = [each.predicted.low <= each.measured <= each.predicted.high for each in found]
    assert [each.bands_held for each in scores.answer.values()] == [int(each) for each in held]


@pytest.mark.slow
def test_figures_that_the_other_rows_do_not_decide_are_counted_and_not_scored() -> None:
    """In a proposal whose JSON follows the schema."""
    proposal = of_a_table()
    jsonschema.validate(proposal.to_json(), Proposal.json_schema())
    json.dumps(proposal.to_json(), allow_nan=False)
    scores = proposal.evidence.unseen
    assert isinstance(scores, UnseenRows)
    scored = sum(each.figures for each in scores.answer.values())
    assert scored <= 4
    assert bool(scores.remarks) == (scored < 4)


def test_what_a_table_states_is_documented() -> None:
    """Its columns, and its highest throughput; other fields are assumed."""
    tested = {each.field: (each.tested, each.basis) for each in of_a_table().assumptions}
    assert tested["read_fraction"] == ("0", "measured")
    assert tested["rate"] == ("up to 9,000 per second", "extrapolated")
    assert tested["token_aware"][1] is None


def test_the_next_test_is_one_that_next_test_ranks_first() -> None:
    """Of its own candidates, by the probability of another decision, or else by the band; and it narrows the band."""
    rows = [*curve(4, 16, 64), *curve(64, cass_nodes=6)]
    fitted = prior_draws(SYSTEM, rows, narrow=0.5)
    usual = SYSTEM.usual_scenario(fitted)
    case = resolve(changed(usual, cass_nodes=9, tps=20_000.0, slo=("capacity>30k",)), fitted)
    found = next_load_test(case)
    assert found is not None
    figure, (test, *_) = found.figure, found.tests
    assert figure.name == "capacity"
    assert figure.low < test.low_after <= figure.value <= test.high_after < figure.high
    again = next_test(case, [{"clients": 64}, {"cass_nodes": 3, "clients": 128}])
    assert figure.value == pytest.approx(again.figure.value, rel=1e-3)
