"""`outages`: what remains after a loss, the minutes around it, and whether the system recovers from retries.

Which consistency levels of reads and writes a loss leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from capplan.answers.number_words import significant
from capplan.answers.verdict import CONFIDENCE
from capplan.errors import CrowdedError, InputError, RefusedError
from capplan.layout.case import Case
from capplan.layout.components import Pauses
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.situations import DC, Loss, Losses, Remainder, losses_of
from capplan.layout.solution import LEVELS, Solution
from capplan.layout.system import System
from capplan.layout.table_system import table_of
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.cassandra.pauses import NO_PAUSES
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed, options_of
from capplan.models.language.step import FanOut, walk
from capplan.models.language.traffic import Closed, Timeline
from capplan.planner.outages.metastability import Load, RetryQuestion, Trigger, metastability, survival_of
from capplan.planner.outages.outages_answer import LevelAvailability, Metastability, OutagesAnswer, Transient
from capplan.planner.outages.places import (
    DRIVER,
    PATIENT,
    RADIUS,
    ClientOptions,
    Clients,
    Return,
    clients_of,
    places_named,
    places_of_loss,
    with_clients,
    with_workers_that_give_up,
)
from capplan.planner.outages.transient import Effort, SimulatedLoss, Times, transient
from capplan.planner.predict.predict import PredictionEngine, Question, predict_case
from capplan.planner.predict.simulated_latency import check_budget
from capplan.planner.simulate.simulate import of_network
from capplan.systems.registry import resolve

T = TypeVar("T")
FIELDS = {"read": "consistency_read", "write": "consistency_write"}
LOWEST = "LOCAL_ONE"


def levels_left(case: Case[Any], remainders: Sequence[Remainder]) -> tuple[LevelAvailability, ...]:
    """Return the consistency levels that work after each loss; nothing for a system without levels."""
    kind: type[Scenario] = type(case.scenario)
    if not set(FIELDS.values()) <= options_of(kind).keys():
        return ()
    asked = _operations(case)
    return tuple(
        LevelAvailability(
            each.name, **{name: _levels(case, loss_of(each), name) if name in asked else {} for name in FIELDS}
        )
        for each in _one_each(remainders)
    )


def _operations(case: Case[Any]) -> Collection[str]:
    """Return the operations in the traffic: all, unless the request classes tell reads and writes apart."""
    classes = case.system.classes(case.scenario)
    return classes if set(case.system.reported) == set(FIELDS) else tuple(FIELDS)


def loss_of(left: Remainder) -> Loss:
    """Return the loss behind a remainder."""
    if not left.lost_dcs:
        return Loss(left.lost)
    places = tuple(int(name.removeprefix("dc")) - 1 for name in left.lost_dcs)
    return Loss({word: count for word, count in left.lost.items() if word != DC}, places)


def _levels(case: Case[Any], loss: Loss, operation: str) -> dict[str, bool]:
    """Return whether an operation succeeds at each level; the other operation uses the lowest level."""
    found = {}
    for level in CONSISTENCY_LEVELS:
        fields = {**dict.fromkeys(FIELDS.values(), LOWEST), FIELDS[operation]: level}
        try:
            asked = replace(case, scenario=changed(case.scenario, **fields))
            found[level] = case.system.component(Losses).remainders(asked, (loss,))[0].solved is not None
        except InputError:
            continue  # the layout cannot have this level at all
    return found


Progress = Callable[[int, int], None]
"""Told how many of how many simulations have ended."""
DETECTION_S = 18.0
"""Time until Cassandra's failure detector convicts a silent node: phi = log10(e) * time / mean interval reaches the
default `phi_convict_threshold` of 8 after 18.4 mean intervals, and gossip comes every second (Hayashibara et al. 2004;
Cassandra's FailureDetector and Gossiper)."""
EVERYTHING = "all stations"


@dataclass(frozen=True)
class OutagesQuestion:
    """A question about outages.

    Attributes
    ----------
    lose : tuple of str
        What is lost at once, such as `node,dc2` (of a network: names of stations and hosts), one for each loss. Empty:
        what the system proposes, of which the first is simulated; all stations of a network.
    times : Times
        When a loss happens, how long it lasts, and how long the simulation goes on.
    how : Return
        How a loss is noticed, and how what was lost comes back.
    clients : ClientOptions
        When clients time out and try again, instead of the usual.
    within : float
        Tolerance of what counts as normal, as a share.
    effort : Effort
        Budget, seed and replications.
    engine : str
        What the latencies of the long run come from, as for `predict`.
    confidence : float
        Confidence of the verdict.
    triggers_s : tuple of float
        Lengths of triggers; empty: no table of recoveries.
    attempts : tuple of int
        Numbers of attempts of that table; empty: those of the clients.
    surge : float or None
        The trigger is a surge of the traffic by this factor instead of a loss.
    horizon_s : float or None
        Simulated time after a trigger; None: by rule, see `RetryQuestion`.
    processes : int
        How many replications run at a time; the answer does not depend on it.
    """

    lose: tuple[str, ...] = ()
    times: Times = field(default_factory=lambda: Times(20.0, 60.0, 40.0))
    how: Return = field(default_factory=lambda: Return(DETECTION_S))
    clients: ClientOptions = field(default_factory=ClientOptions)
    within: float = 0.1
    effort: Effort = field(default_factory=Effort)
    engine: PredictionEngine = "compiled"
    confidence: float = CONFIDENCE
    triggers_s: tuple[float, ...] = ()
    attempts: tuple[int, ...] = ()
    surge: float | None = None
    horizon_s: float | None = None
    processes: int = 1

    def check(self) -> None:
        """Check the question.

        Raises
        ------
        InputError
            If something makes no sense.
        """
        self.times.check()
        check_budget(self.effort.budget_s)
        if not 0 < self.within < 1:
            raise InputError(f"a tolerance of {self.within:g} is not a share above 0 and below 1: give one such as 10%")
        if self.surge is not None and not self.triggers_s:
            raise InputError(f"--surge {self.surge:g} is a trigger without a length: add --trigger, such as 1s..60s")
        if self.horizon_s is not None and not self.triggers_s:
            raise InputError("--horizon is the time after a trigger: add --trigger, such as 1s..60s")


def outages_of_scenario(
    scenario: Scenario,
    question: OutagesQuestion,
    fitted: Fitted | None = None,
    progress: Progress = lambda _done, _total: None,
) -> OutagesAnswer:
    """Answer for a layout of a system, at its offered rate or else at 80 % of its predicted capacity.

    Simulations have the parameters of the draw nearest to the median of the calibrated ensemble.

    Raises
    ------
    InputError
        If something in the question cannot be read, or the system has no outages.
    """
    question.check()
    case = resolve(scenario, fitted, question.effort.seed)
    its = case.system
    its_losses = its.component(Losses)
    if not its_losses.kinds:
        raise InputError(f"no outage of {its.name} is modelled: `capplan systems` lists what each system can lose")
    question = replace(question, lose=tuple(dict.fromkeys(question.lose)))
    losses = losses_of(question.lose, its_losses.kinds, getattr(scenario, "dcs", 1))
    prediction = predict_case(case, Question(question.engine, confidence=question.confidence, lose=question.lose))
    if prediction.offered is None:
        raise InputError(f"{its.name} has no offered rate at which something could be lost: give one with --tps")
    rate = prediction.offered.peak_tps
    remainders = its_losses.remainders(case.at(rate), losses)
    simulated, crowded = _unless_crowded(lambda: simulated_losses(case, rate, remainders, question, progress), question)
    network = its.network(scenario, its.median_values(case.fitted, scenario), rate)
    clients = clients_of(network, question.clients, _usual(its))
    found = None
    if question.triggers_s:
        lost, served = simulated[0][0], with_clients(network, question.clients, _usual(its))
        giving_up = with_workers_that_give_up(served, lost.places)
        found = _metastability(giving_up, question, clients, lost, _load(case.layout.middle, rate))
    transients = tuple(each for _, each in simulated)
    return OutagesAnswer(
        system=its.name,
        layout=prediction.layout,
        scenario=scenario.given(),
        verdict=prediction.verdict,
        recovers=not crowded and all(each.recovers for each in transients) and _always(found, clients),
        offered_tps=rate,
        offered_source=prediction.offered.source,
        mean_tps=prediction.offered.mean_tps,
        outages=prediction.outages,
        levels=levels_left(case, _one_each(remainders)),
        clients=clients,
        transients=transients,
        not_simulated=crowded,
        metastability=found,
        not_modelled=(*its.component(Notes).tails_not_modelled(scenario), *_not_simulated(its, scenario)),
        seed=question.effort.seed,
        version=version("capplan"),
    )


def _unless_crowded(simulations: Callable[[], list[T]], question: OutagesQuestion) -> tuple[list[T], str]:
    """Return simulations and an empty text; or none and why, if a load far above the capacity fills the memory."""
    try:
        return simulations(), ""
    except CrowdedError as error:
        if question.triggers_s:
            raise  # its simulations are as crowded
        return [], str(error)


def simulated_losses(
    case: Case[Any],
    rate: float,
    remainders: Sequence[Remainder],
    question: OutagesQuestion,
    progress: Progress = lambda _done, _total: None,
) -> list[tuple[SimulatedLoss, Transient]]:
    """Simulate the minutes around each loss, or only around the first one if the question names none.

    Parameters
    ----------
    case : Case
        The layout.
    rate : float
        Offered peak rate, requests per second.
    remainders : sequence of Remainder
        What each loss leaves.
    question : OutagesQuestion
        When it is lost, and how much to simulate.
    progress : function
        Told how many of how many simulations have ended.
    """
    its, firsts = case.system, _one_each(remainders)
    values = its.median_values(case.fitted, case.scenario)
    network = its.network(case.scenario, values, rate)
    simulated = firsts if question.lose else firsts[:1]
    found = []
    for number, each in enumerate(simulated):
        progress(number, len(simulated))
        places = places_of_loss(network, _left(remainders, each.name, values))
        loss = SimulatedLoss(each.name, places, question.how)
        before = with_clients(_asking_enough(network, each, values), question.clients, _usual(its))
        giving_up = with_workers_that_give_up(before, places)
        within = question.within
        found.append((loss, transient(giving_up, loss, question.times, question.effort, within, question.processes)))
    return found


def _usual(its: System[Any]) -> Clients:
    return RADIUS if table_of(its) is None else DRIVER


def _left(remainders: Sequence[Remainder], name: str, values: Values) -> Network | None:
    """Return the network after the loss of this name, with lower levels if necessary; None if nothing can serve."""
    solved = (each.solved for each in remainders if each.name == name and each.solved is not None)
    return next((each(values, None).network for each in solved), None)


def _not_simulated(its: System[Any], scenario: Scenario) -> tuple[str, ...]:
    """Return what percentiles over time leave out but long-run percentiles include."""
    never = its.component(Pauses).delays is None or getattr(scenario, "gc", None) == NO_PAUSES
    return () if never else ("GC pauses over time",)


def _asking_enough(network: Network, left: Remainder, values: Values) -> Network:
    """Return the network with requests that already contact as many replicas as they need after a loss.

    A flow asks a fixed number of replicas in each data centre. A quorum over data centres needs more of them elsewhere
    once some of its own are gone, and a coordinator then asks these. Flows cannot change in a run, so requests ask more
    from the start, and wait for as many answers as before: reads cost a little more until the loss. Flows that have
    lost a whole data centre cannot serve its clients before, and stay as they are.
    """
    if left.solved is None:
        return network
    after = left.solved(values, None).network
    same_places = [each.name for each in after.stations] == [each.name for each in network.stations]
    return replace(network, classes=after.classes) if same_places and _asked(after) != _asked(network) else network


def _asked(network: Network) -> list[int | None]:
    """Return how many members of a set each fan-out contacts."""
    return [step.contacted for each in network.classes for step in walk(each.flow) if isinstance(step, FanOut)]


def _one_each(remainders: Sequence[Remainder]) -> list[Remainder]:
    """Return the first remainder of each loss, the one at the requested levels."""
    return list({each.name: each for each in reversed(remainders)}.values())[::-1]


def outages_of_network(
    network: Network, question: OutagesQuestion, file: str, rate_per_s: float | None = None
) -> OutagesAnswer:
    """Answer for a user's own network, with the clients of its file.

    Raises
    ------
    InputError
        If something in the question cannot be read.
    """
    question.check()
    subject = of_network(network, rate_per_s)
    network = replace(subject.network, timeline=Timeline())
    clients = clients_of(network, question.clients, PATIENT)
    served = with_clients(network, question.clients, PATIENT)
    lost = [SimulatedLoss(text, places_named(network, text), question.how) for text in question.lose]
    lost = lost or [SimulatedLoss(EVERYTHING, tuple(each.name for each in network.stations), question.how)]
    found, simulated = None, lost if not question.triggers_s or question.lose else []

    def after(lost: SimulatedLoss) -> Transient:
        return transient(served, lost, question.times, question.effort, question.within, question.processes)

    transients, crowded = _unless_crowded(lambda: [after(each) for each in simulated], question)
    if question.triggers_s:
        found = _metastability(network, question, clients, lost[0], _load_of_network(network))
    return OutagesAnswer(
        system=network.name,
        layout=_in_words(network),
        scenario={"file": file},
        recovers=not crowded and all(each.recovers for each in transients) and _always(found, clients),
        offered_tps=subject.offered_tps,
        offered_source=subject.offered_source,
        mean_tps=subject.offered_tps,
        clients=clients,
        transients=tuple(transients),
        not_simulated=crowded,
        metastability=found,
        seed=question.effort.seed,
        version=version("capplan"),
    )


def _always(found: Metastability | None, clients: Clients) -> bool:
    """Whether no trigger keeps the network down with the attempts of these clients; true where none was simulated."""
    verdicts = () if found is None else found.verdicts
    return all(each.always for each in verdicts if each.attempts == clients.attempts)


def _in_words(network: Network) -> str:
    stations, classes = len(network.each_station), len(network.classes)
    return f"network of {stations} station{'s' * (stations != 1)} and {classes} request class{'es' * (classes != 1)}"


def _metastability(
    network: Network, question: OutagesQuestion, clients: Clients, lost: SimulatedLoss, load: Load
) -> Metastability:
    if question.surge is None:
        trigger = Trigger(f"{lost.name} down", question.triggers_s, lost.places, how=lost.how)
    else:
        words = f"{significant(question.surge)} times the traffic"
        trigger = Trigger(words, question.triggers_s, surge=question.surge)
    asked = RetryQuestion(
        trigger,
        question.attempts or (clients.attempts,),
        clients,
        ClientOptions(clients.timeout_s, None, clients.backoff_s, clients.backoff_factor),
        question.horizon_s,
        1 - question.within,
        question.effort,
        question.processes,
    )
    return metastability(network, asked, load)


def _load_of_network(network: Network) -> Load:
    if isinstance(network.traffic, Closed):
        return Load(None)
    rate = float(np.max(network.traffic.rate_per_s))
    plain = with_clients(network, ClientOptions(attempts=1), PATIENT)
    plain = replace(plain, classes=tuple(replace(each, timeout_s=None) for each in plain.classes))
    try:
        solution = Solution(plain, {each.name: (each.name,) for each in network.classes})
        _ = solution.capacity
    except (RefusedError, InputError):
        return Load(rate)
    return _load(solution, rate * float(solution.burst_ratio[0]))


def _load(solution: Solution, peak_per_s: float) -> Load:
    capacity = float(np.median(solution.capacity))

    def survival(time_s: float, rate_per_s: float) -> float:
        figures = solution.at(rate_per_s)
        each = [np.median(figures.latencies_s(name)[1:], axis=-1) for name in figures.asked]  # without the mean
        return max(survival_of(tuple(LEVELS.values()), times.tolist(), time_s) for times in each)

    return Load(peak_per_s, capacity, survival)
