"""The view of a prediction: 80 columns wide, without colour if the output is not a terminal."""

import re
from typing import Any

import pytest
from tests.planner.predictions import UNBOUNDED, outage, predicted, prediction
from tests.reports.screens import on_screen

from capplan.answers.results import Band, Latency, SessionNotFound
from capplan.planner.predict.prediction import EvidenceSummary, Prediction
from capplan.reports.prediction import MORE, describe, sessions
from capplan.systems.registry import documented_names

MOST_LINES = 24


def shown(width: int = 80, more: tuple[str, ...] = (), **changed: Any) -> str:
    return of(prediction(**changed), width, more)


def of(made: Prediction, width: int = 80, more: tuple[str, ...] = ()) -> str:
    return on_screen(*describe(made, more), width=width)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [40, 60, 80, 140])
@pytest.mark.parametrize("more", [(), MORE])
def test_it_fits_any_width_without_colour_and_without_blanks_at_the_end(width: int, more: tuple[str, ...]) -> None:
    out = shown(width, more)

    assert max(map(len, out.splitlines())) <= width
    assert "\x1b" not in out
    assert "…" not in out
    assert all(line == line.rstrip() for line in out.splitlines())


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*\.?\d*")


@pytest.mark.parametrize("width", [40, 60, 140])
@pytest.mark.parametrize("name", documented_names())
def test_no_width_loses_a_value(name: str, width: int) -> None:
    made = predicted(name, **({} if name == "vcider" else {"slo": ()}))

    assert set(NUMBER.findall(of(made, 80))) <= set(NUMBER.findall(of(made, width)))


@pytest.mark.parametrize(
    ("name", "fields"), [*((name, {}) for name in documented_names()), ("openprovider", {"cass_nodes": 6})]
)
def test_the_default_answer_of_every_system_is_one_screen(name: str, fields: dict[str, Any]) -> None:
    assert len(of(predicted(name, **fields)).splitlines()) <= MOST_LINES


def test_an_unbounded_latency_has_no_number() -> None:
    out = words(shown(latency_ms={"auth": Latency(mean=UNBOUNDED, p99=UNBOUNDED)}, outages=()))

    assert "30 to unbounded" in out


def test_texts_are_data_not_markup() -> None:
    why = "A [bold]layout[/bold] with [24.6, 28.8] :smile:"
    out = shown(
        evidence=EvidenceSummary((), "interpolated", why),
        outages=(outage("[red]x", {"dc": 1}, Band.exactly(10.0), 0.0),),
    )

    assert why in words(out)
    assert "[red]x" in out


def test_it_fits_with_the_widest_figures() -> None:
    gaps, levels = (0.0, 0.5, 5.0, 50.0, 123.4), (("LOCAL_QUORUM", "LOCAL_QUORUM"), ("LOCAL_QUORUM", "EACH_QUORUM"))
    wide = Band(0.00123, 0.00012, 0.00987)
    rows = [SessionNotFound(*each, 123.4, gap, wide) for each in levels for gap in gaps]
    out = on_screen(*sessions(rows)).splitlines()
    assert max(map(len, out)) <= 80
    assert not any("…" in line for line in out)
