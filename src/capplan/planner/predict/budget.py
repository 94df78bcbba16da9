"""How much is simulated for a budget of seconds: a rule without a clock, so the same budget gives the same figures.

A budget is seconds of a nominal machine: two threads that each simulate a visit to a station in 200 ns (compiled
engine), and 20 us to lower a step of the network's flows. Of what is left after lowering, requests follow, and of
those the number of draws: the square root of a 5,000th of them, so that with more budget there are more draws and
longer runs. At the least, six draws of 4,000 requests each are simulated, whatever the budget. Near the capacity and
beyond it, queues take longer to settle, and runs are twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.step import Step, children
from capplan.simulator.engine import Engine

LONGEST_BUDGET_S = 3600.0
FEWEST_DRAWS = 6  # Student's t of five degrees of freedom is a quarter wider than the normal law
FEWEST_REQUESTS = 4_000
_THREADS: dict[Engine, int] = {"compiled": 2, "simpy": 1}
_VISIT_S: dict[Engine, float] = {"compiled": 200e-9, "simpy": 20e-6}
_STEP_S: dict[Engine, float] = {"compiled": 20e-6, "simpy": 0.0}  # SimPy's compiling is small beside its running
_PER_DRAW = 5_000  # requests for the first draw; for each further one twice as many as for the one before, and so on


@dataclass(frozen=True)
class Effort:
    """How many draws are simulated, and how many requests are measured in each."""

    draws: int
    requests: int


def check_budget(budget_s: float) -> None:
    """Check a budget of seconds.

    Raises
    ------
    InputError
        When it is not above 0 and at most an hour.
    """
    if not 0 < budget_s <= LONGEST_BUDGET_S:
        raise InputError(f"a budget of {budget_s:g} s is out of range: give more than 0 and at most 1h, such as '2s'")


def effort(budget_s: float, network: Network, visits: float, warmup: float, engine: Engine) -> Effort:
    """Return how many draws and requests a budget pays for.

    Parameters
    ----------
    budget_s : float
        Seconds of the nominal machine.
    network : Network
        What is simulated.
    visits : float
        Mean number of visits of a request to stations.
    warmup : float
        Requests of each draw that are not measured.
    engine : str
        Which engine simulates.
    """
    left_s = budget_s - _STEP_S[engine] * steps(network)
    requests = max(0.0, left_s) * _THREADS[engine] / (_VISIT_S[engine] * visits)
    draws = max(FEWEST_DRAWS, round((requests / _PER_DRAW) ** 0.5))
    return Effort(draws, max(FEWEST_REQUESTS, int(requests / draws - warmup)))


def requests_at_a_rate(budget_s: float, visits: float, engine: Engine) -> int:
    """Return how many requests of a network are simulated at one rate, in all replications together.

    Parameters
    ----------
    budget_s : float
        Seconds of the nominal machine.
    visits : float
        Mean number of visits of a request to stations.
    engine : str
        Which engine simulates.
    """
    return max(FEWEST_DRAWS * FEWEST_REQUESTS, int(budget_s * _THREADS[engine] / (_VISIT_S[engine] * visits)))


def cost_s(size: Effort, visits: float, engine: Engine) -> float:
    """Return what as many requests measured as not measured cost, seconds of the nominal machine; see `effort`."""
    return 2 * size.draws * size.requests * visits * _VISIT_S[engine] / _THREADS[engine]


def steps(network: Network) -> int:
    """Return the number of steps of a network's flows; what stands at several places counts at each."""
    counted: dict[int, int] = {}
    return sum(_steps(request.flow, counted) for request in network.classes)


def _steps(step: Step, counted: dict[int, int]) -> int:
    if id(step) not in counted:
        counted[id(step)] = 1 + sum(_steps(child, counted) for child in children(step))
    return counted[id(step)]
