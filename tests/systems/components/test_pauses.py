"""Pauses of Cassandra nodes: the prior from measured runs, the mechanism, a user's own record, a simulation."""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.layout.components import Simulations
from capplan.layout.solution import LEVELS
from capplan.layout.system import System
from capplan.models.cassandra.pauses import OF_PAUSES, node_pauses, young_bytes
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.simulator.compiled.engine import simulate
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.components.pauses.nodes import relative_needs
from capplan.systems.components.pauses.parameters import PAUSES
from capplan.systems.openprovider.network import build_cluster, build_costs, served
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import system

ROOT = Path(__file__).parents[3]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "generate" / "pauses.py"))
QUANTITIES, counts, left_out, runs, spread = (
    SCRIPT[name] for name in ("QUANTITIES", "counts", "left_out", "runs", "spread")
)
VALUES: Values = defaults(PAUSES)
LAYOUTS: dict[str, Any] = {
    "openprovider": OpenproviderScenario(dcs=3, cass_nodes=6),
    "cassandra": CassandraScenario(cass_nodes=6, node_cores=8, read_fraction=0.5),
}


def test_the_prior_and_its_page_are_those_of_the_runs() -> None:
    assert SCRIPT["PRIOR"].read_text(encoding="utf-8") == SCRIPT["prior"](), "uv run python docs/generate/pauses.py"
    assert SCRIPT["PAGE"].read_text(encoding="utf-8") == SCRIPT["page"](), "uv run python docs/generate/pauses.py"


def test_garbage_of_default_operations_is_8_to_19_kilobytes() -> None:
    """As cassandra-stress reports it for seven default runs; wider rows leave 20 to 33 KB."""
    found = runs()
    default = found[found.run.str.contains("default") & (found.garbage_bytes > 0)]

    assert default.garbage_bytes.between(7.5e3, 19.5e3).all()
    assert found.garbage_bytes.max() < 33e3


def test_a_source_left_out_does_not_change_by_itself() -> None:
    """`manual` has the shortest pauses of those that count: without it the prior has longer ones."""
    assert spread("pause_s", "manual").median > spread("pause_s").median
    assert spread("pause_s", "manual").sources == spread("pause_s").sources - 1


def test_a_length_counts_from_servers_and_examples_unless_they_only_read() -> None:
    found = runs()
    kept = found[counts(found, "pause_s")]

    assert set(kept.machine) == {"server", "example"}
    assert "reads" not in set(kept.load)
    assert set(kept.source) == {"vendor", "training", "manual", "jira", "profile", "sperf68", "apigee", "hcd"}
    assert spread("pause_s", "rtfap2") == spread("pause_s"), "a laptop that only read"


def test_what_a_run_writes_makes_its_pauses_longer() -> None:
    """The one cluster with both kinds of runs: 110 ms against 53. The prior is that of a node that writes."""
    chart = runs().set_index("source").loc["chart"].set_index("load").pause_s

    assert chart["writes"] > 2 * chart["reads"]
    assert spread("pause_s").median > runs()[runs().load == "reads"].groupby("source").pause_s.median().median()


def test_each_source_that_counts_has_the_length_that_the_others_predict() -> None:
    """90 % should, so eight of eight have a chance of 43 %, and five or fewer one of 4 %."""
    lengths = [each for each in left_out() if each.figure == "pause_s" and each.counts]

    assert len({each.source for each in lengths}) == len(lengths) == 8
    assert all(each.inside for each in lengths)


def test_shares_of_runs_with_writes_lie_in_the_band_but_for_one_source() -> None:
    """`manual` has a young generation of 73 MB and half of the garbage of the others."""
    shares = [each for each in left_out() if each.figure == "share" and each.load == "writes"]

    assert {each.source for each in shares if not each.inside} == {"manual"}
    assert len({each.source for each in shares}) == 5


def test_the_length_does_not_follow_the_young_generation() -> None:
    """Of the four largest, 0.6 to 1.5 GB, two are shorter than the median, as of the four smallest, from 73 MB on."""
    found = runs()
    kept = found[counts(found, "pause_s")].sort_values("young_bytes")
    shorter = kept.pause_s < kept.pause_s.median()

    assert kept.young_bytes.max() > 15 * kept.young_bytes.min()
    assert shorter[:4].sum() == shorter[4:].sum() == 2


def test_the_share_is_garbage_over_the_young_generation() -> None:
    """3,414 operations a second that leave 31 KB fill 300 MB every 2.8 s; collections of 60 ms: 2 % (`shootout`)."""
    values = {**VALUES, "garbage_bytes": 31e3, "young_bytes": 300e6, "pause_s": 0.06}

    assert node_pauses(values, 3414.0, 1.0).share == pytest.approx(3414 * 31e3 / 300e6 * 0.06)
    assert node_pauses(values, 3414.0, 1.0).share == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize(
    ("heap", "collector", "cores", "expected"),
    [(8 * 2**30, "CMS", 16, 1600 * 2**20), (8 * 2**30, "CMS", 48, 2 * 2**30), (1868 * 2**20, "G1", 4, 1027.4 * 2**20)],
)
def test_the_young_generation_follows_from_the_heap(heap: float, collector: str, cores: int, expected: float) -> None:
    assert young_bytes(heap, collector, cores) == pytest.approx(expected)


@pytest.mark.parametrize("collector", ["CMS", "G1"])
@pytest.mark.parametrize("heap", [2**28, 8 * 2**30, 64 * 2**30])
def test_the_young_generation_is_less_than_the_heap(heap: float, collector: str) -> None:
    assert 0 < young_bytes(heap, collector, 1024) < heap


def test_a_heap_changes_how_often_a_node_pauses_and_not_for_how_long() -> None:
    its, values = own("cassandra")
    lengths_s = {
        pauses_in(paused_network(its, changed(LAYOUTS["cassandra"], heap=heap, collector=each), values, 6000.0))[1]
        for heap in ("4GiB", "16GiB")
        for each in ("CMS", "G1")
    }

    assert lengths_s == {values["pause_s"]}


def test_a_simulation_has_the_median_pauses() -> None:
    """Not those of the draw whose other parameters are nearest to the centre: nothing determines its pauses."""
    its = system("openprovider")
    fitted = its.fitted()
    draws = dict(zip(fitted.names, np.sort(fitted.draws, axis=0).T, strict=True))
    values = fitted.median_values(its.parameters)

    for name in OF_PAUSES:
        middle = len(draws[name]) // 2
        assert draws[name][middle - 1] <= values[name] <= draws[name][middle]


def own(name: str) -> tuple[System[Any], Values]:
    its = system(name)
    return its, {**defaults(its.parameters), **({"variation": 0.0} if name == "cassandra" else {})}


def paused_network(its: System[Any], *layout_values_rate: Any) -> Network:
    compose = its.component(Simulations).paused_network
    assert compose is not None
    return compose(*layout_values_rate)


def pauses_in(network: Network) -> tuple[float, float]:
    """Return share and mean length of the pauses of a network's Cassandra nodes."""
    [(every, length)] = {
        (float(np.asarray(each.every.mean)), float(np.asarray(each.length.mean)))
        for station in network.stations
        for each in station.pauses
    }
    return length / (every + length), length


@pytest.mark.parametrize("name", LAYOUTS)
def test_what_a_node_reported_replaces_the_estimate(name: str) -> None:
    its, values = own(name)
    reported, at_half = (changed(LAYOUTS[name], gc=each) for each in ("0.6%@45ms", "0.6%@45ms rate=1000/s"))

    assert pauses_in(paused_network(its, reported, values, 2000.0)) == pytest.approx((0.006, 0.045))
    assert pauses_in(paused_network(its, reported, values, 1000.0)) == pytest.approx((0.006, 0.045))
    low, high = (pauses_in(paused_network(its, at_half, values, rate))[0] for rate in (1000.0, 2000.0))
    assert high == pytest.approx(2 * low)


def test_an_operation_leaves_garbage_at_every_replica() -> None:
    """6 nodes and three replicas of a write: half of the rate at each."""
    its, values = own("cassandra")
    writes = changed(LAYOUTS["cassandra"], read_fraction=0.0)
    share, length_s = pauses_in(paused_network(its, writes, values, 6000.0))

    filled_per_s = 3000 * values["garbage_bytes"] / values["young_bytes"]
    assert share == pytest.approx(filled_per_s * values["pause_s"])
    assert length_s == values["pause_s"]


def test_a_larger_heap_pauses_more_seldom() -> None:
    its, values = own("cassandra")
    small, large = (changed(LAYOUTS["cassandra"], heap=each, collector="g1") for each in ("4GiB", "16GiB"))
    shares = [pauses_in(paused_network(its, each, values, 6000.0))[0] for each in (small, large)]

    assert shares[0] == pytest.approx(4 * shares[1])


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_heap_beside_reported_pauses_has_no_effect_and_it_is_said(name: str) -> None:
    its, values = own(name)
    reported = changed(LAYOUTS[name], gc="0.6%@45ms")
    both = changed(reported, heap="8GiB", collector="G1")

    assert "heap and collector have no effect" in both.without_effect()[-1]
    assert paused_network(its, both, values, 2000.0) == paused_network(its, reported, values, 2000.0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"collector": "zgc", "heap": "8GiB"}, "do not follow from garbage"),
        ({"collector": "G2", "heap": "8GiB"}, "did you mean 'G1'"),
        ({"collector": "G1"}, "give heap"),
        ({"heap": "8"}, "at least 256 MiB"),
        ({"gc": "gc.log"}, "is no record of pauses"),
        ({"gc": "60%@45ms"}, "at most 50% of the time"),
        ({"gc": "0.6%@45s"}, "at most 10 s"),
    ],
)
def test_other_collectors_and_sizes_are_refused(fields: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        changed(LAYOUTS["cassandra"], **fields)


def test_data_centres_without_clients_have_queues_too() -> None:
    """Every data centre has the mutations of all writes, so what a read waits for in a queue is nearly the same."""
    its, values = own("openprovider")
    found = []
    for share in (None, (1.0, 0.0, 0.0)):
        layout = changed(LAYOUTS["openprovider"], client_share=share)
        cluster = build_cluster(layout, values)
        asked = {"auth": {"read": build_costs(layout, values)}}
        analysis = its.solution(layout, values).at(2000.0).analysis
        found.append(
            relative_needs(layout, cluster, served(layout, cluster), asked, analysis, "cassandra", None)["auth"]
        )

    assert found[1] == pytest.approx(found[0], rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rate", "seconds", "gc"),
    [
        ("openprovider", 3000.0, 600.0, "0.6%@45ms sd=18ms"),
        pytest.param("openprovider", 5000.0, 600.0, "2%@60ms sd=15ms", marks=pytest.mark.trust),
        ("cassandra", 15_000.0, 200.0, "1%@40ms sd=16ms"),
        ("cassandra", 40_000.0, 100.0, "1%@30ms sd=12ms"),
        pytest.param("cassandra", 60_000.0, 100.0, "0.4%@40ms sd=16ms", marks=pytest.mark.trust),
    ],
)
def test_simulated_pauses_are_those_of_the_solver_whose_other_times_are_simulated(
    name: str, rate: float, seconds: float, gc: str
) -> None:
    """Up to 76 % of the capacity; some 60 to 3,600 pauses, so p99.9 has a standard error of 2 to 8 %.

    p50 and p99.9 are within 10 %. Near the share of requests that meet a pause, percentiles rise tenfold within a per
    cent of the requests, so there p99 is compared by the share of requests beyond it.
    """
    its, values = own(name)
    layout = changed(LAYOUTS[name], gc=gc)
    figures = its.solution(layout, values).at(rate)
    plain = simulate(its.network(layout, values, rate), seconds / 4, seed=2, trace=True)
    run = simulate(paused_network(its, layout, values, rate), seconds, seed=1, trace=True)
    for reported in figures.asked:
        plain_s, seen_s = (np.concatenate([of.latencies_s(x) for x in its.reported[reported]]) for of in (plain, run))
        found = {
            level: float(
                figures.corrected_s(reported, each, partial(np.full_like, fill_value=np.quantile(plain_s, level)))[0]
            )
            for each, level in LEVELS.items()
        }
        for level in (0.5, 0.999):
            assert found[level] == pytest.approx(np.quantile(seen_s, level), rel=0.1), (reported, level)
        assert 0.0075 < np.mean(seen_s > found[0.99]) < 0.0125, reported


def test_every_quantity_has_at_least_eight_sources() -> None:
    assert all(spread(each).sources >= 8 for each in QUANTITIES)
