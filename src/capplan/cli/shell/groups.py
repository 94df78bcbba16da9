"""Command groups that refuse unknown names in one sentence and import a command only when it is called.

The register of commands: `capplan --help` is printed from it, and a command's module is imported when it runs.

The function `next_test_` of `capplan.cli.next_test` is the command `next-test`; `lab_` is a group of commands.
"""

from __future__ import annotations

import os
import sys
from collections import ChainMap
from collections.abc import Collection
from importlib import import_module
from typing import Any, Literal, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from capplan.cli.shell.messages import say
from capplan.errors import InputError, closest, nearest


class Verb(NamedTuple):
    """One command.

    Attributes
    ----------
    about : str
        The line in `capplan --help`.
    options : str
        Whether the command has its `own` options only, those of its target's `scenario` too, those and the ones of a
        `network`, or `ranges` of them.
    """

    about: str
    options: Literal["own", "scenario", "network", "ranges"] = "own"


# Commands that work, in the order of `capplan --help`.
TOPICS = {
    "What a layout does": {
        "predict": Verb("Predict capacity and latency of a layout or a network.", "network"),
        "simulate": Verb("Simulate a layout or a network, request by request.", "scenario"),
        "sweep": Verb("Predict many layouts at many rates, as a table and a plot.", "ranges"),
        "compare": Verb("Compare two layouts under common random numbers."),
        "outages": Verb("Show what a loss leaves, the minutes around it, and recovery.", "network"),
        "check": Verb("Check the objectives of a file in every situation."),
        "serve": Verb("Serve a JSON API and the what-if page on this machine."),
    },
    "What to buy": {
        "demand": Verb("Turn subscribers into rates over time and data on disk."),
        "size": Verb("Find the cheapest layout that meets its objectives.", "ranges"),
        "proposal": Verb("Write a sizing as a proposal: a page, a PDF or a workbook.", "ranges"),
        "verify": Verb("Compute a proposal again and name figures that differ."),
    },
    "Your own cluster": {
        "evidence": Verb("Import and audit load tests; list and audit documents."),
        "calibrate": Verb("Fit a system to its evidence and write the fitted file."),
        "backtest": Verb("Predict rows of a load-test table that a fit has not seen."),
        "next-test": Verb("Say which load test would tell most about a figure.", "scenario"),
        "drift": Verb("Say which claims of a saved answer still hold."),
    },
    "Measure": {
        "lab": Verb("Run a real Cassandra cluster on this machine."),
        "collect": Verb("Measure one part of a real server."),
    },
    "Documented systems": {
        "systems": Verb("List the systems and their layout options."),
        "validate": Verb("Compare a calibrated system with evidence and simple rules."),
    },
}
"""The commands under the headings of `capplan --help`."""

VERBS = ChainMap(*reversed(TOPICS.values()))
"""The commands of all headings by name, in the order of `--help`."""


INTERRUPTED = 130
READER_GONE = 141  # what a shell reports for a program ended by SIGPIPE


def hint(word: str, known: Collection[str], see: str) -> str:
    """Suggest the known word closest to `word`; if none is close, name the command that lists them."""
    return nearest(word, known) if closest(word, sorted(known)) else f"; see '{see}'"


class Commands(TyperGroup):
    """Commands by name."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called.

        Raises
        ------
        InputError
            When there is none of that name.
        """
        known = self.list_commands(ctx)
        if args[0] not in known:
            raise InputError(f"{args[0]!r} is not a command{hint(args[0], known, f'{ctx.command_path} --help')}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or refuse a call without one."""
        if not ctx._protected_args:
            known = ", ".join(self.list_commands(ctx))
            raise InputError(f"'{ctx.command_path}' needs a command; known: {known}")
        return super().invoke(ctx)


class Verbs(Commands):
    """The registered commands, each imported when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names for the help, without importing anything."""
        del ctx
        return list(VERBS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by topic, in one column."""
        del ctx
        width = max(map(len, VERBS))
        for topic, verbs in TOPICS.items():
            with formatter.section(topic):
                formatter.write_dl([(name.ljust(width), verb.about) for name, verb in verbs.items()])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what the help needs to list a command."""
        del ctx
        return TyperCommand(cmd_name, help=VERBS[cmd_name].about) if cmd_name in VERBS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find and import the command that is called."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(name), rest

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit silently if the output pipe closes, and report an interrupt in one word."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # for the flush at exit
            raise typer.Exit(READER_GONE) from None
        except KeyboardInterrupt:  # typer would exit silently
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        return result


def _imported(name: str) -> Any:
    return getattr(import_module(f"capplan.cli.{name}"), f"{name}_")


def _command_class(options: str) -> Any:
    if options == "own":
        return TyperCommand
    from capplan.cli.shell.scenario_command import NetworkCommand, RangesCommand, ScenarioCommand  # reads the systems

    return {"ranges": RangesCommand, "network": NetworkCommand, "scenario": ScenarioCommand}[options]


def load(name: str) -> Any:
    """Import a registered command."""
    found = _imported(name.replace("-", "_"))
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name, cls=_command_class(VERBS[name].options))(found)
    return typer.main.get_command(alone)
