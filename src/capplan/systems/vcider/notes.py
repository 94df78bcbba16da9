"""Notes on a prediction of `vcider`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capplan.layout.case import Case
from capplan.layout.extrapolation import Excess
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.observations import LoadTest
from capplan.systems.vcider.network import COLUMNS
from capplan.systems.vcider.scenario import VciderScenario

_IN_WORDS = {
    "same": "the same links",
    "all": "all links",
    "none": "no links",
}
_FITTED = VciderScenario().virtual_encrypts
_HYPOTHESIS = 1.0
"""Doublings, of another reading of the document: a guess, and enough to be far."""
_TELLING = 3.84
"""Of a deviance over that of the best: more is chance in 5 % of cases (chi-squared, 1 degree of freedom)."""
_BY_REPLICAS = {
    "client+internode": "The ratio over this reference falls with more replicas: they add work that client encryption "
    "does not affect. The document claims the opposite of its own figures (capplan evidence audit vcider).",
    "internode": "The ratio over this reference rises slightly with more replicas: each replica on another node adds "
    "encrypted messages, while the coordinator's own work stays the same.",
    "none": "The ratio over this reference hardly depends on the replicas: messages grow with them as the work does.",
}
"""Effect of replicas on the ratio, by what the native reference encrypts."""


def excess(scenario: VciderScenario, _tests: Sequence[LoadTest[VciderScenario]]) -> Sequence[Excess]:
    """Return how far a different reading of the document is from the reading behind the fitted parameters."""
    if scenario.virtual_encrypts == _FITTED:
        return ()
    words = (
        f"virtual_encrypts = {scenario.virtual_encrypts!r} is another reading of the document, not a layout: the "
        f"parameters were fitted under {_FITTED!r}"
    )
    return (Excess(_HYPOTHESIS, words),)


def _hypotheses(fitted: Fitted) -> str:
    best, *others = fitted.hypotheses
    close, distant = (
        [_links(each.choice) for each in others if (each.deviance - best.deviance < _TELLING) is hardly]
        for hardly in (True, False)
    )
    found = ((close, "hardly worse, so the evidence is weak"), (distant, "worse"))
    worse = "; ".join(f"{' and '.join(links)} fit {how}" for links, how in found if links)
    return (
        "The document does not say which links the virtual network encrypts when compared with an encrypted reference. "
        f"The ratios fit best with {_links(best.choice)}; {worse}."
    )


def _links(choice: Mapping[str, str]) -> str:
    return _IN_WORDS[choice["virtual_encrypts"]]


def _claims(_case: Case[VciderScenario]) -> tuple[str, ...]:
    """Return what the document states without a measurement, to show beside the prediction."""
    return (
        "The document, by the vendor of the virtual network, expects much the same across regions. It did not "
        "measure this.",
    )


CAUTIONS = (
    "No rate, time or machine is documented, so no capacity, latency or outage is predicted.",
    "The machines of 2011 had no AES instructions, so encryption costs less today: over an encrypted network "
    "the gain may be smaller.",
)


def ratio_notes(scenario: VciderScenario, fitted: Fitted) -> list[str]:
    """Return the assumptions behind a ratio."""
    notes = [
        "The document speaks of performance without saying which. We take it as the throughput of a stress tool "
        "that saturates the nodes. It names no rate, time or machine, so nothing else is predicted.",
        "Encryption in user space (OpenVPN for clients, Cassandra's own TLS between nodes) is compared with the "
        "kernel.",
        _BY_REPLICAS[scenario.encryption],
        f"Rows are assumed to have {COLUMNS} columns, and a byte to cost as much in user space as in the kernel. "
        "The documented column widths show no trend, so the cost of a byte is a prior. All ratios over encrypted "
        "references depend on both.",
    ]
    if scenario.encryption != "none":
        notes.append(_hypotheses(fitted))
    return notes


NOTES = Notes(
    rates=(
        "These are ratios of machines of 2011, assumed to lack AES instructions. Encryption costs less today, so the "
        "gain over an encrypted reference may be smaller. A ratio is the throughput on the virtual network over that "
        "on native interfaces of the same four nodes."
    ),
    claims=_claims,
)
