"""`compare`: differences under common random numbers."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from capplan.cli.main import main
from capplan.models.errors import InputError
from capplan.planner.explore.compare import CAPACITY, MODEL_ERROR, Comparison, Difference, compare
from capplan.planner.reports.comparison_plot import plot
from capplan.systems.registry import scenario

SIX, EIGHT = (scenario("fedora4", nodes=nodes, tps=300.0) for nodes in (6, 8))


def by_name(found: Comparison) -> dict[str, Difference]:
    """Return the differences by figure."""
    return {each.figure: each for each in found.differences}


def test_a_layout_does_not_differ_from_itself() -> None:
    found = compare(SIX, SIX, engine="analytic", drivers=True)
    assert found.changed == ()
    assert all(each.difference.low == each.difference.high == 0 for each in found.differences)
    assert found.drivers == ()


def test_the_other_way_round_differences_change_their_signs() -> None:
    there, back = (by_name(compare(*pair, engine="analytic")) for pair in ((SIX, EIGHT), (EIGHT, SIX)))
    for name, each in there.items():
        assert each.first == back[name].second
        assert each.difference.value == pytest.approx(-back[name].difference.value, rel=1e-9, abs=1e-12)
        assert each.larger + back[name].larger <= 1


@pytest.mark.parametrize("engine", ["analytic", pytest.param("compiled", marks=pytest.mark.slow)])
def test_common_random_numbers_make_the_difference_surer_than_independent_ones(engine: str) -> None:
    found = by_name(compare(SIX, EIGHT, engine="analytic" if engine == "analytic" else "compiled"))
    for name in (CAPACITY, "read.mean"):
        each = found[name]
        apart = math.hypot(*((one.high - one.low) for one in (each.first, each.second)))
        assert each.difference.high - each.difference.low < apart
    assert found[CAPACITY].larger > 0.8


def test_the_drivers_share_the_variance_and_come_in_order() -> None:
    found = compare(SIX, EIGHT, engine="analytic", drivers=True)
    shares = [each.share for each in found.drivers]
    assert shares == sorted(shares, reverse=True)
    assert {each.parameter for each in found.drivers} > {MODEL_ERROR, "read_s"}
    assert all(0 <= share <= 1 for share in shares)
    assert shares[0] > 0.1


def test_the_rate_is_that_of_either_or_80_percent_of_the_lower_capacity() -> None:
    def rate(*tps: float | None) -> float:
        layouts = (scenario("fedora4", nodes=nodes, tps=each) for nodes, each in zip((6, 8), tps, strict=True))
        return compare(*layouts, engine="analytic").offered_tps

    assert rate(200.0, 300.0) == 200
    assert rate(None, 300.0) == 300
    lower = by_name(compare(SIX, EIGHT, engine="analytic"))[CAPACITY].first.value
    assert rate(None, None) == pytest.approx(0.8 * lower, rel=0.05)


@pytest.mark.parametrize(
    ("one", "other", "found"), [("fedora4", "arion", "different systems"), ("vcider", "vcider", "cannot be compared")]
)
def test_what_cannot_be_compared_is_refused(one: str, other: str, found: str) -> None:
    with pytest.raises(InputError, match=found):
        compare(scenario(one), scenario(other))


def test_the_picture_has_every_bounded_difference_and_the_drivers() -> None:
    found = compare(SIX, EIGHT, engine="analytic", drivers=True)
    figure = plot(found)
    assert list(figure.data[0].y) == [each.figure for each in found.differences if np.isfinite(each.difference.high)]
    assert [each.name for each in figure.data[1:]] == ["where it is low", "where it is high"]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_width_loses_a_value(
    columns: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    files = [tmp_path / f"{nodes}.toml" for nodes in (6, 8)]
    for nodes, file in zip((6, 8), files, strict=True):
        file.write_text(f'system = "fedora4"\nnodes = {nodes}\ntps = 300\n', encoding="utf-8")
    assert main(["compare", *map(str, files), "--engine", "analytic", "--drivers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns and line == line.rstrip() for line in lines)
    assert any(line.startswith(("Changed", "  Changed")) and "nodes" in line for line in lines)
    assert main(["compare", *map(str, files), "--engine", "analytic", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "capplan.comparison/1"
