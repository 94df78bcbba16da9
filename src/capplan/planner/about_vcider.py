"""What a prediction needs to know of `vcider` beside its model."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration.fitted_file import Fitted
from capplan.models.vcider import COLUMNS
from capplan.models.vcider_scenario import VciderScenario
from capplan.planner.about import About, Case

_IN_WORDS = {
    "same": "the same links",
    "all": "all links",
    "none": "none",
}


def _claims(scenario: VciderScenario) -> tuple[str, ...]:
    """Return what the document says without a measurement, to stand beside the prediction."""
    del scenario
    return (
        "The document, by the maker of the virtual network, expects much the same in several regions. Nobody measured "
        "it.",
    )


def _notes(case: Case) -> list[str]:
    scenario: VciderScenario = case.scenario
    notes = [
        "The document says performance and not of what: it is read as the throughput of a stress tool that saturates "
        "the nodes. No rate, no time and no machine is given, so nothing else is predicted.",
        "Encryption in user space (OpenVPN for clients, Cassandra's own TLS between nodes) is compared with the kernel "
        "on machines of 2011, taken as without instructions for AES: today it costs less.",
        "Why the ratio over the encrypted reference is smaller with more replicas: they add work that no client's "
        "encryption has a part in.",
    ]
    if scenario.encryption != "none":
        notes.append(_hypotheses(case.fitted))
    if scenario.column_bytes != _USUAL:
        notes.append(
            f"Rows are taken to have {COLUMNS} columns, and a byte to cost as much in user space as in the kernel. The "
            "documented widths show no trend, so what a byte costs is a prior."
        )
    return notes


_USUAL = VciderScenario().column_bytes


def _hypotheses(fitted: Fitted) -> str:
    best, *others = fitted.hypotheses
    worse = ", ".join(f"{_said(each.choice)} {each.misfit - best.misfit:+.1f}" for each in others)
    return (
        "Which links the virtual network encrypts beside an encrypted reference is not said. The ratios fit best with "
        f"{_said(best.choice)} (deviance {best.misfit:.1f}; {worse}): weak evidence."
    )


def _said(choice: Mapping[str, str]) -> str:
    return _IN_WORDS[choice["virtual_encrypts"]]


ABOUT = About(
    axes={"rf": "replicas", "column_bytes": "bytes a column"},
    rates="A ratio is the throughput on the virtual network over that on native interfaces of the same four nodes.",
    approximate="",
    claims=_claims,
    notes=_notes,
)
