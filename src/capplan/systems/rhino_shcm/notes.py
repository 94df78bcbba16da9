"""Notes on a prediction of `rhino-shcm`, and what remains after an outage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from capplan.answers.results import Band
from capplan.evidence.table import by_id
from capplan.layout.case import Case
from capplan.layout.ensemble import Places
from capplan.layout.extrapolation import Excess
from capplan.layout.notes import Notes
from capplan.layout.observations import LoadTest
from capplan.layout.situations import Loss, Remainder
from capplan.layout.solution import Figures, Solution, kind_of
from capplan.models.language.parameter import Values
from capplan.models.language.station import Differs
from capplan.models.language.units import FloatArray
from capplan.systems.components.encrypted_links import encryption_excess, encryption_notes
from capplan.systems.rhino_shcm.network import (
    CASSANDRA,
    CORES,
    application_cores,
    disk_bytes,
    other_assignment,
    two_hour_maximum_s,
)
from capplan.systems.rhino_shcm.scenario import SESSION_REQUESTS, RhinoShcmScenario

_BESIDE = 0.5  # doublings, of a cluster with one of its nodes on the application's server: measured only alone
_UNCACHED = 0.3  # of a layout apart without caches: they were switched off beside the application only
_APART = 3  # nodes and replicas of the only cluster that was measured apart


def excess(scenario: RhinoShcmScenario, tests: Sequence[LoadTest[RhinoShcmScenario]]) -> Sequence[Excess]:
    """Return how far a layout is from the two tested ones: one node beside the application, or three separate nodes."""
    del tests
    found: list[Excess] = [*encryption_excess(scenario)]
    if scenario.colocated and scenario.nodes == 1:
        return found
    if scenario.colocated:
        found.append(
            Excess(
                _BESIDE,
                "one Cassandra node on the application's server and others apart: only one or the other was measured",
            )
        )
    for count, words in ((scenario.nodes, "Cassandra nodes"), (scenario.replicas, "replicas")):
        if count != _APART:
            what = f"{count} {words if count > 1 else words.removesuffix('s')} apart: measured only with {_APART}"
            found.append(Excess(abs(math.log2(count / _APART)), what))
    if not scenario.cache:
        found.append(
            Excess(
                _UNCACHED, "no caches with Cassandra apart: measured only with Cassandra on the application's server"
            )
        )
    return found


def highest_measured_rate(scenario: RhinoShcmScenario, tests: Sequence[LoadTest[RhinoShcmScenario]]) -> float:
    """Return the highest rate measured with Cassandra in the same place and the same caches; None if there is none."""
    same = [each.scenario for each in tests if each.scenario.colocated == scenario.colocated]
    alike = [each for each in same if each.cache == scenario.cache] or same
    return max(float(each.offered_per_s() or 0.0) for each in alike)


def _and_links(scenario: RhinoShcmScenario) -> str:
    return "" if scenario.encryption is None else " and encryption"


def _every(value: object, like: FloatArray) -> FloatArray:
    return np.broadcast_to(np.asarray(value, dtype=float), like.shape)


def _longest(case: Case[RhinoShcmScenario], offered: FloatArray) -> str:
    draws = _every(two_hour_maximum_s(case.scenario, case.values, offered) * 1e3, offered)
    if not np.all(np.isfinite(draws)):
        return "No two-hour maximum is predicted: for some parameter draws the rate exceeds the capacity."
    longest = case.uncertainty.of_time(draws, "request")
    return (
        f"The longest response of a two-hour run is likely about {longest.value:,.0f} ms ({longest.low:,.0f} to "
        f"{longest.high:,.0f}). It depends on the length of the run, and single runs vary more."
    )


def _disk_note() -> str:
    return (
        f"In two-hour tests with a million subscribers, a Cassandra node used at most about {disk_bytes() / 1e9:.0f} "
        "GB of disk: 8 GB of commit log, its default limit, and so about 1 GB of data."
    )


def _stalls(case: Case[RhinoShcmScenario]) -> str:
    values = {name: float(np.median(value)) for name, value in case.fitted.values(case.system.parameters).items()}
    short, long = (
        f"{values[f'{kind}_stall_s'] * 1e3:.0f} ms for one request in {values[f'{kind}_stall_requests']:,.0f}"
        for kind in ("short", "long")
    )
    return (
        f"The model attributes the tail to JVM stalls ({short}, {long}, mean durations). This hypothesis fits, but the "
        "document does not say what stalled."
    )


def _server_caution(capacity: Band, figures: Figures) -> list[str]:
    full = float(np.median(_cassandra_full_per_s(figures)))
    if not full > capacity.value > 0:
        return []
    return [
        "More Cassandra nodes do not raise the capacity: Cassandra saturates at "
        f"{full / capacity.value:.2g} times this rate."
    ]


def _doubts(scenario: RhinoShcmScenario) -> list[str]:
    doubts = []
    if scenario.replicas >= _APART:
        doubts.append("A quorum hides the stall of one replica and survives its loss.")
    if not scenario.cache:
        doubts.append(
            "The one test without caches had a lower median and 99th percentile than the test with caches at the same "
            "load, and a busier JVM. The model therefore has a lower Cassandra service demand without caches. This "
            "rests on one two-hour run and is no reason to switch caches off."
        )
    return doubts


def _cassandra_full_per_s(figures: Figures) -> FloatArray:
    loads = [figures.analysis.load(name) for name in figures.analysis.demands if kind_of(name) == CASSANDRA]
    return np.asarray(1 / np.max(loads, axis=0)) if loads else np.zeros(1)


def outages(case: Case[RhinoShcmScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what remains without some Cassandra nodes, by default one: a quorum of each row's replicas, or nothing."""
    return tuple(_without(case, loss.counts["node"]) for loss in losses or (Loss({"node": 1}),))


def _without(case: Case[RhinoShcmScenario], count: int) -> Remainder:
    scenario: RhinoShcmScenario = case.scenario
    name, needed = f"{count} Cassandra node{'s' * (count > 1)}", scenario.replicas // 2 + 1
    if scenario.replicas - count < needed:
        why = "a row's only replica is lost" if scenario.replicas == 1 else f"no quorum of {scenario.replicas} replicas"
        return Remainder(name=name, lost={"node": count}, assumed=why, solved=None)
    return Remainder(
        name=name,
        lost={"node": count},
        assumed="a quorum of replicas is left",
        solved=partial(_left, case, count),
    )


def _left(case: Case[RhinoShcmScenario], count: int, values: Values, place: Places | None) -> Solution:
    """Analyse a layout with its last Cassandra nodes down; the first one may be on the application's server."""
    whole, nodes = case.system.solution(case.scenario, values, place), case.scenario.nodes
    down = tuple(Differs(number, down=True) for number in range(nodes - count + 1, nodes + 1))
    stations = tuple(
        replace(station, exceptions=down) if station.name == CASSANDRA else station
        for station in whole.network.stations
    )
    return Solution(replace(whole.network, stations=stations), whole.reported, whole.closed, whole.bounded, place)


def _resource_names(scenario: RhinoShcmScenario) -> Mapping[str, str]:
    nodes = f"the {scenario.nodes} Cassandra nodes" if scenario.nodes > 1 else "the Cassandra node"
    return {"server": "the application server", "cassandra": nodes}


def _claims(case: Case[RhinoShcmScenario]) -> tuple[str, ...]:
    """Return the document's conclusion about the tested layout."""
    scenario = case.scenario
    if scenario.colocated or not scenario.cache or scenario.nodes != _APART:
        return ()
    rate = by_id(case.system.evidence)["t5.sustained_rate"].value
    return (
        f"The document concludes that one application server with three Cassandra nodes sustains {rate:,.0f} "
        "requests per second. It measured that rate for two hours, and a higher one as well.",
    )


def _cautions(case: Case[RhinoShcmScenario], capacity: Band, figures: Figures) -> list[str]:
    """Return the warning that Cassandra is not the limit; a node on the server takes of its CPU, others do not."""
    return [] if case.scenario.colocated else _server_caution(capacity, figures)


def _further(case: Case[RhinoShcmScenario], _capacity: Band, figures: Figures) -> list[str]:
    """Return further notes on cores, the longest response, disk, stalls and doubts."""
    scenario = case.scenario
    values, offered = case.values, figures.peak_rate
    cores = case.uncertainty.of_rate(_every(application_cores(scenario, values, offered), offered))
    cpu = (
        f"At the offered rate the application's JVM keeps {cores.value:.1f} of {CORES} cores busy ({cores.low:.1f} "
        f"to {cores.high:.1f}), not counting stalls{_and_links(scenario)}; `server` is the whole machine, with "
        "stalls."
    )
    return [
        cpu,
        _longest(case, offered),
        _disk_note(),
        _stalls(case),
        *_doubts(scenario),
        *encryption_notes(case),
    ]


NOTES = Notes(
    assignment=(
        "The load tests speak for one queue: medians hardly rise with load, and a queue for each core fits far worse "
        "(record 0019)."
    ),
    rates=f"Rates are requests per second, {SESSION_REQUESTS:g} for each session; latencies are of all requests.",
    accuracy=(
        "Analytic latencies come from a closed form without Cassandra's own servers: up to 18 % below simulation with "
        "three or more separate nodes, up to 62 % below with one or two, whose stalls no quorum hides, and within 8 % "
        "when colocated."
    ),
    claims=_claims,
    cautions=_cautions,
    further=_further,
    other_assignment=other_assignment,
    resource_names=_resource_names,
    tails_not_modelled=lambda _: ("compaction", "speculative retry", "hints"),
)
