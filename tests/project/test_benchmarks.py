"""The programs of the benchmark still run."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def measured(module: str, function: str, requests: int, package: str) -> dict[str, float]:
    command = [sys.executable, "child.py", module, function, str(requests), "1", "1000", "-1", package]
    ended = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, float] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("module", ["flow_simpy_plain", "flow_simpy_fast"])
def test_flow_by_hand_carries_its_requests(module: str) -> None:
    found = measured(module, "shared", 4000, "simpy")

    assert found["drops"] == 0
    assert found["requests"] == pytest.approx(4000, rel=0.2)  # sessions of eight arrive at random


def test_capplan_takes_part() -> None:
    found = measured("capplan_engines", "mm4_simpy", 2000, "capplan")

    assert found["mean_s"] == pytest.approx(1.7455e-3, rel=0.3)  # Erlang C; 2,000 requests scatter by 16 %


def test_the_parts_of_a_command_are_its_seconds() -> None:
    """Stacks are looked at while `capplan systems` runs."""
    ended = subprocess.run(
        [sys.executable, "profiled.py", "systems"], cwd=FOLDER, capture_output=True, text=True, check=True
    )
    found = json.loads(ended.stdout)

    assert found["code"] == 0
    assert found["parts_s"]["imports"] > 0
    assert sum(found["parts_s"].values()) == pytest.approx(found["cpu_s"])


def test_every_peer_is_defined() -> None:
    """Peers need packages that are not installed here, so their functions are looked up in the source."""
    contenders = ast.parse((FOLDER / "contenders.py").read_text("utf-8"))
    for module in FOLDER.glob("peer_*.py"):
        defined = {node.name for node in ast.parse(module.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}
        named = {words[words.index(module.stem) + 1] for words in calls(contenders) if module.stem in words}

        assert named, module
        assert named <= defined, module


def calls(tree: ast.AST) -> list[list[object]]:
    """List the constant arguments of every call."""
    found = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [[each.value for each in call.args if isinstance(each, ast.Constant)] for call in found]
