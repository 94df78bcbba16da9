"""The one rule of verdicts: what is yes, uncertain and no, and which situation decides."""

from typing import Any

import pytest

from capplan.answers.condition import Unmeasured, condition
from capplan.answers.verdict import NORMAL, OVERLOAD, JudgedSituation, Verdict, answer, check_confidence, verdict
from capplan.errors import InputError


def situation(risk: float, word: str = NORMAL, **more: Any) -> JudgedSituation:
    return JudgedSituation(**{"situation": word, "answer": answer(risk), "risk": risk, "limit": OVERLOAD, **more})


@pytest.mark.parametrize(
    ("risk", "word"),
    [
        *((0.0, "yes"), (0.05, "yes"), (0.1, "yes"), (0.100001, "uncertain"), (0.5, "uncertain")),
        *((0.899999, "uncertain"), (0.9, "no"), (0.95, "no"), (1.0, "no")),
    ],
)
def test_a_risk_of_10_percent_is_accepted_and_one_of_90_percent_is_a_no(risk: float, word: str) -> None:
    assert answer(risk) == word


@pytest.mark.parametrize("percent", [51, 60, 70, 75, 80, 90, 95, 99])
def test_the_borders_belong_to_yes_and_no_at_every_confidence(percent: int) -> None:
    confidence, accepted = percent / 100, (100 - percent) / 100

    assert [answer(accepted + part, confidence) for part in (-1e-6, 0, 1e-6)] == ["yes", "yes", "uncertain"]
    assert [answer(confidence + part, confidence) for part in (-1e-6, 0, 1e-6)] == ["uncertain", "no", "no"]


@pytest.mark.parametrize(("risk", "word"), [(0.0, "yes"), (0.5, "yes"), (0.500001, "no"), (1.0, "no")])
def test_at_a_confidence_of_50_percent_nothing_is_uncertain(risk: float, word: str) -> None:
    assert answer(risk, 0.5) == word


@pytest.mark.parametrize("counted", range(513))
def test_a_share_of_512_draws_is_judged_as_the_share_says(counted: int) -> None:
    word = "yes" if counted <= 51 else "no" if counted >= 461 else "uncertain"  # 51.2 and 460.8 of 512

    assert answer(counted / 512) == word


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_confidence_lies_between_0_and_1(confidence: float) -> None:
    with pytest.raises(InputError):
        check_confidence(confidence)


@pytest.mark.parametrize(
    ("risks", "word", "binding"),
    [
        ((0.02,), "yes", NORMAL),
        ((0.02, 0.1), "yes", "dc"),
        ((0.02, 0.3, 0.1), "uncertain", "dc"),
        ((0.02, 0.3, 0.9), "no", "node"),
        ((0.3, 0.3, 0.3), "uncertain", NORMAL),
    ],
)
def test_the_situation_with_the_highest_risk_decides(risks: tuple[float, ...], word: str, binding: str) -> None:
    found = verdict([situation(risk, each) for risk, each in zip(risks, (NORMAL, "dc", "node"), strict=False)])

    assert (found.answer, found.risk, found.binding.situation) == (word, max(risks), binding)


@pytest.mark.parametrize(("risk", "word"), [(0.02, "uncertain"), (0.5, "uncertain"), (0.95, "no")])
def test_what_is_not_modelled_allows_no_yes(risk: float, word: str) -> None:
    assert verdict([situation(risk)], not_modelled=("write.p99<10s",)).answer == word


def test_a_situation_in_which_no_request_succeeds_is_a_no_and_says_why() -> None:
    lost = situation(1.0, "dc", limit="unavailable at QUORUM", available=False)
    found = verdict([situation(0.0), lost])

    assert (found.answer, found.binding) == ("no", lost)
    assert "unavailable at QUORUM" in found.in_words()


AS_TESTED = condition(
    Unmeasured(
        name="work on other data",
        field="data_factor",
        value=1.0,
        expected=(2.0, 3.0),
        source="a guess",
        as_tested="data are as tested",
        where="on data as tested",
        unit="times their work",
        otherwise="work is {} to {} times",
        measurement="CPU per request",
    ),
    1.83,
)


def in_words(*situations: JudgedSituation, **more: Any) -> str:
    found: Verdict = verdict(situations, **more)
    return found.in_words()


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        (in_words(situation(0.28)), ("uncertain", "28 %", "overload", "10 %")),
        (in_words(situation(0.28), not_modelled=("write.p99<1s",)), ("uncertain", "28 %", "overload")),
        (in_words(situation(0.28), confidence=0.95), ("uncertain", "28 %", "5.0 %")),
        (in_words(situation(0.0), situation(0.01, "dc")), ("yes", "1.0 %", "dc", "10 %")),
        (in_words(situation(0.28, limit="acct.p99<20ms")), ("uncertain", "acct.p99<20ms")),
        (
            in_words(situation(0.01), conditions=(AS_TESTED,)),
            ("yes, if data are as tested", "up to 1.83 times", "10 %"),
        ),
        (in_words(situation(0.28), conditions=(AS_TESTED,)), ("uncertain (", "28 %")),
        (in_words(situation(0.0), not_modelled=("write.p99<1s",)), ("uncertain", "write.p99<1s")),
    ],
)
def test_the_sentence_has_the_answer_the_risk_its_cause_and_what_is_accepted(
    sentence: str, parts: tuple[str, ...]
) -> None:
    assert sentence.startswith(parts[0])
    assert all(part in sentence for part in parts)
