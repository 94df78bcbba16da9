"""Notes on a prediction of `openprovider`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capplan.answers.results import Band
from capplan.evidence.table import Evidence, select
from capplan.layout.case import Case
from capplan.layout.extrapolation import Excess
from capplan.layout.fitted_file import Hypothesis
from capplan.layout.notes import Notes
from capplan.layout.observations import LoadTest
from capplan.layout.solution import Figures
from capplan.models.cassandra.cluster import round_trip_s
from capplan.models.cassandra.encryption import LINKS
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import changed
from capplan.systems.components import data_factor
from capplan.systems.components.encrypted_links import encryption_excess, encryption_notes
from capplan.systems.openprovider.network import network
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import USUAL, OpenproviderScenario
from capplan.systems.openprovider.session_visibility import compared, sessions_not_found

_SHORTEST_ROUTE, _LONGEST_ROUTE = 1.1, 1.5  # of fibre over the straight line, as in the prior of `route_excess`
_GIVEN = 0.3  # doublings, of what was given and not measured in the tests: round trips, bursts, requests of a session
_LEVELS = 0.3  # of consistency levels other than those of the calibration
_LEAST_DISTANCE_M, _LEAST_ROUND_TRIP_S = 1e3, 1e-5  # what is shorter takes no time in either case

_PAUSES = (
    "Percentiles contain garbage-collection pauses of Cassandra nodes, which no load test measured. They come from "
    "runs of other clusters unless --gc gives those of a node; from p95 or p99 on, percentiles rest on them. Hints, "
    "speculative retries, which would shorten some reads, and the slowdown by a running compaction are not in them. "
    "Means and capacities contain what the load tests had of all that, and nothing of --gc. Beside simulations with "
    "pauses, p99.9 is within 15 %, and 0.6 to 1.2 % of the requests are beyond p99."
)
_BY_LINK = {
    "client": "Encryption of client links delays the answer to the start, and with it the next message. The row has "
    "more time to arrive, so the probabilities fall.",
    "internode": "Encryption between nodes delays the row on its way, so the probabilities rise.",
}
"""Effect of encrypted links on the probability that a session is not found."""


def excess(scenario: OpenproviderScenario, tests: Sequence[LoadTest[OpenproviderScenario]]) -> Sequence[Excess]:
    """Return how far the layout lies outside the documented tests on axes without a measured range.

    These are wide-area links, consistency levels, requests of a session, bursts, encryption, and clients that are
    spread unevenly: by how many doublings the busiest data centre has more than its even share.
    """
    found = list(_wan(scenario, tests)) if scenario.dcs > 1 else []
    if scenario.client_share is not None:
        spread = per_dc_text(scenario.client_share)
        most = max(scenario.client_share) * scenario.dcs
        found.append(
            Excess(math.log2(most), f"clients spread {spread} over the data centres: the tests spread them evenly")
        )
    levels = (scenario.consistency_read, scenario.consistency_write)
    usual = (OpenproviderScenario().consistency_read, OpenproviderScenario().consistency_write)
    if levels != usual:
        words = f"reads at {levels[0]} and writes at {levels[1]}: calibrated with {usual[0]} and {usual[1]}"
        inside = changed(scenario, consistency_read=usual[0], consistency_write=usual[1])
        found.append(Excess(_LEVELS, words, inside))
    return [*found, *_data(scenario), *_mix(scenario), *_bursts(scenario), *encryption_excess(scenario)]


def _data(scenario: OpenproviderScenario) -> Sequence[Excess]:
    """Return that other data were not tested; how much they differ is stated, so it widens no band."""
    stated = scenario.data_factor
    words = f"data factor {data_factor.in_words(stated)}"
    return [] if data_factor.factors(stated) == (1.0, 1.0) else [Excess(0.0, f"{words}: the tests had fresh data")]


def _mix(scenario: OpenproviderScenario) -> Sequence[Excess]:
    """Return how far a session's requests are from those of the tests, which had one kind of session."""
    if scenario.mix is None:
        return []
    mix = scenario.session_mix
    tested = f"the tests had {USUAL.auth:g} and {USUAL.acct:g}"
    words = f"{mix.auth:.4g} auth and {mix.acct:.4g} acct requests in a session: {tested}"
    distance = abs(math.log2((mix.acct / mix.auth) / (USUAL.acct / USUAL.auth)))
    return [Excess(max(distance, _GIVEN), words, changed(scenario, mix=None))]


def _bursts(scenario: OpenproviderScenario) -> Sequence[Excess]:
    """Return how far a given burst ratio is from that of the tests, which is only inferred by the fit."""
    if scenario.burst_ratio is None:
        return []
    words = f"a burst ratio of {scenario.burst_ratio:g}: that of the tests was not measured"
    inside = changed(scenario, burst_ratio=None)
    usual = 1 + defaults(PARAMETERS)["burst_excess"]
    return [Excess(max(abs(math.log2(scenario.burst_ratio / usual)), _GIVEN), words, inside)]


def _wan(scenario: OpenproviderScenario, tests: Sequence[LoadTest[OpenproviderScenario]]) -> Sequence[Excess]:
    tested = tests[0].scenario
    inside = changed(scenario, rtt=None, distance=tested.distance)
    known, given = tested.distance_m(), scenario.given_rtt_s()
    if given is not None:
        longest_s = max(map(max, given))
        if round_trip_s(known, _SHORTEST_ROUTE) <= longest_s <= round_trip_s(known, _LONGEST_ROUTE):
            return []
        of_test_s = float(round_trip_s(known, 1 + defaults(PARAMETERS)["route_excess"]))
        return _round_trips(longest_s, of_test_s, inside)
    distance = scenario.distance_m()
    if math.isclose(distance, known):
        return []
    words = f"data centres {distance / 1000:g} km apart: the test had {known / 1000:g} km"
    return [Excess(_doublings(distance, known, _LEAST_DISTANCE_M), words, inside)]


def _round_trips(longest_s: float, known_s: float, inside: OpenproviderScenario) -> Sequence[Excess]:
    """Return how far given round trips are from those of the test, which are only known by distance."""
    known = f"about {known_s * 1e3:.1f} ms in the load tests, estimated from the distance"
    words = f"RTT of up to {longest_s * 1e3:g} ms: {known}"
    return [Excess(max(_doublings(longest_s, known_s, _LEAST_ROUND_TRIP_S), _GIVEN), words, inside)]


def _doublings(value: float, known: float, least: float) -> float:
    return min(abs(math.log2(max(value, least) / known)), 3.0)


def _levels_note(case: Case[OpenproviderScenario]) -> str:
    best, *others = case.fitted.hypotheses
    worse = ", ".join(f"{'/'.join(_levels(each))} {each.deviance - best.deviance:+.1f}" for each in others)
    write, read = _levels(best)
    return (
        f"The document names no consistency levels. Writes at {write} and reads at {read} fit its figures best "
        f"(deviance {best.deviance:.1f}; {worse}). That is weak evidence, from 15 rounded figures."
    )


def _session_notes(case: Case[OpenproviderScenario], figures: Figures) -> list[str]:
    """Return notes on sessions that are not found."""
    shown, heavy = compared(case, figures)
    if not shown:
        return []
    notes = [
        f"{_elsewhere(case.scenario)} go to another data centre than the start. The "
        "probabilities are for those messages. They cover network delays and queues only: a garbage collection, a "
        "dropped mutation or a lost node delays a row far longer, is not modelled, and dominates below about 0.1 %. "
        "Replicas are assumed independent, which underestimates misses of two-replica reads (by up to a quarter at a "
        "gap of 0.5 ms with 80 % of the cores busy, by more in the tail)."
    ]
    if case.scenario.encryption is not None:
        effect = " ".join(words for link, words in _BY_LINK.items() if link in LINKS[case.scenario.encryption])
        notes.append(f"Encryption changes these probabilities. {effect}")
    if heavy:
        names = ", ".join("/".join(levels) for levels in heavy)
        notes.append(
            f"Reads/writes at {names} are not compared: Cassandra's cores do not sustain this rate at those levels."
        )
    return notes


def _elsewhere(scenario: OpenproviderScenario) -> str:
    """Return in words how many messages go to another data centre than their session's start."""
    if scenario.client_share is None:
        return f"With {scenario.dcs} data centres in turn, {scenario.dcs - 1} of {scenario.dcs} messages"
    other = 1 - sum(share**2 for share in scenario.client_share)
    return f"With {per_dc_text(scenario.client_share)} of the messages in the data centres, {100 * other:.0f} % of them"


def _levels(hypothesis: Hypothesis) -> tuple[str, str]:
    return hypothesis.choice["consistency_write"], hypothesis.choice["consistency_read"]


def _policing_tier(evidence: Sequence[Evidence], scenario: OpenproviderScenario) -> tuple[float, str]:
    """Return a lower bound of the rate that the RADIUS servers sustain, and the test that shows it."""
    seen = max(row.value for row in select(evidence, quantity="incoming_rate", scenario="TS1"))
    nodes, spread = sum(scenario.fronts_by_dc()), ""
    tier = seen * nodes
    if scenario.unequal:
        each = zip(scenario.fronts_by_dc(), scenario.shares_by_dc(), strict=True)
        tier, spread = min(seen * fronts / share for fronts, share in each if share), " with these shares of clients"
    return (
        tier,
        f"one RADIUS server sustained {seen:,.0f} TPS in the tests, so {nodes} sustain at least {tier:,.0f}{spread}",
    )


def _front_note(evidence: Sequence[Evidence], scenario: OpenproviderScenario) -> str:
    _, words = _policing_tier(evidence, scenario)
    return f"{words[0].upper()}{words[1:]}, more than Cassandra."


def _front_caution(evidence: Sequence[Evidence], scenario: OpenproviderScenario, capacity: Band) -> list[str]:
    tier, words = _policing_tier(evidence, scenario)
    if capacity.high <= tier:
        return []
    return [f"The RADIUS servers may saturate first: {words}; no test shows more."]


_RESOURCES = {
    "cassandra-storage": "Cassandra storage path",
    "cassandra": "node CPU",
    "front": "RADIUS server CPU",
    "workers": "RADIUS worker threads",
    "native-transport": "Cassandra native-transport threads",
}


def _other_assignment(scenario: OpenproviderScenario, values: Values) -> Network:
    """Return the network with round-robin assignment to cores, the most extreme form that the load tests allow."""
    return network(scenario, values, 1.0).with_assignment("round_robin")


def _claims(case: Case[OpenproviderScenario]) -> tuple[str, ...]:
    """Return what the document states without a measurement, to show beside the prediction."""
    scenario = case.scenario
    rows = select(case.system.evidence, quantity="incoming_rate", dcs=scenario.dcs, proxy=False, ldap=False)
    nodes = sum(scenario.nodes_by_dc())
    if not rows or nodes == 3 * scenario.dcs:
        return ()
    best = max(row.value for row in rows)
    linear = best * nodes / (3 * scenario.dcs)
    return (
        f"The document expects capacity to grow in proportion to the Cassandra nodes: from {best:,.0f} TPS with 3 "
        f"nodes per data centre to {linear:,.0f} with {per_dc_text(scenario.cass_nodes)}. It did not measure this.",
    )


def _cautions(case: Case[OpenproviderScenario], capacity: Band, _figures: Figures) -> list[str]:
    """Return warnings about the RADIUS servers."""
    return (
        [] if case.solution.bottleneck == "workers" else _front_caution(case.system.evidence, case.scenario, capacity)
    )


def _further(case: Case[OpenproviderScenario], capacity: Band, figures: Figures) -> list[str]:
    """Return further notes on the bottleneck, consistency levels, sessions and production data."""
    notes = []
    if case.solution.bottleneck == "cassandra-storage":
        notes.append(
            "The storage path (commit log, flush, compaction) as the first bottleneck is a hypothesis. The only "
            "evidence is TS4, which gained so little over TS3."
        )
    if case.solution.bottleneck != "workers" and not _front_caution(case.system.evidence, case.scenario, capacity):
        notes.append(_front_note(case.system.evidence, case.scenario))
    notes.append(_levels_note(case))
    notes.append(_PAUSES)
    notes.extend(_session_notes(case, figures))
    return notes + encryption_notes(case)


NOTES = Notes(
    assignment=(
        "The load tests report times at the highest rate only. There all forms must agree, so those that stretch more "
        "fit shorter services: with the least loaded core the mean of acct at half of the capacity would be 7 % "
        "shorter, with cores in turn 27 % (record 0019). Random cores fit far worse."
    ),
    rates=(
        "Rates are peak rates over all data centres, as in the document; latencies are over bursts and the time "
        "between them."
    ),
    accuracy=(
        "Analytic percentiles are within about 7 % of simulation up to 85 % of capacity and too high above; --engine "
        "compiled simulates them."
    ),
    claims=_claims,
    cautions=_cautions,
    further=_further,
    other_assignment=_other_assignment,
    resource_names=lambda _: _RESOURCES,
    assumed=("cassandra-storage",),
    tails_not_modelled=lambda _: ("compaction", "speculative retry", "hints"),
    sessions_not_found=sessions_not_found,
)
