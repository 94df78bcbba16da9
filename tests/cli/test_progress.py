"""Progress: shown after a moment and on terminals only; stages are named, and counted when they are complete."""

from types import SimpleNamespace
from typing import Any

import pytest

from capplan.cli.shell import progress
from capplan.cli.shell.progress import counting, stages


class FakeBar:
    """A bar that records what it is told."""

    made: "FakeBar"

    def __init__(self, *_: Any, **settings: Any) -> None:
        self.settings = settings
        self.told: list[dict[str, Any]] = []
        self.live = SimpleNamespace(is_started=False)
        self.stopped = False
        FakeBar.made = self

    def add_task(self, what: str, total: int | None) -> int:
        self.told.append({"description": what, "total": total})
        return 7

    def update(self, task: int, **told: Any) -> None:
        assert task == 7
        self.told.append(told)

    def start(self) -> None:
        self.live.is_started = True

    def stop(self) -> None:
        self.stopped = True


class FakeTimer:
    """A timer that is over at once, or never."""

    over = False

    def __init__(self, seconds: float, function: Any) -> None:
        assert seconds == progress.PATIENCE_S
        self.function, self.daemon, self.cancelled = function, False, False

    def start(self) -> None:
        assert self.daemon  # an interrupted command does not wait for it
        if self.over:
            self.function()

    def cancel(self) -> None:
        self.cancelled = True

    def join(self) -> None:
        assert self.cancelled


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "Bar", FakeBar)
    monkeypatch.setattr(progress, "Timer", FakeTimer)


def test_each_stage_is_named_while_it_runs_and_counted_when_it_is_over() -> None:
    with stages("calibrating", 3) as tell:
        for stage in ("fitting", "drawing", "predicting"):
            tell(stage)

    assert FakeBar.made.told == [
        {"description": "calibrating", "total": 3},
        {"description": "calibrating: fitting", "completed": 0},
        {"description": "calibrating: drawing", "completed": 1},
        {"description": "calibrating: predicting", "completed": 2},
    ]


def test_runs_are_counted() -> None:
    with counting("layouts") as tell:
        tell(2, 5)

    assert FakeBar.made.told[1:] == [{"completed": 2, "total": 5}]


@pytest.mark.parametrize("long", [True, False])
def test_a_bar_is_there_after_a_moment_only(long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTimer, "over", long)
    with stages("calibrating", 1):
        assert FakeBar.made.live.is_started is long

    assert FakeBar.made.stopped is long


def test_a_bar_is_stopped_when_what_it_shows_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeTimer, "over", True)
    with pytest.raises(ZeroDivisionError), stages("calibrating", 1):
        raise ZeroDivisionError

    assert FakeBar.made.stopped


def test_without_a_terminal_nothing_is_shown() -> None:
    with stages("calibrating", 1) as tell:
        tell("fitting")

    assert FakeBar.made.settings["disable"]
    assert FakeBar.made.settings["transient"]
    assert FakeBar.made.settings["console"].stderr
