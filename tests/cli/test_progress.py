"""Progress: a bar on terminals after a moment, and nothing where there is no terminal."""

import threading
from pathlib import Path

import pytest
from rich.progress import Progress as Bar

from capplan.cli.shell import progress
from capplan.models.language.document import read_network
from capplan.simulator.replications import ReplicationPlan

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pauses-and-a-lost-node.toml"
PLAN = ReplicationPlan(read_network(EXAMPLE), 10.0, 1.0, 1, replications=2, engine="simpy")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a bar is shown, which is at once."""
    started, start = threading.Event(), Bar.start

    def seen(bar: Bar) -> None:
        start(bar)
        started.set()

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(Bar, "start", seen)
    return started


def test_a_simulation_says_how_far_it_is(shown: threading.Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.simulating(PLAN) as tell:
        assert shown.wait(60)
        tell(5.0, 1000)
    out, err = capsys.readouterr()

    assert out == ""
    assert all(word in err for word in ("simulating", "25%", "requests/s"))


def test_runs_are_counted(shown: threading.Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counting("layouts") as tell:
        assert shown.wait(60)
        tell(2, 5)

    assert "2/5" in capsys.readouterr().err


def test_a_stage_is_named_while_it_runs(shown: threading.Event, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.stages("calibrating", 3) as tell:
        assert shown.wait(60)
        tell("fitting")

    assert "calibrating: fitting" in capsys.readouterr().err


def test_a_bar_is_stopped_when_what_it_shows_fails(shown: threading.Event, capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        with progress.stages("calibrating", 1):
            assert shown.wait(60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert capsys.readouterr().err.endswith("\x1b[2K")  # its line is empty again


@pytest.mark.parametrize(("terminal", "patience_s"), [("1", 3600.0), ("", 0.0)], ids=["ends soon", "no terminal"])
def test_nothing_is_shown(
    terminal: str, patience_s: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    with progress.stages("calibrating", 1) as tell:
        tell("fitting")

    assert capsys.readouterr() == ("", "")
