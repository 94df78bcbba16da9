"""`capplan calibrate`: writes the fitted file, and the same file for the same seed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

import capplan.calibration.calibrate as calibration
import capplan.cli.calibrate as face
from capplan.calibration import fit
from capplan.calibration.calibrate import calibrate, stages_of
from capplan.calibration.fitted_file import Fitted, load, packaged_path, read, to_json
from capplan.calibration.openprovider_figures import STUDY, experiments
from capplan.calibration.stages import Stages
from capplan.calibration.study import Experiment, Study
from capplan.cli.main import main

FITTED = load("openprovider")


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that the command passes on; nothing is computed."""
    found: list[int] = []

    def fake(its: Study, seed: int, version: str, progress: Callable[[str], None], kept: Path) -> Fitted:
        assert its.system.name == "openprovider"
        assert not kept.exists()
        found.append(seed)
        for stage in range(stages_of(its)):
            progress(f"stage {stage}")
        return replace(FITTED, seed=seed, version=version)

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
    kept, told = tmp_path / "mine.json.stages", list[str]()

    def interrupts(stage: str) -> None:
        told.append(stage)
        if stage == "refitting without TS2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(SMALL, 3, "0", interrupts, kept)
    assert len(json.loads(kept.read_text(encoding="utf-8"))["stages"]) == len(told) - 1 == 4
    monkeypatch.setattr(calibration, "maximum", lambda *_: pytest.fail("finished stages are not computed again"))
    with pytest.raises(pytest.fail.Exception):
        calibrate(SMALL, 3, "0", lambda _: None, kept)  # the stage that was interrupted fits
    monkeypatch.undo()
    few_draws(monkeypatch)
    assert calibrate(SMALL, 3, "0", lambda _: None, kept) == small["first"]
    assert not kept.exists()


@pytest.mark.parametrize("content", ["{", "[]", '{"key": "other", "stages": {}}', '{"stages": 3}'])
def test_stages_of_another_calculation_are_not_used(content: str, tmp_path: Path) -> None:
    path = tmp_path / "stages"
    path.write_text(content, encoding="utf-8")
    stages = Stages("mine", path=path)

    assert stages.of("one", lambda: 1) == 1
    assert Stages("mine", path=path).of("one", lambda: 2) == 1
    assert Stages("other", path=path).of("one", lambda: 2) == 2
