"""Random networks of the whole language: the analytic solver gives finite, ordered figures, or refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.strategies import networks

from capplan.answers.results import STATISTICS
from capplan.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Host, Pauses
from capplan.models.language.step import Batch, Hedge
from capplan.models.language.traffic import Retry, Timeline, Trace
from capplan.planner.predict_network import predict_network

UNKNOWN = frozenset({Hedge, Batch, Pauses, Background, Host, Retry, Timeline, Trace})
"""What the solver always refuses, or leaves out."""


def check(network: Network) -> None:
    """Check that a prediction has finite and ordered figures where queues do not grow, if there is one."""
    plain = replace(network, stations=tuple(replace(each, expiry_s=None) for each in network.stations))
    try:
        with np.errstate(all="ignore"):
            found = predict_network(plain, file="random.toml", engine="analytic")
    except InputError:
        return
    rates = [found.peak_tps, *found.utilisation.values(), *found.busy_workers.values()]
    assert all(band is not None and math.isfinite(band.value) for band in rates)
    for latency in found.latency_ms.values():
        times = [getattr(latency, name).value for name in STATISTICS]
        assert not any(map(math.isnan, times))
        assert min(times) >= 0
        percentiles = times[1:]
        assert percentiles == sorted(percentiles)


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(networks(UNKNOWN))
def test_a_random_network_has_figures_or_is_refused(network: Network) -> None:
    check(network)


@pytest.mark.slow
@settings(max_examples=600, suppress_health_check=list(HealthCheck))
@given(networks(UNKNOWN))
def test_many_random_networks_have_figures_or_are_refused(network: Network) -> None:
    check(network)
