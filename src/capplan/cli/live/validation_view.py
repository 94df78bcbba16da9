"""A live validation for people: each figure predicted, measured, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from capplan.cli.views.lines import columns, paragraph, put
from capplan.planner.live import words
from capplan.planner.live.answer import LiveFigure, LiveValidation

_TITLE = ("load", "quantity", "predicted (band)", "measured", "error", "right")


def render(found: LiveValidation, console: Console) -> None:
    """Print the figures of each cluster, why some are not judged, and what all rests on."""
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        put(console, cluster[0].upper() + cluster[1:], "bold")
        _figures(figures, console)
        for sentence in [*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)]:
            paragraph(console, sentence, hanging=2)
        put(console)
    paragraph(console, words.LEGEND)
    put(console)
    _rest(found, console)


def _figures(figures: Sequence[LiveFigure], console: Console) -> None:
    """Print a table, with a line before the figures of each statement; a list where it is too wide."""
    lines = columns([_TITLE, *map(words.cells, figures)])
    if max(map(len, lines)) > console.width:
        for each in figures:
            load, quantity, predicted, measured, error, verdict = words.cells(each)
            put(console, f"{words.statement(each)}, {load}, {quantity}")
            put(console, f"    predicted {predicted}, measured {measured or '-'}, error {error or '-'}: {verdict}")
        return
    put(console, lines[0], "bold")
    last = ""
    for each, line in zip(figures, lines[1:], strict=True):
        if (said := words.statement(each)) != last:
            put(console, said, "cyan")
            last = said
        put(console, line)


def _rest(found: LiveValidation, console: Console) -> None:
    parts = [f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS]
    paragraph(console, f"{len(found.figures)} figures: {', '.join(parts)}.")
    paragraph(
        console,
        f"Fitted to {found.fitted_runs} runs. Left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Disturbed by other processes: {found.disturbed_runs}.",
        hanging=2,
    )
    if found.audit:
        paragraph(console, f"Audit of the fitted runs: {', '.join(found.audit)}.", hanging=2)
    put(console, f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    put(console, f"Predictions: {found.predictions}")
    put(console, f"SHA-256: {found.sha256}")
