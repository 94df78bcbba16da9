"""What a prediction needs to know of `arion` beside its model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.case.solution import Figures
from capplan.calibration.evidence.table import by_id
from capplan.calibration.observations import LoadTest
from capplan.calibration.system import Case, Notes
from capplan.models.language.parameter import thinned
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.models.number_words import significant, to_digits
from capplan.models.results import Band, Capacity, Outage
from capplan.systems.arion.network import (
    AT_ONCE,
    DROOP,
    LONG_QUEUE,
    RECORDS,
    carried_per_s,
    closed_per_s,
    drooped_per_s,
    peak_per_s,
    useful_clients,
    watch_s,
)
from capplan.systems.arion.scenario import ArionScenario

_STREAM = 1000  # messages of each stream of the document's test
_STREAMED = 2.0  # doublings, of streaming: no figure of it is in the text
_CROWDS = (30, 100, 300, 1000)  # clients that ask again at once, for a note
_COMMON_RPS = 30.0  # of each client, as the document has it for a cluster


def excess(scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
    """Return how far a layout lies outside by many clients of each master, and by streaming."""
    each, measured = _clients_of_each(scenario), max(_clients_of_each(test.scenario) for test in tests)
    found: list[Excess] = []
    if each > measured:
        words = f"{each:,.0f} clients of each master: none measured above {measured:,.0f}"
        found.append(Excess(math.log2(each / measured), words))
    if scenario.stream_messages > 1:
        words = f"{scenario.stream_messages:,} requests share a stream: of streams no figure is documented"
        found.append(Excess(_STREAMED, words))
    return found


def excess_of_rates(scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
    """Return how far it does by few clients: they bound the rate, but a request that hardly waits was timed."""
    each, measured = _clients_of_each(scenario), min(_clients_of_each(test.scenario) for test in tests)
    if each >= measured:
        return ()
    words = f"{each:.3g} client{'s' if each != 1 else ''} of each master: none measured below {measured:,.0f}"
    return (Excess(math.log2(measured / each), words),)


def _clients_of_each(scenario: ArionScenario) -> float:
    return scenario.clients / scenario.servers


def _useful(case: Case[ArionScenario]) -> str:
    """Say where more clients stop helping."""
    scenario, values = case.scenario, case.values
    sure = case.system.uncertainty(
        case.fitted, scenario, case.uncertainty.seed
    )  # one master was measured, whatever is asked about
    many = sure.of_time(useful_clients(scenario, values))  # over the rate that they make it is a time
    rate = float(scenario.rps_per_client or _COMMON_RPS)
    paced = sure.of_rate(_draws(drooped_per_s(scenario, values) / scenario.servers / rate))
    return (
        f"More clients stop helping at about {many.value:.0f} for each master ({many.low:.0f} to {many.high:.0f}) if "
        f"each asks again as soon as it is answered, and at about {paced.value:,.0f} ({paced.low:,.0f} to "
        f"{paced.high:,.0f}) if each asks {rate:g} times a second. {_crowds(case)}"
    )


def _few(case: Case[ArionScenario]) -> list[str]:
    scenario: ArionScenario = case.scenario
    values = case.values
    if case.solution.bottleneck != "clients":
        return []
    bound = case.uncertainty.of_rate(carried_per_s(scenario, values))
    return [
        f"A client waits for its answer before it asks again, so {_counted(scenario.clients)} at most "
        f"{bound.value:,.0f} times a second ({bound.low:,.0f} to {bound.high:,.0f}): clients bound "
        "the capacity, not the masters. Latencies count from when a client asks: where it falls behind a schedule of "
        "its own, that wait comes on top."
    ]


def _counted(clients: int) -> str:
    return "1 client asks" if clients == 1 else f"{clients:,} clients ask"


def _beyond(case: Case[ArionScenario], figures: Figures) -> list[str]:
    """Say what becomes of a rate that clients cannot keep up: N clients at throughput X wait N / X."""
    carried, scenario = figures.analysis.drift_per_s, case.scenario
    if not figures.bounded or float(np.median(figures.peak_rate / carried)) < 1:
        return []
    rate, mean = (float(np.median(each)) for each in (carried, figures.latency_s("read", "mean")))
    alone = scenario.clients == 1
    each = "The client waits" if alone else f"Each of the {scenario.clients:,} clients waits"
    late = "it falls behind that rate" if alone else "they fall behind that rate and all of them wait"
    return [
        f"The offered rate is beyond what is carried, {rate:,.0f} per second. {each} for its answer before it asks "
        f"again, so {late}. Nothing is turned away: an answer takes {significant(mean * 1e3)} ms in the mean, clients "
        "over throughput, from when a client asks."
    ]


def _crowds(case: Case[ArionScenario]) -> str:
    """Say how long clients wait that ask again at once."""
    carried = closed_per_s(case.scenario, case.values, _CROWDS)
    means = np.median(_CROWDS / carried * 1e3, axis=0)
    times = ", ".join(f"{count:,} wait {mean:.2g} ms" for count, mean in zip(_CROWDS, means, strict=True))
    return f"Of clients of one master that ask again as soon as they are answered, {times} in the mean."


def _in_flight(case: Case[ArionScenario], figures: Figures) -> str:
    """Say how many requests are under way, by Little's law; at most one for each client that waits."""
    carried = np.minimum(figures.peak_rate, figures.analysis.drift_per_s)
    number = _draws(carried * figures.latency_s("read", "mean")) / case.scenario.servers
    if not np.all(np.isfinite(number)):
        return "Beyond what a master carries, requests pile up in it for as long as it lasts."
    flight, most = case.uncertainty.of_time(number, "read"), np.inf
    if figures.bounded:
        most = _clients_of_each(case.scenario)
    value, low, high = (to_digits(min(each, most), 2) for each in (flight.value, flight.low, flight.high))
    return f"At that rate about {value} requests of each master are under way ({low} to {high}): rate times mean time."


def _droop(case: Case[ArionScenario]) -> list[str]:
    """Say what the highest rate is, and what is carried whatever waits, where clients are enough for it."""
    if case.solution.bottleneck == "clients":
        return []
    scenario, values = case.scenario, case.values
    peak = case.uncertainty.of_rate(_draws(peak_per_s(scenario, values)))
    left = case.uncertainty.of_rate(carried_per_s(scenario, values))
    return [
        f"The masters peak at {peak.value:,.0f} per second. Whatever waits they carry {left.value:,.0f}: "
        f"with {LONG_QUEUE:,} requests inside each they droop by {DROOP:.0%} (a guess: the document says slightly, "
        "which may be 0 to 10 %)."
    ]


def _streams(case: Case[ArionScenario]) -> list[str]:
    if case.scenario.stream_messages > 1:
        return [
            "Streams: the document says only that they are much better than unary calls. That a message costs a tenth "
            "of a call is a guess, between 2.5 % (what a record of a watch takes) and half: the band is as wide. The "
            "wait of a message for others of its stream is left out."
        ]
    return [
        f"{_watch(case)} Streams of requests are said to be much better than these unary calls, without a figure: "
        f"--stream-messages {_STREAM} guesses how much."
    ]


def _watch(case: Case[ArionScenario]) -> str:
    values, told = case.values, []
    for words, direct in (("through a master", False), ("directly from Hazelcast", True)):
        seconds = np.quantile(_draws(watch_s(values, direct=direct)), [0.5, 0.05, 0.95])
        told.append(f"{seconds[0]:.2g} s {words} ({seconds[1]:.2g} to {seconds[2]:.2g})")
    return f"A watch of {RECORDS:,} records takes {' and '.join(told)}."


def _draws(value: object) -> FloatArray:
    return np.atleast_1d(np.asarray(value, dtype=float))


def outages(case: Case[ArionScenario], offered_tps: float) -> tuple[Outage, ...]:
    """Return what is left without one master: the data are in Hazelcast."""
    lost, scenario = {"master": 1}, case.scenario
    if scenario.servers == 1:
        return (Outage(lost, False, "it is the only one", Band.exactly(0.0), False),)
    fewer = case.system.solution(changed(scenario, servers=scenario.servers - 1), thinned(case.values), folded=True)
    capacity = case.uncertainty.of_rate(fewer.capacity)
    assumed = "its clients ask the others, evenly; Hazelcast has the data"
    return (Outage(lost, True, assumed, capacity, capacity.low >= offered_tps),)


class ArionNotes(Notes[ArionScenario]):
    """What a reader must know of `arion`."""

    rates = (
        "Rates are requests per second over all masters; latencies are those of a client, with the network, from when "
        "it asks."
    )
    accuracy = (
        "Without a simulation latencies are those of the closed form: within 2 % of one at 80 % of capacity; at 95 %, "
        "up to 16 % shorter where a master has about 24 clients."
    )

    def claims(self, scenario: ArionScenario) -> tuple[str, ...]:
        """Return what the document says without a measurement, to stand beside the prediction."""
        if scenario.servers == 1:
            return ()
        rows = by_id(self.evidence)
        ten, rate = int(rows["servers10.servers"].value), rows["servers10.capacity"].value
        alone = rows["peak.rps"].value
        return (
            f"The document says that {ten} masters carry more than {rate:,.0f} requests per second. It measured one; "
            f"the rest is multiplication. Hazelcast would have to serve {rate:,.0f}/s; {alone:,.0f} were seen. This "
            "prediction assumes that Hazelcast grows with the masters, as the document does.",
        )

    def notes(self, case: Case[ArionScenario], capacity: Capacity, figures: Figures) -> list[str]:
        """Return what depends on the layout; doubts about all of them stand in decision 0012, as the last note says."""
        del capacity
        unary = [] if case.scenario.stream_messages > 1 else [_useful(case), *_few(case)]
        return [
            *unary,
            *(_beyond(case, figures) or [_in_flight(case, figures)]),
            *_droop(case),
            *_streams(case),
            f"Guesses: a master works on {AT_ONCE} requests at once, the number that fits best, and their times are "
            "exponential, on which percentiles hang: the document has means. What bounds a master, whether Hazelcast "
            "or the load generator, is not said.",
        ]
