"""The cost of TLS: its regression, the load factor of public pairs, the prior, and the page with the backtest."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from capplan.systems.components.tls.prior import (
    BORINGSSL,
    CORE,
    HANDSHAKE_LOAD,
    JDK,
    LOAD,
    ROW,
    Spread,
    bounds,
    draws,
    floor,
    handshake_s,
    load_factor,
    parameters,
    spread,
    table,
    work,
)

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "generate" / "tls.py"))
backtest = SCRIPT["backtest"]


@pytest.mark.parametrize("provider", [BORINGSSL, JDK])
def test_the_line_meets_the_measured_times_within_their_quartiles(provider: str) -> None:
    """Both protocols and all sizes: the regression leaves nothing systematic that the quartiles would show."""
    measured, own = table("messages"), floor(provider)
    plain = measured[measured.provider == "none"].set_index("bytes").cpu_us
    for _, row in measured[measured.provider == provider].iterrows():
        predicted = 2e6 * (own.message_s + row.bytes * own.byte_s) + plain[row.bytes]
        assert row.q1_us <= predicted <= row.q3_us


def test_the_slope_and_intercept_are_near_those_of_the_smallest_and_largest_messages() -> None:
    """BoringSSL, TLS 1.3, by hand: (7.38 - 0.79 - (1.99 - 0.37)) us over 15,936 bytes, for two sides."""
    own = floor(BORINGSSL)

    assert own.byte_s == pytest.approx((7.38 - 0.79 - 1.99 + 0.37) * 1e-6 / 15_936 / 2, abs=2 * own.byte_error_s)
    assert own.message_s == pytest.approx((1.99 - 0.37) * 1e-6 / 2, abs=2 * own.message_error_s)
    assert own.message_error_s < 0.05 * own.message_s
    assert own.byte_error_s < 0.05 * own.byte_s


def test_jdk_costs_more_than_boringssl_throughout() -> None:
    cheap, dear = floor(BORINGSSL), floor(JDK)

    assert cheap.message_s < dear.message_s
    assert cheap.byte_s < dear.byte_s
    assert cheap.handshakes_s[1] < dear.handshakes_s[0]
    assert list(handshake_s(JDK, "rsa", "TLSv1.2")) == [pytest.approx(2676.51e-6 / 2)]


def test_the_spread_covers_one_more_factor_by_student_s_t() -> None:
    factors = [1.0, 2.0, 4.0]
    found, logs = spread(factors), np.log(factors)

    assert found.median == pytest.approx(2.0)
    half = t.ppf(0.95, 2) * np.std(logs, ddof=1) * np.sqrt(4 / 3)
    assert found.at(0.95) == pytest.approx(2.0 * np.exp(half))
    assert found.at(0.05) == pytest.approx(2.0 * np.exp(-half))


@given(st.lists(st.floats(0.5, 50), min_size=2, max_size=8, unique=True), st.floats(0.1, 10))
def test_a_spread_scales_with_its_factors(factors: list[float], scale: float) -> None:
    found, scaled = spread(factors), spread([scale * each for each in factors])

    assert scaled.median == pytest.approx(scale * found.median)
    assert scaled.log_sd == pytest.approx(found.log_sd, abs=1e-9)


def test_time_of_a_pair_by_hand() -> None:
    """Four cores that complete 114,364 requests a second, and 95,193 with TLS: 7.04 us more a request."""
    (found,) = (each for each in backtest() if each.axis == "keep-alive c=200" and each.system.startswith("rust"))

    assert found.measured_s == pytest.approx(4 * (1 / 95_193 - 1 / 114_364))
    assert found.floor_s == pytest.approx(4 * (floor(BORINGSSL).message_s + 100 * floor(BORINGSSL).byte_s))
    assert found.measured_ratio == pytest.approx(95_193 / 114_364)
    assert load_factor("message", found.system).median * found.floor_s == pytest.approx(found.predicted_s[1])


def test_every_pair_is_predicted_by_the_other_systems() -> None:
    for each in backtest():
        factor = load_factor(each.kind, each.system)
        assert each.predicted_s == pytest.approx([each.floor_s * factor.at(level) for level in (0.05, 0.5, 0.95)])
        assert list(each.predicted_ratio) == sorted(each.predicted_ratio) or np.isnan(each.measured_ratio)


def test_draws_are_stratified_and_within_the_bounds_but_for_the_tails() -> None:
    found, (least, most) = draws(512), bounds()
    exchange, handshake = np.asarray(found.exchange_s), np.asarray(found.handshake_s)

    assert exchange.shape == handshake.shape == (512,)
    assert np.array_equal(exchange, np.asarray(draws(512).exchange_s))
    assert np.mean(exchange < float(least.exchange_s)) < 0.1
    assert np.mean(exchange > float(most.exchange_s)) < 0.1
    logs = np.sort(np.log(np.asarray(found.data_bytes) - 200.0))
    row = parameters()[ROW]
    assert logs == pytest.approx(np.log(row.value) + row.log_sd * norm.ppf((np.arange(512) + 0.5) / 512))


def test_one_draw_is_the_middle_of_the_prior() -> None:
    middle = {name: each.value for name, each in parameters().items()}

    assert draws(1).exchange_s == pytest.approx(work(0.5, middle).exchange_s)


@pytest.mark.parametrize("provider", [BORINGSSL, JDK])
def test_the_providers_are_the_ends_of_the_band(provider: str) -> None:
    own, unit = floor(provider), {LOAD: 1.0, HANDSHAKE_LOAD: 1.0, CORE: 1.0, ROW: 1024.0}
    found = work(0.0 if provider == BORINGSSL else 1.0, unit)

    assert (found.message_s, found.byte_s) == pytest.approx((own.message_s, own.byte_s))
    assert found.handshake_s == pytest.approx(own.handshake_s)
    assert found.exchange_s == pytest.approx(2 * own.message_s + 1224 * own.byte_s)


def test_a_vpn_in_the_kernel_never_costs_more_and_makes_no_handshake() -> None:
    kernel, user = draws(512, kernel=True), draws(512)

    assert np.all(np.asarray(kernel.exchange_s) < np.asarray(user.exchange_s))
    assert np.all(np.asarray(kernel.handshake_s) == 0.0)


def test_quantiles_of_a_lognormal_factor() -> None:
    assert Spread(2.0, 0.5).at(0.5) == pytest.approx(2.0)
    assert Spread(2.0, 0.5).at(0.95) == pytest.approx(2.0 * np.exp(0.5 * 1.6448536))


def test_the_page_is_up_to_date() -> None:
    page = ROOT / "docs" / "reference" / "tls.md"

    assert page.read_text(encoding="utf-8") == SCRIPT["page"](), "uv run python docs/generate/tls.py"
