"""The entry point `capplan`: runs a command and reports bad input in one sentence.

Exit codes: 0 answered, 1 answered "no", 2 bad input, 130 interrupted, 141 closed output pipe.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, runtime_checkable

import typer

from capplan.cli.shell.groups import Verbs, hint
from capplan.models.errors import InputError

BAD_INPUT = 2
INTERRUPTED = 130


@runtime_checkable
class _UsageError(Protocol):
    """What typer raises about the command line itself; where its class stands depends on typer's version."""

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


def run() -> None:
    """Run the command line of this process and exit."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices: more threads cost more than they save
    gc.set_threshold(
        100_000, 50, 100
    )  # a command's objects live to its end: collecting garbage took a tenth of the time
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run the command line with `arguments`; return the exit code."""
    try:
        command = typer.main.get_command(app)
        result = command.main(list(arguments) or ["--help"], prog_name="capplan", standalone_mode=False)
    except InputError as error:
        return _refuse(str(error))
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("capplan: interrupted\n")
        return INTERRUPTED
    except Exception as error:
        if not isinstance(error, _UsageError):
            raise
        return _refuse(_sentence(error))
    return result if isinstance(result, int) else 0


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"capplan: {sentence}\n")
    return BAD_INPUT


def _sentence(error: _UsageError) -> str:
    """Return in one sentence what is wrong with the command line."""
    message, context = " ".join(error.format_message().split()).rstrip("."), error.ctx
    option = getattr(error, "option_name", None)
    if context is None:
        return message
    if option is not None and message.startswith("No such option"):
        known = [name for parameter in context.command.get_params(context) for name in parameter.opts]
        return f"{option!r} is not an option{hint(option, known, f'{context.command_path} --help')}"
    if rule := _broken_rule(error):
        return rule
    return f"{message[:1].lower()}{message[1:]}; see '{context.command_path} --help'"


_RULES = {
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "is not a whole number: write one such as 3"),
    **dict.fromkeys(("float_parsing", "float_type"), "is not a number: write one such as 2.5"),
    "greater_than_equal": "is too small: give at least {ge}",
    "less_than_equal": "is too large: give at most {le}",
}


def _broken_rule(error: _UsageError) -> str | None:
    """Return in one sentence which rule of pydantic the value of an option breaks, by which typer reads it."""
    from pydantic import ValidationError  # slow to import

    report, parameter = error.__cause__, getattr(error, "param", None)
    if not isinstance(report, ValidationError) or parameter is None:
        return None
    first = report.errors(include_url=False)[0]
    if first["type"] not in _RULES:
        return None
    name = (*parameter.opts, parameter.name)[0] if parameter.param_type_name == "option" else parameter.name
    return f"{name} {first['input']} {_RULES[first['type']].format(**first.get('ctx', {}))}"
