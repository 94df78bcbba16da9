"""The view of a prediction: 80 columns wide, without colour if the output is not a terminal."""

import io
import math
from typing import Any

import pytest
from tests.planner.predictions import EVIDENCE, SESSIONS, UNBOUNDED, prediction

from capplan.cli.terminal import Screen
from capplan.cli.views import figures
from capplan.cli.views.prediction import headline, percent, render, render_sessions
from capplan.models import number_words
from capplan.models.results import Band, Latency, Outage, SessionNotFound
from capplan.planner.predict.prediction import EvidenceSummary


def shown(**changed: Any) -> str:
    screen = Screen(file=io.StringIO(), width=80)
    render(prediction(**changed), screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_it_fits_and_has_no_colour() -> None:
    out = shown()

    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "…" not in out


def test_the_headline_has_layout_capacity_latency_and_rate() -> None:
    text = headline(prediction())

    for figure in ("3 DCs x 6 nodes", "17,400 TPS (12,000 to 24,000)", "auth", "4.02 ms", "acct", "6.05 ms", "13,950"):
        assert figure in text


def test_a_system_of_ratios_has_no_capacity() -> None:
    ratio = Band(1.3, 1.1, 1.5)
    changed: dict[str, Any] = {"capacity_tps": None, "bottleneck": None, "offered_tps": None}
    changed |= {"throughput_ratio": ratio, "throughput_ratios": {"encrypted": ratio, "plain": Band(0.96, 0.9, 1.0)}}
    out = shown(**changed, latency_ms={}, utilisation={}, busy_workers={}, outages=())

    assert "1.30 (1.10 to 1.50)" in out
    assert "plain 0.960 (0.900 to 1.00)" in " ".join(out.split())
    assert "Latency" not in out
    assert "Outages" not in out


def test_every_figure_is_there() -> None:
    out = " ".join(shown().split())

    for text in (
        "17,430 (12,010 to 24,020) TPS",
        "parameter 5,200, simulation 41.0",
        "13,950 TPS (80 % of capacity)",
        "p99.9 24.5 (19.6 to 39.2) 36.9 (29.5 to 59.0)",
        "cassandra 80 % (58 to 100 %)",
        "front 21 % (18 to 26 %) 13.4 (10.2 to 17.9)",
        "1 node per DC 15,210 (10,300 to 21,800) uncertain",
        "1 DC not available no EACH_QUORUM as asked",
        "1 DC 17,000 (14,800 to 20,100) yes",
        "acct.p99 21.8 (17.4 to 34.8) ms",
        "analytic engine, seed 1",
        *EVIDENCE.claims,
        *EVIDENCE.notes,
        *EVIDENCE.sources,
        EVIDENCE.why,
    ):
        assert text in out


def test_a_rate_that_was_given_is_shown_as_given() -> None:
    assert "12,345 TPS" in shown(offered_tps=12345.0, offered_source="given")


def test_an_unbounded_latency_has_no_number() -> None:
    assert "mean unbounded (30.0 to unbounded)" in " ".join(shown(latency_ms={"auth": Latency(mean=UNBOUNDED)}).split())


def test_texts_are_data_not_markup() -> None:
    why = "A [bold]layout[/bold] with [24.6, 28.8] :smile:"
    out = shown(
        evidence=EvidenceSummary((), "interpolated", why), outages=(Outage({"dc": 1}, True, "[red]x", None, None),)
    )

    assert why in out
    assert "[red]x" in out


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (4.0, "4.00"),
        (13.14, "13.1"),
        (99.96, "100"),
        (123.4, "123"),
        (17432.6, "17,400"),
        (0.01234, "0.0123"),
        (0.0, "0"),
        (math.inf, "unbounded"),
    ],
)
def test_three_significant_digits(number: float, text: str) -> None:
    assert number_words.significant(number) == text


@pytest.mark.parametrize(
    ("form", "number", "text"),
    [
        (number_words.rate, 17436.2, "17,440"),
        (number_words.rate, 437.2, "437"),
        (number_words.rate, math.inf, "unbounded"),
        (figures.given, 7000.0, "7,000"),
        (figures.given, 0.5, "0.5"),
        (number_words.share, 0.797, "80 %"),
        (number_words.share, 0.0042, "0.4 %"),
        (number_words.share, 0.0, "0 %"),
        (number_words.share, math.inf, "unbounded"),
    ],
)
def test_rates_and_shares(form: figures.Format, number: float, text: str) -> None:
    assert form(number) == text


def test_a_band_without_doubt_is_one_number() -> None:
    assert figures.band(Band.exactly(0.0)) == "0"


@pytest.mark.parametrize("left", [14_000.0, 13_000.0])
def test_an_outage_that_is_open_reads_otherwise_than_one_that_is_lost(left: float) -> None:
    def line(value: float) -> str:
        lost = Outage({"node": 1}, True, "as asked", Band(value, value - 900, value + 900), False)
        out = shown(outages=(lost,), offered_tps=13_950.0)
        (found,) = [line for line in out.splitlines() if "1 node per DC" in line]
        return found.partition(")")[2].strip()

    assert (line(left) == line(10_000.0)) == (left < 13_950.0)


def sessions_shown(*rows: SessionNotFound) -> list[str]:
    screen = Screen(file=io.StringIO(), width=80)
    render_sessions(rows, screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue().splitlines()


def test_the_table_has_levels_by_gap_and_the_band_of_those_asked_for() -> None:
    lines = [line.split() for line in sessions_shown(*SESSIONS)]
    assert ["%", "not", "found,", "reads/writes", "gap", "0", "ms", "0.5", "ms", "5", "ms"] in lines
    assert ["LOCAL_QUORUM/QUORUM", "3.1", "0.16", "<0.01"] in lines
    assert ["90", "%", "band", "2-5", "0.05-0.35"] in lines
    assert ["LOCAL_QUORUM/EACH_QUORUM", "0", "0", "0"] in lines


def test_it_fits_with_the_widest_figures() -> None:
    gaps, levels = (0.0, 0.5, 5.0, 50.0, 123.4), (("LOCAL_QUORUM", "LOCAL_QUORUM"), ("LOCAL_QUORUM", "EACH_QUORUM"))
    wide = Band(0.00123, 0.00012, 0.00987)
    out = sessions_shown(*(SessionNotFound(*each, 123.4, gap, wide) for each in levels for gap in gaps))
    assert max(map(len, out)) <= 80
    assert not any("…" in line for line in out)


def test_nothing_is_shown_where_there_is_nothing() -> None:
    assert sessions_shown() == []


@pytest.mark.parametrize(
    ("probability", "text"),
    [
        *((0.0, "0"), (1e-4, "0.01"), (0.00053, "0.05"), (0.00123, "0.12")),
        *((0.0314, "3.1"), (0.49, "49"), (0.9949, "99"), (0.996, "100"), (1.0, "100")),
    ],
)
def test_percent(probability: float, text: str) -> None:
    assert percent(probability) == text
