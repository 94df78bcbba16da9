"""Proposals for tests: small ones, solved without a simulation."""

from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

from tests.systems.prior_draws import prior_draws

from capplan.calibration.tables.backtest import Accuracy
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import Fitted
from capplan.models.language.scenario import changed
from capplan.planner.demand.demand import Between, BusyHour, Data, Demand
from capplan.planner.next_test import AskedFigure, CandidateTest, NextTest
from capplan.planner.proposal.details import Details
from capplan.planner.proposal.proposal import Proposal, UnseenRows
from capplan.planner.proposal.propose import ProposalQuestion, propose
from capplan.planner.size.machines import Prices, Shape, Shapes
from capplan.planner.size.size import SizingQuestion
from capplan.simulator.workers import in_process
from capplan.systems.cassandra import SYSTEM as CASSANDRA
from capplan.systems.registry import scenario

HOSTILE = '=1+1"; <script>alert(1)</script> #panic("typst") $x$ *b* {{7*7}} @SUM(A1) & Söhne 100%'


def question(name: str = "fedora4", customer: str = "Example Ltd", **fields: Any) -> ProposalQuestion:
    """Return a question that takes a second to answer."""
    base = changed(scenario(name), **{"tps": 300.0, "slo": ("read.p95<80ms",), **fields})
    sizing = SizingQuestion(
        survive=("node",),
        growth_per_year=0.2,
        years=2.0,
        sized={"nodes": (1, 9)},
        prices=Prices("EUR", {"node": 900.0}, "year"),
        engine="analytic",
    )
    return ProposalQuestion(
        Details(customer, "Archive", date="2026-11-22"), base, sizing, None, "capplan proposal fedora4"
    )


@cache
def with_unseen_rows() -> Proposal:
    """Return a small proposal with a made-up backtest of load tests and a next one."""
    scores = dict.fromkeys(("throughput_tps", "latency_p99_ms"), Accuracy(3, 0.04, 1.1, 2, "usl", 0.01, 0.04))
    unseen = UnseenRows("the 2 highest loads", scores, ("The fitted rows do not determine 1 of 7 figures: a reason.",))
    figure = AskedFigure("read.p95", "ms", 20.0, 11.0, 40.0, "read.p95<80ms", 0.9)
    best = CandidateTest({"nodes": 3}, "128 clients", True, None, 4.5, 15.0, 27.0, 0.3, 0.07, 0.2, 0.04)
    test = NextTest("fedora4", "3 nodes", "decision", True, figure, (best,), ())
    proposal = small()
    return replace(proposal, evidence=replace(proposal.evidence, unseen=unseen, next_test=test))


def _without_a_fit(its: Any, rows: Any, seed: int) -> Fitted:
    del seed
    return prior_draws(its, rows)


@cache
def of_a_table() -> Proposal:
    """Return a proposal of a cluster that is fitted to load tests; refits are draws from the priors."""
    usual = LoadTestRow(rf=3, read_fraction=0.0, load_kind="closed", throughput_tps=9000.0, latency_p99_ms=9.0)
    rows = [replace(usual, cass_nodes=nodes, clients=clients) for nodes in (3, 6) for clients in (8, 64)]
    base = CASSANDRA.scenario(cass_nodes=6, read_fraction=0.0, tps=20_000.0, slo=("write.p99<50ms",))
    sizing = SizingQuestion(growth_per_year=0.2, years=2.0, sized={"cass_nodes": (3, 6)}, engine="analytic")
    asked = ProposalQuestion(
        Details("Example Ltd", "Store", date="2026-11-22"), base, sizing, prior_draws(CASSANDRA, rows)
    )
    with patch("capplan.planner.proposal.evidence.fit_table", _without_a_fit):
        return propose(asked)


@cache
def for_subscribers() -> Proposal:
    """Return a proposal of cells of chosen shapes for a demand."""
    demand = Demand(
        subscribers=1e6,
        busy_hour=BusyHour(sessions=0.6, length_s=3000.0),
        growth=Between(0.1, 0.2),
        years=2.0,
        data=Data(row_bytes=Between(700.0, 700.0), retention_s=30 * 86_400.0),
    )
    shapes = Shapes(
        currency="EUR",
        period="year",
        shapes={
            "node": {"small": Shape(cores=8, price=900.0, disk_gib=500.0)},
            "front": {"plain": Shape(cores=16, price=700.0)},
        },
    )
    sizing = SizingQuestion(
        sized={"cass_nodes": (3, 9), "front_nodes": (1, 2)},
        families={"dcs": (1,)},
        shapes=shapes,
        cells=(2,),
        demand=demand,
        engine="analytic",
    )
    return propose(ProposalQuestion(Details("Example Ltd"), scenario("openprovider"), sizing))


@cache
def small(customer: str = "Example Ltd") -> Proposal:
    """Return a proposal."""
    with in_process() as workers:
        return propose(question(customer=customer), workers)
