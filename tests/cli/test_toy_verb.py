"""What a new verb costs: an answer, its description, a command of a few lines, and its line in the register."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated

import jsonschema
import pytest
import typer

from capplan.answers.verb_answer import VerbAnswer
from capplan.answers.verdict import Answer
from capplan.cli.main import main
from capplan.cli.shell.groups import TOPICS, Verb
from capplan.cli.shell.target import DEFAULT_TARGET, TargetText, read_target
from capplan.cli.shell.terminal import Json, exit_by, print_answer
from capplan.models.language.scenario import Scenario
from capplan.reports.document import Block, Fact


# planner/quorum.py
@dataclass(frozen=True)
class Quorum(VerbAnswer):
    """Whether a quorum survives the loss of some nodes.

    Attributes
    ----------
    nodes
        Cassandra nodes of all data centres.
    answer
        The verdict.
    """

    SCHEMA = "capplan.quorum/1"

    nodes: int
    answer: Answer


def quorum(scenario: Scenario, lost: int) -> Quorum:
    nodes = sum((scenario.cassandra_nodes() or ((0,), ()))[0])
    return Quorum(nodes, "yes" if nodes - lost > nodes / 2 else "no")


# reports/quorum.py
def describe(found: Quorum) -> Iterator[Block]:
    yield Fact("Quorum", f"{found.answer}, of {found.nodes} nodes")


# cli/quorum.py
def quorum_(
    target: TargetText = DEFAULT_TARGET,
    lost: Annotated[int, typer.Option(help="Nodes that are lost.")] = 1,
    as_json: Json = False,
) -> None:
    """Say whether a quorum of nodes is left."""
    found = quorum(read_target(target).scenario, lost)
    print_answer(found, lambda: describe(found), as_json)
    exit_by(found.answer)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPICS["What a layout does"], "quorum", Verb("Say whether a quorum of nodes is left."))
    monkeypatch.setitem(sys.modules, "capplan.cli.quorum", SimpleNamespace(quorum_=quorum_))


def test_it_is_listed_and_answers_in_text_and_json_that_follows_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "quorum" in capsys.readouterr().out
    assert main(["quorum"]) == 0
    assert "yes, of 9 nodes" in capsys.readouterr().out
    assert main(["quorum", "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), Quorum.json_schema())


def test_no_is_exit_code_1_and_bad_input_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quorum", "--lost", "5"]) == 1
    capsys.readouterr()
    assert main(["quorum", "--losst", "5"]) == 2
    assert "'--lost'" in capsys.readouterr().err
