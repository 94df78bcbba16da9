"""Stages of a long calculation: stored beside the output, and used by the same calculation only."""

from pathlib import Path

import pytest

from capplan.calibration.fit import stages as module
from capplan.calibration.fit.stages import Stages, digest, refit_code
from capplan.code_digest import code_digest
from capplan.systems.registry import system

VCIDER = system("vcider")


@pytest.mark.parametrize("content", ["{", "[]", '{"key": "other", "stages": {}}', '{"stages": 3}'])
def test_stages_of_another_calculation_are_not_used(content: str, tmp_path: Path) -> None:
    output = tmp_path / "mine.json"
    (tmp_path / "mine.json.a-key.stages").write_text(content, encoding="utf-8")
    stages = Stages("a-key", output=output)

    assert stages.of("one", lambda: 1) == 1
    assert Stages("a-key", output=output).of("one", lambda: 2) == 1
    assert Stages("b-key", output=output).of("one", lambda: 2) == 2


def test_calculations_that_differ_leave_each_others_stages_alone(tmp_path: Path) -> None:
    output = tmp_path / "mine.json"
    one, other = (Stages(key * 16, output=output) for key in ("1a2b", "3c4d"))
    one.of("one", lambda: 1)
    other.of("one", lambda: 2)

    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine.json.1a2b1a2b.stages",
        "mine.json.3c4d3c4d.stages",
    ]
    other.end()
    assert Stages("1a2b" * 16, output=output).of("one", lambda: 3) == 1


def test_stages_are_counted_and_forgotten_at_the_end(tmp_path: Path) -> None:
    output = tmp_path / "mine"
    stages = Stages("a-key", output=output)
    stages.of("one", lambda: 1)

    assert stages.complete(1)
    assert not stages.complete(2)
    assert Stages("a-key", output=output).complete(1)
    assert not Stages("b-key", output=output).complete(1)
    stages.end()
    assert list(tmp_path.iterdir()) == []


def test_without_an_output_stages_are_kept_in_memory() -> None:
    stages = Stages("a-key")

    assert stages.path is None
    assert [stages.of("one", lambda: 1), stages.of("one", lambda: 2)] == [1, 1]
    stages.end()


def test_each_stage_is_told_before_it_is_computed_and_when_it_is_known() -> None:
    told: list[str] = []
    stages = Stages("a-key", told.append)
    stages.of("one", lambda: told.append("computing"))
    stages.of("one", lambda: pytest.fail("known already"))

    assert told == ["one", "computing", "one"]


def test_a_digest_depends_on_every_part_and_on_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    first = digest(VCIDER, 1, (0.5, 0.25))

    assert digest(VCIDER, 1, (0.5, 0.25)) == first
    others = [
        digest(VCIDER, 2, (0.5, 0.25)),
        digest(VCIDER, 1, (0.5, 0.26)),
        digest(VCIDER),
        digest(system("arion"), 1),
    ]
    assert len({first, *others}) == 5
    monkeypatch.setattr(module, "code_digest", lambda *_, **__: "other code")
    assert digest(VCIDER, 1, (0.5, 0.25)) != first


def test_the_code_of_a_fit_is_that_of_every_layer_up_to_the_systems() -> None:
    """And that of the kernel in C: a fit may simulate. What no fit imports does not count."""
    layers = ("models", "simulator", "evidence", "layout", "calibration", "systems")
    tools = (
        "evidence/audit",
        "systems/vcider/audit.py",
        "evidence/import_files.py",
        "evidence/importers",
        "calibration/tables",
    )
    others = ("arion", "cassandra", "fedora4", "openprovider", "rhino_shcm", "two_tier")
    apart = (*tools, *(f"systems/{each}" for each in others))
    assert refit_code(VCIDER) == code_digest(layers, (".py", ".c", ".h"), plain=True, without=apart)
