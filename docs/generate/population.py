"""Fit each published Cassandra cluster, make the population of them, and write docs/reference/population.md.

`uv run just population` makes page and packaged files from what was fitted before (seconds); with `--fit`, it fits each
cluster again (some minutes; needed after a change of the network, the wide priors or the tables).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.population import FREEDOM, without_prior
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.files import replace_file
from capplan.layout.components import Component
from capplan.layout.fitted_file import rounded, write
from capplan.layout.table_components import LayoutFactors, Search
from capplan.layout.table_rows import cells_of
from capplan.layout.table_system import with_unknown_layouts
from capplan.models.language.units import FloatArray
from capplan.systems.cassandra import SYSTEM, Cassandra
from capplan.systems.cassandra.network import USUAL_CORES
from capplan.systems.cassandra.population import (
    CORES_LOG_SD,
    EFFECTS,
    MOVED,
    PUBLISHED,
    SCALES,
    effects_of,
    fitted_without,
    population_without,
    published,
    wide_prior,
)
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.rows import TIMES, priors
from capplan.systems.cassandra.scenario import CassandraScenario

TABLES = Path(__file__).resolve().parents[2] / "tests" / "published" / "load_tests"
C = TypeVar("C", bound=Component)


@dataclass(frozen=True)
class Published:
    """A published cluster.

    Attributes
    ----------
    name, study : str
        The cluster, and how the sources of its study begin.
    tables : tuple of str
        The tables with its rows.
    rows, fitted : str
        Expressions that keep its rows, and of these the rows to fit; all if empty.
    """

    name: str
    study: str
    tables: tuple[str, ...]
    rows: str = ""
    fitted: str = ""

    def read(self, chosen: str = "") -> list[LoadTestRow]:
        """Return its rows, or some of them."""
        frames = [LOAD_TESTS.read(TABLES / f"cassandra_{each}.csv") for each in self.tables]
        frame = pd.concat(frames, ignore_index=True)
        for expression in filter(None, (self.rows, chosen)):
            frame = frame[chosen_rows(frame, expression)]
        return list(LOAD_TESTS.rows(frame.reset_index(drop=True)))


CLUSTERS = (
    Published("Netflix 2011", "quoted in a public test file that cites the Netflix Tech Blog", ("netflix_2011",)),
    Published("End Point 2015", "github.com/EndPointCorp/end-point-blog", ("endpoint_2015",)),
    *(
        Published(
            f"Instaclustr 2015, {kind}.{size}",
            "instaclustr.com/blog/2015/08/20",
            ("instaclustr_2015",),
            f"version == '2.1.7 on {kind}' and node_cores == {cores}",
        )
        for kind, size, cores in (("m3", "xlarge", 4), ("c3", "2xlarge", 8), ("i2", "xlarge", 4), ("i2", "2xlarge", 8))
    ),
    Published(
        "Azure 2020",
        "github.com/Azure-Samples/cassandra-on-azure-vms-performance-experiments",
        ("azure_rf_writes", "azure_rf_cl_reads_mixed", "azure_two_dc"),
    ),
    Published(
        "hCassandra 2016", "github.com/lake-lerna/hCassandra", ("hydra",), fitted="clients in (10, 100, 400, 1600)"
    ),
    *(
        Published(
            f"cql-stress-mng, {name}",
            "github.com/george0st/cql-stress-mng",
            ("v4_v5_load_curves",),
            f"version == '{name}'",
        )
        for name in ("v4", "v5")
    ),
)


def _wide(rows: Sequence[Any]) -> tuple[Any, ...]:
    """Return the priors of rows with the wide ones of all times: a saturated row says little of unloaded requests."""
    usual = {each.name: each for each in PARAMETERS}
    return tuple(usual[each.name] if each.name in TIMES else each for each in priors(rows))


class _WithWidePriors(Cassandra):
    def component(self, kind: type[C]) -> C:
        """Return a component; the search has the wide priors."""
        own = super().component(kind)
        return replace(own, priors=_wide) if isinstance(own, Search) else own


def fit(cluster: Published) -> dict[str, Any]:
    """Return what the rows of a cluster say of it, as JSON types."""
    rows = cluster.read(cluster.fitted)
    sys.stderr.write(f"{cluster.name}: {len(rows)} rows\n")
    fitted = fit_table(_WithWidePriors(), rows)
    logs = effects_of(np.log(np.array(fitted.draws))[:, [fitted.names.index(name) for name in MOVED]])
    cores = median([row.node_cores for row in rows if row.node_cores] or [USUAL_CORES])
    size = float(np.log(cores / USUAL_CORES))
    exponent = np.array(fitted.draws)[:, fitted.names.index("core_exponent")]
    logs[:, 0] += (1 - exponent) * size  # of `work`, at the cores of this cluster
    if not any(row.node_cores for row in rows):
        logs[:, 0] += CORES_LOG_SD * np.random.default_rng(1).standard_normal(len(logs))
    information, score = without_prior(logs, *wide_prior())
    return {
        "name": cluster.name,
        "study": cluster.study,
        "size": rounded(size),
        "mean": _rounded(logs.mean(axis=0)),
        "sd": _rounded(logs.std(axis=0)),
        "information": [_rounded(each) for each in information],
        "score": _rounded(score),
        "scatter": dict(fitted.its_table.scatter),
    }


def _rounded(values: FloatArray) -> list[float]:
    return [rounded(float(each)) for each in values]


def layouts(rows: Sequence[LoadTestRow]) -> list[dict[str, Any]]:
    """Return the cells of the row with the highest throughput of each layout."""
    best: dict[Any, tuple[float, LoadTestRow]] = {}
    for row, read in zip(rows, SYSTEM.read(rows), strict=True):
        if row.throughput_tps is not None and row.throughput_tps > best.get(read.tested_layout, (0.0, row))[0]:
            best[read.tested_layout] = row.throughput_tps, row
    return [dict(cells_of(row)) for _, row in best.values()]


def contents(fits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the contents of the packaged file of published clusters."""
    quantities = fits[0]["scatter"]
    return {
        "clusters": fits,
        "scatter": {name: rounded(median(each["scatter"][name] for each in fits)) for name in quantities},
        "of_layouts": dict(SYSTEM.component(LayoutFactors).log_sd),
        "rows": [cells for each in CLUSTERS for cells in layouts(each.read())],
    }


@dataclass(frozen=True)
class LeftOut:
    """The highest throughput of a cluster whose study the population has not seen, as a logarithm, and what it says.

    Attributes
    ----------
    name : str
        The cluster.
    row : LoadTestRow
        The row.
    measured, median, low, high : float
        Logarithms of the throughput, requests per second.
    """

    name: str
    row: LoadTestRow
    measured: float
    median: float
    low: float
    high: float

    @property
    def z(self) -> float:
        """Standard score, with half of the band as 1.645 standard deviations of its side."""
        side = self.high - self.median if self.measured > self.median else self.median - self.low
        return 1.645 * (self.measured - self.median) / side

    @property
    def held(self) -> bool:
        """Whether the band holds what was measured."""
        return self.low <= self.measured <= self.high

    @property
    def score(self) -> float:
        """The interval score of the band; less is better (Gneiting and Raftery 2007)."""
        missed = max(self.low - self.measured, 0.0) + max(self.measured - self.high, 0.0)
        return self.high - self.low + 2 / 0.1 * missed


def left_out() -> Iterator[LeftOut]:
    """Yield the prediction of each cluster's highest throughput, by the population without its study."""
    for cluster in CLUSTERS:
        rows = [row for row in cluster.read() if row.throughput_tps is not None]
        row = max(rows, key=lambda each: each.throughput_tps or 0.0)
        (found,) = [
            each
            for each in predict_table(SYSTEM, fitted_without(frozenset({cluster.study})), [row])
            if each.quantity == "throughput_tps"
        ]
        band = found.predicted
        yield LeftOut(cluster.name, row, *np.log([row.throughput_tps or 0.0, band.value, band.low, band.high]).tolist())


def one_rate_a_core(found: Sequence[LeftOut]) -> Iterator[LeftOut]:
    """Yield what a planner would say: the mean rate a vCPU of the other studies' clusters, with their scatter."""
    study = {each.name: each.study for each in CLUSTERS}
    stated = [each for each in found if each.row.node_cores]
    of_core = {each.name: each.measured - np.log(_cores(each.row)) for each in stated}
    for each in stated:
        others = [rate for name, rate in of_core.items() if study[name] != study[each.name]]
        middle, half = float(np.mean(others)) + np.log(_cores(each.row)), 1.645 * float(np.std(others, ddof=1))
        yield replace(each, median=middle, low=middle - half, high=middle + half)


def _cores(row: LoadTestRow) -> float:
    layout = SYSTEM.row_scenario(row)
    return float(sum(layout.nodes_by_dc()) * layout.node_cores)


class _Ratio(NamedTuple):
    """The p99 over the p50 of a row, measured and as the population without its study has it."""

    name: str
    row: LoadTestRow
    measured: float
    low: float
    middle: float
    high: float


def tails() -> Iterator[_Ratio]:
    """Yield p99 over p50 at the highest throughput with both, of each cluster that states them."""
    wanted = ["latency_p50_ms", "latency_p99_ms"]
    for cluster in CLUSTERS:
        rows = [row for row in cluster.read() if row.latency_p50_ms and row.latency_p99_ms and row.throughput_tps]
        if not rows:
            continue
        row = max(rows, key=lambda each: each.throughput_tps or 0.0)
        fitted, read = fitted_without(frozenset({cluster.study})), SYSTEM.read([row])
        values = with_unknown_layouts(SYSTEM, fitted, [read[0].layout])
        (solved,) = solved_rows(SYSTEM, read, values, [wanted])
        ratio = solved.figures[wanted[1]] / solved.figures[wanted[0]]
        noise = np.random.default_rng(1).standard_normal(len(ratio)) * fitted.its_table.scatter[wanted[1]]
        yield _Ratio(
            cluster.name,
            row,
            (row.latency_p99_ms or 0.0) / (row.latency_p50_ms or np.nan),
            *np.quantile(ratio * np.exp(noise), (0.05, 0.5, 0.95)).tolist(),
        )


PAGE = Path(__file__).resolve().parents[1] / "reference" / "population.md"
TEXT = """# Published clusters

<!-- generated by docs/generate/population.py -->

`capplan predict cassandra`, and every other verb, answers for a cluster that nobody has measured: it is one of the
population of these {count} published clusters of {studies} studies. It has two stages. Each cluster is fitted alone,
with the wide priors of `src/capplan/systems/cassandra/priors.py`, and what its rows say beyond these priors is kept in
`src/capplan/systems/cassandra/published.json`. Then clusters scatter around a mean in each of the effects below, with
Student tails ({freedom} degrees of freedom) and a half-normal prior on each scatter, of scale {of_ceilings:g} for what
sets ceilings (work, reads, replicas) and {of_times:g} for what only moves times (unseen, delay, variation). A study
counts once, however many clusters it has. Without a study the population is made again in less than a second, as the
table below does for each.

## What each cluster said

Effects are factors on the usual cluster of the wide priors, with the standard error of their logarithm; in brackets
where the error is above {vague:g}, so that the rows hardly say it. The work of a node is that of a mean operation with
the cores of this cluster. *Moved* is what the cluster's study changes in the median capacity of
{reference}.

{said}

## How far apart clusters are

The median of another cluster, with 5 to 95 %, as factors on the usual one, and the scale of their scatter (of the
logarithm).

{apart}

Capacity grows with the cores of a node to the power {growth}: what the exponents of published scale-outs
(`tests/published/scale_outs.csv`) say, and the clusters here with 4 to 32 cores. The exponent of nodes is that of the
scale-outs. Row size, digests, messages, caches and TLS keep their wide priors: no source varies one of them alone.
{reference_upper} carry {capacity}.

## Each cluster left out

The highest throughput of each cluster, by the population without its study and none of its own rows. Beside it, what
one rate a vCPU says, the mean of the other studies' clusters with their scatter.

{left_out}

Bands hold {held} of {scored} clusters whose cores are stated. Standard scores have an rms of {rms:.2f}. The interval
score is {score:.2f} in the mean, that of one rate a vCPU {rule:.2f}; less is better. High over low has a median of
{ratio:.1f} and reaches {widest:.1f}. A node exponent and a core exponent of one's own are most of it in large clusters.

p99 over p50 at the highest throughput with both:

{tails}

## Left out, and checks

EC2 2013 (clients on the nodes), a single container on a laptop, other laptops and vendors' ratings are no sources. They
are checks:
{checks}
"""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    ruler = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(each)} |" for each in (heads, ruler, *rows))


_VAGUE = 0.7
_REFERENCE: dict[str, Any] = {"cass_nodes": 6, "node_cores": 16, "read_fraction": 0.5}
_IN_WORDS = "six nodes of 16 vCPU with RF 3 and half reads"


def _capacity(studies: frozenset[str] = frozenset()) -> FloatArray:
    fitted = fitted_without(studies)
    layout = CassandraScenario(**_REFERENCE)
    return np.asarray(SYSTEM.solution(layout, SYSTEM.of(fitted).values(fitted, layout)).capacity)


def _said(fits: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    whole = float(np.median(_capacity()))
    moved = {each.study: whole / float(np.median(_capacity(frozenset({each.study})))) - 1 for each in CLUSTERS}
    for cluster, its in zip(CLUSTERS, fits, strict=True):
        cells = [
            f"{np.exp(mean):.2f} ± {sd:.2f}" if sd <= _VAGUE else f"({np.exp(mean):.2f})"
            for mean, sd in zip(its["mean"], its["sd"], strict=True)
        ]
        rows = cluster.read(cluster.fitted)
        cores = {f"{row.node_cores:g}" for row in rows if row.node_cores} or {"not stated"}
        yield [cluster.name, str(len(rows)), ", ".join(cores), *cells, f"{moved[cluster.study]:+.0%}"]


def _apart() -> Iterator[list[str]]:
    found = population_without()
    low, middle, high = np.exp(np.quantile(found.drawn(1)[0], (0.05, 0.5, 0.95), axis=0))
    for at, name in enumerate(EFFECTS):
        scatter = float(np.median(found.scatters[:, at]))
        yield [name, f"{middle[at]:.2f}", f"{low[at]:.2f} to {high[at]:.2f}", f"{scatter:.2f}"]


def _left_out_rows(found: Sequence[LeftOut], rule: Mapping[str, LeftOut]) -> Iterator[list[str]]:
    for each in found:
        simple = rule.get(each.name)
        numbers = [f"{np.exp(value):,.0f}" for value in (each.measured, each.median)]
        band = f"{np.exp(each.low):,.0f} to {np.exp(each.high):,.0f}"
        beside = ["-", "-"] if simple is None else [f"{np.exp(simple.median):,.0f}", f"{simple.z:.1f}"]
        yield [each.name, *numbers, band, f"{np.exp(each.high - each.low):.1f}", f"{each.z:.1f}", *beside]


def _checks() -> str:
    """Return what the population says of measurements that are no sources."""
    rows = list(LOAD_TESTS.rows(LOAD_TESTS.read(TABLES / "cassandra_ec2_2013.csv")))
    reads = [row for row in rows if row.throughput_tps]
    found = [each for each in predict_table(SYSTEM, SYSTEM.fitted(), reads) if each.quantity == "throughput_tps"]
    over = [each.predicted.value / float(each.measured or np.nan) for each in found]
    held = sum(each.predicted.low <= float(each.measured or 0) <= each.predicted.high for each in found)
    rated = pd.read_csv(TABLES.parent / "vendor_ratings.csv", comment="#")
    promised = float(rated[rated.vcpu == _REFERENCE["node_cores"]].rated_tps_per_node.iloc[0])
    of_node = float(np.median(_capacity())) / _REFERENCE["cass_nodes"]
    return (
        f"of the {len(found)} rows of EC2 2013 bands hold {held}, and predictions are {median(over):.1f} times what "
        "was measured, in the median, with half of the cores taken by clients; a vendor's rating of a node of 16 vCPU "
        f"is {promised:,.0f} a second, where a node of the population carries {of_node:,.0f}."
    )


def page(fits: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the page."""
    found = list(left_out())
    rule = {each.name: each for each in one_rate_a_core(found)}
    scored = [each for each in found if each.name in rule]
    effects = list(EFFECTS)
    low, middle, high = np.quantile(_capacity(), (0.05, 0.5, 0.95))
    growth = np.quantile(population_without().drawn(1)[1], (0.95, 0.5, 0.05))
    ratios = [float(np.exp(each.high - each.low)) for each in scored]
    return TEXT.format(
        count=len(fits),
        studies=len({each["study"] for each in fits}),
        freedom=FREEDOM,
        of_ceilings=min(SCALES.values()),
        of_times=max(SCALES.values()),
        vague=_VAGUE,
        reference=_IN_WORDS,
        reference_upper=_IN_WORDS[0].upper() + _IN_WORDS[1:],
        said=_table(["cluster", "rows", "vCPU of a node", *effects, "moved"], _said(fits)),
        apart=_table(["effect", "median", "5 to 95 %", "scatter"], _apart()),
        growth=f"{1 - growth[1]:.2f} ({1 - growth[0]:.2f} to {1 - growth[2]:.2f})",
        capacity=f"{middle:,.0f} requests per second ({low:,.0f} to {high:,.0f})",
        left_out=_table(
            ["cluster", "measured", "predicted", "band", "high/low", "z", "one rate", "its z"],
            _left_out_rows(found, rule),
        ),
        held=sum(each.held for each in scored),
        scored=len(scored),
        rms=float(np.sqrt(np.mean([each.z**2 for each in scored]))),
        score=float(np.mean([each.score for each in scored])),
        rule=float(np.mean([each.score for each in rule.values()])),
        ratio=median(ratios),
        widest=max(ratios),
        tails=_table(
            ["cluster", "measured", "predicted", "band"],
            (
                [each.name, f"{each.measured:.1f}", f"{each.middle:.1f}", f"{each.low:.1f} to {each.high:.1f}"]
                for each in tails()
            ),
        ),
        checks=_checks(),
    )


def main() -> None:
    """Make the packaged files and the page."""
    path = Path(str(SYSTEM.folder / PUBLISHED))
    fits = list(map(fit, CLUSTERS)) if "--fit" in sys.argv[1:] else json.loads(path.read_text("utf-8"))["clusters"]
    replace_file(path, json.dumps(contents(fits), indent=1) + "\n")
    published.cache_clear()
    population_without.cache_clear()
    write(fitted_without(), SYSTEM.fitted_path)
    replace_file(PAGE, page(fits))


if __name__ == "__main__":
    main()
