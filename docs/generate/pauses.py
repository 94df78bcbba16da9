"""Write docs/reference/gc-pauses.md and the prior that it describes: pauses of Cassandra nodes, by measured runs.

A quantity of a new cluster is lognormal. Each source of runs has one mean logarithm, and the mean and the deviation of
these are estimated from the sources, with equal weights: sources differ far more than the runs of one. The deviation
for a new cluster includes the error of the mean and is as wide as a 90 % interval of Student's distribution.

Run from anywhere: `uv run python docs/generate/pauses.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import reload
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from capplan.models.cassandra.pauses import node_pauses
from capplan.systems.components.pauses import parameters

DOCS = Path(__file__).resolve().parents[1]
PAGE, TEMPLATE = DOCS / "reference" / "gc-pauses.md", DOCS / "generate" / "pauses.md"
PRIOR = Path(parameters.__file__).with_name(parameters.FILE)
FIGURES = {
    "garbage_bytes": "garbage",
    "pause_s": "mean length",
    "pause_scatter": "deviation",
    "share": "share of the time",
}


QUANTITIES = ("garbage_bytes", "pause_s", "pause_scatter")
"""What is estimated: garbage of an operation, mean length, standard deviation of the lengths over their mean."""
_BAND = 0.9


@dataclass(frozen=True)
class Spread:
    """A lognormal prior.

    Attributes
    ----------
    median : float
        Its median, in SI units.
    log_sd : float
        Standard deviation of its logarithm.
    sources : int
        Sources that it was estimated from.
    """

    median: float
    log_sd: float
    sources: int


@dataclass(frozen=True)
class LeftOut:
    """A run predicted from the other sources.

    Attributes
    ----------
    source, run, machine : str
        The run, and what it ran on: `server`, `laptop`, `container` or `example`.
    figure : str
        `share` of the time, or a quantity.
    seen : float
        As measured.
    low, median, high : float
        The predicted 90 % band.
    """

    source: str
    run: str
    machine: str
    figure: str
    seen: float
    low: float
    median: float
    high: float

    @property
    def inside(self) -> bool:
        """Whether the band holds the measurement."""
        return self.low <= self.seen <= self.high


def runs(use: str | None = "fit") -> pd.DataFrame:
    """Return the measured runs with the quantities that follow from their figures.

    Parameters
    ----------
    use : str or None
        Only runs of this use, `fit` or `unused`; None for all.

    Returns
    -------
    DataFrame
        The columns of `runs.csv`, the quantities, the `young_bytes` collected at once and the `share` of the time.
    """
    with (files("capplan.systems.components.pauses") / "runs.csv").open(encoding="utf-8") as file:
        found = pd.read_csv(file)
    found["garbage_bytes"] = found.collected_mb * 1e6 / found.operations
    found["pause_s"] = found.mean_ms / 1e3
    found["pause_scatter"] = found.sd_ms / found.mean_ms
    found["young_bytes"] = (found.collected_mb * 1e6 / found.pauses).fillna(found.young_mib * 2**20)
    found["share"] = found.pauses * found.pause_s / found.interval_s
    return found if use is None else found[found.use == use]


def spread(quantity: str, without: str | None = None) -> Spread:
    """Return the prior of a quantity for a cluster that is none of the sources.

    Parameters
    ----------
    quantity : str
        One of `QUANTITIES`.
    without : str, optional
        A source to leave out.
    """
    found = runs()
    found = found[(found.source != without) & (found[quantity] > 0)]
    logs = np.log(found[quantity]).groupby(found.source).mean()
    count = len(logs)
    tails = float(t.ppf((1 + _BAND) / 2, count - 1) / norm.ppf((1 + _BAND) / 2))
    return Spread(float(np.exp(logs.mean())), float(logs.std() * np.sqrt(1 + 1 / count)) * tails, count)


def left_out() -> list[LeftOut]:
    """Predict every run from the other sources: its quantities, and its share where its rate is known."""
    return [each for _, row in runs().iterrows() for each in _of_run(row)]


def _of_run(row: pd.Series) -> list[LeftOut]:
    priors = {name: spread(name, row.source) for name in QUANTITIES}
    bands = {name: (each.median, each.log_sd) for name, each in priors.items()}
    if row.operations_per_s > 0:
        medians = {name: each.median for name, each in priors.items()}
        share = float(node_pauses({**medians, "young_bytes": row.young_bytes}, row.operations_per_s, 1.0).share)
        bands["share"] = (share, float(np.hypot(priors["garbage_bytes"].log_sd, priors["pause_s"].log_sd)))
    return [
        LeftOut(row.source, row.run, row.machine, name, float(row[name]), *_band(median, log_sd))
        for name, (median, log_sd) in bands.items()
        if row[name] > 0
    ]


def _band(median: float, log_sd: float) -> tuple[float, float, float]:
    reach = float(np.exp(norm.ppf((1 + _BAND) / 2) * log_sd))
    return median / reach, median, median * reach


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
