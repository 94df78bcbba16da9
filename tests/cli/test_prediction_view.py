"""A prediction as people read it: in 80 columns, without colour where there is no terminal."""

import io
import math
import re
from typing import Any

import pytest
from tests.planner.predictions import UNBOUNDED, prediction

from capplan.cli import figures
from capplan.cli.prediction_view import headline, render
from capplan.cli.terminal import Screen
from capplan.planner.predict.prediction import Band, Basis, Latency, Outage
from capplan.planner.reports import number_words


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


def test_the_headline_says_what_how_fast_and_how_sure() -> None:
    assert headline(prediction()) == (
        "3 DCs x 6 nodes carry about 17,400 TPS (12,000 to 24,000). "
        "On average it answers auth in 4.02 ms and acct in 6.05 ms at 13,950 TPS. "
        "The layout is far from every measurement."
    )


@pytest.mark.parametrize(
    ("scenario", "start"),
    [
        ({"dcs": 1, "cass_nodes": 3}, "1 DC of 3 nodes carries about 17,400 TPS"),
        ({"dcs": 1, "cass_nodes": 1}, "1 DC of 1 node carries about"),
        ({}, "This layout carries about"),
    ],
)
def test_the_layout_in_words(scenario: dict[str, Any], start: str) -> None:
    assert headline(prediction(scenario=scenario)).startswith(start)


def test_a_system_of_ratios_has_no_capacity() -> None:
    ratio = Band(1.3, 1.1, 1.5)
    changed: dict[str, Any] = {"capacity_tps": None, "bottleneck": None, "offered_tps": None}
    changed |= {"throughput_ratio": ratio, "throughput_ratios": {"encrypted": ratio, "plain": Band(0.96, 0.9, 1.0)}}
    out = shown(**changed, latency_ms={}, utilisation={}, busy_workers={}, outages=())

    assert "about 1.30 (1.10 to 1.50) times as much as encrypted; no absolute" in " ".join(out.split())
    assert "plain 0.960 (0.900 to 1.00)" in " ".join(out.split())
    assert "Latency" not in out
    assert "Outages" not in out


def test_every_part_is_there() -> None:
    out = " ".join(shown().split())

    for text in (
        "17,430 (12,010 to 24,020) TPS over all DCs",
        "half-widths: parameter 5,200, simulation 41.0; discrepancy not modelled",
        "loss below 0.1 %, no drift",
        "cassandra saturates first",
        "Latency in ms at 13,950 TPS (80 % of capacity)",
        "p99.9 24.5 (19.6 to 39.2) 36.9 (29.5 to 59.0)",
        "cassandra 80 % (58 to 100 %)",
        "front 21 % (18 to 26 %) 13.4 (10.2 to 17.9)",
        "1 node per DC 15,210 (10,300 to 21,800) no",
        "1 DC not available no EACH_QUORUM as asked",
        "1 DC 17,000 (14,800 to 20,100) yes",
        "acct.p99 21.8 (17.4 to 34.8) ms; the bands leave it open",
        "drop_rate<0.1%: drop_rate not modelled",
        "far: Every measured layout had 3",
        "Claimed: The document expects capacity to grow linearly",
        "Note: The policing tier was never saturated",
        "Source: OpenProvider performance tests",
        "capplan 0.1.0, analytic engine, seed 1",
    ):
        assert text in out


def test_a_rate_that_was_given_is_shown_as_given() -> None:
    assert "at 12,345 TPS (as asked)" in shown(offered_tps=12345.0, offered_source="given")


def test_beyond_capacity_nothing_is_bounded() -> None:
    out = " ".join(shown(latency_ms={"auth": Latency(mean=UNBOUNDED)}).split())

    assert "it answers ever later at" in out
    assert "mean unbounded (30.0 to unbounded)" in out


def test_texts_are_data_not_markup() -> None:
    why = "A [bold]layout[/bold] with [24.6, 28.8] :smile:"
    out = shown(evidence=Basis((), "near", why), outages=(Outage({"dc": 1}, True, "[red]x", None, None),))

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


@pytest.mark.parametrize(("left", "carries", "word"), [(14_000.0, False, "not surely"), (13_000.0, False, "no")])
def test_an_outage_that_leaves_it_open_says_so(left: float, carries: bool, word: str) -> None:
    lost = Outage({"node": 1}, True, "as asked", Band(left, left - 900, left + 900), carries)
    out = shown(outages=(lost,), offered_tps=13_950.0)

    (line,) = [line for line in out.splitlines() if "1 node per DC" in line]
    assert re.search(rf"\) +{word} +as asked", line)
