"""The command line: runs a command and reports bad input in one sentence; `process` wraps it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

import typer

from capplan.cli.shell.groups import INTERRUPTED, Verbs, hint
from capplan.cli.shell.messages import say
from capplan.errors import InputError

BAD_INPUT = 2


@runtime_checkable
class _UsageError(Protocol):
    """The error that typer raises about the command line; the module of its class depends on typer's version."""

    ctx: Any
    __cause__: BaseException | None

    def format_message(self) -> str: ...


# Plain help: boxes take a third of the time of `capplan --help` and more of its width.
app = typer.Typer(cls=Verbs, name="capplan", rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"capplan {version('capplan')}")
        raise typer.Exit


@app.callback()
def capplan(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Plan the capacity of Cassandra-backed services: throughput, latency, outages, and how certain they are."""
    del version


def main(arguments: Sequence[str]) -> int:
    """Run the command line with `arguments`; return the exit code."""
    try:
        command = typer.main.get_command(app)
        result = command.main(list(arguments) or ["--help"], prog_name="capplan", standalone_mode=False)
    except InputError as error:
        return _refuse(str(error))
    except (typer.Abort, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    except OSError as error:  # a full disk or a missing permission is not a defect of capplan
        return _refuse(_of_system(error))
    except MemoryError:
        return _refuse("memory is exhausted: ask for less, or use a machine with more")
    except Exception as error:
        if not isinstance(error, _UsageError):
            raise
        return _refuse(_sentence(error))
    return result if isinstance(result, int) else 0


def _refuse(sentence: str) -> int:
    say(sentence)
    return BAD_INPUT


def _of_system(error: OSError) -> str:
    """Return in one sentence what the operating system refused to read or write."""
    where = error.filename
    path = "the answer" if where is None else os.fsdecode(where) if isinstance(where, bytes) else str(where)
    return f"{path} cannot be read or written: {error.strerror or error}"


def _sentence(error: _UsageError) -> str:
    """Return in one sentence what is wrong with the command line."""
    message, context = " ".join(error.format_message().split()).rstrip("."), error.ctx
    option = getattr(error, "option_name", None)
    if context is None:
        return message
    if option is not None and hasattr(error, "possibilities"):  # an unknown one
        known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        return f"{option!r} is not an option{hint(option, known, f'{context.command_path} --help')}"
    if hasattr(error, "param_type") and (missing := getattr(error, "param", None)) is not None:
        return _needed(missing, context)
    if rule := _broken_rule(error):
        return rule
    return f"{message[:1].lower()}{message[1:]}; see '{context.command_path} --help'"


def _needed(missing: Any, context: Any) -> str:
    """Return in one sentence which argument is missing, in the words of the help, and how to give it."""
    needed = [each for each in context.command.params if each.required]
    words = [each.metavar or each.name for each in needed]
    usage = [
        word.upper() if each.param_type_name == "argument" else f"{each.opts[0]} {word.upper()}"
        for each, word in zip(needed, words, strict=True)
    ]
    about = f"{missing.help[:1].lower()}{missing.help[1:]}".rstrip(".")
    return f"'{context.command_path}' needs {about}; write '{' '.join([context.command_path, *usage])}'"


_RULES = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "is not a whole number: write one such as 3"),
    **dict.fromkeys(("float_parsing", "float_type"), "is not a number: write one such as 2.5"),
    "greater_than_equal": "is too small: give at least {ge}",
    "less_than_equal": "is too large: give at most {le}",
}


def _broken_rule(error: _UsageError) -> str | None:
    """Return in one sentence which pydantic rule an option's value breaks; None if the error is a different one."""
    from pydantic import ValidationError  # slow to import

    report, parameter = error.__cause__, getattr(error, "param", None)
    if not isinstance(report, ValidationError) or parameter is None:
        return None
    first = report.errors(include_url=False)[0]
    if first["type"] not in _RULES:
        return None
    name = (*parameter.opts, parameter.name)[0] if parameter.param_type_name == "option" else parameter.name
    return f"{name} {first['input']} {_RULES[first['type']].format(**first.get('ctx', {}))}"
