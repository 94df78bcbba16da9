"""What a prediction tells of encrypted links, on any system with Cassandra."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from capplan.calibration.about import Case, Outside
from capplan.calibration.case.solution import Layout
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed
from capplan.systems.components.encryption_costs import values_of
from capplan.systems.openprovider.outages import thinned

_DISTANCE = 1.0
"""Doublings, of encrypted links: a guess, and enough to be far."""
_LINKS: Mapping[str, str] = {
    "client": "encrypted client links",
    "internode": "encrypted links between nodes",
    "client+internode": "encrypted client links and links between nodes",
}
_SPACES: Mapping[str | None, str] = {None: "user space", "user": "user space", "kernel": "the kernel"}


def encryption_outside(scenario: Any) -> Outside:
    """Return how far encrypted links put a layout outside: no load test of these systems had any."""
    if scenario.encryption is None:
        return ()
    words = f"{_LINKS[scenario.encryption]}: no load test had them, and a test of 2011 bounds what they cost"
    return ((_DISTANCE, words),)


def without_encryption(scenario: Any) -> Scenario | None:
    """Return an encrypted layout without encryption, which carries as much or more; None where none is encrypted."""
    plain: Scenario = changed(scenario, encryption=None, vpn=None)
    return None if scenario.encryption is None else plain


def encryption_notes(case: Case) -> list[str]:
    """Return what the capacity is at the full cost of 2011, and without encryption."""
    scenario = case.scenario
    if scenario.encryption is None:
        return []
    judged = ", by loss and backlog alone" if scenario.slo else ""
    full = _median_capacity(scenario, values_of(case.fitted, scenario, full=True))
    without = _median_capacity(changed(scenario, encryption=None, vpn=None), case.fitted.values())
    return [
        f"Encryption in {_SPACES[scenario.vpn]} is taken to cost between nothing and what it did on machines of 2011 "
        "(capplan predict vcider), any part of that alike: a guess, since processors have had instructions for AES "
        f"ever since. At that full cost the layout carries about {full:,.0f} TPS, without encryption {without:,.0f}"
        f"{judged}. The band of the capacity ends at most where it does without encryption.",
        "The cost of a message was measured in operations of that test's clusters, and is scaled by what an operation "
        "costs here; both ends of a link work alike on each message. No latency under encryption was measured: what "
        "it adds to latencies is derived from ratios of throughput.",
    ]


def _median_capacity(scenario: Any, values: Values) -> float:
    return round(float(np.median(Layout(scenario, thinned(values), folded=True).capacity)), -1)
