"""The options of a layout, the same for every command that takes one, and the scenario that they make of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from capplan.models.errors import InputError
from capplan.models.quantity import check_number, parse_length_m, parse_rate_per_s
from capplan.models.scenario import Scenario, changed

Dcs = Annotated[int | None, typer.Option(help="Data centres.")]
CassNodes = Annotated[int | None, typer.Option(help="Cassandra nodes per data centre.")]
Rf = Annotated[int | None, typer.Option(help="Replicas per data centre.")]
FrontNodes = Annotated[int | None, typer.Option(help="Policing nodes per data centre.")]
FrontWorkers = Annotated[int | None, typer.Option(help="Worker threads of a policing node.")]
ConsistencyRead = Annotated[str | None, typer.Option(metavar="LEVEL", help="Consistency level of reads.")]
ConsistencyWrite = Annotated[str | None, typer.Option(metavar="LEVEL", help="Consistency level of writes.")]
Rtt = Annotated[str | None, typer.Option(metavar="TIME", help="Round trip between data centres: 3ms.")]
DistanceKm = Annotated[str | None, typer.Option(metavar="KM", help="Distance instead of --rtt; fibre, 1.2 x longer.")]
Proxy = Annotated[bool | None, typer.Option("--proxy/--no-proxy", help="Forward accounting requests.")]
Ldap = Annotated[bool | None, typer.Option("--ldap/--no-ldap", help="Ask LDAP on each authorization.")]
DataFactor = Annotated[str | None, typer.Option(metavar="X", help="Cassandra's times over the test's: 2.5.")]
Tps = Annotated[str | None, typer.Option(metavar="RATE", help="Offered peak rate over all data centres.")]
Slo = Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Objective, such as 'acct.p99<20ms'.")]

LAYOUT = (
    *("dcs", "cass_nodes", "rf", "front_nodes", "front_workers", "consistency_read", "consistency_write", "rtt"),
    *("distance_km", "proxy", "ldap", "data_factor"),
)


def given_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the options of a scenario that were given from the arguments of a command."""
    return {name: arguments[name] for name in (*LAYOUT, "tps", "slo") if arguments.get(name) is not None}


def with_options(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """Return the scenario with options from the command line.

    Raises
    ------
    InputError
        When one cannot be read or breaks a rule, or --rtt and --distance-km are both there.
    """
    refuse_both_distances(given)
    fields = dict(given)
    if "distance_km" in fields:
        fields |= {"distance": f"{parse_length_m(fields.pop('distance_km')) / 1000:g}km", "rtt": None}
    if "data_factor" in fields:
        fields["data_factor"] = _factor(fields["data_factor"])
    if "tps" in fields:
        fields["tps"] = parse_rate_per_s(fields["tps"])
    if "slo" in fields:
        fields["slo"] = tuple(fields["slo"])
    try:
        return changed(scenario, **fields)
    except InputError as error:  # on the command line nobody wrote a Scenario
        raise InputError(str(error).removeprefix("Scenario: ")) from None


def refuse_both_distances(given: Mapping[str, Any]) -> None:
    """Refuse two ways to say how far data centres are apart.

    Raises
    ------
    InputError
        When both are given.
    """
    if "rtt" in given and "distance_km" in given:
        raise InputError("--rtt and --distance-km exclude each other: give the one that you know")


def _factor(text: str) -> float:
    try:
        return float(check_number(float(text), "data factor", above=0.0))
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a data factor: give a number such as 2.5") from None
