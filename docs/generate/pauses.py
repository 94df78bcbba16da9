"""Write docs/reference/gc-pauses.md and the prior that it describes: pauses of Cassandra nodes, by measured runs.

A quantity of a new cluster is lognormal. Each source of runs has one mean logarithm, and the mean and the deviation of
these are estimated from the sources, with equal weights: sources differ far more than the runs of one. The deviation
for a new cluster includes the error of the mean and is as wide as a 90 % interval of Student's distribution.

Garbage and relative deviations count from every machine, because they belong to the software. A length belongs to the
machine and to what a collection copies: it counts from servers and examples, unless a run only read.

Run from anywhere: `uv run python docs/generate/pauses.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import reload
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import linregress, norm, t, ttest_ind

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
MACHINES = ("server", "example", "laptop", "container")
"""What runs were measured on; of an example, nobody stated it."""
_SERVERS = ("server", "example")
_READS = "reads"  # the load of a run that writes nothing
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
    source, run, machine, load : str
        The run, what it ran on, and its load: `reads`, `writes` or `service`, which is that of users.
    figure : str
        `share` of the time, or a quantity.
    counts : bool
        Whether the figure's prior for other clusters rests on the run.
    seen : float
        As measured.
    low, median, high : float
        The predicted 90 % band.
    """

    source: str
    run: str
    machine: str
    load: str
    figure: str
    counts: bool
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


def counts(found: pd.DataFrame, figure: str) -> pd.Series:
    """Return which runs the prior of a figure rests on; a share of the time follows from garbage and length.

    A collection copies what survives it, which is mostly what was written since the last flush.
    """
    if figure not in ("pause_s", "share"):
        return found[figure] > 0
    return (found[figure] > 0) & found.machine.isin(_SERVERS) & (found.load != _READS)


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
    return _spread(_logs(found[counts(found, quantity)], quantity).drop(without or [], errors="ignore"))


def _logs(found: pd.DataFrame, quantity: str) -> pd.Series:
    """Return the mean logarithm of each source."""
    return np.log(found[quantity]).groupby(found.source).mean()


def _spread(logs: pd.Series) -> Spread:
    count = len(logs)
    tails = float(t.ppf((1 + _BAND) / 2, count - 1) / norm.ppf((1 + _BAND) / 2))
    return Spread(float(np.exp(logs.mean())), float(logs.std() * np.sqrt(1 + 1 / count)) * tails, count)


def left_out() -> list[LeftOut]:
    """Predict every run from the other sources: its quantities, and its share where its rate is known."""
    found = runs()
    counted = {figure: counts(found, figure) for figure in FIGURES}
    return [
        LeftOut(*row[["source", "run", "machine", "load"]], figure, bool(counted[figure][at]), *values)
        for at, row in found.iterrows()
        for figure, values in _of_run(row).items()
    ]


def _of_run(row: pd.Series) -> dict[str, tuple[float, float, float, float]]:
    """Return each figure of a run and its predicted band."""
    priors = {name: spread(name, row.source) for name in QUANTITIES}
    bands = {name: (each.median, each.log_sd) for name, each in priors.items()}
    if row.operations_per_s > 0:
        medians = {name: each.median for name, each in priors.items()}
        share = float(node_pauses({**medians, "young_bytes": row.young_bytes}, row.operations_per_s, 1.0).share)
        bands["share"] = (share, float(np.hypot(priors["garbage_bytes"].log_sd, priors["pause_s"].log_sd)))
    return {name: (float(row[name]), *_band(*band)) for name, band in bands.items() if row[name] > 0}


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
        "CHOICES": _choices(),
        "LOADS": _loads(),
        "YOUNG": _young(),
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
    for (source, load), own in runs().groupby(["source", "load"], sort=False):
        means = [float(np.exp(np.log(own[name][own[name] > 0]).mean())) for name in QUANTITIES]
        garbage, length, scatter = (
            "" if np.isnan(each) else f"{each:.3g}" for each in np.array(means) * [1e-3, 1e3, 1]
        )
        young = f"{np.exp(np.log(own.young_bytes).mean()) / 1e6:.0f}"
        length += "" if counts(own, "pause_s").all() else " (left out)"
        machine = own.machine.iloc[0]
        rows.append(f"| {source} | {machine} | {load} | {len(own)} | {young} | {garbage} | {length} | {scatter} |")
    return "\n".join(rows)


def _choices() -> str:
    """Return what the prior of the length would be with other sources, and how it predicts those that count."""
    found = runs()
    kept = counts(found, "pause_s")
    choices = {
        "all": found.pause_s > 0,
        "all but runs that only read": found.load != _READS,
        "all but laptops and containers": found.machine.isin(_SERVERS),
        "without both: the prior": kept,
    }
    targets = _logs(found[kept], "pause_s")
    rows = []
    for name, chosen in choices.items():
        logs = _logs(found[chosen], "pause_s")
        others = {source: _spread(logs.drop(source)) for source in targets.index}
        held = sum(_holds(others[source], float(np.exp(log))) for source, log in targets.items())
        low, median, high = (1e3 * each for each in _band(_spread(logs).median, _spread(logs).log_sd))
        rows.append(f"| {name} | {len(logs)} | {median:.0f} ({low:.0f} to {high:.0f}) | {held} of {len(targets)} |")
    return "\n".join(rows)


def _holds(prior: Spread, value: float) -> bool:
    low, _, high = _band(prior.median, prior.log_sd)
    return low <= value <= high


def _loads() -> str:
    """Return how much shorter pauses are in runs that only read."""
    found = runs()
    reads, others = (_logs(found[only], "pause_s") for only in (found.load == _READS, found.load != _READS))
    p = float(ttest_ind(reads, others).pvalue)
    means = (f"{1e3 * np.exp(each.mean()):.0f} ms ({len(each)} sources)" for each in (reads, others))
    return f"{' against '.join(means)}, p = {p:.1g}"


def _young() -> str:
    """Return how the length changes with the young generation."""
    found = runs()
    kept = found[counts(found, "pause_s")]
    young = _logs(kept, "young_bytes")
    fit = linregress(young, _logs(kept, "pause_s"))
    least, most = (np.exp(each) / 1e6 for each in (young.min(), young.max()))
    return (
        f"with its {fit.slope:.2f} power (standard error {fit.stderr:.2f}, p = {fit.pvalue:.1g}; {least:.0f} to "
        f"{most:,.0f} MB)"
    )


def _inside(predicted: list[LeftOut]) -> str:
    rows = []
    for machine in MACHINES:
        for reads in (False, True):
            of = [each for each in predicted if each.machine == machine and (each.load == _READS) == reads]
            cells = []
            for figure in FIGURES:
                own = [each for each in of if each.figure == figure]
                mark = "" if all(each.counts for each in own) else " *"
                cells.append(f"{sum(each.inside for each in own)} of {len(own)}{mark}" if own else "")
            if of:
                rows.append(f"| {machine}{', only reads' if reads else ''} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _sentence(predicted: list[LeftOut]) -> str:
    """Return how many sources that count have all their runs in the band, by figure."""
    words = []
    for figure, name in FIGURES.items():
        own = [each for each in predicted if each.figure == figure and each.counts]
        every = {each.source for each in own}
        held = every - {each.source for each in own if not each.inside}
        words.append(f"{name} {len(held)} of {len(every)}")
    return f"Sources that count and whose runs all lie in their bands: {', '.join(words)}."


def _unused() -> str:
    rows = runs(None)
    rows = rows[rows.use != "fit"]
    return "\n".join(f"| {each.source} | {each.run} | {each.reason} |" for each in rows.itertuples())


if __name__ == "__main__":
    PRIOR.write_text(prior(), encoding="utf-8")
    reload(parameters)
    PAGE.write_text(page(), encoding="utf-8")
