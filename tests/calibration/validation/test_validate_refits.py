"""Validation uses the refits of the fitted file, or computes and stores new ones."""

from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from tests.calibration.documented_reports import reported
from tests.calibration.fit.small_calibration import few_draws

from capplan.calibration.fit import calibrate as refits
from capplan.calibration.fit.calibrate import calibrate
from capplan.calibration.validation import validation as module
from capplan.calibration.validation.validation import report, stages_of, validate
from capplan.layout.fitted_file import Fitted
from capplan.models.errors import Notice
from capplan.systems.registry import system

SYSTEM = system("vcider")
VCIDER = SYSTEM.fitted()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and refits with few draws."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "kept" / "cache"))
    few_draws(monkeypatch)
    return tmp_path / "kept" / "cache"


def recording(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record which scenarios are left out of a refit."""
    made: list[str] = []
    without: Callable[..., list[list[object]]] = refits._without

    def recorded(its: object, tests: object, fold: str, *rest: object) -> list[list[object]]:
        made.append(fold)
        return without(its, tests, fold, *rest)

    monkeypatch.setattr(refits, "_without", recorded)
    return made


FOLDS = ["r1.none", "r1.both", "r1.internode", "r3.none", "r3.both", "r3.internode"]


@pytest.mark.parametrize("of_today", [True, False])
def test_kept_refits_are_taken_if_the_code_is_that_of_today(
    of_today: bool, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, told = recording(monkeypatch), list[str]()
    monkeypatch.setattr(module, "refit_code", lambda _: VCIDER.code if of_today else "other code")
    found = validate(SYSTEM, VCIDER, progress=told.append)

    assert made == ([] if of_today else FOLDS)
    assert cache.exists() is not of_today
    assert len(told) == (0 if of_today else stages_of(SYSTEM))
    same = repr(found.left_out) == repr(reported("vcider").left_out)
    assert same is of_today


def test_refits_are_repeated_when_they_are_asked_for(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(monkeypatch)
    monkeypatch.setattr(module, "refit_code", lambda _: VCIDER.code)

    first = validate(SYSTEM, VCIDER, refit=True)
    assert made == FOLDS
    assert repr(validate(SYSTEM, VCIDER, refit=True)) == repr(first)
    assert made == FOLDS * 2
    assert [path.name.split(".")[0] for path in cache.iterdir()] == ["vcider-refits"]


def test_refits_of_other_code_are_made_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(monkeypatch)
    monkeypatch.setattr(module, "refit_code", lambda _: "other code")

    assert repr(validate(SYSTEM, VCIDER)) == repr(validate(SYSTEM, VCIDER))
    assert made == FOLDS
    assert repr(validate(SYSTEM, VCIDER, refit=True)) == repr(validate(SYSTEM, VCIDER))
    assert made == FOLDS * 2
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.usefixtures("cache")
def test_what_was_interrupted_goes_on(refit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(monkeypatch)
    monkeypatch.setattr(module, "refit_code", lambda _: "other code")

    def interrupts(stage: str) -> None:
        if stage == "refitting without r3.none":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validate(SYSTEM, VCIDER, refit=refit, progress=interrupts)
    assert made == FOLDS[:3]
    went_on = validate(SYSTEM, VCIDER, refit=refit)
    assert made == FOLDS
    assert repr(validate(SYSTEM, VCIDER, refit=True)) == repr(went_on)  # all of it anew: the same


@pytest.mark.usefixtures("cache")
def test_refits_of_another_fit_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = recording(monkeypatch)
    other = replace(VCIDER, seed=VCIDER.seed + 1)
    for fitted in (VCIDER, other):
        validate(SYSTEM, fitted, refit=True)

    assert made == FOLDS * 2


def test_one_file_of_refits_is_kept_for_each_system(cache: Path) -> None:
    validate(SYSTEM, VCIDER, refit=True)
    (first,) = cache.iterdir()
    others = [cache / "arion-refits.00000000.stages", cache / "vcider-refits.txt"]
    for path in others:
        path.write_text("{}", encoding="utf-8")
    validate(SYSTEM, replace(VCIDER, seed=VCIDER.seed + 1), refit=True)
    found = set(cache.iterdir())
    (second,) = found - set(others)

    assert set(others) < found
    assert second.name.startswith("vcider-refits.")
    assert second != first


def test_older_refits_stay_until_the_new_ones_are_complete(cache: Path) -> None:
    other = replace(VCIDER, seed=VCIDER.seed + 1)
    validate(SYSTEM, VCIDER, refit=True)
    (first,) = cache.iterdir()

    def interrupts(stage: str) -> None:
        if " and " in stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validate(SYSTEM, other, refit=True, progress=interrupts)
    begun = set(cache.iterdir())
    assert first in begun
    assert len(begun) == 2
    validate(SYSTEM, other, refit=True)
    assert set(cache.iterdir()) == begun - {first}


def test_a_cache_that_cannot_be_made_keeps_nothing_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "file"))

    few_draws(monkeypatch)
    with pytest.warns(Notice, match=r"/file.*CAPPLAN_CACHE_DIR"):
        assert validate(SYSTEM, VCIDER, refit=True).left_out


@pytest.mark.usefixtures("cache")
def test_refits_made_anew_are_those_that_calibrating_made_bit_for_bit() -> None:
    made: Fitted = calibrate(SYSTEM, seed=3)
    anew = validate(SYSTEM, made, refit=True)

    assert repr(anew) == repr(report(SYSTEM, made, anew.refits))


def test_the_packaged_refits_are_those_of_the_packaged_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refits with all draws: another processor may round sums otherwise, so not to the last digit."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))
    anew, kept = validate(SYSTEM, VCIDER, refit=True), reported("vcider")

    assert [each.id for each in anew.left_out] == [each.id for each in kept.left_out]
    for one, other in zip(anew.left_out, kept.left_out, strict=True):
        assert astuple(one.estimates["capplan"]) == pytest.approx(astuple(other.estimates["capplan"]), rel=2e-3)
    for now, then in zip(anew.figures, kept.figures, strict=True):
        assert now.predicted == pytest.approx(then.predicted, rel=1e-5)
