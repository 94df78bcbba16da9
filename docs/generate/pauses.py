"""Write docs/reference/gc-pauses.md and the prior that it describes: pauses of Cassandra nodes, by measured runs.

Run from anywhere: `uv run python docs/generate/pauses.py`.
"""

from __future__ import annotations

from importlib import reload
from pathlib import Path

import numpy as np

from capplan.systems.components.pauses import parameters
from capplan.systems.components.pauses.prior import QUANTITIES, LeftOut, left_out, runs, spread

DOCS = Path(__file__).resolve().parents[1]
PAGE, TEMPLATE = DOCS / "reference" / "gc-pauses.md", DOCS / "generate" / "pauses.md"
PRIOR = Path(parameters.__file__).with_name(parameters.FILE)
FIGURES = {
    "garbage_bytes": "garbage",
    "pause_s": "mean length",
    "pause_scatter": "deviation",
    "share": "share of the time",
}


def prior() -> str:
    """Return the file of the prior."""
    parts = ["# Generated from runs.csv by docs/generate/pauses.py.\n"]
    for name in QUANTITIES:
        own = spread(name)
        parts.append(f"[{name}]\nmedian = {own.median:.4g}\nlog_sd = {own.log_sd:.3g}\nsources = {own.sources}\n")
    return "\n".join(parts)


def page() -> str:
    """Return the page."""
    predicted = left_out()
    parts = {
        "PRIOR": _prior(),
        "SOURCES": _sources(),
        "HEADS": " | ".join(FIGURES.values()),
        "RULES": "---|" * len(FIGURES),
        "INSIDE": _inside(predicted),
        "SENTENCE": _sentence(predicted),
        "UNUSED": _unused(),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def _prior() -> str:
    rows = []
    for each in parameters.PAUSES:
        low, high = (each.value * np.exp(sign * 1.645 * each.log_sd) for sign in (-1, 1))
        unit = "" if each.unit == "1" else f" {each.unit}"
        rows.append(f"| `{each.name}` | {each.value:.3g}{unit} | {low:.2g} to {high:.2g} | {each.source} |")
    return "\n".join(rows)


def _sources() -> str:
    rows = []
    for source, own in runs().groupby("source", sort=False):
        means = [float(np.exp(np.log(own[name][own[name] > 0]).mean())) for name in QUANTITIES]
        garbage, length, scatter = (
            "" if np.isnan(each) else f"{each:.3g}" for each in np.array(means) * [1e-3, 1e3, 1]
        )
        rows.append(f"| {source} | {len(own)} | {garbage} | {length} | {scatter} |")
    return "\n".join(rows)


def _inside(predicted: list[LeftOut]) -> str:
    rows = []
    for machine in ("server", "laptop", "container", "example"):
        cells = []
        for figure in FIGURES:
            own = [each for each in predicted if (each.machine, each.figure) == (machine, figure)]
            cells.append(f"{sum(each.inside for each in own)} of {len(own)}" if own else "")
        rows.append(f"| {machine} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _sentence(predicted: list[LeftOut]) -> str:
    """Return how many sources have all their runs in the band, by figure."""
    words = []
    for figure, name in FIGURES.items():
        own = [each for each in predicted if each.figure == figure]
        every = {each.source for each in own}
        held = every - {each.source for each in own if not each.inside}
        words.append(f"{name} {len(held)} of {len(every)}")
    return (
        f"Sources whose runs all lie in their bands: {', '.join(words)}. Most runs outside are those of one laptop, "
        "`rtfap2`, whose collections took 7 to 18 ms: the band was too high for it."
    )


def _unused() -> str:
    rows = runs(None)
    rows = rows[rows.use != "fit"]
    return "\n".join(f"| {each.source} | {each.run} | {each.reason} |" for each in rows.itertuples())


if __name__ == "__main__":
    PRIOR.write_text(prior(), encoding="utf-8")
    reload(parameters)
    PAGE.write_text(page(), encoding="utf-8")
