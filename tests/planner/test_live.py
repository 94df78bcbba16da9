"""A live validation without nodes: its verdicts, and the way from small runs to predictions to large runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.planner.made_up_cluster import SHORT, MadeUp, Measuring

from capplan.answers.results import Band
from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors.cassandra import Load
from capplan.lab.layout import Layout
from capplan.layout.table_rows import THROUGHPUT
from capplan.planner.live import run
from capplan.planner.live.clusters import DataCentre, Existing, Hosts, read_hosts
from capplan.planner.live.folder import DIGEST, LARGE, PREDICTIONS, SMALL, Folder, runs_in
from capplan.planner.live.live_validation import (
    Case,
    LiveFigure,
    LiveValidation,
    figures_of,
    kinds_of,
    repeats_of,
    verdict_of,
)
from capplan.planner.live.protocol import FULL, MOST, QUICK, Protocol, Stage, for_hosts
from capplan.systems.cassandra import SYSTEM

STAGE = Stage("1", "one node", Layout(), ())


def case(load: Load, predicted: Mapping[str, float], *measured: Mapping[str, float], **row: Any) -> Case:
    """Return a load with its predictions and its repeats."""
    bands = {name: Band(value, 0.8 * value, 1.2 * value) for name, value in predicted.items()}
    rows = [
        LoadTestRow(repeat=number, **{THROUGHPUT: 100.0, **each, **row})
        for number, each in enumerate(measured, start=1)
    ]
    return Case(STAGE, load, bands, rows)


def latencies(p50: float, p99: float, rate: float = 100.0) -> dict[str, float]:
    """Return the columns of a run."""
    return {"latency_p50_ms": p50, "latency_p99_ms": p99, THROUGHPUT: rate}


def by_quantity(*cases: Case) -> dict[str, LiveFigure]:
    """Return the figures of cases by quantity; the last one of each."""
    return {each.quantity: each for each in figures_of(cases)}


def test_the_interval_of_a_mean_is_that_of_students_t() -> None:
    """Three values 1, 2, 3: mean 2, deviation 1, t(0.95, 2) = 2.91999."""
    found = repeats_of([1.0, 2.0, 3.0], logarithms=False)
    assert found is not None
    assert found.value == pytest.approx(2.0)
    assert found.half_width == pytest.approx(2.91999 / math.sqrt(3), rel=1e-5)
    alone = repeats_of([5.0])
    assert alone is not None
    assert alone.value == pytest.approx(5.0)
    assert alone.half_width is None
    assert repeats_of([]) is None


def test_the_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 2000 series, 90 % hold their mean, +-2.7 points: four standard errors, so a correct one fails once in 16,000.

    The interval of a further repeat would hold 99.8 %.
    """
    random = np.random.default_rng(7)
    held = []
    for series in np.exp(0.2 * random.standard_normal((2000, 5))):
        found = repeats_of(series.tolist())
        assert found is not None
        low, high = found.interval
        held.append(low <= 1 <= high)
    assert np.mean(held) == pytest.approx(0.9, abs=0.027)


@pytest.mark.parametrize(
    ("predicted", "verdict"),
    [(104.0, "within"), (96.0, "within"), (109.0, "inconclusive"), (90.0, "inconclusive"), (115.0, "off"), (60, "off")],
)
def test_a_verdict_is_that_of_an_equivalence_test(predicted: float, verdict: str) -> None:
    """The mean is 99.9; its interval 95.2 to 104.9."""
    measured = repeats_of([95.0, 100.0, 105.0, 100.0])
    assert measured is not None
    assert verdict_of(predicted, measured, 0.10) == verdict


def test_one_repeat_decides_nothing() -> None:
    measured = repeats_of([100.0])
    assert measured is not None
    assert verdict_of(100.0, measured, 0.10) == "inconclusive"
    assert verdict_of(300.0, measured, 0.10) == "inconclusive"


def test_capacity_is_the_throughput_of_the_most_clients() -> None:
    full = case(Load("read", "LOCAL_ONE", clients=MOST), {THROUGHPUT: 1050.0}, *({THROUGHPUT: 1000.0},) * 3)
    found = by_quantity(full)["capacity"]
    assert found.verdict == "within"
    assert found.error == pytest.approx(0.05)


def test_latencies_are_judged_up_to_80_percent_of_the_measured_capacity() -> None:
    full = case(Load("read", "LOCAL_ONE", clients=MOST), {THROUGHPUT: 1250.0}, *({THROUGHPUT: 1000.0},) * 3)
    figures = {"latency_p50_ms": 1.0, "latency_p99_ms": 5.0}
    for rate, judged in ((800.0, True), (900.0, False)):
        load = Load("read", "LOCAL_ONE", rate_per_s=rate)
        found = by_quantity(full, case(load, figures, *(latencies(1.0, 5.0, rate),) * 3))
        assert (found["p50"].verdict != "not judged") == judged
        assert (found["p99"].verdict != "not judged") == judged


def test_a_run_whose_generator_was_the_bottleneck_is_not_judged() -> None:
    load = Load("read", "LOCAL_ONE", clients=4)
    figures = {"latency_p50_ms": 1.0, "latency_p99_ms": 5.0}
    found = by_quantity(case(load, figures, *(latencies(9.0, 99.0),) * 3, generator_limited=True))
    assert {each.verdict for each in found.values()} == {"not judged"}
    assert {each.measured for each in found.values()} == {None}


def test_round_trips_are_the_added_median_over_the_round_trip() -> None:
    near, far = (Load("write", level, clients=1, rtt_ms=40.0) for level in ("LOCAL_ONE", "QUORUM"))
    found = by_quantity(
        case(near, {"latency_p50_ms": 1.0, "latency_p99_ms": 2.0}, *(latencies(each, 2.0) for each in (1.0, 1.2, 0.8))),
        case(
            far, {"latency_p50_ms": 43.0, "latency_p99_ms": 50.0}, *(latencies(each, 50) for each in (41.0, 41.3, 40.7))
        ),
    )["added p50"]
    assert found.measured == pytest.approx(40.0)
    assert found.round_trips == pytest.approx(1.0)
    assert found.verdict == "within"
    assert found.error == pytest.approx(0.05)


def test_without_a_round_trip_an_added_latency_is_never_within() -> None:
    near, far = (Load("write", level, clients=1, rtt_ms=0.0) for level in ("LOCAL_ONE", "QUORUM"))
    local = case(near, {"latency_p50_ms": 1.0, "latency_p99_ms": 2.0}, *(latencies(1.0, 2.0),) * 3)
    for predicted, verdict in ((1.5, "inconclusive"), (4.0, "off")):
        own = case(
            far, {"latency_p50_ms": predicted, "latency_p99_ms": 9.0},
            *(latencies(each, 9.0) for each in (1.4, 1.5, 1.6)),
        )  # fmt: skip
        assert by_quantity(local, own)["added p50"].verdict == verdict


def test_what_is_predicted_was_not_measured_before() -> None:
    hosts = [for_hosts(["LOCAL_ONE", "QUORUM"], 10.0, quick=quick) for quick in (False, True)]
    for protocol in (QUICK, FULL, *hosts):
        small = {(stage.layout, each) for stage in protocol.small for each in stage.asked}
        assert not small & {(stage.layout, each) for stage in protocol.large for each in stage.asked}


# The way of a validation, on a cluster that behaves as the model with known parameters


def validated(monkeypatch: pytest.MonkeyPatch, measuring: Measuring) -> LiveValidation:
    """Run the short protocol."""
    monkeypatch.setattr(run, "measure", measuring)
    return run.validate_live(SHORT, MadeUp(), Folder(measuring.folder), lambda *_: None)


@pytest.mark.slow
def test_a_cluster_that_behaves_as_the_model_is_predicted_and_an_interrupted_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (len(SHORT.small[0].asked) * 2, len(SHORT.large[0].asked) * 3)
    first = Measuring(tmp_path, fails_after=5)
    with pytest.raises(KeyboardInterrupt):
        validated(monkeypatch, first)
    second = Measuring(tmp_path, fails_after=whole[0] - 5 + 2)
    with pytest.raises(KeyboardInterrupt):
        validated(monkeypatch, second)
    predicted = (tmp_path / PREDICTIONS).read_bytes()
    third = Measuring(tmp_path)
    found = validated(monkeypatch, third)

    assert (
        len(first.names + second.names + third.names) == len({*first.names, *second.names, *third.names}) == sum(whole)
    )
    assert (tmp_path / PREDICTIONS).read_bytes() == predicted
    assert found.answer
    assert {each.quantity for each in found.figures} == {"capacity", "p50", "p99"}
    assert (found.fitted_runs, found.left_out_runs) == (whole[0], 0)


def test_predictions_that_were_changed_are_refused(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write_predictions({"runs": {"1": [1.0]}})
    assert folder.predictions() == {"runs": {"1": [1.0]}}
    (tmp_path / PREDICTIONS).write_text('{"runs": {"1": [2.0]}}', encoding="utf-8")
    with pytest.raises(InputError, match="changed"):
        folder.predictions()


@pytest.mark.slow
def test_nothing_is_fitted_to_runs_whose_generator_was_the_bottleneck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="bottleneck"):
        validated(monkeypatch, Measuring(tmp_path, generator_limited=True))


def test_an_answer_needs_figures_that_were_judged() -> None:
    load = Load("read", "LOCAL_ONE", clients=MOST)
    near, far = (case(load, {THROUGHPUT: value}, *({THROUGHPUT: 100.0},) * 3) for value in (101.0, 300.0))
    unjudged = case(load, {THROUGHPUT: 101.0}, {THROUGHPUT: 100.0}, generator_limited=True)
    assert answered(near)
    assert answered(near, unjudged)
    assert not answered(near, far)
    assert not answered(unjudged)


def answered(*cases: Case) -> bool:
    """Return the answer of a validation with some cases."""
    return LiveValidation(
        "short", True, "1", "5", "m", "now", "now", "p", "s", 1, 0, 0, (), (), figures_of(cases)
    ).answer


@pytest.mark.parametrize("name", ["protocol.json", "inputs.json", "begun.json", "lab.json", DIGEST])
def test_a_damaged_folder_starts_again_or_is_refused(name: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.begin({"protocol": 1, "ended": False})
    folder.write_predictions({"runs": {}})
    for text in ("", "[]", "{", '"x"'):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert folder.inputs() == {}
        assert not folder.started_lab(Layout())
        assert folder.measured_from("now") == "now"
        if name == DIGEST:
            with pytest.raises(InputError, match="changed"):
                folder.predictions()
    folder.begin({"protocol": 1, "ended": False})


@pytest.mark.parametrize(("rf", "says"), [(3, "continues with"), (2, "starts again: cluster differ")])
def test_an_interrupted_run_continues_with_the_same_hosts_only(
    rf: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measure", interrupted)
    told: list[str] = []
    for replicas in (3, rf):
        hosts = Hosts((DataCentre("dc1", ("127.0.0.1", "127.0.0.2", "127.0.0.3"), replicas),), 4)
        with pytest.raises(KeyboardInterrupt):
            run.validate_live(SHORT, MadeUp(), Folder(tmp_path), lambda what, *_: told.append(what), hosts)
    assert [each for each in told if each.startswith(says)]


def test_another_protocol_starts_again_and_says_so(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert not folder.begin({"protocol": 1, "ended": False})
    for name in (SMALL, LARGE):
        runs_in(folder, name).add(LoadTestRow(run_id="a"))
    assert "continues" in folder.begin({"protocol": 1, "ended": False})
    assert [row.run_id for row in folder.rows(SMALL)] == ["a"]
    assert "protocol" in folder.begin({"protocol": 2, "ended": False})
    assert not folder.rows(SMALL)
    folder.end()
    assert not folder.begin({"protocol": 2, "ended": False})


def test_a_lab_is_ended_only_by_the_validation_that_started_it(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.note_lab(Layout())
    assert folder.started_lab(Layout())
    assert not folder.started_lab(Layout(cass_nodes=3, rf=3))
    folder.note_lab(None)
    assert not folder.started_lab(Layout())


HOSTS = """
node_cores = 8
rtt_ms = 20
[[dcs]]
name = "dc1"
nodes = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
rf = 3
[[dcs]]
name = "dc2"
nodes = ["10.1.0.1"]
rf = 1
"""


def test_a_cluster_that_exists_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(HOSTS, encoding="utf-8")
    hosts = read_hosts(path)
    cluster = hosts.cluster()
    assert (cluster.cass_nodes, cluster.rf, cluster.addresses[0]) == ((3, 1), (3, 1), "10.0.0.1")
    assert hosts.levels() == ("LOCAL_ONE", "LOCAL_QUORUM", "QUORUM", "EACH_QUORUM")
    row = LoadTestRow(**cluster.row(Load("read", "QUORUM", clients=1, rtt_ms=20.0)))
    layout = SYSTEM.read([row])[0].layout
    assert (layout.one_host, layout.rf, layout.rtt, layout.node_cores) == (False, (3, 1), "20ms", 8)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rf = 3", "rf = 4"),
        ("rtt_ms = 20", ""),
        ("rtt_ms = 20", "rtt_ms = -1"),
        ('"dc2"', '"dc1"'),
        ('"dc2"', '"dc\'2"'),
        ("rtt_ms = 20", 'rtt_ms = 20\nkeyspace = "a; DROP"'),
        ("rtt_ms = 20", 'rtt_ms = 20\nuser = "a"'),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(HOSTS.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError):
        read_hosts(path)


def test_a_report_is_written_before_the_runs_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A figure is off, so the answer is no."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "hosts.toml").write_text(HOSTS, encoding="utf-8")
    asked: list[tuple[Protocol, Any]] = []

    def found(protocol: Protocol, clusters: Any, folder: Folder, *_: Any) -> LiveValidation:
        asked.append((protocol, clusters))
        folder.begin({"protocol": protocol.name, "ended": False})
        load = Load("read", "LOCAL_ONE", clients=MOST)
        figures = figures_of([case(load, {THROUGHPUT: 3000.0}, *({THROUGHPUT: 1000.0},) * 3)])
        kinds = kinds_of(figures)
        return LiveValidation(protocol.name, True, "1", "5", "m", "now", "now", "p", "s", 1, 0, 0, (), kinds, figures)

    monkeypatch.setattr(run, "validate_live", found)
    options = ("validate", "--live", "--quick", "--hosts", str(tmp_path / "hosts.toml"), "--report")
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "live").touch()
    assert main([*options, str(tmp_path / "blocked")]) == 2
    folder = Folder(tmp_path / "cache" / "live" / "hosts-quick")
    assert "continues" in folder.begin({"protocol": "hosts-quick", "ended": False})
    assert main([*options, str(tmp_path / "report")]) == 1
    assert "not decided" in capsys.readouterr().out
    assert (tmp_path / "report" / "live-validation.md").is_file()
    assert not folder.begin({"protocol": "hosts-quick", "ended": False})
    protocol, clusters = asked[0]
    assert protocol == for_hosts(read_hosts(tmp_path / "hosts.toml").levels(), 20.0, quick=True)
    assert isinstance(clusters, Existing)
