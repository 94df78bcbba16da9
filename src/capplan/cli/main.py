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

from capplan.cli.groups import Verbs, hint
from capplan.models.errors import InputError

BAD_INPUT = 2
INTERRUPTED = 130


@runtime_checkable
class _UsageError(Protocol):
    """What typer raises about the command line itself; where its class stands depends on typer's version."""

    ctx: Any

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
    return f"{message[:1].lower()}{message[1:]}; see '{context.command_path} --help'"
