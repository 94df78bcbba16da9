"""Closed clients of a fitted cluster: verbs that answer for them agree, and others refuse them in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.systems.prior_draws import prior_draws

from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import write
from capplan.models.language.scenario import changed
from capplan.planner.compare import compare
from capplan.planner.predict.predict import predict
from capplan.planner.simulate.simulate import of_scenario
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.sweep import OfferedRates, Sweep, SweepTask, layouts_of, points_of
from capplan.simulator.engine import simulate
from capplan.systems.cassandra import SYSTEM

ROW = LoadTestRow(cass_nodes=6, rf=3, read_fraction=0.0, clients=8, load_kind="closed", throughput_tps=1000.0)
FITTED = prior_draws(SYSTEM, [ROW], narrow=0.01)
USUAL = SYSTEM.usual_scenario(FITTED)
CLIENTS = OfferedRates("given", (8.0, 64.0), "clients")


def test_a_sweep_says_what_predict_says() -> None:
    """Throughput and latencies, for each number of clients; there is no offered rate and no capacity."""
    found = points_of(SweepTask(USUAL, CLIENTS, FITTED, 64, "analytic", 1), 1)
    assert [point["clients"] for point in found] == [8, 64]
    for point in found:
        predicted = predict(changed(USUAL, clients=point["clients"]), fitted=FITTED)
        assert predicted.peak_tps is not None
        assert point["throughput_tps"] == pytest.approx(predicted.peak_tps.value, rel=1e-3)
        mean = predicted.latency_ms["write"].mean
        assert mean is not None
        assert point["write_mean_ms"] == pytest.approx(mean.value, rel=1e-3)
        assert point["offered_tps"] is None
        assert point["capacity_tps"] is None


def test_a_simulation_has_the_throughput_that_predict_says() -> None:
    """20,000 requests of draws that hardly differ: the standard error is 0.7 %, and the solver's error 3 %."""
    subject = of_scenario(changed(USUAL, clients=64), FITTED)
    predicted = predict(changed(USUAL, clients=64), fitted=FITTED).peak_tps
    assert predicted is not None
    run = simulate(subject.network, 20_000 / predicted.value, warmup_s=500 / predicted.value, seed=1)
    assert run.throughput_per_s() == pytest.approx(predicted.value, rel=0.06)
    assert subject.offered_tps is None


def test_verbs_about_a_rate_refuse_clients() -> None:
    clients = changed(USUAL, clients=64)
    with pytest.raises(InputError, match="tps"):
        size(clients, SizingQuestion(), fitted=FITTED)
    with pytest.raises(InputError, match="tps"):
        compare(clients, USUAL, fitted=FITTED)
    with pytest.raises(InputError, match="engine"):
        Sweep(SYSTEM.name, layouts_of(USUAL, {}), CLIENTS, FITTED, engine="compiled")


def test_a_fitted_file_is_compared_with_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its calibration is that of both; two scenarios take it by an option, and those of another system do not."""
    mine, nine, other = (str(tmp_path / name) for name in ("mine.json", "nine.toml", "other.toml"))
    write(FITTED, Path(mine))
    Path(nine).write_text('system = "cassandra"\ncass_nodes = 9\nread_fraction = 0.0\ntps = 5000\n', encoding="utf-8")
    Path(other).write_text('system = "fedora4"\n', encoding="utf-8")
    assert main(["compare", mine, nine, "--engine", "analytic", "--json"]) == 0
    found = capsys.readouterr().out
    assert '"cass_nodes"' in found
    assert main(["compare", nine, nine, "--fitted", mine, "--engine", "analytic"]) == 0
    assert main(["compare", mine, other, "--engine", "analytic"]) == 2
