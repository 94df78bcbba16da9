"""The view of a prediction: 80 columns wide, without colour if the output is not a terminal."""

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.planner.predictions import EVIDENCE, SESSIONS, UNBOUNDED, offered, outage, predicted, prediction

from capplan.cli.shell.terminal import Screen
from capplan.models.results import Band, Latency, SessionNotFound
from capplan.models.verdict import NORMAL, OVERLOAD, JudgedSituation, verdict
from capplan.planner.predict.prediction import EvidenceSummary, Prediction, judged_by_bands
from capplan.reports.prediction import MORE, describe, sessions
from capplan.reports.screen import show
from capplan.systems.registry import documented_names

MOST_LINES = 25
OVERLOADED = JudgedSituation(situation=NORMAL, answer="no", risk=1.0, limit=OVERLOAD)


def shown(width: int = 80, more: tuple[str, ...] = (), **changed: Any) -> str:
    return of(prediction(**changed), width, more)


def of(made: Prediction, width: int = 80, more: tuple[str, ...] = ()) -> str:
    screen = Screen(file=io.StringIO(), width=width)
    show(describe(made, more), screen)
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


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


@pytest.mark.parametrize("name", documented_names())
def test_the_default_answer_of_every_system_is_one_screen(name: str) -> None:
    assert len(of(predicted(name)).splitlines()) <= MOST_LINES


def test_the_default_question_is_one_screen() -> None:
    assert len(of(predicted(cass_nodes=6)).splitlines()) <= MOST_LINES + 1


def test_a_wide_screen_has_all_statistics_in_one_row() -> None:
    (title,) = [line for line in shown(140).splitlines() if "Latency" in line]

    assert title.split()[2:] == ["mean", "p50", "p90", "p95", "p99", "p99.9"]


def test_a_system_of_ratios_has_no_capacity() -> None:
    ratio = Band(1.3, 1.1, 1.5, basis="extrapolated")
    changed: dict[str, Any] = {"capacity": None, "limits": (), "offered": None}
    changed |= {"throughput_ratios": {"encrypted": ratio, "plain": Band(0.96, 0.9, 1.0)}}
    out = shown(**changed, latency_ms={}, utilisation={}, busy_workers={}, outages=())

    assert "encrypted 1.30 (1.10-1.50) extrapolated" in words(out)
    assert "plain 0.960 (0.900-1.00)" in words(out)
    assert not {"Capacity", "Latency,", "Outage", "Offered"} & set(out.split())


def test_what_decides_is_on_the_screen() -> None:
    out = words(shown())

    for text in (
        "openprovider: 3 DCs x 6 nodes",
        "17,400 TPS peak (12,000-24,000), 15,600 mean",
        "node CPU, then RADIUS server CPU (26 % at capacity)",
        "13,950 TPS peak (default: 80 %)",
        "overload risk 20 %",
        "acct.p99<20ms: uncertain",
        EVIDENCE.why,
        *EVIDENCE.cautions,
        "GC pauses, hints",
        "1 node/DC 15,200 (10,300-21,800) uncertain",
        "1 DC unavailable at EACH_QUORUM no",
        "at QUORUM 17,000 (14,800-20,100) yes",
        "writes at QUORUM: confirmed by 5 replicas, not 6; reads still find them",
    ):
        assert text in out


@pytest.mark.parametrize(
    ("more", "texts"),
    [
        ("explain", (*EVIDENCE.claims, *EVIDENCE.notes, "analytic engine, seed 1", "17,430 (12,010-24,020)")),
        ("sources", EVIDENCE.sources),
        ("staleness", ("LOCAL_QUORUM/EACH_QUORUM",)),
    ],
)
def test_the_rest_is_shown_where_it_is_asked_for(more: str, texts: tuple[str, ...]) -> None:
    without, whole = words(shown()), words(shown(more=(more,)))

    assert all(text in whole and text not in without for text in texts)
    assert f"--{more}" in without
    assert f"--{more}" not in whole


def test_the_answer_is_there_where_something_was_asked() -> None:
    given = replace(prediction(), offered=offered(12345.0, source="given", risk=0.01), verdict=None, objectives=())

    assert "Answer" not in of(given)
    assert "Answer yes (1.0 % risk of overload" in words(of(judged_by_bands(given, (), given.figure)))
    assert "Answer uncertain" in words(shown())
    assert "Not asked loss of dc, node" in words(
        shown(verdict=replace(verdict([OVERLOADED]), not_asked=("dc", "node")))
    )


def test_a_capacity_that_objectives_limit_stands_beside_that_of_overload() -> None:
    made = prediction()
    assert made.capacity is not None
    out = words(shown(capacity=replace(made.capacity, overload_tps=Band(21000.0, 20000.0, 22000.0))))

    assert "17,400 TPS peak (12,000-24,000), 15,600 mean with the objectives met; overload from 21,000" in out


def test_a_rate_that_was_given_is_shown_as_given() -> None:
    assert "12,345 TPS" in shown(offered=offered(12345.0, source="given"))


def test_an_unbounded_latency_has_no_number() -> None:
    out = words(shown(latency_ms={"auth": Latency(mean=UNBOUNDED, p99=UNBOUNDED)}, outages=()))

    assert "unbounded (30-unbounded)" in out


def test_texts_are_data_not_markup() -> None:
    why = "A [bold]layout[/bold] with [24.6, 28.8] :smile:"
    out = shown(
        evidence=EvidenceSummary((), "interpolated", why),
        outages=(outage("[red]x", {"dc": 1}, Band.exactly(10.0), 0.0),),
    )

    assert why in words(out)
    assert "[red]x" in out


def sessions_shown(*rows: SessionNotFound) -> list[str]:
    screen = Screen(file=io.StringIO(), width=80)
    show(sessions(rows), screen)
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
