"""Sessions that are not found: which levels and gaps are reported, and the parts of the bands."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from capplan.answers.results import LEAST_PROBABILITY, Band, Parts, SessionNotFound
from capplan.layout.case import Case
from capplan.layout.notes import Notes
from capplan.layout.solution import Figures
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.cassandra import visibility as cassandra_visibility
from capplan.models.language.scenario import changed
from capplan.models.solver.operating_point import peak_ratio
from capplan.systems.openprovider import session_visibility
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.openprovider.session_visibility import (
    compared,
    probability_band,
    sessions_not_found,
    without_smallest,
)
from capplan.systems.registry import resolve, system

OPENPROVIDER = system("openprovider")
FITTED = OPENPROVIDER.fitted()
UNSURE = Uncertainty(ModelError(0.08), ModelError(0.12), 1)
Asked = Case[OpenproviderScenario]
OWN = ("LOCAL_QUORUM", "QUORUM")


@pytest.fixture(autouse=True, scope="module")
def _few_mutations() -> Iterator[None]:
    """Sample a tenth of the usual mutations: what is asserted here does not need more."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session_visibility, "_MUTATIONS", 25_000)
        yield


def solved(share: float = 0.6, uncertainty: Uncertainty = UNSURE, **fields: Any) -> tuple[Asked, Figures]:
    """Return a layout at a share of its capacity."""
    case: Asked = resolve(changed(OpenproviderScenario(), **fields), FITTED)
    vars(case)["uncertainty"] = uncertainty
    return case, case.solution.at(share * float(np.median(case.solution.capacity)))


@lru_cache
def rows_of(share: float = 0.6, **fields: Any) -> tuple[SessionNotFound, ...]:
    """Return the rows of a layout at a share of its capacity, computed once."""
    return sessions_not_found(*solved(share, **fields))


def test_the_levels_asked_for_come_first_and_each_has_the_same_gaps() -> None:
    rows = rows_of()
    assert [(row.consistency_read, row.consistency_write) for row in rows[::5]] == [
        OWN,
        ("LOCAL_ONE", "QUORUM"),
        ("LOCAL_QUORUM", "LOCAL_QUORUM"),
        ("LOCAL_QUORUM", "EACH_QUORUM"),
        ("QUORUM", "QUORUM"),
    ]
    assert [row.gap_ms for row in rows] == pytest.approx([0.0, 0.5, rows[0].rtt_ms, 5.0, 50.0] * 5)
    assert 1.5 < rows[0].rtt_ms < 2


def test_a_round_trip_that_is_among_the_gaps_has_no_column_more() -> None:
    assert [row.gap_ms for row in rows_of(rtt="5ms")[:4]] == [0.0, 0.5, 5.0, 50.0]


def test_weaker_levels_miss_more_and_strong_ones_none() -> None:
    rows = rows_of()
    at_once = [row.probability.value for row in rows[::5]]
    assert at_once[2] > at_once[1] > at_once[0] > 0
    for row in rows[15:]:
        assert (row.probability.value, row.probability.high, row.probability.parts) == (0.0, 0.0, Parts())


@pytest.mark.parametrize(
    ("rtt", "rtt_ms"),
    [
        ("4ms", 4.0),
        pytest.param((("0", "2ms", "4ms"), ("2ms", "0", "9ms"), ("4ms", "9ms", "0")), 5.0, marks=pytest.mark.slow),
    ],
)
def test_the_round_trip_is_told(rtt: Any, rtt_ms: float) -> None:
    assert {row.rtt_ms for row in rows_of(rtt=rtt)} == {rtt_ms}


def test_there_is_no_other_data_centre() -> None:
    assert rows_of(dcs=1) == ()


def test_beyond_capacity_nothing_is_said() -> None:
    assert rows_of(1.3) == ()


def test_levels_whose_reads_are_too_heavy_are_left_out_but_those_asked_for() -> None:
    heavy = ("QUORUM", "QUORUM")
    shown, left_out = compared(*solved(0.98))
    assert heavy not in shown
    assert left_out == (heavy,)
    assert any("QUORUM/QUORUM" in note for note in notes(*solved(0.98)))
    shown, _ = compared(*solved(0.98, consistency_read="QUORUM"))
    assert shown[0] == heavy


def notes(case: Asked, figures: Figures) -> list[str]:
    return [*OPENPROVIDER.component(Notes).further(case, case.uncertainty.of_rate(case.solution.capacity), figures)]


@pytest.mark.parametrize(("links", "lower"), [("client", True), ("internode", False)])
def test_encrypted_client_links_hide_the_delay_and_links_between_nodes_add_to_it(links: str, lower: bool) -> None:
    before, after = (rows[0].probability.value for rows in (rows_of(), rows_of(encryption=links)))

    assert (after < before) is lower


@pytest.mark.parametrize("read", ["LOCAL_ONE", "QUORUM"])
def test_other_reads_load_the_cores_as_their_own_layout_does(read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the comparison takes for another level of reads against the layout that is asked with it; LDAP off."""
    seen: dict[str, cassandra_visibility.Load] = {}

    def spy(*arguments: Any) -> Any:
        seen.setdefault(arguments[3].read, arguments[2])
        return cassandra_visibility.chances_not_found(*arguments)

    monkeypatch.setattr("capplan.systems.openprovider.session_visibility.chances_not_found", spy)
    case, figures = solved(0.5)
    sessions_not_found(case, figures)
    other = case.changed(changed(case.scenario, consistency_read=read)).solution
    names = [f"cassandra/dc{dc}" for dc in (1, 2, 3)]
    load_per_s = np.mean([other.analysis.load(name) for name in names], axis=0)
    peak = (figures.point.rate_per_s * load_per_s * peak_ratio(figures.analysis))[
        np.arange(64) * figures.analysis.draws // 64
    ]
    assert seen[read].utilisation[-1] == pytest.approx(peak, rel=1e-6)
    assert seen[read].share.sum(axis=0) == pytest.approx(np.ones(64))


def test_the_model_error_widens_the_band_and_leaves_the_value() -> None:
    sure, unsure = (
        sessions_not_found(*solved(uncertainty=each))[1].probability
        for each in (replace(UNSURE, time=ModelError(0.0)), UNSURE)
    )
    assert sure.value == unsure.value
    assert sure.parts.model_error == 0
    assert unsure.high - unsure.low > 1.2 * (sure.high - sure.low)


def test_the_same_seed_gives_the_same() -> None:
    assert sessions_not_found(*solved()) == rows_of()


def test_a_band_by_hand() -> None:
    """Three draws with probabilities 0.1, 0.2 and 0.4, twice as high in a repeat; batches differ by 0 or 0.02."""
    by_draw = np.array([[0.1], [0.2], [0.4]]) + np.tile([-0.01, 0.01], 5)
    found = probability_band(by_draw, 2 * by_draw)
    error = 1.8331129326562368 * 0.01 * (10 / 9) ** 0.5 / 10**0.5
    assert found.value == pytest.approx(0.2)
    assert found.parts.parameter == pytest.approx(
        0.135
    )  # 5 % of the draws, a tenth of a step, at each end: 0.38 - 0.11
    assert found.parts.simulation == pytest.approx(error)
    assert found.parts.model_error == pytest.approx(3**0.5 * 0.135)  # of twice as wide a band, 2 ** 2 - 1
    assert found.high == pytest.approx(0.2 + np.hypot(np.quantile([0.2, 0.4, 0.8], 0.95) - 0.2, error))


def test_probabilities_stay_between_0_and_1() -> None:
    rng = np.random.default_rng(1)
    rows = rng.random((5, 20))
    certain, rare = probability_band(np.ones((5, 20)), np.ones((5, 20))), probability_band(rows**40, rows**40)
    assert (certain.low, certain.high) == (1.0, 1.0)
    assert 0 <= rare.low <= rare.value <= rare.high <= 1


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (Band(2e-74, 1e-80, 3e-70, Parts(1e-71, 1e-72, 1e-75)), Band(0.0, 0.0, 1e-4, Parts(0.0, 0.0, 0.0))),
        (Band(9e-5, 1e-6, 3e-4, Parts(1.2e-4, 2e-5, None)), Band(0.0, 0.0, 3e-4, Parts(1.2e-4, 0.0, None))),
        (Band(1e-4, 1e-5, 2e-4), Band(1e-4, 0.0, 2e-4)),
        (Band.exactly(0.0), Band.exactly(0.0)),
    ],
)
def test_what_other_causes_decide_is_not_told(found: Band, told: Band) -> None:
    assert without_smallest(found) == told


def test_no_probability_is_smaller_than_what_is_told() -> None:
    bands = [row.probability for row in rows_of(0.3)]
    ends = [end for band in bands for end in (band.value, band.low, band.high)]

    assert all(end == 0 or end >= LEAST_PROBABILITY for end in ends)
    assert any(band.value == 0 < band.high for band in bands)
