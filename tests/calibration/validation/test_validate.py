"""Validation: every documented figure with its signed error, goals, rules that a model has to beat, and refits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, replace
from pathlib import Path

import numpy as np
import pytest
from tests.calibration.documented_reports import every, reported
from tests.calibration.fit.small_calibration import few_draws
from tests.calibration.made_up_fits import as_documented, saying

from capplan.calibration.fit import refits
from capplan.calibration.fit.calibrate import calibrate
from capplan.calibration.fit.posterior import Maximum, Problem, maximum
from capplan.calibration.validation import validation as module
from capplan.calibration.validation.validation import (
    Compared,
    Score,
    Validation,
    goals_of,
    goals_of_all,
    median_errors,
    stages_of,
    validate,
)
from capplan.calibration.validation.validation import report as report_on
from capplan.errors import Notice
from capplan.evidence.table import by_id
from capplan.layout.fitted_file import Fitted
from capplan.models.language.units import FloatArray
from capplan.systems.openprovider import observations as openprovider_figures
from capplan.systems.registry import documented_names, system


def report(fitted: Fitted, refits: str = "") -> Validation:
    return report_on(system(fitted.system), fitted, refits)


OPENPROVIDER = system("openprovider")
OBSERVATIONS = OPENPROVIDER.observations
FITTED, VCIDER = OPENPROVIDER.fitted(), system("vcider").fitted()
ROWS = by_id(OPENPROVIDER.evidence)
JUDGED = [row.id for test in OBSERVATIONS.load_tests() for row in test.rows if OBSERVATIONS.bounds_of(row) is not None]
NO_SCORES: Mapping[str, Score] = {}


def test_every_documented_figure_that_can_be_compared_is_listed() -> None:
    assert [figure.id for figure in reported("openprovider").figures] == [
        row.id for test in OBSERVATIONS.load_tests() for row in test.rows
    ]
    assert [figure.id for figure in reported("openprovider").figures if figure.met is not None] == JUDGED


@pytest.mark.parametrize("name", JUDGED)
def test_the_packaged_fit_meets_every_goal_of_a_figure(name: str) -> None:
    figure = next(each for each in reported("openprovider").figures if each.id == name)
    goal = 0.03 * figure.documented if figure.unit == "1/s" else max(0.5e-3, 0.1 * figure.documented)

    assert abs(figure.predicted - figure.documented) <= goal, f"{figure.error:+.2%} of {figure.documented:g}"
    assert figure.met


def test_the_packaged_figures_are_what_the_packaged_draws_say() -> None:
    """A fitted file that is older than the model would be scored on figures that the model no longer says."""
    tests = [test for test in OBSERVATIONS.load_tests() if test.name in ("TS1", "TS3")]
    said = OBSERVATIONS.predicted(tests, FITTED.values(OPENPROVIDER.parameters))
    stored = {figure.id: figure.predicted for figure in FITTED.figures}

    for name, values in said.items():
        # The file keeps seven digits of each parameter; near saturation a time moves ten times as far.
        assert float(np.median(values)) == pytest.approx(stored[name], rel=1e-4), name


@pytest.fixture
def _no_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shares of the time of busy workers: no goal hangs on them, and they are slow."""
    monkeypatch.setattr(openprovider_figures, "share_of_time_at_most", lambda *_: 0.5)


@pytest.fixture
def _figures_only(_no_shares: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the scenarios that were left out either."""
    monkeypatch.setattr(module, "left_out", lambda *_: ())


@pytest.mark.usefixtures("_figures_only")
def test_a_perfect_fit_has_no_error_and_no_missed_figure() -> None:
    found = report(as_documented(FITTED))

    assert all(figure.error == 0 and figure.met is not False for figure in found.figures)
    assert found.goals[0].value == 0


@pytest.mark.usefixtures("_figures_only")
@pytest.mark.parametrize("name", JUDGED)
@pytest.mark.parametrize("sign", [-1, 1])
def test_one_figure_beyond_its_goal_fails_the_whole(name: str, sign: int) -> None:
    row = ROWS[name]
    bounds = OBSERVATIONS.bounds_of(row)
    assert bounds is not None
    error = bounds[max(sign, 0)] - row.value
    perfect = {figure.id: figure.documented for figure in FITTED.figures}
    inside = _goals_met(report(saying(FITTED, {**perfect, name: row.value + 0.999 * error})))
    outside = _goals_met(report(saying(FITTED, {**perfect, name: row.value + 1.001 * error})))

    assert inside.passed
    assert not outside.passed
    assert [figure.id for figure in outside.figures if figure.met is False] == [name]
    assert np.sign(next(figure.error for figure in outside.figures if figure.id == name)) == sign


def _goals_met(found: Validation) -> Validation:
    """The report without goals that several figures share."""
    return replace(found, goals=())


def test_a_missed_goal_that_figures_share_fails_the_whole() -> None:
    found = _goals_met(reported("vcider"))
    goal = reported("vcider").goals[0]

    assert replace(found, goals=(replace(goal, value=goal.limit),)).passed
    assert not replace(found, goals=(goal, replace(goal, value=1.001 * goal.limit))).passed
    assert not replace(found, goals=(replace(goal, value=math.nan),)).passed  # nothing to be judged by is no success


@pytest.mark.usefixtures("_figures_only")
def test_a_goal_need_not_be_as_wide_on_both_sides() -> None:
    """The single node of fedora4: "525~550" and 3 % of 525 are met from 509.25 to 550."""
    fitted = system("fedora4").fitted()
    perfect = {figure.id: figure.documented for figure in fitted.figures}
    rates = (500.0, 509.0, 510.0, 549.0, 551.0)
    met = {rate: _goals_met(report(saying(fitted, {**perfect, "capacity.n1.read": rate}))).passed for rate in rates}

    assert met == {500.0: False, 509.0: False, 510.0: True, 549.0: True, 551.0: False}


@pytest.mark.parametrize("name", documented_names())
def test_the_packaged_fits_meet_the_goals_of_their_studies(name: str) -> None:
    found, its = reported(name), system(name).observations
    own = its.goals({figure.id: figure.predicted for figure in found.figures})

    assert [figure.id for figure in found.figures if figure.met is False] == []
    assert [goal.name for goal in own if not goal.met] == []
    assert found.goals[: len(own)] == own


def test_only_what_was_measured_and_is_not_contradicted_is_held_to_ten_per_cent() -> None:
    for found in every():
        rows = by_id(system(found.system).evidence)
        assert {each.id for each in found.figures if each.sound} == {
            each.id for each in found.figures if rows[each.id].status == "measured"
        }
    assert any(not each.sound for each in reported("openprovider").figures)  # busy workers: Little's law refutes them


def test_median_errors_are_of_their_size() -> None:
    capacity = [each for each in reported("openprovider").left_out if each.family == "capacity"]
    medians = median_errors(capacity)

    assert set(medians) == {"capplan", "persistence", "linear", "affine", "USL"}
    sizes = sorted(abs(each.errors["capplan"]) for each in capacity)
    assert medians["capplan"] == pytest.approx((sizes[1] + sizes[2]) / 2)
    silent = [each for each in reported("openprovider").left_out if not each.family]
    assert silent
    assert median_errors([*capacity, *silent]) == medians  # what no rule says anything of does not count
    assert median_errors(silent) == median_errors([]) == {}


@pytest.mark.parametrize(
    ("system", "groups"),
    [
        ("openprovider", {"capacity", "times"}),
        ("rhino-shcm", {"cores", "load at the p90", "times (colocated)", "times (dedicated)"}),
        ("fedora4", {"capacity for reads", "capacity with 5 % writes", "times"}),
    ],
)
def test_the_verdict_of_a_packaged_fit_has_a_sentence_for_each_group(system: str, groups: set[str]) -> None:
    """The medians are those of figures that count: T7 of rhino-shcm and deletes on four nodes of fedora4 do not."""
    found, worse = reported(system), 0

    assert {each.group for each in found.left_out if each.family} == groups
    for name in groups:
        counted = [each for each in found.left_out if each.family and each.counts and each.group == name]
        medians = median_errors(counted)
        best = min((rule for rule in medians if rule != "capplan"), key=lambda rule: medians[rule])
        assert all(figure in found.verdict for figure in (name, f"{medians['capplan']:.1%}", f"{medians[best]:.1%}"))
        worse += medians["capplan"] >= medians[best]
    assert found.verdict.count("not beat") == worse


@pytest.mark.parametrize("name", documented_names())
def test_scores_are_of_what_counts(name: str) -> None:
    """Capplan's own are of all that is scored; beside rules, intervals are of what all of them have a band for."""
    found = reported(name)
    counted = [each for each in found.left_out if each.counts]
    shared = [each for each in counted if len(each.estimates) > 1]
    banded = [each for each in shared if all(said.low <= said.high < math.inf for said in each.estimates.values())]

    assert found.own is not None
    assert found.own.error == pytest.approx(float(np.median([abs(each.errors["capplan"]) for each in counted])))
    assert (len(found.scores) > 1) == (len(shared) > 0)
    for rule, score in found.scores.items():
        assert score.error == pytest.approx(float(np.median([abs(each.errors[rule]) for each in shared])))
        intervals = [each.estimates[rule].interval_score(each.documented) for each in banded]
        mean = sum(intervals) / len(intervals) if banded else math.nan
        assert score.interval_score == pytest.approx(mean, nan_ok=True)


def test_rules_estimate_every_scored_figure_that_another_scenario_has() -> None:
    alone = [each.id for found in every() for each in found.left_out if each.counts and not each.family]

    assert alone == ["peak.clients"]
    assert "peak.clients" in reported("arion").verdict


def test_a_straight_line_that_falls_below_zero_gives_the_nearest_time() -> None:
    """Of a delete on one node of fedora4, from three and four nodes: 66 and 190 ms."""
    (figure,) = [each for each in reported("fedora4").left_out if each.id == "alone.n1.delete"]

    assert figure.estimates["affine"].value == pytest.approx(66e-3)


def test_without_a_rule_the_verdict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "left_out", lambda *_: ())
    found = report(VCIDER)

    assert found.verdict
    assert found.own is None
    assert found.scores == {}
    assert found.coverage.figures == 0
    assert len(found.goals) == len(reported("vcider").goals) - 4


def figure(predicted: float, *, sound: bool = True) -> Compared:
    """A documented 1.0, rounded to two digits."""
    error = predicted - 1
    what = ("vcider", "an id", "a scenario", "a rate", "1/s")
    return Compared(*what, 1.0, 0.95, 1.05, predicted, predicted, predicted, error, sound, None, None, None, None)


@pytest.mark.parametrize(
    ("figures", "share", "met"),
    [
        ([1.09] * 9 + [1.2], 0.1, True),
        ([1.09] * 8 + [1.2, 0.8], 0.2, False),
        ([1.0], 0.0, True),
    ],
)
def test_one_figure_in_ten_may_be_further_off_than_a_tenth(figures: list[float], share: float, met: bool) -> None:
    (goal,) = goals_of([*map(figure, figures), figure(9.0, sound=False)], None, NO_SCORES)

    assert goal.value == pytest.approx(share)
    assert goal.met is met
    assert goal.name.endswith(f"(of {len(figures)})")


def test_without_a_sound_figure_there_is_no_goal() -> None:
    assert goals_of([figure(9.0, sound=False)], None, NO_SCORES) == ()


ERROR, HALF_WIDTH, RULE_ERROR, RULE_INTERVALS = range(4)
"""Places of the goals for left-out scenarios."""
SCORES = {
    "capplan": Score(0.04, 0.5, 0.2),
    "persistence": Score(0.05, math.nan, math.nan),
    "linear": Score(0.3, 0.6, 0.1),
}


@pytest.mark.parametrize(
    ("own", "missed"),
    [
        (Score(0.04, 0.5, 0.2), []),
        (Score(0.05, 0.6, 0.25), []),
        (Score(0.06, 0.5, 0.2), [RULE_ERROR]),
        (
            Score(0.11, 0.5, 0.2),
            [ERROR, RULE_ERROR],
        ),
        (Score(0.04, 0.7, 0.2), [RULE_INTERVALS]),
        (Score(0.04, 0.5, 0.26), [HALF_WIDTH]),
        (Score(0.04, math.nan, 0.2), [RULE_INTERVALS]),
    ],
)
def test_scenarios_that_were_left_out_have_four_goals(own: Score, missed: list[int]) -> None:
    goals = goals_of([], own, {**SCORES, "capplan": own})

    assert len(goals) == 4
    assert [place for place, goal in enumerate(goals) if not goal.met] == missed
    assert [goal.share for goal in goals] == [True, True, True, False]


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_rules_without_a_band_set_no_goal_for_bands(score: float) -> None:
    own = Score(0.04, 0.5, 0.2)
    goals = goals_of([], own, {"capplan": own, "linear": Score(0.3, score, score)})

    assert [goal.limit for goal in goals[RULE_ERROR:]] == [0.3]


def test_without_bands_their_width_is_no_goal() -> None:
    (goal,) = goals_of([], Score(0.04, math.nan, math.nan), NO_SCORES)

    assert (goal.value, goal.limit) == (0.04, 0.1)


def test_a_rule_without_a_band_does_not_hide_the_sharpest() -> None:
    assert goals_of([], SCORES["capplan"], SCORES)[3].limit == 0.6


def test_goals_of_all_systems_are_of_all_their_figures() -> None:
    first, second = (replace(reported("vcider"), figures=tuple(map(figure, each))) for each in ([1.0] * 8, [1.3, 1.0]))
    (goal,) = goals_of_all([first, second])

    assert goal.value == pytest.approx(0.1)
    assert goal.met
    assert goal.name.endswith("(of 10)")


SYSTEM = system("vcider")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, and refits with few draws."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "kept" / "cache"))
    few_draws(monkeypatch)
    monkeypatch.setattr(refits, "maximum", remembered)
    return tmp_path / "kept" / "cache"


MAXIMA: dict[object, Maximum] = {}


def remembered(asked: Problem, start: FloatArray) -> Maximum:
    """Search for each maximum once for all tests: it does not depend on what is drawn."""
    key = (tuple(row.id for row in asked.rows), tuple(start))
    if key not in MAXIMA:
        MAXIMA[key] = maximum(asked, start)
    return MAXIMA[key]


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

    assert repr(anew) == repr(report_on(SYSTEM, made, anew.refits))


def test_the_packaged_refits_are_those_of_the_packaged_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refits with all draws: another processor may round sums otherwise, so not to the last digit."""
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path))
    anew, kept = validate(SYSTEM, VCIDER, refit=True), reported("vcider")

    assert [each.id for each in anew.left_out] == [each.id for each in kept.left_out]
    for one, other in zip(anew.left_out, kept.left_out, strict=True):
        assert astuple(one.estimates["capplan"]) == pytest.approx(astuple(other.estimates["capplan"]), rel=2e-3)
    for now, then in zip(anew.figures, kept.figures, strict=True):
        assert now.predicted == pytest.approx(then.predicted, rel=1e-5)
