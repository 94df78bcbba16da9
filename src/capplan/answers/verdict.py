"""The verdict rule of every verb: *yes*, *no* or *uncertain*, from the risk of a miss.

The risk is the probability that a repeat of the load test does not carry the offered rate with the objectives met. With
a confidence of 90 %, the answer is *yes* up to a risk of 10 %, *no* from 90 % on, and *uncertain* between.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from capplan.answers.condition import Condition, instead, under
from capplan.answers.number_words import share, tenths_of_percent
from capplan.errors import InputError

Answer = Literal["yes", "uncertain", "no"]
CONFIDENCE = 0.9
"""Confidence of a verdict unless another is asked for: a risk of 10 % is accepted."""
NORMAL = "normal"
"""The situation in which nothing is lost."""
DATA = "data"
"""The situation in which data must fit on the disks of nodes."""
RESOURCES = (DATA, "iops", "network", "memory")
"""Situations in which nodes must have enough of something besides CPU."""
OVERLOAD = "overload"
"""What fails where the rate is above the capacity, whatever the objectives."""
_EXACT = 1e-9  # a confidence of 90 % accepts a risk of 0.1, although 1 - 0.9 is a little less


@dataclass(frozen=True, kw_only=True)
class JudgedSituation:
    """The verdict on one situation.

    Attributes
    ----------
    situation
        The situation: `normal`, a loss such as `dc`, or `dc+compaction`.
    answer
        `yes`, `uncertain` or `no`.
    risk
        Probability that a repeat of the load test does not carry the rate with all objectives met.
    limit
        What fails most likely: `overload`, an objective, a resource of nodes, or why no request succeeds.
    available
        Whether requests can succeed at all.
    guessed
        Whether the situation rests on a guess.
    """

    situation: str
    answer: Answer
    risk: float
    limit: str
    available: bool = True
    guessed: bool = False


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether a layout carries the offered rate with the objectives met, in every situation that was asked for.

    Attributes
    ----------
    answer
        `yes`, `uncertain` or `no`: the worst of the situations.
    risk
        The highest risk of the situations.
    confidence
        The confidence that was asked for; one less this is the accepted risk.
    situations
        Each situation that counts; normal operation comes first.
    conditions
        What the verdict takes for granted, because nobody measured it.
    not_modelled
        Objectives that no figure of the model decides; they make a *yes* uncertain.
    not_asked
        Losses that the system models and nobody asked about.
    """

    answer: Answer
    risk: float
    confidence: float
    situations: tuple[JudgedSituation, ...]
    conditions: tuple[Condition, ...] = ()
    not_modelled: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()

    @property
    def binding(self) -> JudgedSituation:
        """The situation with the highest risk; the first of equal ones."""
        return max(self.situations, key=lambda each: each.risk)

    def in_words(self) -> str:
        """Return the verdict in words: `uncertain (28 % risk of overload, 10 % accepted)`."""
        binding = self.binding
        where = "" if binding.situation == NORMAL else f"{binding.situation}: "
        if self.not_modelled and answer(self.risk, self.confidence) == "yes":
            return f"{self.answer} ({', '.join(self.not_modelled)}: not modelled)"
        if not binding.available:
            return f"{self.answer} ({where}{binding.limit})"
        what = "of overload" if binding.limit == OVERLOAD else f"that {binding.limit} is missed"
        if binding.situation in RESOURCES:
            what = f"that it takes more than {binding.limit}"
        held = (under if self.answer == "yes" else instead)(self.conditions)
        return f"{self.answer}{held} ({where}{risk_in_words(binding.risk, what, self.confidence)})"


def risk_in_words(risk: float, what: str, confidence: float = CONFIDENCE) -> str:
    """Return a risk with the accepted one: `28 % risk of overload, 10 % accepted`."""
    accepted, text = share(round(1 - confidence, 9)), share(risk)
    if text == accepted and risk > 1 - confidence + _EXACT:
        text = tenths_of_percent(risk) if tenths_of_percent(risk) != tenths_of_percent(1 - confidence) else f"> {text}"
    return f"{text} risk {what}, {accepted} accepted"


def answer(risk: float, confidence: float = CONFIDENCE) -> Answer:
    """Return the answer at a risk: *yes* up to 1 - confidence, *no* from the confidence on."""
    if risk <= 1 - confidence + _EXACT:
        return "yes"
    return "no" if risk >= confidence - _EXACT else "uncertain"


def verdict(
    situations: Iterable[JudgedSituation],
    confidence: float = CONFIDENCE,
    *,
    conditions: tuple[Condition, ...] = (),
    not_modelled: tuple[str, ...] = (),
    not_asked: tuple[str, ...] = (),
) -> Verdict:
    """Return the verdict over several situations; the highest risk decides."""
    judged = tuple(situations)
    risk = max(each.risk for each in judged)
    found = answer(risk, confidence)
    return Verdict(
        answer="uncertain" if found == "yes" and not_modelled else found,
        risk=risk,
        confidence=confidence,
        situations=judged,
        conditions=conditions,
        not_modelled=not_modelled,
        not_asked=not_asked,
    )


def check_confidence(confidence: float) -> None:
    """Check a confidence.

    Raises
    ------
    InputError
        If it is not above 0 and below 1.
    """
    if not 0 < confidence < 1:
        raise InputError(f"a confidence of {confidence:g} is not above 0 and below 1: give one such as 90%")
