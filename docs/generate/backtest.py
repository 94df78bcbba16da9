"""Run every backtest on published tables and write docs/backtest.md (some minutes).

Run from anywhere: `uv run python docs/generate/backtest.py`, or `uv run just backtest`. Every fit has a fixed seed, so
the page comes out the same. The section on systems with known parameters shows docs/reference/synthetic-systems.json,
which `uv run just synthetic` makes (half an hour).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

import pandas as pd
from decisions import page as decisions
from live_again import live_again
from one_size import page as one_size
from partly_busy import tables as partly_busy
from ratchet import Figure, code, figures_of, judged, keep, kept, measured_scatter, say
from skill import page as skill
from synthetic_page import synthetic

from capplan.calibration.tables.backtest import Backtest, backtest
from capplan.calibration.tables.bias import Outcome, scored
from capplan.calibration.tables.scores import MODEL, BacktestRow, TableScore, summary
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.planner.live.live_validation import KIND_HEADS, kind_cells
from capplan.planner.rule_names import RULES
from capplan.reports.backtest import error_cell, in_words
from capplan.reports.numbers import error as percent
from capplan.systems.registry import table_system

DOCS = Path(__file__).resolve().parents[1]
TABLES = DOCS.parent / "tests" / "published" / "load_tests"
TEMPLATE, PAGE = DOCS / "generate" / "backtest.md", DOCS / "backtest.md"
LOCAL = "consistency_read == 'LOCAL_QUORUM' or consistency_write == 'LOCAL_QUORUM'"
RATES = ("throughput_tps", "latency_mean_ms")
TAILS = ("latency_p50_ms", "latency_p90_ms", "latency_p95_ms", "latency_p99_ms")


FEW = 10
"""Figures of a quantity from which its bands have a target."""
TOLERATED = {True: 1.1, False: 1.2}
"""Factors within which the ratio of rates and means, and of percentiles, is called unbiased."""


@dataclass(frozen=True)
class Split:
    """A published table, the part of it that a backtest takes, and the rows that are fitted.

    `client_share` says where clients were of a table that does not.
    """

    system: str
    table: str
    train: str
    rows: str = ""
    run: str = ""
    client_share: str = ""

    def found(self, seed: int = 1) -> Backtest:
        """Return the backtest."""
        frame = LOAD_TESTS.read(TABLES / f"{self.table}.csv")
        if self.run:
            frame = frame[frame.run_id.str.startswith(self.run)]
        if self.rows:
            frame = frame[chosen_rows(frame, self.rows)]
        if self.client_share:
            frame = frame.assign(client_share=self.client_share)
        own = frame.reset_index(drop=True)
        sys.stderr.write(f"{self.system} on {self.label}: {len(own)} rows\n")
        return backtest(table_system(self.system), own, self.train, table=self.table, seed=seed)

    @property
    def label(self) -> str:
        """The table in words, with what was left out of it."""
        where = f"clients {self.client_share}" if self.client_share else ""
        part = self.run.rstrip("-") or self.rows or where
        return f"{self.table} ({part})" if part else self.table


@dataclass(frozen=True)
class Target:
    """What users may expect of a kind of backtest: medians by quantity, and what bands hold."""

    rates: float
    rates_p90: float | None
    rates_worst: float | None
    tails: Mapping[str, float]
    widest: float


@dataclass(frozen=True)
class Kind:
    """Backtests that are judged together."""

    name: str
    about: str
    target: Target
    splits: tuple[Split, ...]


def _curves() -> Iterator[Split]:
    frame = pd.read_csv(TABLES / "cassandra_v4_v5_load_curves.csv")
    for run in dict.fromkeys(frame.run_id.str.rsplit("-", n=1).str[0]):
        yield Split("cassandra", "cassandra_v4_v5_load_curves", "clients <= 32", run=f"{run}-")
    yield Split("two-tier", "tidb_aws", "clients <= 600")
    yield Split("two-tier", "tidb_idc", "clients <= 256")
    yield Split("two-tier", "etcd_clients", "clients <= 64", rows="version in ('2.2.0', '2.1.0a') and row_bytes == 64")


KINDS = (
    Kind(
        "Load curves",
        "The rows with few clients are fitted, those with more predicted.",
        Target(0.08, 0.2, None, {"latency_p95_ms": 0.2, "latency_p99_ms": 0.25}, 1.5),
        tuple(_curves()),
    ),
    Kind(
        "Far beyond the knee",
        "Up to 800 clients are fitted, 1,600 to 10,000 predicted: nodes are full, percentiles grow with clients. The "
        "percentiles of the source are means over its stress processes.",
        Target(0.08, None, None, {"latency_p50_ms": 0.2, "latency_p95_ms": 0.3, "latency_p99_ms": 0.35}, 1.5),
        tuple(
            Split("cassandra", "cassandra_hydra", "clients <= 800", run=f"{run}-")
            for run in ("writes-rf1-LOCAL_ONE", "writes-rf2-LOCAL_ONE", "reads-rf1-LOCAL_ONE", "reads-rf2-LOCAL_ONE")
        ),
    ),
    Kind(
        "Replication, level and mix",
        "Some replication factors, levels or mixes are fitted, the others predicted.",
        Target(0.1, None, None, {"latency_p50_ms": 0.2, "latency_p95_ms": 0.2, "latency_p99_ms": 0.3}, 2.0),
        (
            Split("cassandra", "cassandra_azure_rf_writes", "rf in (1, 3)"),
            Split(
                "cassandra",
                "cassandra_azure_rf_cl_reads_mixed",
                "rf in (1, 3)",
                rows="request_class == 'read' and consistency_read == 'LOCAL_QUORUM'",
            ),
            Split(
                "cassandra",
                "cassandra_azure_rf_cl_reads_mixed",
                "consistency_read in ('ONE', 'THREE')",
                run="reads_by_cl",
            ),
            Split("cassandra", "cassandra_azure_rf_cl_reads_mixed", "rf in (1, 3)", run="mixed5050"),
            Split("two-tier", "foundationdb_mix", "read_fraction != 0.9"),
            Split("two-tier", "kafka_producers", "rf == 1", rows="version == 'linkedin2014'"),
        ),
    ),
    Kind(
        "Two data centres",
        "Two data centres 27 ms apart. The table does not say where its clients were, so each backtest is made twice: "
        "with all of them in the first data centre, and with half of them in each. From the rows at LOCAL_QUORUM, the "
        "others rest on the round trip and on the prior of what Nagle's algorithm holds, which a lab has measured "
        "([page](reference/another-data-centre.md)). From the rows with up to 256 clients, which wait for the other "
        "data centre, too, those with more follow.",
        Target(0.1, None, None, {"latency_p50_ms": 0.2, "latency_p95_ms": 0.2, "latency_p99_ms": 0.3}, 2.0),
        tuple(
            Split("cassandra", "cassandra_azure_two_dc", train, client_share=clients)
            for train in (LOCAL, "clients <= 256")
            for clients in ("100%/0%", "50%/50%")
        ),
    ),
    Kind(
        "Nodes and cores",
        "Layouts of few nodes are fitted, larger ones predicted. Instaclustr measured two sizes, so its table has no "
        "place among the decisions below; it is scored here and in *From one size*.",
        Target(0.1, None, 0.25, {}, 2.0),
        (
            *(
                Split("two-tier", f"rabbitmq_{queue}_{disk}", "cass_nodes <= 5")
                for queue in ("quorum", "mirrored")
                for disk in ("io1", "gp2", "st1")
            ),
            Split("cassandra", "cassandra_instaclustr_2015", "cass_nodes == 3"),
        ),
    ),
    Kind(
        "Throttled clients",
        "The runs at full speed are fitted, those at 1,000 requests per second predicted.",
        Target(0.1, None, None, {"latency_p50_ms": 0.2, "latency_p95_ms": 0.2, "latency_p99_ms": 0.3}, 2.0),
        (
            Split(
                "two-tier",
                "etcd_zookeeper_consul",
                "load_kind == 'closed'",
                rows="version in ('etcd-tip-go1.8.0', 'etcd-tip-go1.8.1') and request_class == 'write'",
            ),
        ),
    ),
)


def text(found: Mapping[str, Sequence[tuple[Split, Backtest]]]) -> str:
    """Return the text of the page."""
    parts = ["\n\n".join(section(kind, found[kind.name])) for kind in KINDS]
    rows = [row for each in found.values() for _, one in each for row in one.rows]
    filled = TEMPLATE.read_text(encoding="utf-8")
    filled = (
        filled.replace("{{bias}}", bias(found))
        .replace("{{skill}}", skill(by_table(found)))
        .replace("{{all}}", overview(found, rows))
        .replace("{{kinds}}", "\n\n".join(parts))
        .replace("{{decisions}}", decisions(TABLES))
        .replace("{{one_size}}", one_size(TABLES))
        .replace("{{live}}", live_again())
    )
    for place, table in partly_busy().items():
        filled = filled.replace(place, table)
    return filled.replace("{{synthetic}}", synthetic())


def by_table(found: Mapping[str, Sequence[tuple[Split, Backtest]]]) -> dict[str, list[BacktestRow]]:
    """Return all scored figures by table."""
    rows: dict[str, list[BacktestRow]] = {}
    for split, one in (each for splits in found.values() for each in splits):
        rows.setdefault(split.table, []).extend(one.rows)
    return rows


def bias(found: Mapping[str, Sequence[tuple[Split, Backtest]]]) -> str:
    """Return bias and coverage of each quantity, over all tables; a table is a cluster."""
    own: dict[tuple[str, str], list[Outcome]] = {}
    for split, one in (each for splits in found.values() for each in splits):
        for row in one.rows:
            band = row.predicted
            if not (0 < band.value < math.inf and row.measured > 0):
                continue
            outcome = Outcome(split.table, band.value, band.low, band.high, row.measured)
            for which in ("all", *(("decided",) if row.identifiable else ())):
                own.setdefault((row.quantity, which), []).append(outcome)
    order = ("throughput_tps", "latency_mean_ms", *TAILS)
    kinds = [
        scored(f"{in_words(quantity)}, {which}", own[quantity, which], TOLERATED[quantity in RATES])
        for quantity in order
        for which in ("all", "decided")
        if (quantity, which) in own
    ]
    lines = [KIND_HEADS, *(kind_cells(each) for each in kinds)]
    ruled = [f"| {' | '.join(each)} |" for each in lines]
    return "\n".join([ruled[0], f"| --- {'| ---: ' * (len(KIND_HEADS) - 2)}| --- |", *ruled[1:]])


def overview(found: Mapping[str, Sequence[tuple[Split, Backtest]]], rows: Sequence[BacktestRow]) -> str:
    """Return what of the targets is met, over all tables."""
    lines = ["| kind | quantity | target | reached, decided figures | reached, all figures | met |"]
    lines.append("| --- | --- | ---: | ---: | ---: | --- |")
    for kind in KINDS:
        own = [row for _, one in found[kind.name] for row in one.rows]
        lines += list(_targets(kind, own))
    lines += list(_coverage(rows))
    return "\n".join(lines)


def _targets(kind: Kind, rows: Sequence[BacktestRow]) -> Iterator[str]:
    its = kind.target
    for quantity in ("throughput_tps", "latency_mean_ms", *its.tails):
        every = [abs(row.error) for row in rows if row.quantity == quantity]
        decided = [abs(row.error) for row in rows if row.quantity == quantity and row.identifiable]
        limit = its.rates if quantity in RATES else its.tails[quantity]
        if every:
            yield _judged(kind.name, f"{in_words(quantity)}, median", limit, _median(decided), _median(every))
        if every and quantity in RATES and its.rates_p90 is not None:
            yield _judged(kind.name, f"{in_words(quantity)}, p90", its.rates_p90, _ninety(decided), _ninety(every))
        if every and quantity in RATES and its.rates_worst is not None:
            worst = (max(decided, default=math.nan), max(every))
            yield _judged(kind.name, f"{in_words(quantity)}, worst", its.rates_worst, *worst)
    own = summary(rows).get("throughput_tps", {})
    if "usl" in own and own["usl"].figures and own["usl"].median_abs_error is not None and kind.name == "Load curves":
        usl, model = own["usl"].median_abs_error, own["usl"].capplan_median_abs_error or math.nan
        yield (
            f"| {kind.name} | throughput, beside USL | {percent(usl + 0.01)} | | {percent(model)} "
            f"| {_met(model <= usl + 0.01)} |"
        )
    width = _median([row.predicted.high / row.predicted.low for row in rows if row.identifiable and row.predicted.low])
    if math.isfinite(width):
        met = _met(width <= its.widest)
        yield f"| {kind.name} | high/low of bands, median | {its.widest:g} | {width:.2f} | | {met} |"


def _to_three_digits(error: float) -> str:
    """Return an error in per cent so that one near its target can be told from it."""
    return f"{100 * error:.3g} %" if error >= 5e-4 else "0 %"


def _judged(kind: str, what: str, limit: float, decided: float, every: float) -> str:
    counted = decided if math.isfinite(decided) else every
    shown = [_to_three_digits(each) if math.isfinite(each) else "-" for each in (decided, every)]
    return f"| {kind} | {what} | {percent(limit)} | {shown[0]} | {shown[1]} | {_met(counted <= limit)} |"


def _coverage(rows: Sequence[BacktestRow]) -> Iterator[str]:
    yield _bands_hold("all figures", rows, 0.85, 0.95)
    for quantity in dict.fromkeys(row.quantity for row in rows):
        own = [row for row in rows if row.quantity == quantity]
        if len(own) >= FEW:
            yield _bands_hold(in_words(quantity), own, 0.8, 1.0)


def _bands_hold(what: str, rows: Sequence[BacktestRow], least: float, most: float) -> str:
    cells, share = [], math.nan
    for own in ([row for row in rows if row.identifiable], rows):
        share = sum(map(_held, own)) / len(own) if own else math.nan
        cells.append(f"{percent(share)} of {len(own)}" if own else "-")
    cells.append(_met(least <= share <= most))
    return " | ".join((f"| all | bands hold, {what} | {least:.0%} to {most:.0%}", *cells)) + " |"


def _held(row: BacktestRow) -> bool:
    return row.predicted.low <= row.measured <= row.predicted.high


def _met(met: bool) -> str:
    return "yes" if met else "**no**"


def _median(errors: Sequence[float]) -> float:
    return median(errors) if errors else math.nan


def _ninety(errors: Sequence[float]) -> float:
    return float(pd.Series(errors).quantile(0.9)) if errors else math.nan


def section(kind: Kind, found: Sequence[tuple[Split, Backtest]]) -> Iterator[str]:
    """Yield the parts of the section of one kind."""
    yield f"## {kind.name}\n\n{kind.about}"
    every = [row for _, one in found for row in one.rows]
    yield "Median absolute error (worst) of all figures; - where a rule has no answer:"
    yield "\n".join(_scores(summary(every)))
    yield "\n".join(_splits(found))
    yield from _reasons(every)


def _scores(scores: Mapping[str, Mapping[str, TableScore]]) -> Iterator[str]:
    names = [name for name in RULES if any(each[name].figures for each in scores.values())]
    yield "| quantity | figures | " + " | ".join(RULES[name] for name in names) + " | bands hold | high/low |"
    yield "| --- | ---: |" + " ---: |" * (len(names) + 2)
    for quantity, by_name in scores.items():
        own = by_name[MODEL]
        cells = [in_words(quantity), str(own.figures), *(error_cell(by_name[name]) for name in names)]
        wide = "-" if own.high_over_low is None else f"{own.high_over_low:.2f}"
        held = "-" if own.coverage is None else percent(own.coverage)
        yield "| " + " | ".join([*cells, held, wide]) + " |"


def _splits(found: Sequence[tuple[Split, Backtest]]) -> Iterator[str]:
    yield "| table | fitted | rows | throughput and mean | percentiles | bands hold | decided |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for split, one in found:
        rates = [abs(row.error) for row in one.rows if row.quantity in RATES]
        tails = [abs(row.error) for row in one.rows if row.quantity not in RATES]
        cells = [percent(_median(each)) if each else "-" for each in (rates, tails)]
        held = sum(map(_held, one.rows))
        decided = sum(row.identifiable for row in one.rows)
        label = split.label.replace("|", "\\|")
        yield (
            f"| {label} | `{split.train}` | {one.trained_rows} + {one.unseen_rows} | {cells[0]} | {cells[1]} "
            f"| {held} of {len(one.rows)} | {decided} of {len(one.rows)} |"
        )


def _reasons(rows: Iterable[BacktestRow]) -> Iterator[str]:
    counted: dict[str, int] = {}
    for row in rows:
        if not row.identifiable:
            counted[row.reason] = counted.get(row.reason, 0) + 1
    if counted:
        most = sorted(counted.items(), key=lambda each: -each[1])[:5]
        yield "Most common reasons of undecided figures:\n\n" + "\n".join(
            f"- {count} figures: {why}" for why, count in most
        )


def kept_figures(release: str, kind: str, split: Split, found: Backtest) -> Iterator[Figure]:
    """Yield the figures of a backtest that a release keeps."""
    return figures_of(release, kind, split.table, f"{split.label}, {split.train}", found.rows)


def main() -> None:
    """Write the page, keep the figures under today's version, and print what became worse since the last release."""
    found = {kind.name: [(split, split.found()) for split in kind.splits] for kind in KINDS}
    PAGE.write_text(text(found), encoding="utf-8", newline="\n")
    today = version("capplan")
    keep(
        [each for kind, own in found.items() for pair in own for each in kept_figures(today, kind, *pair)],
        today,
        code(),
    )
    say(*judged(kept(), today, measured_scatter()))


if __name__ == "__main__":
    main()
