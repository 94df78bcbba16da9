"""Work is estimated before it begins: what takes longer than an hour or more than 4 GiB needs consent."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.cli.shell import messages as module
from capplan.cli.shell.target import read_target
from capplan.errors import InputError
from capplan.files import LARGEST_BYTES, read_file
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.document import read_network, read_toml
from capplan.models.language.network import Network
from capplan.models.language.scenario import changed
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, ForkJoin, Sequence, Visit
from capplan.models.language.traffic import Closed, RequestClass
from capplan.planner.sweep import OfferedRates, Sweep, layouts_of
from capplan.planner.time_limits import check_layout, layout_s, sweep_s
from capplan.simulator.effort import CONSENT, LONGEST_S, check_work, work_of
from capplan.simulator.engine import simulate
from capplan.simulator.replications import ReplicationPlan

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
WIDE = """\
system = "openprovider"
dcs = 50
tps = 20000
"""
PLAN = ReplicationPlan(read_network(EXAMPLES / "pauses-and-a-lost-node.toml"), 60.0, 0.0, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "--duration", "1e308s"],
        ["simulate", "--tps", "1e308"],
        ["simulate", "--tps", "9223372036854775807"],
        ["simulate", "--replications", "1000000"],
        ["simulate", "--replications=18446744073709551616"],
        ["predict", "--tps", "1e308"],
        ["sweep", "--tps", "1e308"],
        ["sweep", "--dcs", "1..1000000"],
        ["size", "--tps", "1e308"],
        ["predict", "--budget", "1e300s"],
        ["predict", "--dcs", "50"],
        ["simulate", "--dcs", "50"],
        ["outages", "--dcs", "50"],
        ["sweep", "--dcs", "1..64", "--rtt", "1ms..10ms:1ms", "--processes", "1"],
        ["sweep", "--load", "1%..95%:1%", "--cass-nodes", "3..30", "--engine", "compiled", "--processes", "1"],
        ["size", "--tps", "20000", "--dcs", "1..64", "--processes", "1"],
        ["proposal", "--tps", "20000", "--dcs", "1..64", "--processes", "1", "--out", "proposal.html"],
        ["compare", "openprovider", "wide.toml"],
        ["check", "checked.toml"],
    ],
    ids=" ".join,
)
def test_unbounded_work_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wide.toml").write_text(WIDE, encoding="utf-8")
    Path("checked.toml").write_text(f'{WIDE}slo = ["p99<1s"]\n[check]\nsurvive = ["dc"]\n', encoding="utf-8")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "wide.toml" not in said


def test_all_layouts_and_situations_that_are_solved_count(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them alone is within the limit."""
    alone = read_target("openprovider").scenario
    monkeypatch.setattr("capplan.planner.time_limits.LONGEST_LAYOUT_S", 1.5 * layout_s(alone))
    monkeypatch.chdir(tmp_path)
    Path("rate.toml").write_text('tps = 5000\nslo = ["p99<1s"]\n', encoding="utf-8")
    for name, survive in (("two", '["node"]'), ("three", '["node,dc", "normal"]')):
        Path(f"{name}.toml").write_text(
            f'tps = 5000\nslo = ["p99<1s"]\n[check]\nsurvive = {survive}\n', encoding="utf-8"
        )

    check_layout(alone)
    for arguments, counted in (
        (["compare", "openprovider", "rate.toml"], "3 and 3 data centres"),
        (["check", "two.toml"], "2 situations"),
        (["check", "three.toml"], "3 situations"),
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert counted in said
        assert CONSENT in said


def test_the_estimate_is_proportional_to_what_is_asked() -> None:
    usual = work_of(PLAN)
    for more in (replace(PLAN, duration_s=600.0), replace(PLAN, replications=10)):
        assert work_of(more).requests == pytest.approx(10 * usual.requests)
        assert work_of(more).time_s == pytest.approx(10 * usual.time_s)


def test_the_requests_of_closed_clients_are_estimated_by_how_long_one_takes() -> None:
    """Three clients wait for 2 ms on the way and 3 ms at a node of three cores: 600 requests per second, or fewer."""
    node = Station("node", 3)
    way, work = Delay(Deterministic(2e-3)), Visit("node", Exponential(3e-3))
    left = ForkJoin((Visit("node", Exponential(1e-3)),), 0)
    network = Network(
        name="closed",
        stations=(node,),
        classes=(RequestClass("request", Sequence((way, work, left))),),
        traffic=Closed(3, Deterministic(0.0), {"request": 1.0}),
    )
    estimate = work_of(ReplicationPlan(network, 10.0, 0.0, seed=1, replications=2))
    assert estimate.requests == pytest.approx(2 * 10 * 3 / 5e-3)
    completed = simulate(network, 10.0, warmup_s=0.0, seed=1).throughput_per_s() * 10.0
    assert estimate.requests / 2 / 2 < completed < estimate.requests / 2


def test_the_refusal_names_the_option_that_consents() -> None:
    check_work(PLAN)
    long = 2 * LONGEST_S / work_of(PLAN).time_s
    with pytest.raises(InputError, match=CONSENT):
        check_work(replace(PLAN, duration_s=60.0 * long))
    with pytest.raises(InputError, match="GiB"):
        check_work(replace(PLAN, replications=10_000_000, duration_s=1e-5))


def test_the_time_of_a_layout_grows_with_pairs_of_data_centres_and_that_of_a_sweep_with_its_points() -> None:
    base = read_target("openprovider").scenario
    times = [layout_s(changed(base, dcs=dcs)) for dcs in (1, 2, 4, 8)]
    assert times == sorted(times)
    assert layout_s(changed(base, cass_nodes=99)) == layout_s(base)
    one = layouts_of(base, {"rtt": (0.001,)})
    ten = layouts_of(base, {"rtt": tuple(number / 1000 for number in range(1, 11))})
    rates = OfferedRates("load", (0.5,))

    assert sweep_s(Sweep("openprovider", ten, rates)) == pytest.approx(10 * sweep_s(Sweep("openprovider", one, rates)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "fedora4", "--engine", "analytic"],
        ["sweep", "fedora4", "--processes", "1"],
        ["size", "fedora4", "--tps", "50", "--engine", "analytic", "--processes", "1"],
    ],
    ids=" ".join,
)
def test_what_takes_longer_needs_consent(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capplan.planner.time_limits.LONGEST_S", 0.0)
    monkeypatch.setattr("capplan.planner.time_limits.LONGEST_LAYOUT_S", 0.0)

    assert main(arguments) == 2
    assert CONSENT in capsys.readouterr().err
    assert main([*arguments, CONSENT]) == 0


def test_consent_lets_it_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capplan.simulator.effort.LONGEST_S", 0.0)
    quick = ["simulate", "fedora4", "--tps", "20", "--duration", "1s", "--csv"]

    assert main(quick) == 2
    assert main([*quick, CONSENT]) == 0
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_is_none_of_people_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(LARGEST_BYTES + 1)
    with pytest.raises(InputError, match="bytes"):
        read_toml(path)


@pytest.mark.parametrize("verb", ["predict", "simulate", "sweep", "demand", "check", "verify", "drift"])
def test_a_pipe_is_not_waited_for(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipe.toml"
    os.mkfifo(path)
    arguments = [verb, str(path)] + ([str(path)] if verb == "drift" else [])

    assert main(arguments) == 2
    assert "pipe" in capsys.readouterr().err
    with pytest.raises(InputError):
        read_file(path)


def test_what_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said, lines = threading.Event(), list[str]()

    def say(sentence: str) -> None:
        lines.append(sentence)
        said.set()

    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(module, "say", say)
    with module.under_way(lambda: "sweeping: 3 of 12", lambda: False), module.sign_of_life("sweep"):
        assert said.wait(60)

    assert lines == ["sweeping: 3 of 12 ..."]


def test_a_bar_on_the_screen_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(module, "say", lambda sentence: lines.append(sentence))
    lines: list[str] = []

    def on_screen() -> bool:
        asked.set()
        return True

    with module.under_way(lambda: "sweeping", on_screen), module.sign_of_life("sweep"):
        assert asked.wait(60)

    assert lines == []
