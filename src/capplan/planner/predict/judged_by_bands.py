"""The verdict on a prediction whose figures have bands and no draws: closed clients, and networks of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from capplan.models.objective import Lookup, Objective
from capplan.models.verdict import CONFIDENCE, NORMAL, OVERLOAD, JudgedSituation, answer, verdict
from capplan.planner.predict.prediction import Prediction


def judged_by_bands(
    prediction: Prediction,
    objectives: Sequence[Objective],
    lookup: Lookup,
    confidence: float = CONFIDENCE,
    left_out: tuple[str, ...] = (),
) -> Prediction:
    """Return a prediction with its verdict.

    Figures of one run are high or low together, so the likeliest miss is the risk.

    Parameters
    ----------
    prediction : Prediction
        The prediction, without objectives; its risk of overload counts if a rate was given.
    objectives : sequence of Objective
        The objectives.
    lookup : function
        Gives the band of a metric, SI; None where it is not modelled.
    confidence : float
        Confidence of the verdict.
    left_out : tuple of str
        What the figures leave out of what was described, such as retries: it makes a *yes* uncertain.
    """
    found = tuple(each.judged(lookup, each.risk(lookup), confidence) for each in objectives)
    risks = {each.text: each.risk for each in found if each.risk is not None}
    if prediction.offered is not None:
        risks = {OVERLOAD: prediction.offered.overload_risk, **risks}
    given = prediction.offered is not None and prediction.offered.source == "given"
    if not objectives and not given:
        return prediction
    limit = max(risks, key=lambda name: risks[name], default="")
    risk = risks.get(limit, 0.0)
    normal = JudgedSituation(situation=NORMAL, answer=answer(risk, confidence), risk=risk, limit=limit)
    missing = tuple(each.text for each in found if each.risk is None)
    return replace(
        prediction, objectives=found, verdict=verdict([normal], confidence, not_modelled=(*left_out, *missing))
    )
