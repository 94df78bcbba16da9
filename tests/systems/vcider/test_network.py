"""The network of `vcider`: ratios by hand, laws, and the engine's saturated throughputs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.traffic import Closed
from capplan.models.language.units import Number
from capplan.models.solver.analytic import Analysis
from capplan.simulator.compiled.engine import simulate
from capplan.systems.vcider import SYSTEM
from capplan.systems.vcider.network import (
    COLUMNS,
    NOMINAL_S,
    OPERATION,
    cluster,
    demand,
    in_kernel,
    native,
    network,
    ratio,
    remote_replicas,
    user_space,
    virtual,
)
from capplan.systems.vcider.priors import PARAMETERS
from capplan.systems.vcider.scenario import ENCRYPTION, NODES, VIRTUAL, VciderScenario

ROUND: Values = {
    "replica_work": 1.0,
    "client_message": 0.1,
    "internode_message": 0.02,
    "kernel_message": 0.01,
    "kernel_cipher_message": 0.005,
    "cipher_byte": 1e-5,
}
"""Round numbers: a coordinator and a replica cost half an operation each."""
SCENARIOS = st.builds(
    VciderScenario,
    rf=st.integers(1, NODES),
    column_bytes=st.integers(1, 4096),
    encryption=st.sampled_from(ENCRYPTION),
    virtual_encrypts=st.sampled_from(VIRTUAL),
)
VALUES = st.fixed_dictionaries({each.name: st.floats(0.2, 5.0).map(each.value.__mul__) for each in PARAMETERS})


@pytest.mark.parametrize(
    ("rf", "encryption", "virtual_encrypts", "by_hand"),
    [
        # work + client messages + 2 ends of each message with 3/4 of the replicas; a row of 1,000 bytes
        (1, "none", "same", 1 / (1 + 2 * 0.01 + 1.5 * 2 * 0.01)),
        (3, "none", "same", 2 / (2 + 2 * 0.01 + 4.5 * 2 * 0.01)),
        (1, "client+internode", "same", (1 + 0.2 + 0.01 + 1.5 * (0.04 + 0.01)) / (1 + 2.5 * (0.03 + 0.01))),
        (3, "client+internode", "all", (2 + 0.2 + 0.01 + 4.5 * (0.04 + 0.01)) / (2 + 5.5 * (0.03 + 0.01))),
        (1, "internode", "same", (1 + 1.5 * (0.04 + 0.01)) / (1 + 0.02 + 1.5 * (0.03 + 0.01))),
        (1, "internode", "all", (1 + 1.5 * (0.04 + 0.01)) / (1 + 2.5 * (0.03 + 0.01))),
        (3, "internode", "none", (2 + 4.5 * (0.04 + 0.01)) / (2 + 5.5 * 0.02)),
    ],
)
def test_ratios_by_hand(rf: int, encryption: str, virtual_encrypts: str, by_hand: float) -> None:
    layout = VciderScenario(rf=rf, column_bytes=200, encryption=encryption, virtual_encrypts=virtual_encrypts)

    assert COLUMNS * layout.column_bytes == 1000
    assert ratio(layout, ROUND, encryption) == pytest.approx(by_hand, rel=1e-12)


@given(SCENARIOS, VALUES)
def test_more_encryption_of_the_reference_never_lowers_its_work(layout: VciderScenario, values: Values) -> None:
    work = [demand(layout, values, native(layout, values, each)) for each in ("none", "internode", "client+internode")]

    assert work == sorted(work)
    assert work[0] == pytest.approx(1 + (layout.rf - 1) * values["replica_work"] / (1 + values["replica_work"]))


@given(SCENARIOS, VALUES)
def test_a_plain_virtual_network_is_slower_than_plain_native_interfaces(layout: VciderScenario, values: Values) -> None:
    """Documented for the averages, -3.7 and -4.2 %; in the model at any cost of a message."""
    assert float(ratio(layout, values, "none")[0]) < 1


@given(SCENARIOS, VALUES)
def test_what_the_virtual_network_encrypts_orders_the_ratios(layout: VciderScenario, values: Values) -> None:
    said = [
        float(ratio(replace(layout, virtual_encrypts=each), values, layout.encryption)[0])
        for each in ("all", "same", "none")
    ]

    assert said == sorted(said)
    if layout.encryption == "none":
        assert said[0] == said[2]


def reference_network(scenario: VciderScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the cluster on native interfaces, at the same nominal speed."""
    return cluster(scenario, values, rate_per_s, native(scenario, values, scenario.encryption))


@given(SCENARIOS, VALUES)
def test_the_network_does_the_work_of_the_formula(layout: VciderScenario, values: Values) -> None:
    for made, links in (
        (network(layout, values, 1.0), virtual(layout, values, layout.encryption)),
        (reference_network(layout, values, 1.0), native(layout, values, layout.encryption)),
    ):
        analysis = Analysis(made)
        assert analysis.members == {"cassandra": NODES}
        load = float(demand(layout, values, links)) * NOMINAL_S / NODES
        assert analysis.load("cassandra") == pytest.approx(load, rel=1e-9)


def saturated_per_s(made: Network, operations: int) -> float:
    """Throughput of 64 clients a node that never think, in about so many operations."""
    closed = replace(made, traffic=Closed(64 * NODES, Deterministic(0.0), {OPERATION: 1.0}))
    duration_s = operations * NOMINAL_S / NODES
    run = simulate(closed, duration_s, seed=2011, warmup_s=duration_s / 10)
    return run.report(OPERATION).completed / (0.9 * duration_s)


@pytest.mark.parametrize("rf", [1, 3])
@pytest.mark.parametrize("encryption", ENCRYPTION)
def test_saturated_throughputs_of_the_engine_have_the_ratio_of_the_formula(rf: int, encryption: str) -> None:
    """Within 1.5 %.

    The work of an operation has a coefficient of variation below 0.8, so throughput over at least 60,000 operations has
    a relative standard error below 0.33 %, and a ratio of two below 0.47 %: a correct program fails less than once in
    700 if both runs were independent, which common random numbers make far rarer; one off by 3 % passes as seldom.
    """
    layout = VciderScenario(rf=rf, encryption=encryption)
    values = defaults(PARAMETERS)
    over, under = (saturated_per_s(made(layout, values, 1.0), 150_000) for made in (network, reference_network))

    assert over / under == pytest.approx(float(ratio(layout, values, encryption)[0]), rel=0.015)


def test_all_four_nodes_hold_the_rows_evenly() -> None:
    assert [remote_replicas(VciderScenario(rf=rf)) for rf in range(1, NODES + 1)] == [0.75, 1.5, 2.25, 3.0]


def test_the_kernel_never_costs_more_than_user_space() -> None:
    """In every draw of the calibration: nothing in the model forces it, the ratios do."""
    values = SYSTEM.fitted().values(SYSTEM.parameters)
    kernel, user = in_kernel(values, 640.0), user_space(values, 640.0)

    assert np.all(np.asarray(kernel.client) < np.asarray(user.client))
    assert np.all(np.asarray(kernel.internode) < np.asarray(user.internode))


def test_links_in_user_space_and_in_the_kernel() -> None:
    user, kernel = user_space(ROUND, 1000), in_kernel(ROUND, 1000)

    assert (user.client, user.internode) == pytest.approx((0.21, 0.05))
    assert kernel.client == kernel.internode == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rf": 5}, "rf = 5"),
        ({"column_bytes": 2_000_000}, "column_bytes = 2000000"),
        ({"encryption": "client"}, "'client+internode'"),
        ({"encryption": "tls"}, "'tls'"),
        ({"virtual_encrypts": "al"}, "'all'"),
        ({"tps": 100.0}, "--tps"),
        ({"slo": ("capacity>1",)}, "--slo"),
    ],
)
def test_what_a_scenario_cannot_be(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        VciderScenario(**fields)  # type: ignore[arg-type]  # wrong on purpose

    assert message in str(caught.value)
