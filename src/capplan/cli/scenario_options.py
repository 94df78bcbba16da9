"""The options of a layout, the same for every command that takes one, and the scenario that they make of a target."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import copy
from functools import wraps
from typing import Annotated, Any

import typer

from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed, defaults_of, fields_of
from capplan.models.language.units import check_number, parse_length_m, parse_rate_per_s, parse_share
from capplan.systems.registry import SYSTEMS


def _text(metavar: str, about: str) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=about)]


def _count(about: str) -> Any:
    return Annotated[int | None, typer.Option(help=about)]


def _switch(name: str, about: str) -> Any:
    return Annotated[bool | None, typer.Option(f"--{name}/--no-{name}", help=about)]


OPTIONS: Mapping[str, Any] = {
    "dcs": _count("Data centres."),
    "cass_nodes": _count("Cassandra nodes per data centre."),
    "nodes": _count("Nodes of a repository cluster."),
    "rf": _count("Replicas per data centre."),
    "front_nodes": _count("Policing nodes per data centre."),
    "front_workers": _count("Worker threads of a policing node."),
    "consistency_read": _text("LEVEL", "Consistency level of reads."),
    "consistency_write": _text("LEVEL", "Consistency level of writes."),
    "rtt": _text("TIME", "Round trip between data centres, for example 3ms."),
    "distance_km": _text(
        "KM", "Distance instead of --rtt, for example 150; fibre routes are longer, by a calibrated factor."
    ),
    "region": _text("NAME", "Where the clients are: us-east, us-west, eu, asia."),
    "proxy": _switch("proxy", "Forward accounting requests."),
    "ldap": _switch("ldap", "Ask LDAP on each authorization."),
    "colocated": _switch("colocated", "Cassandra on the application's host."),
    "cache": _switch("cache", "Caches in the application."),
    "write_share": _text("SHARE", "Writes as a share of the requests: 5%."),
    "data_factor": _text("X", "Cassandra's times over the test's: 2.5."),
    "column_bytes": _count("Width of a column, bytes."),
    "encryption": _text(
        "LINKS", "Encrypted: client, internode, client+internode (vcider: internode, client+internode, none)."
    ),
    "vpn": _text("WHERE", "Encryption in user space or in the kernel: user, kernel."),
    "sps": _text("RATE", "Offered sessions per second, instead of --tps."),
    "servers": _count("gRPC masters."),
    "clients": _count("Clients of all masters together."),
    "rps_per_client": _text("RATE", "Offered requests per second of each client, instead of --tps."),
    "stream_messages": _count("Requests that share one streaming call; 1 is unary."),
}
"""The options that lay out one system or another, by argument; what each lays out is what its scenario has."""

_FIELDS = {"distance_km": "distance"}  # options that are named unlike the field that they fill
_OF_CASSANDRA = ("cass_nodes", "consistency_read", "consistency_write", "encryption", "vpn")
_RATES = ("tps", "sps", "rps_per_client")  # ways to say what is offered
Tps = _text("RATE", "Offered peak rate over all data centres.")
Slo = Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Objective, such as 'acct.p99<20ms'.")]


def lays_out(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of every layout: its argument `layout` is a mapping of those that were given."""
    own = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in own.parameters.values():
        if parameter.name != "layout":
            parameters.append(parameter)
            continue
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters += [inspect.Parameter(name, kind, default=None, annotation=_explained(name)) for name in OPTIONS]

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in OPTIONS}
        command(layout={name: value for name, value in given.items() if value is not None}, **arguments)

    del run.__wrapped__  # typer would read the signature of the command itself
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return run


def _explained(name: str) -> Any:
    """Return the annotation of an option whose help says which systems it lays out, unless it is all."""
    names = [each.name for each in SYSTEMS.values() if _FIELDS.get(name, name) in fields_of(each.scenario)]
    option = copy(OPTIONS[name].__metadata__[0])
    if len(names) < len(SYSTEMS):
        option.help = f"{option.help} [{', '.join(names)}]"
    return Annotated[OPTIONS[name].__origin__, option]


def options_of(scenario: type[Scenario]) -> dict[str, str]:
    """Return the options that lay out a system, as they are typed, with what they mean and their defaults."""
    usual = defaults_of(scenario)
    fields = {name: _FIELDS.get(name, name) for name in OPTIONS}
    return {typed(name): f"{help_of(name)}{_usual(usual[field])}" for name, field in fields.items() if field in usual}


def _usual(default: Any) -> str:
    """Say a default, where there is one that is not off."""
    if default is None or default is False:
        return ""
    return f" ({'on' if default is True else default})"


def typed(name: str) -> str:
    """Return an option as it is typed: `--cass-nodes`, `--proxy/--no-proxy`."""
    declared = OPTIONS[name].__metadata__[0].param_decls
    return str(declared[0]) if declared else f"--{name.replace('_', '-')}"


def help_of(name: str) -> str:
    """Return what an option means, without the full stop."""
    return str(OPTIONS[name].__metadata__[0].help).rstrip(".")


def with_options(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """Return the scenario with options from the command line.

    Raises
    ------
    InputError
        When one is not of the system, cannot be read or breaks a rule, or --rtt and --distance-km are both there.
    """
    refuse_both_distances(given)
    _refuse_foreign(scenario, given)
    fields = {name: _READ.get(name, lambda value: value)(value) for name, value in given.items()}
    if "distance_km" in fields:
        fields |= {"distance": fields.pop("distance_km"), "rtt": None}
    fields = _replacing(scenario, fields)
    try:
        return changed(scenario, **fields)
    except InputError as error:  # on the command line nobody wrote the name of a class
        raise InputError(str(error).removeprefix(f"{type(scenario).__name__}: ")) from None


def _replacing(scenario: Scenario, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with what they replace in a file emptied: of two ways to say a rate, the one not given."""
    ways = [name for name in _RATES if name in vars(scenario)]
    if sum(name in fields for name in ways) != 1:
        return fields
    return dict.fromkeys(ways) | fields


def refuse_both_distances(given: Mapping[str, Any]) -> None:
    """Refuse two ways to say how far data centres are apart.

    Raises
    ------
    InputError
        When both are given.
    """
    if "rtt" in given and "distance_km" in given:
        raise InputError("--rtt and --distance-km exclude each other: give the one that you know")


def _refuse_foreign(scenario: Scenario, given: Mapping[str, Any]) -> None:
    """Refuse options that lay out other systems only."""
    for name in given:
        field = _FIELDS.get(name, name)
        if field not in vars(scenario):
            *most, last = [each.name for each in SYSTEMS.values() if field in fields_of(each.scenario)]
            others = f"{', '.join(most)} and {last}" if most else last
            own = ", ".join(options_of(type(scenario)))
            if field in _OF_CASSANDRA and "encryption" not in vars(scenario):  # as every system with Cassandra has
                raise InputError(f"{scenario.system} has no Cassandra: {typed(name)} lays out {others}; it takes {own}")
            raise InputError(f"{typed(name)} lays out {others}, not {scenario.system}, which takes {own}")


def _factor(text: str) -> float:
    try:
        return float(check_number(float(text), "data factor", above=0.0))
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a data factor: give a number such as 2.5") from None


_READ: Mapping[str, Callable[[Any], Any]] = {
    "distance_km": lambda text: f"{parse_length_m(text) / 1000:g}km",
    "data_factor": _factor,
    "write_share": parse_share,
    "tps": parse_rate_per_s,
    "sps": parse_rate_per_s,
    "rps_per_client": parse_rate_per_s,
    "slo": tuple,
}
