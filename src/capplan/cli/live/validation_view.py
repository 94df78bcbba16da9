"""A live validation for people: each figure predicted, measured, and judged."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console

from capplan.cli.views.lines import paragraph, put
from capplan.cli.views.lines import table as lines_table
from capplan.planner.live import words
from capplan.planner.live.answer import LiveValidation

_TITLE = ("load", "quantity", "predicted (band)", "measured", "error", "right")


def render(found: LiveValidation, console: Console) -> None:
    """Print the table, the reasons, and what it rests on."""
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        put(console, cluster[0].upper() + cluster[1:], "bold")
        rows = list(map(words.cells, figures))
        if not lines_table(console, _TITLE, rows):
            _stacked(rows, console)
        for sentence in [*words.round_trips(figures), *words.reasons(figures)]:
            paragraph(console, sentence, hanging=2)
        put(console)
    paragraph(console, words.LEGEND)
    put(console)
    _rest(found, console)


def _stacked(rows: list[tuple[str, ...]], console: Console) -> None:
    """Print two lines for each figure, where a table is too wide."""
    for load, quantity, predicted, measured, error, verdict in rows:
        put(console, f"{load}, {quantity}")
        put(console, f"    predicted {predicted}, measured {measured or 'nothing'}, {error or 'no error'}: {verdict}")


def _rest(found: LiveValidation, console: Console) -> None:
    parts = [f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS]
    paragraph(console, f"{len(found.figures)} figures: {', '.join(parts)}.")
    paragraph(
        console,
        f"Fitted to {found.fitted_runs} runs. {found.left_out_runs} runs were left out: the load generator was their "
        f"bottleneck. Other processes disturbed {found.disturbed_runs} runs.",
        hanging=2,
    )
    if found.audit:
        paragraph(console, f"Audit of the fitted runs: {', '.join(found.audit)}.", hanging=2)
    put(console, f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    put(console, f"Predictions: {found.predictions}")
    put(console, f"SHA-256: {found.sha256}")
