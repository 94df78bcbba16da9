"""What a prediction needs to know of `vcider` beside its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.observations import LoadTest
from capplan.calibration.system import Case, Notes
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
    "client+internode": "Why the ratio over this reference is smaller with more replicas: they add work that no "
    "client's encryption has a part in. The document says the opposite of its own figures: see capplan evidence "
    "audit vcider.",
    "internode": "Why the ratio over this reference is a little larger with more replicas: each that is on another "
    "node adds encrypted messages, and the coordinator's own work stays the same.",
    "none": "The ratio over this reference is much the same with any number of replicas: messages grow with them as "
    "the work does.",
}
"""What replicas do to the ratio, by what the native reference encrypts."""


def excess(scenario: VciderScenario, tests: Sequence[LoadTest[VciderScenario]]) -> Sequence[Excess]:
    """Return how far another reading of the document is from the one that the parameters were fitted under."""
    del tests
    if scenario.virtual_encrypts == _FITTED:
        return ()
    words = (
        f"the field virtual_encrypts = {scenario.virtual_encrypts!r} is another reading of the document and no layout: "
        f"the parameters were fitted under {_FITTED!r}"
    )
    return (Excess(_HYPOTHESIS, words),)


def _hypotheses(fitted: Fitted) -> str:
    best, *others = fitted.hypotheses
    close, apart = (
        [_said(each.choice) for each in others if (each.misfit - best.misfit < _TELLING) is hardly]
        for hardly in (True, False)
    )
    found = ((close, "hardly worse, which is weak evidence"), (apart, "worse"))
    worse = "; ".join(f"{' and '.join(links)} fit {how}" for links, how in found if links)
    return (
        "Which links the virtual network encrypts beside an encrypted reference is not said. The ratios fit best with "
        f"{_said(best.choice)}; {worse}."
    )


def _said(choice: Mapping[str, str]) -> str:
    return _IN_WORDS[choice["virtual_encrypts"]]


class VciderNotes(Notes[VciderScenario]):
    """What a reader must know of `vcider`."""

    rates = (
        "These are ratios of machines of 2011, taken as without instructions for AES. Today encryption costs less, so "
        "a gain over an encrypted reference may be smaller. A ratio is the throughput on the virtual network over that "
        "on native interfaces of the same four nodes."
    )

    def claims(self, scenario: VciderScenario) -> tuple[str, ...]:
        """Return what the document says without a measurement, to stand beside the prediction."""
        del scenario
        return (
            "The document, by the maker of the virtual network, expects much the same in several regions. Nobody "
            "measured it.",
        )

    def notes_on_ratios(self, case: Case[VciderScenario]) -> list[str]:
        """Return the doubts about a ratio."""
        scenario: VciderScenario = case.scenario
        notes = [
            "The document says performance and not of what: it is read as the throughput of a stress tool that "
            "saturates the nodes. No rate, no time and no machine is given, so nothing else is predicted.",
            "Encryption in user space (OpenVPN for clients, Cassandra's own TLS between nodes) is compared with the "
            "kernel.",
            _BY_REPLICAS[scenario.encryption],
            f"Rows are taken to have {COLUMNS} columns, and a byte to cost as much in user space as in the kernel. The "
            "documented widths show no trend, so what a byte costs is a prior. All ratios over encrypted references "
            "depend on both.",
        ]
        if scenario.encryption != "none":
            notes.append(_hypotheses(case.fitted))
        return notes
