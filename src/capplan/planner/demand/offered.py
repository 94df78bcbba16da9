"""A demand as options of a layout: the rate in the busy hour, the mix of a session, and reconnects."""

from __future__ import annotations

from capplan.models.cassandra.encryption import LINKS, in_order
from capplan.models.language.request_mix import mix_text
from capplan.models.language.scenario import S, Scenario, changed, options_of
from capplan.planner.demand.busy_hour import busy_hour_rates, grown, session_requests
from capplan.planner.demand.demand import Demand
from capplan.planner.explore.sweep_table import rate_fields


def contradicted(demand: Demand, scenario: type[Scenario]) -> tuple[str, ...]:
    """Return the options of a kind of scenario that exclude a demand."""
    others = ("mix",) if demand.connections is None else ("mix", "reconnects")
    return (*rate_fields(scenario), *(name for name in others if name in options_of(scenario)))


def offered(demand: Demand, scenario: type[Scenario], client_tls: bool) -> dict[str, str]:
    """Return the options of a layout by field, as they are typed.

    The rate is that of the busy hour at the planned time. It is a mean: where a system has bursts, its peak is higher.

    Parameters
    ----------
    demand : Demand
        The demand.
    scenario : type
        The kind of scenario.
    client_tls : bool
        Whether a new connection of a client takes a TLS handshake; see `has_client_tls`.

    Returns
    -------
    dict of str
        `mix` only for systems with one, `reconnects` only with connections that take handshakes.
    """
    known = options_of(scenario)
    rates, session = busy_hour_rates(demand, grown(demand)), session_requests(demand.busy_hour)
    mean = "tps_mean" if "tps_mean" in known else "tps"
    found = {mean: _number(rates.total_per_s)}
    if "mix" in known:
        found["mix"] = mix_text({"auth": float(f"{session.auth:.4g}"), "acct": float(f"{session.acct:.4g}")})
    if "reconnects" in known and demand.connections is not None and client_tls:
        mixed = {name: found[name] for name in ("mix",) if name in found}
        statements = scenario(**mixed).statements_per_request()
        found["reconnects"] = _number(min(rates.handshakes_per_request / statements, 1.0))
    return found


def with_demand(scenario: S, demand: Demand | None) -> S:
    """Return a scenario with what a demand offers; as it is without one, or with a rate of its own.

    Parameters
    ----------
    scenario : Scenario
        The layout. What it says of the mix and of reconnects stays.
    demand : Demand or None
        The demand.
    """
    kind = type(scenario)
    if demand is None or any(getattr(scenario, name) is not None for name in rate_fields(kind)):
        return scenario
    tls = has_client_tls(getattr(scenario, "encryption", None), getattr(scenario, "vpn", None))
    found = offered(demand, kind, tls)
    return changed(scenario, **{name: text for name, text in found.items() if getattr(scenario, name) is None})


def has_client_tls(encryption: str | None, vpn: str | None) -> bool:
    """Whether clients of the database encrypt their links themselves, so that a new connection takes a handshake."""
    return encryption is not None and "client" in LINKS.get(in_order(encryption), ()) and vpn != "kernel"


def _number(value: float) -> str:
    """Return a number with six significant digits, without an exponent where it is readable."""
    return f"{float(f'{value:.6g}'):.15g}"
