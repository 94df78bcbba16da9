"""Releases may not hide that backtests became worse: exact cases of the judgement, and the release that stops."""

import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

GENERATE = Path(__file__).parents[2] / "docs" / "generate"
FEW, MANY = 4, 5  # tables


@pytest.fixture(scope="module")
def ratchet() -> dict[str, Any]:
    """The script."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(GENERATE), *sys.path])
        found: dict[str, Any] = runpy.run_path(str(GENERATE / "ratchet.py"))["main"].__globals__
        return found


Figures = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def figures(ratchet: dict[str, Any]) -> Figures:
    """Make a release: in each table one figure of 100 that is predicted too high by a share, with a band of 1 %."""

    def made(share: float, tables: int, release: str = "1") -> list[Any]:
        value = round(100 * (1 + share), 6)
        rest = ("clients <= 32", "run", "", "latency_p99_ms", 100.0, value, value / 1.01, value * 1.01)
        return [ratchet["Figure"](release, "Load curves", f"table {number}", *rest) for number in range(tables)]

    return made


@pytest.mark.parametrize(
    ("tables", "share", "scatter", "is_worse"),
    [
        (MANY, 0.20, None, False),  # the same
        (MANY, 0.19, 0.0, False),  # better
        (MANY, 0.208, 0.0, False),  # 4 % more
        (MANY, 0.216, 0.0, True),  # 8 % more
        (MANY, 0.216, None, True),
        (MANY, 0.216, 0.03, True),  # beyond twice the scatter
        (MANY, 0.216, 0.05, False),  # within it
        (FEW, 0.216, 0.0, False),  # few tables: 8 % of the median error
        (FEW, 0.23, 0.0, True),  # 13 % more
        (FEW, 0.23, 0.05, True),
        (FEW, 0.23, 0.08, False),
    ],
)
def test_worse_is_a_change_beyond_the_limit_and_twice_the_scatter(
    ratchet: dict[str, Any], figures: Figures, tables: int, share: float, scatter: float | None, is_worse: bool
) -> None:
    by_chance = None if scatter is None else ratchet["Scatter"](5, tables, scatter, scatter)
    assert bool(ratchet["worse"](figures(0.2, tables), figures(share, tables), by_chance)) == is_worse


def test_errors_below_what_sources_state_are_not_worse_than_none(ratchet: dict[str, Any], figures: Figures) -> None:
    assert ratchet["scatter"]([figures(0.0, FEW), figures(0.0, FEW)]).median_abs_log_error == 0.0
    assert not ratchet["worse"](figures(0.0, FEW), figures(0.0005, FEW), None)
    assert ratchet["worse"](figures(0.0, FEW), figures(0.002, FEW), None)


def test_only_figures_of_both_releases_are_compared_and_none_may_vanish(
    ratchet: dict[str, Any], figures: Figures
) -> None:
    new_table = [replace(each, table="new") for each in figures(9.0, 1)]
    assert not ratchet["worse"](figures(0.2, FEW), figures(0.2, FEW) + new_table, None)
    assert ratchet["worse"](figures(0.2, FEW), figures(0.2, FEW)[1:], None)
    assert ratchet["changes"](figures(0.2, FEW), [], {})


def test_bands_that_became_wrong_are_worse_where_tables_are_many(ratchet: dict[str, Any], figures: Figures) -> None:
    wide = [replace(each, low=90.0, high=160.0) for each in figures(0.2, MANY)]
    assert ratchet["worse"](wide, figures(0.2, MANY), None)
    assert not ratchet["worse"](figures(0.2, MANY), wide, None)


def test_the_scatter_is_that_of_the_scores_of_seeds_as_a_share(ratchet: dict[str, Any], figures: Figures) -> None:
    assert ratchet["scatter"]([figures(0.2, FEW), figures(0.2, FEW)]) == ratchet["Scatter"](2, FEW, 0.0, 0.0)
    errors = [0.1, 0.2, 0.3]
    seeds = [figures(2.718281828459045**each - 1, FEW) for each in errors]
    assert ratchet["scatter"](seeds).median_abs_log_error == pytest.approx(0.1 / 0.2)


@pytest.mark.usefixtures("files")
def test_the_scatter_that_is_kept_is_read_again(ratchet: dict[str, Any]) -> None:
    scatter = {("Load curves", "latency_p99_ms"): ratchet["Scatter"](5, 12, 0.011, 0.22)}
    ratchet["keep_scatter"](scatter)
    assert ratchet["measured_scatter"]() == scatter


@pytest.fixture
def files(ratchet: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with the files of an earlier release, and one with decision records."""
    folder = tmp_path / "docs" / "decisions"
    folder.mkdir(parents=True)
    (folder / "0001-one.md").write_text("Nothing of interest.\n", "utf-8")
    for name, path in (("FIGURES", "figures.csv"), ("SCORES", "scores.csv"), ("SCATTER", "scatter.csv")):
        monkeypatch.setitem(ratchet, name, tmp_path / path)
    monkeypatch.setitem(ratchet, "ROOT", tmp_path)
    return folder


def test_a_release_with_a_worse_cell_stops_unless_a_record_names_it(
    ratchet: dict[str, Any], figures: Figures, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    today = version("capplan")
    ratchet["keep"](figures(0.2, FEW, "0.0.1"), "0.0.1", "old code")
    ratchet["keep"](figures(0.4, FEW, today), today, ratchet["code"]())
    assert ratchet["main"]() == 1
    assert "Worse since 0.0.1: Load curves, p99." in capsys.readouterr().err
    record = files / "0002-two.md"
    record.write_text(
        "Accepted.\n\nWorse since 0.0.1: Load curves, p95. Worse since 0.0.2: Load curves,\np99.\n", "utf-8"
    )
    assert ratchet["main"]() == 1
    record.write_text("Accepted.\n\nThe tail is longer. Worse since 0.0.1: Load curves,\np99.\n", "utf-8")
    assert ratchet["main"]() == 0


@pytest.mark.usefixtures("files")
def test_a_release_stops_whose_backtests_are_of_other_code(ratchet: dict[str, Any], figures: Figures) -> None:
    today = version("capplan")
    assert ratchet["main"]() == 1
    ratchet["keep"](figures(0.2, FEW, today), today, "other code")
    assert ratchet["main"]() == 1
    ratchet["keep"](figures(0.2, FEW, today), today, ratchet["code"]())
    assert ratchet["main"]() == 0


@pytest.mark.usefixtures("files")
def test_a_release_that_is_kept_again_takes_its_own_place(ratchet: dict[str, Any], figures: Figures) -> None:
    for release, share in (("1", 0.2), ("2", 0.3), ("2", 0.1)):
        ratchet["keep"](figures(share, FEW, release), release, "")
    kept = ratchet["kept"]()
    assert {release: {each.value for each in own} for release, own in kept.items()} == {"1": {120.0}, "2": {110.0}}
    assert [each["release"] for each in ratchet["rows"](ratchet["SCORES"])] == ["1", "2"]


def test_the_recipe_of_a_release_begins_with_this_judgement() -> None:
    recipe = (GENERATE.parents[1] / "justfile").read_text("utf-8").split("\nrelease:\n")[1].split("\n\n")[0]
    assert recipe.splitlines()[0].strip() == "uv run python docs/generate/ratchet.py"
