"""The values that a layout is composed from: its system's calibrated ones, and what encryption costs where it is asked.

Costs of encryption come from one place, `_costs`: today the test of 2011 (`capplan.systems.vcider.network`), which bounds them
from above, since processors have had instructions for AES ever since. How much of them is left is a guess: any share
alike. Measurements of live clusters will take their place there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.fit.fitted_file import load as load_fitted
from capplan.models.cassandra.encryption import CLIENT_SHARE, INTERNODE_SHARE
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.systems.registry import system
from capplan.systems.vcider.network import in_kernel, row_bytes, user_space
from capplan.systems.vcider.scenario import VciderScenario

_SEED = 2011  # of the pairing of costs and shares with a system's own draws
_DATA_BYTES = row_bytes(VciderScenario())  # of a row, as in the middle of that test: 640


@dataclass(frozen=True)
class _Costs:
    """Costs of an exchange at one end of a link, as shares of a plain operation: most, and the part of that to expect.

    Attributes
    ----------
    client, internode
        The most, arrays over draws.
    part
        Part of it to expect; an array over draws.
    """

    client: FloatArray
    internode: FloatArray
    part: FloatArray


def values_of(fitted: Fitted, scenario: Scenario, *, full: bool = False) -> dict[str, Number]:
    """Return all parameter values of a layout, the free ones as arrays (draws,).

    Parameters
    ----------
    fitted : Fitted
        Calibration of its system.
    scenario : Scenario
        The layout.
    full : bool
        Whether encryption costs as much as in the test of 2011, in every draw.
    """
    values = fitted.values()
    if not _encrypts(scenario):
        return values
    costs = _costs(scenario, max(np.size(each) for each in values.values()))
    part = np.ones_like(costs.part) if full else costs.part
    return {**values, CLIENT_SHARE: costs.client * part, INTERNODE_SHARE: costs.internode * part}


def median_values_of(fitted: Fitted, scenario: Scenario) -> dict[str, float]:
    """Return one value of each parameter of a layout; encryption costs the median of each of its draws."""
    return {**fitted.median_values(), **_medians(scenario, len(fitted.draws))}


def default_values_of(scenario: Scenario) -> Values:
    """Return the prior medians of a layout's parameters: enough to see what it is composed of."""
    return {**defaults(system(scenario.system).parameters), **_medians(scenario, 1)}


def _medians(scenario: Scenario, draws: int) -> dict[str, float]:
    if not _encrypts(scenario):
        return {}
    costs = _costs(scenario, draws)
    return {
        name: float(np.median(most * costs.part))
        for name, most in ((CLIENT_SHARE, costs.client), (INTERNODE_SHARE, costs.internode))
    }


def _encrypts(scenario: Scenario) -> bool:
    """Whether links of a system that has rates are encrypted; `vcider` compares costs of its own."""
    return system(scenario.system).ratios is None and getattr(scenario, "encryption", None) is not None


def _costs(scenario: Scenario, draws: int) -> _Costs:
    """Return what encryption costs: the only place that chooses where that comes from."""
    of_2011 = load_fitted("vcider").values()
    in_use = in_kernel if getattr(scenario, "vpn", None) == "kernel" else user_space
    most = in_use(of_2011, _DATA_BYTES)
    random = np.random.default_rng(_SEED)
    known = random.permutation(draws) % np.size(most.client)
    part = (random.permutation(draws) + 0.5) / draws  # any alike, and evenly: one draw in each of as many strata
    client, internode = np.broadcast_arrays(most.client, most.internode)
    return _Costs(client[known], internode[known], part)
