"""Notes on a prediction of `arion`, and what remains after an outage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from capplan.answers.number_words import significant, to_digits
from capplan.answers.results import Band
from capplan.evidence.table import by_id
from capplan.layout.case import Case
from capplan.layout.extrapolation import Excess
from capplan.layout.notes import Notes
from capplan.layout.observations import LoadTest
from capplan.layout.situations import Loss, Remainder
from capplan.layout.solution import Figures
from capplan.models.language.units import FloatArray
from capplan.systems.arion.network import (
    AT_ONCE,
    DROOP,
    LONG_QUEUE,
    RECORDS,
    closed_per_s,
    drooped_per_s,
    peak_per_s,
    sustained_per_s,
    useful_clients,
    watch_s,
)
from capplan.systems.arion.scenario import ArionScenario
from capplan.systems.components.losses import without_machines

_STREAM = 1000  # messages of each stream of the document's test
_STREAMED = 2.0  # doublings, of streaming: no figure of it is in the text
_CROWDS = (30, 100, 300, 1000)  # clients that ask again at once, for a note
_COMMON_RPS = 30.0  # of each client, as the document has it for a cluster


def excess(scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
    """Return how far a layout lies outside the tested range in clients per master and in streaming."""
    each, measured = _clients_of_each(scenario), max(_clients_of_each(test.scenario) for test in tests)
    found: list[Excess] = []
    if each > measured:
        words = f"{each:,.0f} clients of each master: none measured above {measured:,.0f}"
        found.append(Excess(math.log2(each / measured), words))
    if scenario.stream_messages > 1:
        words = f"{scenario.stream_messages:,} requests share a stream: no figure for streams is documented"
        found.append(Excess(_STREAMED, words))
    return found


def excess_of_rates(scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
    """Return how far it lies outside in having few clients: they limit the rate, but unloaded times were measured."""
    each, measured = _clients_of_each(scenario), min(_clients_of_each(test.scenario) for test in tests)
    if each >= measured:
        return ()
    words = f"{each:.3g} client{'s' if each != 1 else ''} of each master: none measured below {measured:,.0f}"
    return (Excess(math.log2(measured / each), words),)


def _clients_of_each(scenario: ArionScenario) -> float:
    return scenario.clients / scenario.servers


def _useful(case: Case[ArionScenario]) -> str:
    """Return the number of clients above which throughput stops growing, in words."""
    scenario, values = case.scenario, case.values
    sure = case.system.uncertainty(
        case.fitted, scenario, case.uncertainty.seed
    )  # as sure as for the one master that was measured
    many = sure.of_time(useful_clients(scenario, values))  # over the rate that they make it is a time
    rate = float(scenario.rps_per_client or _COMMON_RPS)
    paced = sure.of_rate(_draws(drooped_per_s(scenario, values) / scenario.servers / rate))
    return (
        f"More clients stop raising throughput at about {many.value:.0f} per master ({many.low:.0f} to "
        f"{many.high:.0f}) if each asks again as soon as it has its answer, and at about {paced.value:,.0f} "
        f"({paced.low:,.0f} to {paced.high:,.0f}) if each asks {rate:g} times a second. {_crowds(case)}"
    )


def _few(case: Case[ArionScenario]) -> list[str]:
    scenario: ArionScenario = case.scenario
    values = case.values
    if case.solution.bottleneck != "clients":
        return []
    bound = case.uncertainty.of_rate(sustained_per_s(scenario, values))
    return [
        f"A client waits for its answer before it asks again, so {_counted(scenario.clients)} at most "
        f"{bound.value:,.0f} times a second. Delay behind a client's own schedule comes on top of the latency."
    ]


def _counted(clients: int) -> str:
    return "1 client asks" if clients == 1 else f"{clients:,} clients ask"


def _beyond(case: Case[ArionScenario], figures: Figures) -> list[str]:
    """Return what happens at a rate above the clients' limit: N clients at throughput X wait N / X."""
    sustained, scenario = figures.analysis.drift_per_s, case.scenario
    if not figures.bounded or float(np.median(figures.peak_rate / sustained)) < 1:
        return []
    rate, mean = (float(np.median(each)) for each in (sustained, figures.latency_s("read", "mean")))
    alone = scenario.clients == 1
    late = "the client falls behind" if alone else f"the {scenario.clients:,} clients fall behind, and all of them wait"
    return [
        f"The offered rate exceeds the sustained {rate:,.0f} per second, so {late}. No request is dropped: "
        f"the mean response time is {significant(mean * 1e3)} ms (clients over throughput), counted from when a client "
        "asks."
    ]


def _crowds(case: Case[ArionScenario]) -> str:
    """Return in words how long clients without think time wait."""
    sustained = closed_per_s(case.scenario, case.values, _CROWDS)
    means = np.median(_CROWDS / sustained * 1e3, axis=0)
    times = ", ".join(f"{count:,} clients {mean:.2g} ms" for count, mean in zip(_CROWDS, means, strict=True))
    return f"Clients of one master that ask again at once wait, on average: {times}."


def _in_flight(case: Case[ArionScenario], figures: Figures) -> str:
    """Return in words how many requests are in flight, by Little's law; at most one per waiting client."""
    sustained = np.minimum(figures.peak_rate, figures.analysis.drift_per_s)
    number = _draws(sustained * figures.latency_s("read", "mean")) / case.scenario.servers
    if not np.all(np.isfinite(number)):
        return "The offered rate exceeds a master's capacity: its queue grows without bound."
    flight, most = case.uncertainty.of_time(number, "read"), np.inf
    if figures.bounded:
        most = _clients_of_each(case.scenario)
    value, low, high = (to_digits(min(each, most), 2) for each in (flight.value, flight.low, flight.high))
    return f"At the offered rate about {value} requests are in flight per master ({low} to {high}), by Little's law."


def _droop(case: Case[ArionScenario]) -> list[str]:
    """Return the peak rate and the rate sustained under any backlog, if clients can saturate the masters."""
    if case.solution.bottleneck == "clients":
        return []
    scenario, values = case.scenario, case.values
    peak = case.uncertainty.of_rate(_draws(peak_per_s(scenario, values)))
    left = case.uncertainty.of_rate(sustained_per_s(scenario, values))
    return [
        f"The masters peak at {peak.value:,.0f} requests per second. Under any backlog they sustain {left.value:,.0f}: "
        f"with {LONG_QUEUE:,} requests queued in each, throughput droops by {DROOP:.0%} (a guess: the document says "
        "slightly, which may be 0 to 10 %)."
    ]


def _streams(case: Case[ArionScenario]) -> list[str]:
    if case.scenario.stream_messages > 1:
        return [
            "Streams: the document says only that they are much better than unary calls. A message is assumed to cost "
            "a tenth of a call, a guess between 2.5 % (a record of a watch) and half; the band covers that range. The "
            "wait of a message for others of its stream is not modelled."
        ]
    return [
        f"{_watch(case)} The document calls streams of requests much better than these unary calls, without a figure; "
        f"--stream-messages {_STREAM} estimates by how much."
    ]


def _watch(case: Case[ArionScenario]) -> str:
    values, times = case.values, []
    for words, direct in (("through a master", False), ("directly from Hazelcast", True)):
        seconds = np.quantile(_draws(watch_s(values, direct=direct)), [0.5, 0.05, 0.95])
        times.append(f"{seconds[0]:.2g} s {words} ({seconds[1]:.2g} to {seconds[2]:.2g})")
    return f"A watch of {RECORDS:,} records takes {' and '.join(times)}."


def _draws(value: object) -> FloatArray:
    return np.atleast_1d(np.asarray(value, dtype=float))


def outages(case: Case[ArionScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what remains without some masters, by default one: the data are in Hazelcast."""
    return without_machines(
        case, losses, "master", "servers", "its clients ask the others, evenly; Hazelcast has the data"
    )


def counted(number: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _resource_names(scenario: ArionScenario) -> Mapping[str, str]:
    return {"clients": counted(scenario.clients, "client"), "master": counted(scenario.servers, "master")}


def _claims(case: Case[ArionScenario]) -> tuple[str, ...]:
    """Return what the document states without a measurement, to show beside the prediction."""
    scenario = case.scenario
    if scenario.servers == 1:
        return ()
    rows = by_id(case.system.evidence)
    ten, rate = int(rows["servers10.servers"].value), rows["servers10.capacity"].value
    alone = rows["peak.rps"].value
    return (
        f"The document says that {ten} masters sustain more than {rate:,.0f} requests per second. It measured one "
        f"and multiplied. Hazelcast would have to serve {rate:,.0f}/s; {alone:,.0f} were measured. Like the "
        "document, this prediction assumes that Hazelcast scales with the masters.",
    )


def _cautions(case: Case[ArionScenario], _capacity: Band, figures: Figures) -> list[str]:
    """Return warnings that clients limit the rate, or that they fall behind a rate that is too high."""
    return [*(_few(case) if case.scenario.stream_messages == 1 else []), *_beyond(case, figures)]


def _further(case: Case[ArionScenario], _capacity: Band, figures: Figures) -> list[str]:
    """Return notes that depend on the layout; decision 0012 lists doubts about all layouts."""
    unary = [] if case.scenario.stream_messages > 1 else [_useful(case)]
    return [
        *unary,
        *([] if _beyond(case, figures) else [_in_flight(case, figures)]),
        *_droop(case),
        *_streams(case),
        f"Guesses: a master serves {AT_ONCE} requests at once, the number that fits best, and service times are "
        "exponential, which determines percentiles, since the document has means. The document does not say what "
        "limits a master: Hazelcast or the load generator.",
    ]


NOTES = Notes(
    rates=(
        "Rates are requests per second over all masters; latencies are those of a client, including the network, from "
        "when it asks."
    ),
    accuracy=(
        "Analytic latencies come from a closed form: within 2 % of simulation at 80 % of capacity, and at 95 % up to "
        "16 % shorter where a master has about 24 clients."
    ),
    claims=_claims,
    cautions=_cautions,
    further=_further,
    resource_names=_resource_names,
    tails_not_modelled=lambda _: ("GC pauses", "repartitioning of Hazelcast"),
)
