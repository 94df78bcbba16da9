"""Commands whose options are the fields of a scenario and of a demand; the command's target determines which fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand
from typer.main import get_command

from capplan.answers.number_words import listed
from capplan.cli.shell.messages import say
from capplan.cli.shell.target import is_network, read_target, scenario_type
from capplan.cli.shell.terminal import naming
from capplan.errors import InputError
from capplan.models.language.per_dc import is_per_dc
from capplan.models.language.scenario import Option, S, Scenario, changed, defaults_of, options_of
from capplan.models.language.units import parse_count
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.ranges import ValueType, parse_values
from capplan.systems.registry import DEFAULT, every_system, names, system

if TYPE_CHECKING:
    from capplan.planner.demand.demand import Demand


HELP = "File with subscribers and their sessions (.toml), instead of a rate."
RATES = ("tps", "load", "growth")
"""Options of commands, beside those of scenarios, that contradict a demand."""


def demand_texts(path: Path, demand: Demand, scenario: Scenario, texts: Mapping[str, Any]) -> dict[str, str]:
    """Return the scenario options that a demand sets, as typed text; the user's own options take precedence.

    What has no effect in its file is printed on stderr.
    """
    from capplan.planner.demand.forecast import offered

    found = offered(demand, type(scenario), _has_tls(scenario, texts))
    if not demand.stated and "mix" not in found:
        say(f"the mix of requests in {path} has no effect: this system has one kind of session")
    if demand.connections is not None and "reconnects" not in found:
        say(f"[connections] in {path} has no effect without client links that TLS encrypts")
    return found


def _has_tls(scenario: Scenario, texts: Mapping[str, Any]) -> bool:
    """Whether each of the layouts has client links that take handshakes; an option may list several layouts."""
    from capplan.planner.demand.forecast import has_client_tls

    def values(field: str) -> list[str | None]:
        text = texts[field] if field in texts else getattr(scenario, field, None)
        return [None] if text is None else [each.strip() for each in text.split(",")]

    return all(has_client_tls(link, place) for link in values("encryption") for place in values("vpn"))


_SCENARIO = "capplan.scenario"  # key of the scenario type in a context
_GIVEN = "capplan.given"  # key of the options that were given
_DEMAND = "capplan.demand"  # key of the demand that was given


class ScenarioCommand(TyperCommand):
    """A command on a target: the fields of the target's scenario are its options."""

    ranges = False
    """Whether each option takes several values, such as `1..5`."""
    of_network: type[Scenario] | None = None
    """The kind of scenario whose fields are the options for a network; it has none by default."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Read the command line with the options of its target.

        Raises
        ------
        InputError
            When an option belongs to another system.
        """
        ctx.meta[_SCENARIO] = chosen = _target_type(args, _values_taken(super().get_params(ctx))) or self.of_network
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":
                _refuse_foreign(chosen, str(getattr(error, "option_name", "")))
            raise

    def get_params(self, ctx: Any) -> Any:
        """Return the arguments, the options of the scenario, then the command's own."""
        own, chosen = super().get_params(ctx), ctx.meta.get(_SCENARIO)
        arguments = [each for each in own if each.param_type_name == "argument"]
        known = {each.name for each in own}
        of_target = [] if chosen is None else _click_options(chosen, self.ranges)
        fields = [each for each in of_target if each.name not in known]
        others = (each for each in own if each.param_type_name != "argument")
        return [*arguments, *fields, *_demand_option(), *others]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; `given` then returns the scenario's options."""
        chosen = ctx.meta.get(_SCENARIO)
        ctx.meta[_GIVEN] = {} if chosen is None else _taken(chosen, ctx.params)
        _take_demand(ctx, chosen)
        return super().invoke(ctx)


class RangesCommand(ScenarioCommand):
    """A scenario command that takes several values for each option."""

    ranges = True


class NetworkCommand(ScenarioCommand):
    """A scenario command that also takes a network, with an offered rate and objectives."""

    of_network = NetworkQuestion


def given(ctx: typer.Context) -> dict[str, Any]:
    """Return the scenario options that the user gave, by field, as typed."""
    found: dict[str, Any] = ctx.meta[_GIVEN]
    return found


def given_demand(ctx: typer.Context) -> Demand | None:
    """Return the demand that the user gave; None without one."""
    found: Demand | None = ctx.meta[_DEMAND]
    return found


def with_demand_of(path: Path | None, scenario: S) -> S:
    """Return a scenario with the fields that a demand file sets; unchanged without a file.

    Raises
    ------
    InputError
        When the file cannot be read.
    """
    if path is None:
        return scenario
    from capplan.planner.demand.demand import read_demand  # most commands need none

    return with_options(scenario, demand_texts(path, read_demand(path), scenario, {}))


def _take_demand(ctx: Any, chosen: type[Scenario] | None) -> None:
    """Remove `--demand` from a command's parameters, and add what it sets to the given options.

    Raises
    ------
    InputError
        If the target is a network, or another option contradicts the demand.
    """
    path, target = ctx.params.pop("demand"), ctx.params["target"]
    ctx.meta[_DEMAND] = None
    if path is None:
        return
    if chosen is None or is_network(target):
        raise InputError(f"--demand {path} is for systems, and {target} is a network: change its traffic instead")
    from capplan.planner.demand.demand import read_demand  # most commands need none
    from capplan.planner.demand.forecast import contradicted

    texts = ctx.meta[_GIVEN]
    ctx.meta[_DEMAND] = demand = read_demand(path)
    given = [name for name in contradicted(demand, chosen) if name in texts]
    given += [name for name in RATES if ctx.params.get(name) is not None and (name != "growth" or demand.years)]
    if given:
        raise InputError(
            f"--demand {path} and {flag(given[0])} exclude each other: the file has it, so give one of them"
        )
    ctx.meta[_GIVEN] = {**texts, **demand_texts(path, demand, read_target(target).scenario, texts)}


def _taken(scenario: type[Scenario], parameters: dict[str, Any]) -> dict[str, Any]:
    """Remove the scenario's options from a command's parameters; return those that were given, by field."""
    taken = {field: parameters.pop(field, None) for field in (*options_of(scenario), *scenario.STATEMENT)}
    given = {field: _recorded(field, value) for field, value in taken.items() if value is not None and value != ()}
    return scenario.of_statement(given, flag)


def _recorded(field: str, value: Any) -> Any:
    """Return what a record of a node says, if a file is given for its pauses, and say what was read of it."""
    if field != "gc" or not Path(value).is_file():
        return value
    from capplan.evidence.importers.pause_records import read_pauses  # most commands need none

    found, remarks = read_pauses(Path(value))
    for each in (f"{value}: {found}", *remarks):
        say(each)
    return str(found)


def _values_taken(parameters: Sequence[Any]) -> dict[str, bool]:
    """Return whether each option takes a value, by the option as typed."""
    return {
        name: not getattr(each, "is_flag", False)
        for each in parameters
        for name in (*each.opts, *each.secondary_opts)
        if name.startswith("-")
    }


def _target_type(args: Sequence[str], own: Mapping[str, bool]) -> type[Scenario] | None:
    """Return the scenario type of the target on a command line; None for a network."""
    word = _first_argument(args, own)
    if word is not None and word.endswith((".toml", ".json")) and not Path(word).is_file():
        read_target(word)  # refuses it, before options are taken for those of the default system
    if word is None or not (word in names() or (word.endswith((".toml", ".json")) and Path(word).is_file())):
        return scenario_type(DEFAULT)
    return None if is_network(word) else scenario_type(word)


def _first_argument(args: Sequence[str], own: Mapping[str, bool]) -> str | None:
    """Return the first word that is neither an option nor the value of one."""
    words = iter(args)
    for word in words:
        if not word.startswith("-"):
            return word
        if "=" not in word and (own[word] if word in own else _takes_value(word)):
            next(words, None)
    return None


def _takes_value(option: str) -> bool:
    """Whether an option of any scenario takes a value; the default system, which is needed anyway, is asked first."""
    for name in dict.fromkeys((DEFAULT, *names())):
        kind: type[Scenario] = system(name).scenario
        taken = _values_taken(_click_options(kind, False))
        if option in taken:
            return taken[option]
    return False


@lru_cache(maxsize=16)
def _click_options(scenario: type[Scenario], ranges: bool) -> list[Any]:
    """Return a scenario's options as click parameters."""
    hints = get_type_hints(scenario)
    declared = [_parameter(name, option, hints[name], ranges) for name, option in options_of(scenario).items()]
    declared += [_parameter(name, option, str | None, False) for name, option in scenario.STATEMENT.items()]
    return _in_click(declared)


@lru_cache(maxsize=1)
def _demand_option() -> list[Any]:
    """Return the option `--demand`."""
    return _in_click([_declared("demand", Path | None, typer.Option(metavar="FILE", help=HELP))])


def _in_click(declared: Sequence[Parameter]) -> list[Any]:
    """Return declared options as click parameters."""

    def carrier(**_: Any) -> None:
        """Carry the options: typer derives them from a signature."""

    carrier.__signature__ = Signature(declared)  # type: ignore[attr-defined]  # typer reads it
    carrier.__annotations__ = {each.name: each.annotation for each in declared}
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(carrier)
    return [each for each in get_command(app).params if each.param_type_name == "option"]


def _declared(field: str, annotation: Any, option: Any) -> Parameter:
    return Parameter(field, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, option])


def _parameter(field: str, option: Option, hint: Any, ranges: bool) -> Parameter:
    kinds = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
    if bool in kinds and not ranges:
        return _declared(field, bool | None, typer.Option(_switch(field), help=option.help))
    several = get_origin(hint) is tuple
    usual = "TEXT" if several else "RANGE" if ranges else "N" if int in kinds else None
    metavar = "YES,NO" if bool in kinds else option.metavar or usual
    return _declared(
        field, list[str] | None if several else str | None, typer.Option(metavar=metavar, help=option.help)
    )


def flag(name: str) -> str:
    """Return an option as typed: `--cass-nodes`."""
    return f"--{name.replace('_', '-')}"


def typed(scenario: type[Scenario], field: str) -> str:
    """Return a field's option as typed: `--cass-nodes`, `--proxy/--no-proxy`."""
    return _switch(field) if get_type_hints(scenario)[field] is bool else flag(field)


def _switch(field: str) -> str:
    return f"{flag(field)}/--no-{flag(field)[2:]}"


def described_options(scenario: type[Scenario]) -> dict[str, str]:
    """Return a scenario's options as typed, with their meaning and defaults."""
    usual = defaults_of(scenario)
    return {
        typed(scenario, field): f"{option.help.rstrip('.')}{_usual(usual[field])}"
        for field, option in options_of(scenario).items()
    } | {flag(name): option.help.rstrip(".") for name, option in scenario.STATEMENT.items()}


def _usual(default: Any) -> str:
    """Return the default in parentheses; empty if there is none or it is off."""
    if default is None or default is False or default == ():
        return ""
    return f" ({'on' if default is True else default})"


def _refuse_foreign(scenario: type[Scenario] | None, option: str) -> None:
    """Refuse an option that belongs to other systems only, naming them; a network has no such options."""
    name = option.removeprefix("--").removeprefix("no-").replace("-", "_")
    scenarios: dict[str, type[Scenario]] = {each.name: each.scenario for each in every_system()}
    others = [its for its, kind in scenarios.items() if name in {**options_of(kind), **kind.STATEMENT}]
    if not others:
        return
    whose = listed(others)
    if scenario is None:
        raise InputError(f"{option} is an option of {whose}, and the target is a network: change the file instead")
    own = ", ".join(map(flag, (*options_of(scenario), *scenario.STATEMENT)))
    its_name = defaults_of(scenario)["system"]
    for field, known in options_of(scenario).items():
        if name in known.instead_of:
            meaning = f"{known.help[0].lower()}{known.help[1:].rstrip('.')}"
            raise InputError(f"{option} is not an option of {its_name}, which has {flag(field)} instead: {meaning}")
    raise InputError(f"{option} is an option of {whose}, not of {its_name}, which takes {own}")


def with_options(scenario: S, texts: Mapping[str, Any]) -> S:
    """Return the scenario with options from the command line.

    Raises
    ------
    InputError
        When one cannot be read or breaks a rule, or two of them exclude each other.
    """
    options, hints = options_of(type(scenario)), get_type_hints(type(scenario))
    emptied = dict.fromkeys(replaced_fields(type(scenario), texts))
    fields: dict[str, Any] = {}
    for field, text in texts.items():
        fields[field] = tuple(text) if isinstance(text, list) else text
        read = options[field].read or (parse_count if _is_count(hints[field]) else None)
        if read is not None and isinstance(text, str):
            with naming(flag(field)):
                fields[field] = read(text)
    return changed(scenario, **{**emptied, **fields})


def _is_count(hint: Any) -> bool:
    return int in {hint, *get_args(hint)} and not is_per_dc(hint)


def values_given(option: str, text: str, its: ValueType) -> tuple[Any, ...]:
    """Return the values of an option that takes several."""
    with naming(flag(option)):
        return parse_values(text, its)


def say_what_has_no_effect(layouts: Iterable[Scenario]) -> None:
    """Print on stderr which fields were set but have no effect in any of the layouts."""
    each = [scenario.without_effect() for scenario in layouts]
    for sentence in each[0] if each else ():
        if all(sentence in others for others in each):
            say(f"{sentence}")


def replaced_fields(scenario: type[Scenario], texts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that the command-line options replace.

    Raises
    ------
    InputError
        When one of them is given, too.
    """
    options = options_of(scenario)
    for field in texts:
        for other in options[field].replaces:
            if other in texts:
                one, two = sorted(map(flag, (field, other)))
                raise InputError(f"{one} and {two} exclude each other: give one of them")
    return tuple(other for field in texts for other in options[field].replaces)
