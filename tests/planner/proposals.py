"""Proposals for tests: small ones, solved without a simulation."""

from functools import cache
from typing import Any

from capplan.models.language.scenario import changed
from capplan.planner.proposal.details import Details
from capplan.planner.proposal.proposal import Proposal
from capplan.planner.proposal.propose import ProposalQuestion, propose
from capplan.planner.size.prices import Prices
from capplan.planner.size.size import SizingQuestion
from capplan.simulator.experiments.workers import in_process
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
        prices=Prices("EUR", {"node": 900.0}),
        engine="analytic",
    )
    return ProposalQuestion(
        Details(customer, "Archive", date="2026-11-22"), base, sizing, None, "capplan proposal fedora4"
    )


@cache
def small(customer: str = "Example Ltd") -> Proposal:
    """Return a proposal."""
    with in_process() as workers:
        return propose(question(customer=customer), workers)
