"""Systems with known parameters: how they are drawn and scored, and one of them from end to end."""

import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def truth() -> Iterator[Any]:
    """The script that draws systems; scripts import one another as they do where they are run."""
    yield from _script("synthetic_truth")


@pytest.fixture(scope="module")
def script() -> Iterator[Any]:
    yield from _script("synthetic_systems")


def _script(name: str) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "docs" / "generate"), *sys.path])
        yield import_module(name)


def test_a_system_is_drawn_from_its_number_alone(truth: Any) -> None:
    assert truth.drawn(5) == truth.drawn(5)
    assert truth.drawn(5).values != truth.drawn(6).values


@pytest.mark.parametrize(("load", "services"), [(0.0, 4.0), (0.25, 4.0), (0.64, 25.0), (0.81, 100.0)])
def test_a_queue_forgets_its_past_in_a_service_over_the_square_of_1_minus_the_root_of_its_load(
    load: float, services: float, truth: Any
) -> None:
    assert truth._forgets(load) == pytest.approx(services)


def test_runs_warm_up_for_the_slowest_work_that_goes_on_after_answers(truth: Any) -> None:
    """A write adds 20 us to its batch: 1,024 places of the log for 20 ms, less the 2 ms that it waits for."""
    system = truth.table_system("two-tier")
    network = system.network(system.scenario(read_fraction=0.0), truth.defaults(system.parameters), 1.0)
    left_s = 20e-6 * 1024 - (2e-3 + 20e-6)
    assert truth._settled_s(network, 1.0) == pytest.approx(4 * left_s)
    assert truth._settled_s(network, 1e9) == pytest.approx(15 * truth.REQUESTS / 1e9)


@pytest.mark.parametrize("number", range(6))
def test_a_table_has_12_to_20_rows_and_its_unseen_rows_lie_beyond_them(number: int, truth: Any) -> None:
    drawn = truth.drawn(number)
    layouts = {each.layout for each in drawn.of.read(drawn.trained)}
    most = max(each.clients or each.offered_tps for each in drawn.trained)

    assert 12 <= len(drawn.trained) <= 20
    assert len(set(drawn.trained)) == len(drawn.trained)
    for row, read in zip(drawn.unseen, drawn.of.read(drawn.unseen), strict=True):
        assert read.layout not in layouts or (row.clients or math.inf) > most or row.load_kind == "open"


def test_clusters_with_pauses_are_tested_by_closed_clients_before_open_ones_come(truth: Any) -> None:
    """Pauses of 300 ms in more of the time cost throughput, which Little's law puts into the mean."""
    drawn = truth.drawn(2000, "pauses of 300 ms")
    assert drawn.values["pause_s"] == 0.3
    assert {each.load_kind for each in drawn.trained} == {"closed"}
    assert [each.clients for each in drawn.trained] == [10, 30, 100, 300, 1_000]
    assert {each.load_kind for each in drawn.unseen} == {"open"}

    (few, *_, many), _ = truth.measured(drawn)
    quiet = replace(drawn, values={**drawn.values, "garbage_bytes": 1e-6, "variation": 1e-9})
    (steady, *_, crowd), _ = truth.measured(quiet)
    for paused, same in ((few, steady), (many, crowd)):
        assert paused.exact["throughput_tps"] < 0.999 * same.exact["throughput_tps"]
        assert paused.exact["latency_mean_ms"] > same.exact["latency_mean_ms"]


def test_numbers_of_clients_always_grow(truth: Any) -> None:
    for least, most, count in ((0.1, 3.0, 9), (1.0, 64.0, 7), (5.0, 4.0, 4)):
        found = truth.growing(least, most, count)
        assert len(found) == count
        assert found == sorted(set(found))


def test_drawn_parameters_have_the_medians_and_widths_of_their_priors(truth: Any) -> None:
    """300 draws of some twenty parameters; five standard errors are allowed, 0.29 standard deviations for a mean.

    A correct program fails with one seed in 10,000. A median that is half a standard deviation off passes with two in
    10,000.
    """
    import numpy as np

    for name in ("cassandra", "two-tier"):
        system, random = truth.table_system(name), np.random.default_rng(1)
        drawn = [truth.parameters(system, random) for _ in range(300)]
        for each in system.parameters:
            if each.name in truth.estimated(system) - {"generator_s"}:
                off = np.log([one[each.name] / each.value for one in drawn]) / each.log_sd
                assert abs(off.mean()) < 5 / math.sqrt(300)
                assert 0.8 < off.std() < 1.2


def figure(held: bool, error: float = 0.1) -> dict[str, Any]:
    errors = {"error": error, "exact_error": error / 2, "repeat_error": 0.03}
    return {
        "place": 0.5 if held else 0.99,
        "half_width": 0.2,
        "quantity": "throughput_tps",
        "new_layout": True,
        "decided": True,
        **errors,
    }


def test_shares_errors_and_widths_of_all_figures_count(script: Any) -> None:
    found = script.scores([[figure(True), figure(True, -0.3)], [figure(False, 0.2), figure(True, 0.05)], []])

    assert found["count"] == 4
    assert found["held"] == 0.75
    assert found["error"] == pytest.approx(0.15)
    assert found["half_width"] == 0.2


def test_verdicts_are_right_where_the_figure_is_on_the_right_side_of_the_bound(script: Any) -> None:
    """A figure is 1.2 times its prediction, with a narrow band: below 8 of the 10 bounds above the prediction."""
    found = script.verdicts([{**figure(True), "error": 1 / 1.2 - 1, "half_width": 0.01}])

    assert found["questions"] == 21
    assert found["uncertain"] == pytest.approx(1 / 21, abs=1e-4)  # the prediction itself
    assert found["no"] == {"count": 10, "right": 1.0}
    assert found["yes"] == {"count": 10, "right": 0.8}


def test_the_page_judges_decided_figures_of_systems_as_modelled(script: Any) -> None:
    """Of ten figures nine hold, which is as it should be; the parameter of an altered system is in no target."""
    known = {"place": 0.3, "decided": 0.9, "half_width": 0.1}
    its = {"rows": 12, "load": "open", "system": "two-tier"}
    usual = {**its, "number": 1, "altered": "", "parameters": [known], "figures": [figure(at > 0) for at in range(10)]}
    altered = {**its, "number": 2, "altered": "a slow node", "parameters": [known], "figures": [figure(False)]}
    parts = list(import_module("synthetic_page").section(script.summary([usual, altered])))
    first, levels, _, targets, _, quantities, answers, _, others = parts

    assert first.startswith("1 systems as modelled, each fitted to 12 to 12 rows")
    assert "| open (1) | 50% | 100.0 % |" in levels
    assert "| 90.0 % |" in levels
    assert "| **no** |" in levels  # one system decides nothing
    assert "| median error of unseen figures without scatter | at most 5 % | 5.0 % |" in targets
    assert "| misspecified: figures in their 90 % bands | at least 85 % | 0.0 % of 1 | 0.0 % of 1 | **no** |" in targets
    assert "| throughput | 90.0 % of 10 |" in quantities
    assert "210 questions" in answers  # 21 bounds for each of the ten figures
    assert "| a slow node (1) | 0.0 % of 1 |" in others


def test_a_line_that_was_cut_off_is_done_again(script: Any, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"number": 1, "rows": 12}\n{"number": 2, "ro', encoding="utf-8")
    assert script.finished(path) == {1: {"number": 1, "rows": 12}}


@pytest.mark.slow
@pytest.mark.parametrize("altered", [pytest.param("", marks=pytest.mark.trust), "a slow node"])
def test_a_system_is_drawn_measured_fitted_and_scored(
    altered: str, truth: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bands that hold fewer than half of the unseen figures of a system are an error of the script, not of chance."""
    monkeypatch.setattr(truth, "REQUESTS", 4_000)
    record = script.outcome((3, altered))
    summary = script.summary([record])["misspecified" if altered else "as modelled"]

    assert summary["systems"] == 1
    assert summary["figures"]["all"]["count"] == len(record["figures"]) > 20
    assert altered or summary["figures"]["all"]["held"] > 0.5
    assert {each["name"] for each in record["parameters"]} <= script.estimated(truth.drawn(3).of)
