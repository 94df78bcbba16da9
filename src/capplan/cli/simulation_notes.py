"""What a reader of a simulation must know, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capplan.planner.simulate.parts import PrecisionReached
from capplan.planner.simulate.simulation import EVERY_CLASS, Simulation
from capplan.systems.registry import system

LOW_DROP_RATE = 0.001  # share of the requests; it is what a capacity allows


def notes(simulation: Simulation) -> Iterator[str]:
    """Yield the sentences that stand below the tables."""
    if simulation.scenario is None:
        yield "One set of parameters, as the file has them: nothing here says how sure they are."
    else:
        yield "One set of parameters, the calibrated median: `capplan predict` says how sure they are."
    yield _intervals(simulation)
    overloaded = simulation.backlog is not None and simulation.backlog.verdict == "overloaded"
    if not simulation.settled and not overloaded:
        yield "The warm-up may reach beyond what was left out: MSER found no end of it. Simulate longer (--duration)."
    if simulation.backlog is not None and simulation.backlog.verdict != "steady":
        yield _overload(simulation.backlog.verdict)
    if overloaded and _clients_wait(simulation):
        yield (
            "Simulated is a rate that nothing holds back. The clients of this layout wait for their answers, so they "
            "would fall behind it: `capplan predict` says how long they then wait."
        )
    lost = simulation.classes[EVERY_CLASS].drop_rate.value
    if lost > LOW_DROP_RATE:
        yield (
            f"{lost:.1%}".replace("%", " %") + " of the requests were turned away or given up: more comes than is"
            " carried, and latencies are of the rest. A lost request ends its session, whose others never come."
        )
    if simulation.controls:
        yield _controls(simulation)
    if simulation.precision is not None:
        yield _precision(simulation, simulation.precision)


def _intervals(simulation: Simulation) -> str:
    count = simulation.replications
    if simulation.horizon == "finite":
        if count == 1:
            return "One replication of a finite time has no interval: give --replications 10 or so."
        return (
            f"Figures are means over {count} replications of what such a run measures, its longest latency too; "
            "± is the half-width of the 95 % interval."
        )
    if count >= 5:
        return (
            f"± is the half-width of the 95 % interval between the {count} replications. The longest latency is what "
            "was seen, and has none."
        )
    return (
        "± is the half-width of the 95 % interval, from batches of the time simulated; where it is missing there was "
        "too little to tell. The longest latency is what was seen, and has none."
    )


def _clients_wait(simulation: Simulation) -> bool:
    told = simulation.scenario
    if told is None:
        return False
    its = system(told["system"])
    return its.bounded(its.scenario(**told))


def _overload(verdict: str) -> str:
    if verdict == "overloaded":
        return (
            "More comes than is carried: there is no steady state, and latencies and queues are those of the time "
            "simulated. They grow with it."
        )
    return "Whether the backlog grows without end cannot be told from so short a time: simulate longer (--duration)."


def _controls(simulation: Simulation) -> str:
    latency = simulation.classes[EVERY_CLASS].latency_ms.intended
    ratios = {"mean": latency.mean.variance_ratio, "p99": latency.p99.variance_ratio}
    if latency.mean.variance_ratio is None:
        return "No latency was there to be corrected by control variates."
    shown = ", ".join(f"{ratio:.2f} ({name})" for name, ratio in ratios.items() if ratio is not None)
    return (
        f"Latencies are corrected for what is known exactly ({' and '.join(simulation.controls)}): their variance is "
        f"that without the correction times {shown}."
    )


def _precision(simulation: Simulation, wish: PrecisionReached) -> str:
    name, runs = wish.asked.partition("<")[0].strip(), simulation.replications
    known = "is known to " + f"{wish.relative:.2%}".replace("%", " %")
    if not math.isfinite(wish.relative):
        known = "has no interval"
    if wish.reached:
        return f"Asked for {wish.asked}: {name} {known} after {runs} replications."
    if simulation.backlog is not None and simulation.backlog.verdict == "overloaded":
        return f"Asked for {wish.asked}, given up after {runs} replications: more of them would not help an overload."
    return f"Asked for {wish.asked}, not reached: {name} {known} after {runs} replications. Allow more, or longer ones."
