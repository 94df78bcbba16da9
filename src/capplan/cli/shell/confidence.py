"""The option `--confidence`, and the exit code of a verdict: the same for every verb that judges."""

from __future__ import annotations

from typing import Annotated

import typer

from capplan.models.verdict import Answer

Confidence = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Probability with which the rate must be carried and the objectives must hold; 90% accepts a risk of 10%.",
    ),
]
DEFAULT_CONFIDENCE = "90%"


def exit_by(answer: Answer | None) -> None:
    """End with exit code 1 if the answer is *no* or *uncertain*; go on if it is *yes*, or nothing was judged."""
    if answer not in (None, "yes"):
        raise typer.Exit(1)
