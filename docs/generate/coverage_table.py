"""Tables of docs/reference/accuracy.md about confidence intervals, made from docs/reference/coverage.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEADS = {
    "replications": ("system", "requests", "figure", "contain the truth", "half-width"),
    "short replications": ("system", "requests", "figure", "contain the truth", "half-width"),
    "one run": ("system", "requests", "figure", "contain the truth", "half-width"),
    "precision": ("system", "requests", "precision", "replications", "figure", "contain the truth", "half-width"),
}
NUMBERS = ("requests", "replications", "half-width")


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the tables by their keys in the template: the names of the procedures, with underscores."""
    return {procedure.replace(" ", "_"): _table(result, procedure) for procedure in HEADS}


def _table(result: dict[str, Any], procedure: str) -> str:
    heads = HEADS[procedure]
    rows = [
        [row[head] for head in heads]
        for trial in result["trials"]
        if trial["procedure"] == procedure
        for row in _rows(trial)
    ]
    ruler = ["---:" if head in NUMBERS else "---" for head in heads]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (list(heads), ruler, *rows))


def _rows(trial: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the cells of a trial."""
    for each in trial["intervals"]:
        held, low, high = (f"{100 * share:.1f}" for share in each["coverage"])
        yield {
            "system": trial["trial"]["system"],
            "requests": f"{trial['trial']['requests']:,}",
            "precision": trial["trial"]["precision"],
            "replications": f"{trial['mean_replications']:.1f}",
            "figure": each["statistic"],
            "contain the truth": f"**{held} %** ({low} to {high})",
            "half-width": f"{each['half_width']:.1%}".replace("%", " %"),
        }
