"""Command lines run in this process."""

from dataclasses import replace
from typing import Any

import pytest
from tests.planner.predictions import prediction

from capplan.cli import predict as predict_command
from capplan.cli.main import main
from capplan.models.language.scenario import Scenario
from capplan.planner.predict.prediction import Prediction

NETWORK = """
name = "mine"
stations = [{ name = "server", servers = 2 }]
traffic = { kind = "open", rate_per_s = 1000, mix = { read = 1.0 } }
[[classes]]
name = "read"
flow = { kind = "visit", station = "server", demand = { kind = "exponential", mean_s = "1ms" } }
"""
CLOSED = NETWORK.replace(
    'kind = "open", rate_per_s = 1000', 'kind = "closed", clients = 4, think = { kind = "exponential", mean_s = "1ms" }'
)


def answered(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Run a command that says nothing on stderr, and return what it prints."""
    assert main([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that is refused, and return the one sentence on stderr."""
    assert main([str(each) for each in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = [line for line in err.splitlines() if not line.endswith("at work ...")]
    assert line.startswith("capplan: ")
    assert not any(word in line for word in ("Traceback", "pydantic", "Input should"))
    return line.removeprefix("capplan: ")


def predicted_scenarios(monkeypatch: pytest.MonkeyPatch) -> list[Scenario]:
    """Let `predict` answer at once, without objectives; return the list of scenarios that it is asked about."""
    asked: list[Scenario] = []

    def predicted(chosen: Scenario, **_: Any) -> Prediction:
        asked.append(chosen)
        return replace(prediction(), objectives=(), verdict=None)

    monkeypatch.setattr(predict_command, "predict", predicted)
    return asked
