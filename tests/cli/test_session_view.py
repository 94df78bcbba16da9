"""Sessions that are not found, as people read it."""

import io

import pytest
from tests.planner.predictions import SESSIONS, prediction

from capplan.cli.prediction_view import render
from capplan.cli.session_view import percent, render_sessions
from capplan.cli.terminal import Screen
from capplan.planner.predict.prediction import Band, SessionNotFound


def shown(*rows: SessionNotFound) -> list[str]:
    screen = Screen(file=io.StringIO(), width=80)
    render_sessions(rows, screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_the_sentence_speaks_of_a_few_milliseconds_and_of_none() -> None:
    text = " ".join(" ".join(shown(*SESSIONS)).split())
    assert (
        "Of messages that arrive 0 ms after the start was answered 3.1 % (2 to 5) find no session; 5 ms after, fewer "
        "than 0.01 %. The RTT is 1.63 ms."
    ) in text


def test_the_table_has_levels_by_gap_and_the_band_of_those_asked_for() -> None:
    lines = [line.split() for line in shown(*SESSIONS)]
    assert ["%", "not", "found,", "reads/writes", "gap", "0", "ms", "0.5", "ms", "5", "ms"] in lines
    assert ["LOCAL_QUORUM/QUORUM", "3.1", "0.16", "<0.01"] in lines
    assert ["90", "%", "band", "2-5", "0.05-0.35"] in lines
    assert ["LOCAL_QUORUM/EACH_QUORUM", "0", "0", "0"] in lines


def test_it_fits_with_the_widest_figures() -> None:
    gaps, levels = (0.0, 0.5, 5.0, 50.0, 123.4), (("LOCAL_QUORUM", "LOCAL_QUORUM"), ("LOCAL_QUORUM", "EACH_QUORUM"))
    wide = Band(0.00123, 0.00012, 0.00987)
    out = shown(*(SessionNotFound(*each, 123.4, gap, wide) for each in levels for gap in gaps))
    assert max(map(len, out)) <= 80
    assert not any("…" in line for line in out)


def test_levels_that_always_find_it_are_said_to() -> None:
    (row,) = [row for row in SESSIONS if row.consistency_write == "EACH_QUORUM" and row.gap_ms == 5]
    assert "5 ms after the start was answered 0 % find no session. The RTT" in " ".join(" ".join(shown(row)).split())


def test_nothing_is_shown_where_there_is_nothing() -> None:
    assert shown() == []


def test_it_stands_in_a_prediction() -> None:
    screen = Screen(file=io.StringIO(), width=80)
    render(prediction(), screen)
    assert isinstance(screen.file, io.StringIO)
    assert "A session just started, looked for in another DC" in screen.file.getvalue()


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        *((0.0, "0"), (1e-4, "0.01"), (0.00053, "0.05"), (0.00123, "0.12")),
        *((0.0314, "3.1"), (0.49, "49"), (0.9949, "99"), (0.996, "100"), (1.0, "100")),
    ],
)
def test_percent(probability: float, text: str) -> None:
    assert percent(probability) == text
