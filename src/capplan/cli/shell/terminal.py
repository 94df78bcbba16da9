"""Options that commands share, and output as text, JSON, CSV or a plot."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from capplan.answers.results import plain
from capplan.answers.verdict import Answer
from capplan.errors import InputError, one_of
from capplan.files import check_replaceable
from capplan.models.language.units import check_number, parse_duration_s
from capplan.visible_text import cell, visible

if TYPE_CHECKING:
    from pandas import DataFrame

    from capplan.reports.document import Block


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
WithRefused = Annotated[bool, typer.Option("--with-refused", help="Believe rows that the audit refuses, too.")]
TABLE_ENDINGS = (".csv", ".parquet")
PLOT_ENDINGS = (".html", ".png", ".svg")
PLOT_HELP = "Write the plot to this .html, .svg or .png file."
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]
TableFile = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write the table to this .csv or .parquet file.", show_default=False)
]
LatencyEngine = Annotated[str, typer.Option(metavar="NAME", help="What latencies come from: compiled or analytic.")]


NoLimits = Annotated[bool, typer.Option("--no-limits", help="Accept more than an hour of work, or 4 GiB of memory.")]
NoTimeLimit = Annotated[bool, typer.Option("--no-limits", help="Accept more than an hour of work.")]
NoSolvingLimit = Annotated[bool, typer.Option("--no-limits", help="Accept more than a minute of solving.")]


class Screen(Console):
    """Stdout for people: 80 columns and no colour when it is not a terminal; texts are data, never markup."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Escape control characters that a terminal would act on; answers also contain text from files."""
        for each in super().render(renderable, options):
            text = each.text if each.control else visible(each.text, lines=True)
            yield each if text is each.text else Segment(text, each.style)

    def on_broken_pipe(self) -> None:
        """Let the entry point handle it."""
        raise BrokenPipeError


def print_rows(
    value: Any,
    rows: tuple[Sequence[str], Iterable[Sequence[Any]]],
    described: Callable[[], Iterable[Block]],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Print data: as JSON, as CSV (a header and rows), or described for people."""
    if as_json:
        write_json(value)
    elif as_csv:
        write_csv(*rows)
    else:
        from capplan.reports.screen import show  # JSON and CSV need no tables of rich

        show(described(), Screen())


def print_answer(answer: Any, described: Callable[[], Iterable[Block]], as_json: bool, as_csv: bool = False) -> None:
    """Print what a verb answers: as JSON, as CSV, or described for people.

    Parameters
    ----------
    answer : VerbAnswer
        The answer; with `to_frame`, where CSV is offered.
    described : function
        Returns the description in blocks.
    as_json, as_csv : bool
        The formats that were asked for; text if none was.
    """
    if as_csv and not as_json:
        write_frame(answer.to_frame())
    else:
        print_rows(answer.to_json() if as_json else None, ((), ()), described, as_json, as_csv=False)


def refuse_both(as_json: bool, as_csv: bool) -> None:
    """Refuse two formats at once.

    Raises
    ------
    InputError
        When both are given.
    """
    if as_json and as_csv:
        raise InputError("--json and --csv exclude each other: give only one")


def check_output(path: Path | None, endings: Collection[str] = ()) -> None:
    """Check an output path before the computation, which may take minutes.

    Raises
    ------
    InputError
        When its ending names no format that can be written, there is no such folder, or something else than a file is
        there already.
    """
    if path is None:
        return
    if endings and path.suffix.lower() not in endings:
        *most, last = sorted(endings)
        found = f"ends in {path.suffix}" if path.suffix else "has no ending"
        raise InputError(f"{str(path)!r} {found}, and the ending decides the format: write {', '.join(most)} or {last}")
    check_replaceable(path)


def check_plot(path: Path | None) -> None:
    """Check the path of a plot before the computation.

    Raises
    ------
    InputError
        When it cannot be written, or pictures cannot be drawn here.
    """
    check_output(path, PLOT_ENDINGS)
    if path is not None and path.suffix.lower() != ".html":
        from capplan.reports.figure import check_drawing  # slow to import

        check_drawing(path)


def write_json(value: Any) -> None:
    """Print frozen data as JSON."""
    sys.stdout.write(json.dumps(plain(value), indent=2, ensure_ascii=not _shows_unicode()) + "\n")


def _shows_unicode() -> bool:
    """Whether stdout takes every character; where it does not, JSON has escapes of its own."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def write_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as CSV; a missing or unbounded number is an empty cell."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([cell(each) if isinstance(each, str) else each for each in plain(row)] for row in rows)


def write_frame(frame: DataFrame) -> None:
    """Print a data frame as CSV; a missing or unbounded number is an empty cell, as it is null in JSON."""
    frame.mask(frame.isin([math.inf, -math.inf])).to_csv(
        sys.stdout, index=False, float_format="%.15g", lineterminator="\n"
    )


Confidence = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Probability with which the rate must be carried and the objectives must hold; 90% accepts a risk of 10%.",
    ),
]
DEFAULT_CONFIDENCE = "90%"


def exit_by(answer: Answer | None) -> None:
    """End with exit code 1 if the answer is *no* or *uncertain*; continue if it is *yes* or nothing was judged."""
    exit_unless(answer in (None, "yes"))


def exit_unless(good: bool) -> None:
    """End with exit code 1 unless the answer is good."""
    if not good:
        raise typer.Exit(1)


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Name the option in the refusal of its value."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


def seconds(option: str, text: str, above: float | None = None) -> float:
    """Return the time that an option gives; it is finite, and not negative or above a bound."""
    with naming(option):
        return float(check_number(parse_duration_s(text), "duration in seconds", above=above, bounded=True))


E = TypeVar("E", bound=str)


def chosen_engine(name: str, known: tuple[E, ...], refusal: str) -> E:
    """Return the engine with this name, as one of the command's engine names.

    Parameters
    ----------
    name : str
        As it was typed.
    known : tuple of str
        The engines of the verb.
    refusal : str
        What another engine fails to do, such as `does not sweep`.

    Raises
    ------
    InputError
        If the verb has no such engine.
    """
    return one_of(known, name, f"engine {name!r} {refusal}")
