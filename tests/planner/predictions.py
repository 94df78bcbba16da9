"""A handmade prediction with one of everything in the contract, and predictions that all tests share."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

from capplan.answers.objective import parse
from capplan.answers.results import Band, Capacity, Latency, Outage, Parts, SessionNotFound
from capplan.answers.verdict import answer
from capplan.layout.fitted_file import Fitted
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.planner.predict.prediction import (
    EvidenceSummary,
    Limit,
    Offered,
    OfferedSource,
    Prediction,
    judged_by_bands,
)
from capplan.systems.registry import scenario, system


def band(value: float, low: float, high: float) -> Band:
    return Band(value, low, high, Parts(parameter=(high - low) / 2))


def latency(mean: float) -> Latency:
    factors = {"mean": 1.0, "p50": 0.9, "p90": 1.7, "p95": 2.2, "p99": 3.6, "p999": 6.1}
    return Latency(**{name: band(mean * x, mean * x * 0.8, mean * x * 1.6) for name, x in factors.items()})


OBJECTIVES = ("acct.p99<20ms", "auth.mean<=5ms and cassandra.utilisation<80%", "drop_rate<0.1%")
SESSIONS = (
    SessionNotFound("LOCAL_QUORUM", "QUORUM", 1.6304, 0.0, band(0.031, 0.0204, 0.05)),
    SessionNotFound("LOCAL_QUORUM", "QUORUM", 1.6304, 0.5, band(0.0016, 0.0005, 0.0035)),
    SessionNotFound("LOCAL_QUORUM", "QUORUM", 1.6304, 5.0, band(0.0, 0.0, 1e-4)),
    SessionNotFound("LOCAL_QUORUM", "EACH_QUORUM", 1.6304, 0.0, Band.exactly(0.0)),
    SessionNotFound("LOCAL_QUORUM", "EACH_QUORUM", 1.6304, 0.5, Band.exactly(0.0)),
    SessionNotFound("LOCAL_QUORUM", "EACH_QUORUM", 1.6304, 5.0, Band.exactly(0.0)),
)
EVIDENCE = EvidenceSummary(
    sources=("OpenProvider performance tests, the part with the results (vendor blog post).",),
    basis="extrapolated",
    why="Every measured layout had 3 Cassandra nodes in each data centre; 6 were never tried.",
    claims=("The document expects capacity to grow linearly with the Cassandra nodes: 21,000 TPS.",),
    cautions=("Older data makes Cassandra slower.",),
    notes=("The RADIUS servers was never saturated: its capacity is a lower bound.",),
)


def offered(peak: float, *, source: OfferedSource = "default", risk: float = 0.2) -> Offered:
    return Offered(
        peak_tps=peak,
        mean_tps=peak / 1.12,
        source=source,
        overload_risk=risk,
        throughput_tps=Band.exactly(peak / 1.12),
        drop_rate=Band.exactly(0.0),
    )


def outage(name: str, lost: dict[str, int], capacity: Band | None, risk: float, **more: Any) -> Outage:
    """Return an outage; without a capacity, no request succeeds."""
    figures: dict[str, Any] = {
        "assumed": "reads LOCAL_QUORUM, writes EACH_QUORUM",
        "available": capacity is not None,
        "latency_ms": {} if capacity is None else {"auth": latency(4.5), "acct": latency(7.0)},
        "utilisation": {} if capacity is None else {"cassandra": band(0.86, 0.6, 1.0)},
        "capacity_tps": capacity or Band.exactly(0.0),
        **more,
    }
    return Outage(name=name, lost=lost, risk=risk, answer=answer(risk), **figures)


def offered_tps(made: Prediction) -> float:
    assert made.offered is not None
    return made.offered.peak_tps


def prediction(**changed: Any) -> Prediction:
    fields: dict[str, Any] = {
        "system": "openprovider",
        "layout": "3 DCs x 6 nodes, RF 3",
        "scenario": {
            "system": "openprovider",
            "dcs": 3,
            "cass_nodes": 6,
            "rf": 3,
            "front_nodes": 2,
            "ldap": False,
            "rtt": "1.5ms",
        },
        "capacity": Capacity(
            peak_tps=Band(17432.6, 12010.4, 24020.9, Parts(parameter=5200.0, simulation=41.0), "extrapolated"),
            mean_tps=band(15564.8, 10723.6, 21447.2),
            overload_tps=band(17432.6, 12010.4, 24020.9),
            burst_ratio=band(1.12, 1.05, 1.2),
            criterion="loss below 0.1 %, no drift",
        ),
        "limits": (
            Limit("cassandra", "node CPU", False, band(1.0, 1.0, 1.0)),
            Limit("front", "RADIUS server CPU", True, band(0.26, 0.22, 0.32)),
        ),
        "offered": offered(13946.1),
        "latency_ms": {"auth": latency(4.02), "acct": latency(6.05)},
        "utilisation": {"cassandra": band(0.8, 0.58, 1.0), "front": band(0.21, 0.18, 0.26)},
        "busy_workers": {"front": band(13.4, 10.2, 17.9)},
        "tails_not_modelled": ("GC pauses", "hints"),
        "outages": (
            outage("1 node/DC", {"node": 1}, band(15210.0, 10300.0, 21800.0), 0.3),
            outage("1 DC", {"dc": 1}, None, 1.0, assumed="unavailable at EACH_QUORUM"),
            outage(
                "1 DC",
                {"dc": 1},
                band(17000.0, 14800.0, 20100.0),
                0.01,
                assumed="writes at QUORUM",
                lowered={"write": "QUORUM"},
                cost="confirmed by 5 replicas, not 6; reads still find them",
            ),
        ),
        "session_not_found": SESSIONS,
        "evidence": EVIDENCE,
        "engine": "analytic",
        "seed": 1,
        "version": "0.1.0",
        **changed,
    }
    made = Prediction(**fields)
    if made.objectives or made.verdict is not None:
        return made
    return judged_by_bands(made, [parse(text) for text in OBJECTIVES], made.figure)


@cache
def predicted(name: str = "openprovider", engine: PredictionEngine = "analytic", **fields: Any) -> Prediction:
    """Predict a layout once for all tests."""
    return predict(scenario(name, **fields), engine=engine)


@cache
def few_draws(name: str = "openprovider") -> Fitted:
    """Return the packaged calibration with every eighth draw, for laws that hold for any draws."""
    fitted = system(name).fitted()
    return replace(fitted, draws=fitted.draws[::8])


UNBOUNDED = Band(math.inf, 30.0, math.inf)
