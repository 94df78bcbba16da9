"""`capplan calibrate`: writes the fitted file, and the same file for the same seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import capplan.calibration.calibrate as calibration
import capplan.cli.calibrate as face
from capplan.calibration import fit
from capplan.calibration.calibrate import calibrate, stages_of
from capplan.calibration.fitted_file import Fitted, load, packaged_path, read, to_json
from capplan.calibration.openprovider_figures import STUDY, experiments
from capplan.calibration.problem import problem, start_of
from capplan.calibration.stages import Stages
from capplan.calibration.study import Experiment, Study
from capplan.cli.main import main
from capplan.models.parameter import Values
from capplan.models.quantity import FloatArray

FITTED = load("openprovider")


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that the command passes on; nothing is computed."""
    found: list[int] = []

    def fake(its: Study, seed: int, progress: Callable[[str], None], output: Path) -> Fitted:
        assert its.system.name == "openprovider"
        assert output.suffix == ".json"
        found.append(seed)
        for stage in range(stages_of(its)):
            progress(f"stage {stage}")
        return replace(FITTED, seed=seed)

    monkeypatch.setattr(face, "calibrate", fake)
    return found


def test_it_writes_where_it_is_told(seeds: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = packaged_path("openprovider").read_bytes()
    path = tmp_path / "mine.json"

    assert main(["calibrate", "openprovider", "--seed", "5", "--output", str(path)]) == 0
    assert seeds == [5]
    assert read(path) == replace(FITTED, seed=5)
    assert packaged_path("openprovider").read_bytes() == before
    out, err = capsys.readouterr()
    assert err == ""  # progress is for terminals
    out = " ".join(out.split())
    assert "openprovider is calibrated: mine.json" in out
    assert f"{len(FITTED.draws)} draws" in out
    assert "seed 5" in out
    assert all(name in out for name in FITTED.names)


def test_without_output_it_is_the_packaged_file(
    seeds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(face, "packaged_path", lambda system: tmp_path / f"{system}.json")

    assert main(["calibrate"]) == 0
    assert seeds == [1]
    assert read(tmp_path / "openprovider.json").seed == 1
    assert "openprovider.json" in capsys.readouterr().out


@pytest.mark.usefixtures("seeds")
def test_json_is_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"

    assert main(["calibrate", "--output", str(path), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["openprovidr"], "did you mean 'openprovider'?"),
        (["--seed", "-1"], "--seed"),
        (["--output", "none/mine.json"], "none/mine.json cannot be written: there is no folder none"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_computed(
    arguments: list[str],
    wanted: str,
    seeds: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["calibrate", *arguments]) == 2
    out, err = capsys.readouterr()
    assert (out, seeds) == ("", [])
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    assert wanted in err


def test_a_folder_cannot_be_overwritten(seeds: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--output", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"capplan: {tmp_path} cannot be written: it is a folder, give the name of a file\n"
    )
    assert seeds == []


def two(choice: Mapping[str, str] = MappingProxyType({})) -> tuple[Experiment, ...]:
    return experiments(choice)[:2]


SMALL = replace(STUDY, experiments=two, choices=STUDY.choices[:1])


def few_draws(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(calibration, "DRAWS", 12)
    patched.setattr(calibration, "_PROPOSALS", 60)
    patched.setattr(calibration, "_PROPOSALS_LEFT_OUT", 60)
    patched.setattr(fit, "_ROUNDS", 2)


@pytest.fixture(scope="module")
def small() -> dict[str, Fitted]:
    """Calibrations with few draws to the two scenarios of one data centre; twice with one seed, once with another."""

    with pytest.MonkeyPatch.context() as patched:
        few_draws(patched)
        same = {name: calibrate(SMALL, 3, "0") for name in ("first", "again")}
        patched.setattr(calibration, "_folds", lambda _: [])  # cost most, and two of them are enough
        return {**same, "other": calibrate(SMALL, 4, "0")}


def test_the_same_seed_gives_the_same_file_bit_for_bit(small: dict[str, Fitted]) -> None:
    assert json.dumps(to_json(small["first"])) == json.dumps(to_json(small["again"]))


def test_another_seed_gives_other_draws_and_the_same_maximum(small: dict[str, Fitted]) -> None:
    assert small["other"].draws != small["first"].draws
    assert small["other"].most_probable == small["first"].most_probable
    assert small["other"].hypotheses == small["first"].hypotheses


def test_what_is_left_out_is_predicted_by_a_fit_without_it(small: dict[str, Fitted]) -> None:
    made = small["first"]

    assert [figure.id for figure in made.left_out] == [figure.id for figure in made.figures]
    assert [figure.predicted for figure in made.left_out] != [figure.predicted for figure in made.figures]
    assert {figure.fold for figure in made.left_out} == {"TS1", "TS2"}


def test_what_was_interrupted_goes_on_and_gives_the_same_file(
    small: dict[str, Fitted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few_draws(monkeypatch)
    output, told = tmp_path / "mine.json", list[str]()

    def interrupts(stage: str) -> None:
        told.append(stage)
        if stage == "refitting without TS2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(SMALL, 3, "0", interrupts, output)
    (kept,) = tmp_path.glob("mine.json.????????.stages")
    assert len(json.loads(kept.read_text(encoding="utf-8"))["stages"]) == len(told) - 1 == 4
    monkeypatch.setattr(calibration, "maximum", lambda *_: pytest.fail("finished stages are not computed again"))
    with pytest.raises(pytest.fail.Exception):
        calibrate(SMALL, 3, "0", lambda _: None, output)  # the stage that was interrupted fits
    monkeypatch.undo()
    few_draws(monkeypatch)
    assert calibrate(SMALL, 3, "0", lambda _: None, output) == small["first"]
    assert not kept.exists()


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


def test_seed_and_version_have_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    few_draws(monkeypatch)
    monkeypatch.setattr(calibration, "_folds", lambda _: [])  # cost most, and nothing here hangs on them
    made = calibrate(SMALL)

    assert (made.seed, made.version) == (1, version("capplan"))


def test_the_model_is_asked_for_the_fitted_figures_only() -> None:
    asked: set[str] = set()

    def predicted(tests: Sequence[Experiment], _: Values) -> dict[str, FloatArray]:
        asked.update(row.id for test in tests for row in test.rows)
        return {row.id: np.array([row.value]) for test in tests for row in test.rows}

    made = problem(replace(STUDY, predicted=predicted), experiments())
    made.figures(made.centre[None])

    assert asked == {row.id for row in made.rows}
    assert {row.use for row in made.rows} == {"fit"}
    assert any(row.use != "fit" for test in experiments() for row in test.rows)


def test_the_search_starts_where_the_study_says() -> None:
    free = [parameter for parameter in STUDY.system.parameters if parameter.free]
    start = {parameter.name: 2 * parameter.value for parameter in free}

    assert start_of(STUDY) is None
    assert start_of(replace(STUDY, start=start)) == pytest.approx(np.log([2 * each.value for each in free]))
