"""Costs of encrypted links in a system with Cassandra, and notes on them.

All costs come from `_costs`, today from the load test of 2011 that `capplan.systems.vcider` is fitted to. That test is
an upper bound, because processors have AES instructions since. The share of these costs that remains today is a guess:
every share is equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from capplan.calibration.case.ensemble import thinned
from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import Case, System
from capplan.models.cassandra.encryption import CLIENT_SHARE, INTERNODE_SHARE
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray, Number
from capplan.systems.vcider import SYSTEM as VCIDER
from capplan.systems.vcider.network import in_kernel, row_bytes, user_space
from capplan.systems.vcider.scenario import VciderScenario

S = TypeVar("S", bound=Scenario)
_SEED = 2011  # of the pairing of costs and shares with the draws of a system
_DATA_BYTES = row_bytes(VciderScenario())  # data of a row, 640 bytes: the middle of that load test
_DOUBLINGS = 1.0
"""Extrapolation by encrypted links, in doublings: a guess."""
_LINKS: Mapping[str, str] = {
    "client": "encrypted client links",
    "internode": "encrypted links between nodes",
    "client+internode": "encrypted client links and links between nodes",
}
_SPACES: Mapping[str | None, str] = {None: "user space", "user": "user space", "kernel": "the kernel"}


@dataclass(frozen=True)
class _Costs:
    """Costs of one exchange at one end of a link, as shares of an unencrypted operation.

    Attributes
    ----------
    client, internode : array (draws,)
        Upper bounds, from the load test.
    part : array (draws,)
        Share of these that remains today.
    """

    client: FloatArray
    internode: FloatArray
    part: FloatArray


class EncryptedLinks(System[S]):
    """A system whose client and internode links may be encrypted.

    Its scenario must have the fields `encryption` and `vpn`; see `capplan.models.cassandra.encryption`.
    """

    def values(self, fitted: Fitted, scenario: S) -> dict[str, Number]:
        """Return all parameter values of a layout, with the costs of encryption if links are encrypted."""
        return _with_costs(fitted.values(self.parameters), scenario)

    def median_values(self, fitted: Fitted, scenario: S) -> dict[str, float]:
        """Return one value of each parameter; costs of encryption are medians over their draws."""
        return {**fitted.median_values(self.parameters), **_medians(scenario, len(fitted.draws))}

    def prior_values(self, scenario: S) -> Values:
        """Return the prior median of each parameter, with the median costs of encryption."""
        return {**super().prior_values(scenario), **_medians(scenario, 1)}

    def upper_bound(self, scenario: S) -> S | None:
        """Return an encrypted layout without its encryption, which completes at least as much."""
        return None if _encryption(scenario) is None else changed(scenario, encryption=None, vpn=None)


def encryption_excess(scenario: Any) -> tuple[Excess, ...]:
    """Return how far encrypted links are outside the load tests, none of which had any."""
    if scenario.encryption is None:
        return ()
    return (Excess(_DOUBLINGS, f"{_LINKS[scenario.encryption]}: not load-tested, a test of 2011 bounds their cost"),)


def encryption_notes(case: Case[Any]) -> list[str]:
    """Return notes on the cost of encryption: the capacity at the full cost of 2011, and without encryption."""
    scenario = case.scenario
    if scenario.encryption is None:
        return []
    judged = ", by drop rate and backlog alone" if scenario.slo else ""
    own = case.fitted.values(case.system.parameters)
    full = _median_capacity(case, scenario, _with_costs(own, scenario, full=True))
    without = _median_capacity(case, changed(scenario, encryption=None, vpn=None), own)
    return [
        f"Encryption in {_SPACES[scenario.vpn]} costs between nothing and what it cost on machines of 2011 (capplan "
        "predict vcider), with every share equally likely. This is a guess: processors have AES instructions since. "
        f"The layout completes about {full:,.0f} TPS at the full cost of 2011, and about {without:,.0f} TPS without "
        f"encryption{judged}. The band of the capacity does not exceed that without encryption.",
        "The test measured the cost of a message relative to the cost of an operation; capplan scales it by the cost "
        "of an operation here. Both ends of a link do the same work for each message. No latency was measured with "
        "encryption: the added latency is derived from ratios of throughput.",
    ]


def _median_capacity(case: Case[Any], scenario: Any, values: Values) -> float:
    solution = case.system.solution(scenario, thinned(values))
    return round(float(np.median(solution.capacity)), -1)


def _encryption(scenario: Any) -> str | None:
    links: str | None = scenario.encryption
    return links


def _with_costs(values: dict[str, Number], scenario: Any, *, full: bool = False) -> dict[str, Number]:
    """Return the values with the costs of encryption: the expected part of them, or all (`full`)."""
    if _encryption(scenario) is None:
        return values
    costs = _costs(scenario.vpn, max(np.size(each) for each in values.values()))
    part = np.ones_like(costs.part) if full else costs.part
    return {**values, CLIENT_SHARE: costs.client * part, INTERNODE_SHARE: costs.internode * part}


def _medians(scenario: Any, draws: int) -> dict[str, float]:
    if _encryption(scenario) is None:
        return {}
    costs = _costs(scenario.vpn, draws)
    return {
        name: float(np.median(most * costs.part))
        for name, most in ((CLIENT_SHARE, costs.client), (INTERNODE_SHARE, costs.internode))
    }


@lru_cache(maxsize=8)
def _costs(vpn: str | None, draws: int) -> _Costs:
    """Return the costs of encryption by draw."""
    of_2011 = VCIDER.fitted().values(VCIDER.parameters)
    most = (in_kernel if vpn == "kernel" else user_space)(of_2011, _DATA_BYTES)
    random = np.random.default_rng(_SEED)
    known = random.permutation(draws) % np.size(most.client)
    part = (random.permutation(draws) + 0.5) / draws  # stratified: one draw per equal interval
    client, internode = np.broadcast_arrays(most.client, most.internode)
    return _Costs(client[known], internode[known], part)
