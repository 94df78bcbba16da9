"""Situations: factors of parameters are lognormal, and each system's are of its own free parameters."""

from typing import Any

import numpy as np
import pytest

from capplan.layout.components import Machines, Ratios
from capplan.layout.situations import Factor, Losses, Situation
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario, options_of
from capplan.systems.registry import documented_systems, system

CALIBRATED = [each for each in documented_systems() if each.component(Ratios).of is None]


@pytest.mark.parametrize("count", [64, 512])
def test_factors_have_their_median_and_spread(count: int) -> None:
    logs = np.log(Factor(2.0, 0.3).draws(count, 7))
    assert np.median(logs) == pytest.approx(np.log(2.0), abs=0.01)
    assert logs.std() == pytest.approx(0.3, rel=0.03)


def test_a_situation_changes_its_parameters_only() -> None:
    fitted = system("fedora4").fitted()
    cold = Situation(name="cold", meaning="cold", factors={"read_s": Factor(2.0, 0.0)}).applied_to(fitted)
    before, after = np.array(fitted.draws), np.array(cold.draws)
    changed = [name == "read_s" for name in fitted.names]
    assert np.allclose(after[:, changed], 2 * before[:, changed])
    assert np.array_equal(after[:, np.logical_not(changed)], before[:, np.logical_not(changed)])


@pytest.mark.parametrize("its", CALIBRATED, ids=lambda each: each.name)
def test_every_situation_applies_to_its_system(its: System[Any]) -> None:
    fitted = its.fitted()
    for situation in its.component(Losses).situations.values():
        assert situation.factors or situation.rate
        assert len(situation.applied_to(fitted).draws) == len(fitted.draws)


@pytest.mark.parametrize("its", CALIBRATED, ids=lambda each: each.name)
def test_what_is_sized_are_fields_that_count_machines(its: System[Any]) -> None:
    machines = its.component(Machines)
    scenario: type[Scenario] = its.scenario
    assert {*machines.sized, *machines.families} <= set(options_of(scenario))
    counts = machines.counts(its.scenario())
    assert counts.keys() == machines.kinds.keys()
    assert all(count >= 0 for count in counts.values())


def test_a_factor_of_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="reed_s: not free parameters of fedora4"):
        Situation(name="x", meaning="x", factors={"reed_s": Factor(2.0, 0.1)}).applied_to(system("fedora4").fitted())
