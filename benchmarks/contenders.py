"""Who takes part in what, with how many requests: enough for a second or so, since rates are compared."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

COMPILED = find_spec("capplan.simulator.compiled.engine") is not None
YARDSTICK = "SimPy by hand"
"""Ratios are against this contender, and runs of the flow must agree with it."""

QUICK = 4  # times fewer requests with --quick
QUICK_PARTS = ("mm4", "quorum", "flow_shared")


@dataclass(frozen=True)
class Contender:
    """A program that runs one model.

    Attributes
    ----------
    label : str
        Name in the tables.
    module, function : str
        What `child.py` calls.
    requests : int
        How many requests it simulates; solutions, for the analytic solver.
    group : str
        Dependency group that it needs; empty for the project's own environment.
    package : str
        Whose version is reported.
    quick : bool
        Whether it takes part in a quick run.
    """

    label: str
    module: str
    function: str
    requests: int
    group: str = ""
    package: str = "capplan"
    quick: bool = True

    @property
    def analytic(self) -> bool:
        """Whether it solves instead of simulating."""
        return self.function.endswith("_analytic")

    @property
    def exists(self) -> bool:
        """Whether it has been written yet."""
        return COMPILED or not self.function.endswith("_compiled")


def _simpy(label: str, module: str, function: str, requests: int) -> Contender:
    return Contender(label, module, function, requests, package="simpy")


def _capplan(label: str, function: str, requests: int) -> Contender:
    return Contender(f"capplan, {label}", "capplan_engines", function, requests)


MM4 = (
    _simpy(YARDSTICK, "peer_simpy", "mm4", 200_000),
    _simpy("SimPy by hand, callbacks", "peer_simpy", "mm4_fast", 400_000),
    Contender("Ciw", "peer_ciw", "mm4", 80_000, "bench", "ciw"),
    Contender("salabim, a component a customer", "peer_salabim", "mm4_customers", 20_000, "bench", "salabim", False),
    Contender("salabim, the same yieldless", "peer_salabim", "mm4_yieldless", 20_000, "bench", "salabim", False),
    Contender("salabim, a component a server", "peer_salabim", "mm4_servers", 200_000, "bench", "salabim"),
    Contender("Cimba", "peer_cimba", "mm4", 4_000_000, "bench", "cimba"),
    Contender("LINE, LDES", "peer_line", "mm4", 4_000_000, "oracle", "line-solver"),
    Contender("LINE, SSA", "peer_line", "mm4_ssa", 50_000, "oracle", "line-solver", False),
    _capplan("compiled", "mm4_compiled", 4_000_000),
    _capplan("simpy", "mm4_simpy", 100_000),
    _capplan("analytic", "mm4_analytic", 400),
)
QUORUM = (
    _simpy(YARDSTICK, "peer_simpy", "quorum", 50_000),
    _simpy("SimPy by hand, callbacks", "peer_simpy", "quorum_fast", 200_000),
    Contender("salabim, a component a server", "peer_salabim", "quorum", 80_000, "bench", "salabim", False),
    Contender("Cimba", "peer_cimba", "quorum", 2_000_000, "bench", "cimba", False),
    _capplan("compiled", "quorum_compiled", 2_000_000),
    _capplan("simpy", "quorum_simpy", 50_000),
)
FLOW_SHARED = (
    _simpy(YARDSTICK, "flow_simpy_plain", "shared", 60_000),
    _simpy("SimPy by hand, callbacks", "flow_simpy_fast", "shared", 120_000),
    _capplan("compiled", "shared_compiled", 200_000),
    _capplan("simpy", "shared_simpy", 10_000),
    _capplan("analytic", "shared_analytic", 40),
)
FLOW_QUEUED = (
    _simpy(YARDSTICK, "flow_simpy_plain", "queued", 60_000),
    _simpy("SimPy by hand, callbacks", "flow_simpy_fast", "queued", 120_000),
    _capplan("compiled", "queued_compiled", 200_000),
    _capplan("simpy", "queued_simpy", 10_000),
)
SECTIONS = {"mm4": MM4, "quorum": QUORUM, "flow_shared": FLOW_SHARED, "flow_queued": FLOW_QUEUED}

PRECISION = {
    "mm4": (
        Contender("capplan, one core", "capplan_precision", "mm4_one", 250_000),
        Contender("capplan, two cores", "capplan_precision", "mm4_two", 250_000),
        _simpy(YARDSTICK, "peer_simpy", "mm4_p99", 1_000_000),
        _simpy("SimPy by hand, callbacks", "peer_simpy", "mm4_fast_p99", 4_000_000),
        Contender("Ciw", "peer_ciw", "mm4_p99", 400_000, "bench", "ciw"),
        Contender("Cimba", "peer_cimba", "mm4", 40_000_000, "bench", "cimba"),
        Contender("LINE, LDES", "peer_line", "mm4", 20_000_000, "oracle", "line-solver"),
    ),
    "busy": (
        Contender("capplan, one core", "capplan_precision", "busy_one", 2_500_000),
        Contender("capplan, two cores", "capplan_precision", "busy_two", 2_500_000),
        _simpy(YARDSTICK, "peer_simpy", "busy_p99", 1_000_000),
        _simpy("SimPy by hand, callbacks", "peer_simpy", "busy_fast_p99", 4_000_000),
        Contender("Ciw", "peer_ciw", "busy_p99", 400_000, "bench", "ciw"),
        Contender("Cimba", "peer_cimba", "busy", 40_000_000, "bench", "cimba"),
        Contender("LINE, LDES", "peer_line", "busy", 20_000_000, "oracle", "line-solver"),
    ),
}
"""Who is timed until p99 is known. capplan's requests are those of one replication, others' the most they run."""


def lengths(mode: str) -> tuple[Contender, ...]:
    """Return the runs that show what a request costs, and how memory grows, with the number of requests."""
    few, some, many = 100_000, 1_000_000, 10_000_000
    compiled = {"quick": (few,), "normal": (few, some, many), "full": (few, some, many)}[mode]
    flow = {"quick": (), "normal": (few, some), "full": (few, some, many)}[mode]  # 10 million take minutes
    plain = {"quick": (few,), "normal": (few, some), "full": (few, some, many)}[mode]
    slow = {"quick": (), "normal": (), "full": (few,)}[mode]
    rows = [_capplan("compiled: M/M/4", "mm4_compiled", count) for count in compiled]
    rows += [_simpy(f"{YARDSTICK}: M/M/4", "peer_simpy", "mm4", count) for count in plain]
    rows += [_capplan("simpy: M/M/4", "mm4_simpy", count) for count in plain[:2]]
    rows += [_capplan("compiled: flow", "shared_compiled", count) for count in flow]
    rows += [_simpy(f"{YARDSTICK}: flow", "flow_simpy_plain", "shared", count) for count in slow]
    rows += [_capplan("simpy: flow", "shared_simpy", count) for count in slow]
    return tuple(row for row in rows if row.exists)


EXPERIMENTS = Contender("experiments", "capplan_experiments", "replications", 1_000_000)
"""One worker against two; so many requests a replication."""
