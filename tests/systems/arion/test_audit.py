"""The station of `arion`'s audit: exact cases of M/M/1 and a limit of M/M/c."""

import pytest

from capplan.evidence.audit.checks import figure
from capplan.evidence.interval import Interval
from capplan.systems.arion.audit import rate_at, rate_at_s


def test_an_m_m_1_station_takes_twice_its_service_at_half_its_load() -> None:
    assert rate_at_s(2e-3, 1, 1e-3) == pytest.approx(500)
    assert rate_at_s(10e-3, 1, 1e-3) == pytest.approx(900, rel=1e-4)


def test_24_servers_of_0_6_ms_take_1_ms_within_5_percent_of_their_limit() -> None:
    found = rate_at(figure(Interval(1e-3, 0.95e-3, 1.05e-3)), figure(24.2), figure(0.6e-3)).interval
    # Erlang's C is below one, so the load lies above that of c mu - X = 1 / 0.4 ms, and below the limit of 40,000/s.
    assert 40_000 - 2500 < found.low < found.value < found.high < 40_000
