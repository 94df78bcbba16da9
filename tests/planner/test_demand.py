"""Demands by hand: rates of the busy hour, re-attach storms, data on disk, and until when they fit."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.answers.results import Band
from capplan.errors import InputError
from capplan.models.language.document import load
from capplan.models.language.scenario import Scenario
from capplan.planner.demand.demand import (
    GUESS,
    Between,
    Connections,
    Data,
    Demand,
    assumptions,
    growth_factors,
    read_demand,
)
from capplan.planner.demand.forecast import (
    Forecast,
    Layout,
    busy_hour_rates,
    disk_gib_per_node,
    forecast,
    gib_per_node,
    grown,
    has_client_tls,
    layout_of,
    months_until,
    months_until_rate,
    offered,
    reattach,
    served_after_s,
    session_requests,
    timer_events,
    total_gib,
    volume,
    with_demand,
)
from capplan.planner.predict.predict import predict
from capplan.planner.size.size import SizingQuestion, size
from capplan.systems.registry import scenario, system

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "demand.toml"


def demand(subscribers: float | str = 36_000, **tables: Any) -> Demand:
    """Return a demand of ten sessions a second, each with five interim updates, from the tables of a file."""
    hour = {"sessions": 1, "length_s": "30min", "interim_updates": 5}
    return load(
        Demand, {"subscribers": subscribers, **tables, "busy_hour": {**hour, **tables.get("busy_hour", {})}}, ""
    )


def kind(name: str) -> type[Scenario]:
    found: type[Scenario] = system(name).scenario
    return found


def test_the_busy_hour_by_hand() -> None:
    """36,000 sessions an hour are 10 a second: 10 authorizations, and 10 starts, 50 updates and 10 stops."""
    found = busy_hour_rates(demand(), 36_000)
    assert (found.total_per_s, found.auth_per_s, found.acct_per_s, found.handshakes_per_s) == (80, 10, 70, 0)
    twice = busy_hour_rates(demand(connections={"count": 400, "lifetime_s": 100}), 72_000)
    assert (twice.total_per_s, twice.handshakes_per_s, twice.handshakes_per_request) == (160, 4, 0.025)


def test_timers_of_a_session() -> None:
    """A timer of L ln 2 fires with probability 1/2 once, 1/4 twice, ...: once on average."""
    assert timer_events(600 * math.log(2), 600) == pytest.approx(1)
    assert timer_events(60, 600) == pytest.approx(sum(math.exp(-0.1 * k) for k in range(1, 1000)))
    assert timer_events(1e6, 1.0) == 0
    hour = {"interim_updates": None, "interim_s": 1800 * math.log(2), "reauthentication_s": 1800 * math.log(2)}
    found = session_requests(demand(busy_hour={**hour, "authentication_requests": 3}).hour)
    assert [found.auth, found.interim, found.acct] == pytest.approx([6, 1, 3])


def test_a_reattach_by_hand() -> None:
    """18,000 sessions are open. Half come back in 10 s, 900 a second, each with an authorization and a start."""
    boot = [{"from_s": 0, "to_s": 10, "share": "50%"}, {"from_s": 10, "to_s": 30, "share": "50%"}]
    anew = {"count": 500, "within_s": 5}
    found = reattach(demand(reattach={"boot": boot}, connections=anew), 36_000)
    assert found.sessions == 18_000
    assert (found.peak.from_s, found.peak.to_s) == (0, 1)
    assert found.peak.rates.auth_per_s == found.peak.rates.acct_per_s == pytest.approx(900)
    assert found.times_busy_hour == pytest.approx(1800 / 80)
    assert found.handshakes_peak_per_s == pytest.approx(100)
    assert found.updates_peak_per_s is None
    renewed = {**anew, "lifetime_s": 100}  # 5 a second, whatever becomes of the sessions
    for share in ("100%", "50%"):
        found = reattach(demand(reattach={"boot": boot, "share": share}, connections=renewed), 36_000)
        assert found.handshakes_peak_per_s == pytest.approx(105)
    longer = reattach(demand(reattach={"boot": boot, "window_s": 20}), 36_000)
    assert longer.peak.rates.auth_per_s == pytest.approx((900 * 10 + 450 * 10) / 20)
    half = reattach(demand(reattach={"boot": boot, "share": "50%"}), 36_000)
    assert half.peak.rates.auth_per_s == pytest.approx(450 + 10 / 2)
    assert half.peak.rates.acct_per_s == pytest.approx(450 + 70 / 2)


def test_the_published_boot_times() -> None:
    """20 % of 100,000 devices in 5 to 15 s are 2,000 a second, the most of the three parts."""
    found = reattach(demand(200_000), 200_000)
    assert found.sessions == 100_000
    assert [found.peak.from_s, found.peak.rates.auth_per_s] == pytest.approx([5, 2000])
    assert found.over_time[0].rates.total_per_s == 0
    assert found.over_time[-1].to_s == 90


def test_updates_come_together_after_a_reattach() -> None:
    found = reattach(demand(busy_hour={"interim_updates": None, "interim_s": "10min"}), 36_000)
    assert found.updates_after_s == 600
    assert found.updates_peak_per_s == pytest.approx(found.peak.rates.acct_per_s * math.exp(-1 / 3))


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 50), st.floats(0.05, 1)), min_size=1, max_size=4),
    st.floats(0.1, 30),
    st.floats(1, 4),
)
def test_rates_over_time_add_up_to_the_sessions_that_come_back(
    parts: list[tuple[float, float, float]], window_s: float, requests: float
) -> None:
    boot, now = [], 0.0
    for pause, length, weight in parts:
        share = weight / math.fsum(each[2] for each in parts)
        begin, now = now + pause, now + pause + length
        boot.append({"from_s": begin, "to_s": now, "share": min(share, 1.0)})
    found = reattach(
        demand(reattach={"boot": boot, "window_s": window_s}, busy_hour={"authentication_requests": requests}), 36_000
    )
    totals = [each.rates.total_per_s * (each.to_s - each.from_s) for each in found.over_time]
    assert math.fsum(totals) == pytest.approx(18_000 * (requests + 1))
    for each in found.over_time:
        assert each.rates.total_per_s == pytest.approx(each.rates.auth_per_s + each.rates.acct_per_s)
        if each.to_s - each.from_s == pytest.approx(window_s):
            assert each.rates.total_per_s <= found.peak.rates.total_per_s * (1 + 1e-9) + 1e-6


def test_when_a_reattach_is_served() -> None:
    """36,000 requests take 60 s at 600 a second; at 3,600 a second, the last device decides."""
    boot = [{"from_s": 0, "to_s": 10, "share": "50%"}, {"from_s": 10, "to_s": 30, "share": "50%"}]
    asked = demand(reattach={"boot": boot})
    assert served_after_s(asked, 36_000, 600.0) == pytest.approx(60)
    assert served_after_s(asked, 36_000, 3600.0) == pytest.approx(30)
    half = demand(reattach={"boot": boot, "share": "50%"})
    assert served_after_s(half, 36_000, 640.0) == pytest.approx(30)
    assert served_after_s(half, 36_000, 40.0) == math.inf


def test_a_layout_serves_the_reattach_of_the_planned_time() -> None:
    """9,000 sessions an hour become 36,000 in two years, whose 36,000 requests take 60 s at 600 a second."""
    boot = [{"from_s": 0, "to_s": 10, "share": "50%"}, {"from_s": 10, "to_s": 30, "share": "50%"}]
    asked, carried = demand(9_000, growth="100%", years=2, reattach={"boot": boot}), Band(600, 500, 700)
    layout = Layout(words="", cass_nodes=(3,), rf=(3,), capacity=Band(80, 70, 90), reattach_capacity=carried)

    assert forecast(asked, layout).reattach_served_s == pytest.approx(60)
    assert forecast(replace(asked, years=0.0), layout).reattach_served_s == pytest.approx(30)


def test_data_by_hand() -> None:
    """1,024 sessions of an hour start in the busy hour, and their rows of 2 MiB are kept for no longer.

    They are 2 GiB, 1 GiB compressed. The nodes of the smaller data centre hold 3/4 of a copy each, and of their disks
    90 % is left after formatting and half of that for data.
    """
    tables = {"row_bytes": "2MiB", "retention_s": 0, "compression": "50%", "headroom": "50%", "usable": "90%"}
    asked = demand(1024, busy_hour={"sessions": 1, "length_s": "1h"}, data=tables, growth="100%", years=1)
    assert asked.data is not None
    found = volume(asked, asked.data)
    assert total_gib(found) == Band(1, 1, 1, total_gib(found).parts)
    assert total_gib(found, 12).value == pytest.approx(2)
    assert gib_per_node(found, (6, 4), (3, 3)).value == pytest.approx(0.75)
    assert gib_per_node(found, (6, 4), (3, 3), 12).value == pytest.approx(1.5)
    assert disk_gib_per_node(found, (6, 4), (3, 3)).value == pytest.approx(0.75 / 0.45)
    until = months_until(found, (6, 4), (3, 3), 4 * 0.75 / 0.45)
    assert [until.low, until.value, until.high] == pytest.approx([24, 24, 24])
    assert months_until(found, (6, 4), (3, 3), 1.0).value == 0
    assert months_until(replace(found, growth_factor=np.ones(2047)), (6, 4), (3, 3), 100.0).value == math.inf


def test_rows_are_kept_for_their_retention() -> None:
    """A day has 1 / 0.1 times the sessions of the busy hour; 10 days keep ten times as many."""

    def gib(retention: str) -> float:
        tables = {"row_bytes": 1000, "retention_s": retention, "compression": 1.0}
        asked = demand(busy_hour={"share_of_day": "10%", "sessions": 0.001, "length_s": "1s"}, data=tables)
        assert asked.data is not None
        return total_gib(volume(asked, asked.data)).value * 2**30

    assert gib("240h") == pytest.approx(36 * 10 * 10 * 1000, rel=1e-4)
    assert gib("1799s") == pytest.approx(18 * 1000)


def test_a_band_comes_from_the_uncertain_inputs() -> None:
    """With one uncertain input, the ends of the band are in proportion to its ends."""
    tables = {"row_bytes": [400, 900], "retention_s": "24h", "compression": 0.5, "usable": 1.0, "headroom": 0.5}
    asked = demand(busy_hour={"share_of_day": 0.1}, data=tables)
    assert asked.data is not None
    found = gib_per_node(volume(asked, asked.data), (3,), (3,))
    assert found.high / found.low == pytest.approx(900 / 400, rel=2e-3)
    assert found.value / found.low == pytest.approx((900 / 400) ** 0.5, rel=2e-3)


@given(st.floats(0.01, 3), st.floats(0, 0.4), st.floats(0, 60), st.floats(0, 60))
def test_growth_is_monotone(growth: float, spread: float, early: float, late: float) -> None:
    tables = {"row_bytes": 500, "retention_s": "24h", "disk_gib": 100}
    asked = demand(growth=[growth, growth + spread], data=tables)
    assert asked.data is not None
    found = volume(asked, asked.data)
    first, last = (gib_per_node(found, (3,), (3,), month) for month in sorted((early, late)))
    assert (first.low, first.value, first.high) <= (last.low, last.value, last.high)
    assert grown(asked, max(early, late)) >= grown(asked, min(early, late))
    smaller, larger = (months_until(found, (3,), (3,), disk) for disk in (10.0, 100.0))
    assert smaller.value <= larger.value


def test_years_need_a_growth_which_may_be_none() -> None:
    assert demand(growth="0%", years=3).months == 36
    with pytest.raises(InputError, match="no effect without growth"):
        demand(years=3)


def test_growth_compounds_and_its_median_is_geometric() -> None:
    """-20 % to 80 % a year are factors of 0.8 and 1.8, of which 1.2 is the median: as many grow faster as slower."""
    asked = demand(1_000_000, growth=["-20%", "80%"], years=2)

    assert [grown(asked, months) for months in (0, 12, 24, 36)] == pytest.approx([1e6, 1.2e6, 1.44e6, 1.728e6])
    assert forecast(asked).subscribers == pytest.approx(1.44e6)
    assert grown(demand(1_000_000, growth="20%", years=2)) == pytest.approx(1.44e6)


@given(st.floats(-0.5, -0.01) | st.floats(0.01, 2), st.floats(0, 2), st.floats(0, 60), st.floats(0, 60))
def test_every_figure_of_a_forecast_grows_by_the_median_of_the_same_growth(
    low: float, more: float, early: float, late: float
) -> None:
    """The time from one month to another has the same factor wherever it begins, and draws agree with it."""
    asked = demand(growth=[low, low + more], years=5, data={"row_bytes": 500, "retention_s": "24h"})
    found = forecast(asked)
    factor = 1 + found.growth_per_year.value

    assert grown(asked, early + late) == pytest.approx(grown(asked, early) * grown(asked, late) / 36_000)
    assert grown(asked, early) == pytest.approx(36_000 * factor ** (early / 12), rel=1e-6)
    assert (found.starts_per_s, found.open_sessions) == pytest.approx((10 * factor**5, 18_000 * factor**5), rel=1e-6)
    assert found.months[-1].busy_hour_per_s.value == pytest.approx(found.busy_hour.total_per_s, rel=1e-6)
    assert found.reattach is not None
    assert found.reattach.sessions == pytest.approx(found.open_sessions)


def test_numbers_are_read_as_people_type_them() -> None:
    asked = demand("3M", growth=["-5%", "150%"], data={"row_bytes": "1kB", "retention_s": "30d"})
    assert asked.subscribers == 3e6
    assert asked.growth == (-0.05, 1.5)
    assert asked.data is not None
    assert (asked.data.row_bytes, asked.data.retention_s) == ((1000, 1000), 30 * 86_400)


def test_where_subscribers_leave_today_decides() -> None:
    """A layout that carries what is left after two years and not the rate of today does not fit."""
    leaving = demand(growth="-50%", years=2)
    carried = Band(50, 45, 55)
    fit = forecast(
        leaving, Layout(words="", cass_nodes=(3,), rf=(3,), capacity=carried, reattach_capacity=carried)
    ).fits[0]
    assert (fit.what, fit.needed.value, fit.risk) == ("rate", 20, 1.0)
    with pytest.raises(InputError, match=r"growth is -50% a year.*for today"):
        size(scenario("openprovider"), SizingQuestion(demand=leaving, engine="analytic"))


@pytest.mark.parametrize(("low", "high"), [(200, 800), (380, 800), (200, 420)])
def test_until_when_a_rate_fits(low: float, high: float) -> None:
    """It doubles each year: a capacity of four times the rate is reached after two years.

    A capacity may be surer on one side than on the other.
    """
    found = months_until_rate(np.full(2047, 2.0), 100.0, Band(400, low, high))
    expected = [12 * math.log2(each / 100) for each in (low, 400, high)]
    assert [found.low, found.value, found.high] == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("value", [0.0, 400.0])
def test_a_capacity_that_may_be_none_fits_already_or_never(value: float) -> None:
    found = months_until_rate(np.full(2047, 2.0), 100.0, Band(value, 0, 800))
    assert [found.low, found.value, found.high] == pytest.approx([0, 24 if value else 0, 36], abs=0.1)


def test_months_follow_from_growth_and_capacity_that_are_both_uncertain() -> None:
    """Where growth is uncertain, the rate exceeds its limit within the band in 90 % of the draws."""
    grows = growth_factors(Between(0.1, 0.4), 1, 0)
    found = months_until_rate(grows, 100.0, Band(200, 180, 220))
    rng = np.random.default_rng(3)
    middle, spread = math.log(1.1 * 1.4) / 2, math.log(1.4 / 1.1) / (2 * 1.6449)
    growth = np.exp(middle + spread * rng.standard_normal(100_000))
    held = 200 * np.exp(math.log(220 / 180) / (2 * 1.6449) * rng.standard_normal(100_000))
    months = 12 * np.log(held / 100) / np.log(growth)
    assert [found.low, found.value, found.high] == pytest.approx(np.quantile(months, [0.05, 0.5, 0.95]), rel=0.04)


def test_the_busy_hour_of_simulated_sessions() -> None:
    """Timers of 20,000 exponential sessions: their mean numbers are within 5 standard errors of the formula.

    A correct formula fails with a probability below 1e-6; one that forgets the half update of L / p - 1 / 2 is found.
    """
    lengths_s = np.random.default_rng(7).exponential(1800.0, 20_000)
    counted = np.floor(lengths_s / 600.0)
    error = counted.std(ddof=1) / math.sqrt(len(counted))
    found = session_requests(demand(busy_hour={"interim_updates": None, "interim_s": 600}).hour)
    assert found.interim == pytest.approx(counted.mean(), abs=5 * error)
    assert abs(3 - counted.mean()) > 5 * error


def test_what_a_demand_offers() -> None:
    asked = demand(growth="50%", years=2, connections={"count": 1000, "lifetime_s": 100})
    assert offered(asked, kind("openprovider"), False) == {"tps_mean": "180", "mix": "auth=1,acct=7"}
    with_tls = offered(asked, kind("openprovider"), True)
    assert float(with_tls["reconnects"]) == pytest.approx(10 / 180 / 1.75, rel=1e-5)
    assert offered(asked, kind("fedora4"), False) == {"tps": "180"}
    assert has_client_tls("internode+client", None)
    assert not any((has_client_tls("internode", None), has_client_tls("client", "kernel"), has_client_tls(None, None)))


def test_a_forecast_says_what_does_not_fit() -> None:
    asked = demand(growth="100%", years=2, data={"row_bytes": 1e4, "retention_s": "2400h", "disk_gib": 100})
    layout = Layout(
        words="", cass_nodes=(3,), rf=(3,), capacity=Band(250, 240, 260), reattach_capacity=Band(400, 380, 420)
    )
    found = forecast(asked, layout)
    rates, disk = found.fits
    assert (rates.risk, rates.needed.value) == (1.0, 320)
    assert rates.months.value == pytest.approx(12 * math.log2(250 / 80), abs=0.1)
    assert (disk.what, disk.risk, found.answer) == ("disk", 1.0, "no")
    assert forecast(asked, replace(layout, capacity=Band(1000, 900, 1100))).fits[0].risk == 0
    assert [each.month for each in found.months] == [float(month) for month in range(25)]
    assert found.disk_needed_gib == disk.needed
    assert disk.needed.value > 3.9 * forecast(replace(asked, years=0.0), layout).fits[1].needed.value
    today = found.months[0].data_gib
    assert today is not None
    for each in found.months:
        assert each.data_gib is not None
        assert each.node_gib == each.data_gib  # three replicas on three nodes
        assert each.busy_hour_per_s.value == pytest.approx(80 * 2 ** (each.month / 12))
        assert each.data_gib.value == pytest.approx(today.value * 2 ** (each.month / 12))
    assert forecast(asked).answer == "yes"


@pytest.mark.parametrize("nodes", [pytest.param(4, marks=pytest.mark.slow), 6, pytest.param(9, marks=pytest.mark.slow)])
def test_a_layout_fits_as_predict_answers(nodes: int) -> None:
    """The risk of the rate is that of `predict`, but for the form between the percentiles of the capacity."""
    asked, layout = demand(growth="50%", years=2), scenario("openprovider", dcs=2, cass_nodes=nodes)
    asked = replace(asked, subscribers=1_400_000)
    found = forecast(asked, layout_of(asked, layout))
    verdict = predict(with_demand(layout, asked), engine="analytic").verdict
    assert verdict is not None
    assert found.answer == verdict.answer
    assert found.fits[0].risk == pytest.approx(verdict.risk, abs=0.03)


def test_every_default_has_a_source_or_is_a_guess() -> None:
    asked = demand(
        busy_hour={"interim_updates": None}, data={"row_bytes": 1, "retention_s": 0}, connections={"count": 1}
    )
    found = assumptions(asked)
    assert all(each.source for each in found)
    assert {"reattach.boot", "busy_hour.interim_s", "data.compression"} <= {
        each.key for each in found if each.source != GUESS
    }
    assert not {each.key for each in assumptions(demand())} & {
        each.key for each in found if each.key.startswith("data")
    }


def test_the_json_follows_its_schema() -> None:
    layout = Layout(
        words="three nodes",
        cass_nodes=(3,),
        rf=(3,),
        capacity=Band(250, 240, 260),
        reattach_capacity=Band(400, 380, 420),
    )
    for asked, met in ((read_demand(EXAMPLE), layout), (demand(), None), (demand(), layout)):
        document = json.loads(json.dumps(forecast(asked, met).to_json()))
        jsonschema.validate(document, Forecast.json_schema())


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"growth": "20%", "years": -1}, "years = -1"),
        ({"growth": "20%", "years": "three"}, "years = 'three'"),
        ({"growth": "fast"}, "'fast' is not a growth"),
        ({"growth": "-100%"}, "above -1"),
        ({"years": 3}, "without growth"),
        ({"growth": ["30%", "10%"]}, "low end first"),
        ({"growth": [0.1, 0.2, 0.3]}, "a list of 3"),
        ({"subscribers": "many"}, "'many'"),
        ({"subscriber": 3}, "subscribers"),
        ({"busy_hour": {"sessions": 3, "length_s": "1h"}}, "3 at once"),
        ({"busy_hour": {"interim_s": 600}}, "exclude each other"),
        ({"reattach": {"boot": [{"from_s": 0, "to_s": 10, "share": 0.4}]}}, "40%"),
        ({"reattach": {"boot": [{"from_s": 10, "to_s": 10, "share": 1}]}}, "not after"),
        (
            {"reattach": {"boot": [{"from_s": 0, "to_s": 9, "share": 0.5}, {"from_s": 5, "to_s": 10, "share": 0.5}]}},
            "begins before 9 s",
        ),
        ({"data": {"row_bytes": "5 apples", "retention_s": 0}}, "apples"),
        ({"data": {"row_bytes": 5, "retention_s": 0, "compaction": "LSM"}}, "LSM"),
        ({"data": {"row_bytes": 5, "retention_s": 0, "headroom": 1}}, "leaves no disk"),
        ({"data": {"row_bytes": 5, "retention_s": 0, "compression": "140%"}}, "140%"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_one_sentence(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as refused:
        demand(**tables)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


STATED = Demand(
    reads=40_000.0,
    writes=10_000.0,
    growth=Between(0.2, 0.2),
    years=2.0,
    data=Data(
        row_bytes=Between(500.0, 500.0), retention_s=172_800.0, compaction="TWCS:1h", compression=Between(0.5, 0.5)
    ),
)


def test_stated_rates_are_a_demand_without_subscribers() -> None:
    found = forecast(STATED)
    assert found.subscribers is None
    assert found.reattach is None
    assert found.busy_hour.total_per_s == pytest.approx(50_000 * 1.44)
    assert found.months[0].data_gib is not None
    assert found.months[0].data_gib.value == pytest.approx(10_000 * 500 * 49 * 3600 * 0.5 / 2**30)  # a window more


def test_stated_rates_set_the_options_of_a_layout_that_knows_them() -> None:
    layout = with_demand(scenario("cassandra"), STATED)
    assert layout.tps == pytest.approx(72_000)
    assert (vars(layout)["read_fraction"], vars(layout)["row_bytes"]) == (0.8, 500)
    assert (vars(layout)["keep"], vars(layout)["compaction"]) == (172_800, "TWCS:1h")
    assert with_demand(scenario("fedora4"), STATED).tps == pytest.approx(72_000)


def test_a_page_cache_counts_in_what_a_layout_carries_of_stated_rates() -> None:
    """With less memory more rows are read from disk, so the layout carries fewer requests."""
    small, large = (
        layout_of(STATED, scenario("cassandra", node_cores=16, cass_nodes=6, memory_gib=gib)).capacity.value
        for gib in (32.0, 512.0)
    )
    assert small < 0.95 * large


@pytest.mark.parametrize(
    "fields",
    [
        {"reads": 0.0},
        {"reads": 5.0, "subscribers": 5.0},
        {"writes": 5.0, "connections": Connections(count=5.0)},
        {"writes": 5.0, "data": Data(row_bytes=Between(1.0, 1.0), retention_s=1.0, rows=Between(2.0, 2.0))},
        {"subscribers": 5.0},
        {},
    ],
)
def test_subscribers_and_rates_exclude_each_other_and_one_is_needed(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Demand(**fields)
