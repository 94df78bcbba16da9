"""Costs of encrypted links in a system with Cassandra, and notes on them.

No system with Cassandra was load-tested with today's TLS. Costs come from the prior in
`capplan.systems.components.tls`, in seconds of a core, the same for every system.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from capplan.layout.case import Case
from capplan.layout.ensemble import thinned
from capplan.layout.extrapolation import Excess
from capplan.layout.fitted_file import Fitted
from capplan.layout.system import System
from capplan.models.cassandra.encryption import CLIENT_S, INTERNODE_S
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import Number

if TYPE_CHECKING:
    from capplan.systems.components.tls.prior import Work

S = TypeVar("S", bound=Scenario)
_DOUBLINGS = 0.3
"""Extrapolation by encrypted links, in doublings: a guess, beside the width of their costs, which is in the draws."""
_LINKS: Mapping[str, str] = {
    "client": "encrypted client links",
    "internode": "encrypted links between nodes",
    "client+internode": "encrypted client links and links between nodes",
}
_PLAIN: Mapping[str, None] = {"encryption": None, "vpn": None, "reconnects": None}
_SOURCE = "TLS measured 2026"
_MANY = 512  # draws for the figures in notes


class EncryptedLinks(System[S]):
    """A system whose client and internode links may be encrypted.

    Its scenario must have the fields `encryption`, `vpn` and `reconnects`; see `capplan.models.cassandra.encryption`.
    """

    def values(self, fitted: Fitted, scenario: S) -> dict[str, Number]:
        """Return all parameter values of a layout, including encryption costs if links are encrypted."""
        own = fitted.values(self.parameters)
        return {**own, **_costs(scenario, max(np.size(each) for each in own.values()))}

    def median_values(self, fitted: Fitted, scenario: S) -> dict[str, float]:
        """Return one value of each parameter; encryption costs are medians over their draws."""
        return {**fitted.median_values(self.parameters), **_medians(scenario, len(fitted.draws))}


def unencrypted(scenario: S) -> S | None:
    """Return an encrypted layout without encryption, whose throughput is at least as high."""
    return None if _encryption(scenario) is None else changed(scenario, **_PLAIN)


def encryption_excess(scenario: Any) -> tuple[Excess, ...]:
    """Return how far encrypted links lie outside the load tests, which had none."""
    if scenario.encryption is None:
        return ()
    return (Excess(_DOUBLINGS, f"{_LINKS[scenario.encryption]}: not load-tested, {_SOURCE} apart from this system"),)


def encryption_notes(case: Case[Any]) -> list[str]:
    """Return notes on encryption: its cost, the capacity at either end of the cost and without it, and handshakes."""
    scenario = case.scenario
    if scenario.encryption is None:
        return []
    return [_costs_note(case), _messages_note(scenario), *_handshake_notes(scenario)]


def _costs_note(case: Case[Any]) -> str:
    scenario = case.scenario
    own = case.system.values(case.fitted, changed(scenario, **_PLAIN))
    judged = ", by drop rate and backlog alone" if scenario.slo else ""
    from capplan.systems.components.tls.prior import bounds  # imports pandas and scipy.stats

    least, most = bounds(kernel=_in_kernel(scenario))
    dear, cheap = (_median_capacity(case, scenario, {**own, **_exchanges(scenario, each)}) for each in (most, least))
    without = _median_capacity(case, changed(scenario, **_PLAIN), own)
    band = (
        f"A VPN in the kernel is bounded by {_SOURCE}: from the cipher alone to BoringSSL"
        if _in_kernel(scenario)
        else f"{_SOURCE} with netty's SslHandler, band from BoringSSL to JDK"
    )
    return (
        f"{band}, times a load factor from public pairs of throughputs and a core factor, a guess. The capacity "
        f"is {_less(dear, without)} below that without encryption at the highest cost, and {_less(cheap, without)} at "
        f"the lowest{judged}. The band of the capacity does not exceed that without encryption."
    )


def _messages_note(scenario: Any) -> str:
    each = _work(_MANY, _in_kernel(scenario))
    low, middle, high = np.quantile(np.asarray(each.exchange_s) * 1e6, (0.05, 0.5, 0.95))
    return (
        f"An exchange (a request and its answer with a row of about 1 KiB, a guess) costs {middle:.3g} us of a core "
        f"({low:.2g} to {high:.3g}) at each end. A message is one TLS record; messages that Cassandra sends together "
        "cost less. The added latency is this work alone."
    )


def _handshake_notes(scenario: Any) -> list[str]:
    if "client" not in scenario.encryption or _in_kernel(scenario):
        return []
    handshake_s = np.asarray(_work(_MANY, kernel=False).handshake_s)
    low, middle, high = np.quantile(handshake_s * 1e3, (0.05, 0.5, 0.95))
    counted = (
        "no statement makes one here (--reconnects), because drivers keep their connections"
        if scenario.reconnects is None
        else f"{scenario.reconnects:g} of them for each statement are in the figures as mean work, not as a queue of "
        "their own"
    )
    return [
        f"A TLS handshake costs {middle:.2g} ms of a core ({low:.2g} to {high:.2g}) at each end; {counted}. After a "
        f"restart, 1,000 clients that reconnect at once keep one core busy for {middle:.2g} s ({low:.2g} to "
        f"{high:.2g}) at each end."
    ]


def _median_capacity(case: Case[Any], scenario: Any, values: Values) -> float:
    solution = case.system.solution(scenario, thinned(values))
    return float(np.median(solution.capacity))


def _less(capacity: float, without: float) -> str:
    return f"{(max(1 - capacity / without, 0.0) if without else 0.0) * 100:.2g} %"


def _encryption(scenario: Any) -> str | None:
    links: str | None = scenario.encryption
    return links


def _in_kernel(scenario: Any) -> bool:
    return bool(scenario.vpn == "kernel")


def _costs(scenario: Any, count: int) -> dict[str, Number]:
    """Return the costs of encryption by draw; empty if no link is encrypted."""
    return {} if _encryption(scenario) is None else _exchanges(scenario, _work(count, _in_kernel(scenario)))


def _exchanges(scenario: Any, work: Work) -> dict[str, Number]:
    """Return the costs of an exchange at one end; a client's cost includes its share of handshakes."""
    client_s = work.exchange_s + (scenario.reconnects or 0.0) * work.handshake_s
    return {CLIENT_S: client_s, INTERNODE_S: work.exchange_s}


def _medians(scenario: Any, count: int) -> dict[str, float]:
    return {name: float(np.median(value)) for name, value in _costs(scenario, count).items()}


@lru_cache(maxsize=8)
def _work(count: int, kernel: bool) -> Work:
    from capplan.systems.components.tls.prior import draws  # imports pandas and scipy.stats

    return draws(count, kernel=kernel)
