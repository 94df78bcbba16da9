"""Encryption in predictions: costs over draws, the distance, and no change without encryption."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from capplan.layout.ensemble import thinned
from capplan.layout.solution import Solution
from capplan.models.cassandra.encryption import CLIENT_S, INTERNODE_S, LINKS
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.components.tls.prior import draws
from capplan.systems.registry import scenario, system

WITH_CASSANDRA = ("openprovider", "rhino-shcm")
EVERY = pytest.mark.parametrize("name", WITH_CASSANDRA)


def values_of(asked: Scenario) -> Values:
    its = system(asked.system)
    return its.values(its.fitted(), asked)


def measured(name: str, **fields: Any) -> Scenario:
    """Return a layout with the data of the load tests."""
    return scenario(name, **{**({"data_factor": 1.0} if name == "openprovider" else {}), **fields})


def solution(asked: Scenario, values: Values) -> Solution:
    return system(asked.system).solution(asked, values)


def costs(asked: Scenario) -> tuple[FloatArray, FloatArray]:
    found = values_of(asked)
    return np.asarray(found[CLIENT_S]), np.asarray(found[INTERNODE_S])


@EVERY
def test_without_encryption_the_values_are_the_calibrated_ones(name: str) -> None:
    plain, its = measured(name), system(name)
    fitted, found = its.fitted(), values_of(plain)
    known = fitted.values(its.parameters)

    assert list(found) == list(known)
    assert all(np.array_equal(found[each], value) for each, value in known.items())
    assert its.median_values(fitted, plain) == fitted.median_values(its.parameters)


@EVERY
def test_costs_are_draws_of_the_prior_of_tls_on_every_system(name: str) -> None:
    asked = scenario(name, encryption="client+internode")
    known = draws(len(system(name).fitted().draws))

    for found in costs(asked):
        assert np.array_equal(found, np.asarray(known.exchange_s))
    medians = system(name).median_values(system(name).fitted(), asked)
    assert medians[CLIENT_S] == pytest.approx(np.median(np.asarray(known.exchange_s)))


@EVERY
def test_reconnects_add_their_handshakes_to_client_links_only(name: str) -> None:
    client, internode = costs(scenario(name, encryption="client+internode", reconnects=0.1))
    known = draws(len(client))

    assert client - internode == pytest.approx(0.1 * np.asarray(known.handshake_s))


@EVERY
def test_capacity_falls_with_reconnects(name: str) -> None:
    def capacity(reconnects: float) -> FloatArray:
        asked = measured(name, encryption="client", reconnects=reconnects)
        return solution(asked, thinned(values_of(asked))).capacity

    rarely, often, always = (capacity(each) for each in (0.01, 0.2, 1.0))
    assert np.all(often <= rarely * (1 + 1e-5))
    assert np.all(always <= often * (1 + 1e-5))
    assert np.mean(always < often) > 0.8  # in the others the storage path, which does not encrypt, is full first


@pytest.mark.parametrize("name", [pytest.param("openprovider", marks=pytest.mark.slow), "rhino-shcm"])
def test_laws_of_the_capacity_over_all_draws(name: str) -> None:
    """None above plain, none in user space above the kernel's, none of two links above that of one."""

    def capacity(**fields: str) -> FloatArray:
        asked = changed(scenario(name), **fields)
        return solution(asked, thinned(values_of(asked))).capacity

    plain = capacity()
    for links in LINKS:
        kernel, user = capacity(encryption=links, vpn="kernel"), capacity(encryption=links)
        assert np.all(user <= kernel * (1 + 1e-5))
        assert np.all(kernel <= plain * (1 + 1e-5))
        assert np.array_equal(user, capacity(encryption=links, vpn="user"))
        assert np.all(capacity(encryption="client+internode") <= user * (1 + 1e-5))


@EVERY
@pytest.mark.parametrize("links", list(LINKS))
def test_encrypted_links_are_outside_of_every_measurement(name: str, links: str) -> None:
    plain, encrypted = (system(name).extrapolation(each) for each in (measured(name), measured(name, encryption=links)))

    assert plain.basis == "measured"
    assert encrypted.basis == "extrapolated"
    assert encrypted.doublings == pytest.approx(plain.doublings + 0.3)


FRESH: dict[str, dict[str, float]] = {"openprovider": {"data_factor": 1.0}}
"""Fields of fresh data: on production data the storage path limits the capacity, encrypted or not."""


@lru_cache
def asked(name: str, **fields: str) -> Prediction:
    return predict(scenario(name, **FRESH.get(name, {}), **fields), engine="analytic")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "openprovider" else ()) for name in WITH_CASSANDRA]
)
def test_no_encrypted_capacity_is_told_above_the_plain_one(name: str) -> None:
    """Bands are wider with encryption, and reach higher but for what bounds them."""
    made = [asked(name, **fields) for fields in ({}, {"encryption": "client", "vpn": "kernel"})]
    bands = [[each.peak_tps, *(left.capacity_tps for left in each.outages)] for each in made]

    for plain, kernel in zip(*bands, strict=True):
        assert plain is not None
        assert kernel is not None
        assert kernel.high == plain.high
        assert kernel.low < plain.low or plain.high == 0


@pytest.mark.slow
def test_what_is_left_after_an_outage_is_encrypted_too() -> None:
    plain, encrypted = asked("openprovider"), asked("openprovider", encryption="internode")
    for without, left in zip(plain.outages, encrypted.outages, strict=True):
        if without.available:
            assert left.capacity_tps is not None
            assert without.capacity_tps is not None
            assert left.capacity_tps.value <= without.capacity_tps.value
