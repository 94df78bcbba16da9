"""What a proposal does not cover, in plain sentences."""

from __future__ import annotations

from typing import Any

from capplan.calibration.system import System
from capplan.planner.predict.prediction import Prediction
from capplan.planner.size.sizing import Sizing


def limits(its: System[Any], sizing: Sizing, prediction: Prediction) -> tuple[str, ...]:
    """Return what the answer leaves out or guesses, and what documents only claim.

    Parameters
    ----------
    its : System
        The system.
    sizing : Sizing
        The sizing.
    prediction : Prediction
        The prediction of the layout.
    """
    found = [*prediction.evidence.cautions, *prediction.evidence.claims]
    if sizing.guesses:
        found.append(f"Guesses without a source: {', '.join(sizing.guesses)}.")
    if prediction.tails_not_modelled:
        found.append(f"Slow requests by {_listed(prediction.tails_not_modelled)} are not in the percentiles.")
    if sizing.not_asked:
        losses = _listed(tuple(its.losses[word] for word in sizing.not_asked))
        found.append(
            f"The layout was not asked to survive the loss of {losses}; failures and options show what happens."
        )
    found.append("A confidence holds in each situation on its own. How often a situation occurs is not part of it.")
    return tuple(dict.fromkeys(found))


def _listed(words: tuple[str, ...]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
