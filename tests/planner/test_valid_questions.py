"""Random valid questions to every verb and target break no invariant.

60 in the default tests and 300 in the slow ones; `just trust` asks 10,000 by `questions_campaign.py`, which resumes.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.planner.answered_questions import violations
from tests.planner.valid_questions import FIRST, TARGETS, asked, drawn, layout

from capplan.models.language.scenario import options_of
from capplan.systems.registry import every_system

QUESTIONS = 300


@pytest.mark.parametrize(
    "number", [each if each < FIRST else pytest.param(each, marks=pytest.mark.slow) for each in range(QUESTIONS)]
)
def test_a_valid_question_breaks_no_invariant(number: int) -> None:
    question = asked(number)
    assert not violations(question), str(question)


@pytest.mark.parametrize("system", every_system(), ids=lambda each: each.name)
def test_every_option_that_a_system_declares_is_drawn(system: object) -> None:
    kind = system.scenario  # type: ignore[attr-defined]  # a system
    random = np.random.default_rng(1)
    found = {name for _ in range(40) for name in drawn(kind, random)}

    assert found >= {*options_of(kind)} - {"slo"}


def test_questions_are_about_every_target() -> None:
    random = np.random.default_rng(1)
    assert {layout(random).name for _ in range(200)} == {*TARGETS}
