"""Calibration: the same seed gives the same file, and an interrupted calibration resumes."""

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.calibration.altered_systems import observing
from tests.calibration.fit.small_calibration import FOLDS, SMALL, few_draws

from capplan.calibration.fit import refits
from capplan.calibration.fit.calibrate import calibrate, stages_of
from capplan.calibration.fit.posterior import maximum, problem, resampled
from capplan.calibration.fit.stages import refit_code
from capplan.layout.fitted_file import Fitted, to_json
from capplan.layout.observations import LoadTest
from capplan.models.language.parameter import from_log


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    few_draws(monkeypatch)


@pytest.fixture(scope="module")
def small() -> dict[str, Fitted]:
    """Calibrations with few draws; twice with one seed, once with another."""
    with pytest.MonkeyPatch.context() as patched:
        few_draws(patched)
        return {name: calibrate(SMALL, seed, "0") for name, seed in (("first", 3), ("again", 3), ("other", 4))}


def test_the_same_seed_gives_the_same_file_bit_for_bit(small: dict[str, Fitted]) -> None:
    assert json.dumps(to_json(small["first"])) == json.dumps(to_json(small["again"]))


def test_another_seed_gives_other_draws_and_the_same_maximum(small: dict[str, Fitted]) -> None:
    first, other = small["first"], small["other"]

    assert other.draws != first.draws
    assert other.most_probable == first.most_probable
    assert other.hypotheses == first.hypotheses
    assert other.nested != first.nested
    assert other.left_out != first.left_out


def test_the_file_says_what_was_fitted_by_which_code(small: dict[str, Fitted]) -> None:
    made = small["first"]

    assert (made.system, made.version, made.seed) == ("vcider", "0", 3)
    assert (made.data_hash, made.code) == (SMALL.data_hash, refit_code(SMALL))
    assert (len(made.draws), made.posterior.steps) == (16, 2)
    assert 0 < made.posterior.acceptance < 1
    assert 0 < made.effective_parameters < len(made.names)
    assert [each.deviance for each in made.hypotheses] == sorted(each.deviance for each in made.hypotheses)
    assert {each.choice["virtual_encrypts"] for each in made.hypotheses} == {"same", "all", "none"}


def test_the_figures_are_those_of_the_draws_as_the_file_has_them(small: dict[str, Fitted]) -> None:
    made = small["first"]
    said = SMALL.observations.predicted(SMALL.observations.load_tests(), made.values(SMALL.parameters))

    for each in made.figures:
        low, median, high = np.quantile(said[each.id], [0.05, 0.5, 0.95])
        assert (each.low, each.predicted, each.high) == pytest.approx((low, median, high), rel=1e-6)


def test_what_is_left_out_is_predicted_by_a_fit_without_it(small: dict[str, Fitted]) -> None:
    made = small["first"]

    assert [figure.id for figure in made.left_out] == [figure.id for figure in made.figures]
    assert [figure.predicted for figure in made.left_out] != [figure.predicted for figure in made.figures]
    assert {figure.fold for figure in made.left_out} == set(FOLDS)


def test_every_stage_is_told(small: dict[str, Fitted]) -> None:
    told: list[str] = []
    again = calibrate(SMALL, 3, "0", told.append)

    assert again == small["first"]
    assert len(told) == len(set(told)) == stages_of(SMALL)
    pairs = [f"refitting without {one} and {other}" for one, other in combinations(FOLDS, 2)]
    assert told[-6:] == [*(f"refitting without {fold}" for fold in FOLDS), *pairs]


@pytest.mark.parametrize(
    "stage", ["fitting with virtual encrypts all", "predicting", f"refitting without {FOLDS[1]}"], ids=str
)
def test_what_was_interrupted_goes_on_and_gives_the_same_file(
    stage: str, small: dict[str, Fitted], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, told, again = tmp_path / "mine.json", list[str](), list[str]()

    def interrupts(each: str) -> None:
        told.append(each)
        if each == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calibrate(SMALL, 3, "0", interrupts, output)
    (kept,) = tmp_path.glob("mine.json.????????.stages")
    finished = json.loads(kept.read_text(encoding="utf-8"))["stages"]
    assert list(finished) == told[:-1]
    with monkeypatch.context() as patched:
        patched.setattr(refits, "maximum", lambda *_: pytest.fail("a refit"))
        with pytest.raises(pytest.fail.Exception):
            calibrate(SMALL, 3, "0", again.append, output)  # goes on until it refits
    assert again[: len(told)] == told
    assert again[-1] == f"refitting without {FOLDS[1 if stage.startswith('refitting') else 0]}"
    assert calibrate(SMALL, 3, "0", lambda _: None, output) == small["first"]
    assert list(tmp_path.iterdir()) == []


def test_a_study_that_leaves_nothing_open_is_fitted_once() -> None:
    told: list[str] = []
    made = calibrate(observing(SMALL, choices=()), 3, "0", told.append)

    assert made.hypotheses == ()
    assert told[0] == "fitting"
    assert len(told) == stages_of(observing(SMALL, choices=()))


def test_the_default_must_be_among_the_choices() -> None:
    with pytest.raises(ValueError, match="choices"):
        calibrate(observing(SMALL, choices=({"virtual_encrypts": "all"},)), 3, "0")


def test_two_scenarios_are_enough() -> None:
    """Without both of them nothing is left to fit: the prior predicts them."""

    def two(choice: Mapping[str, str] | None = None) -> tuple[LoadTest[Any], ...]:
        return tuple(test for test in SMALL.observations.load_tests(choice) if test.fold in FOLDS[:2])

    made = calibrate(observing(SMALL, load_tests=two, choices=()), 3, "0")
    nothing = problem(SMALL, [])
    prior = resampled(nothing, maximum(nothing), 12, 60, 3 + 1 + len(FOLDS[:2]))

    said = SMALL.observations.predicted(two(), from_log(SMALL.parameters, prior.log_points))
    assert {each.id: each.predicted for each in made.nested} == pytest.approx(
        {name: float(np.median(values)) for name, values in said.items()}, rel=1e-6
    )
