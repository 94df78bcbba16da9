"""Evidence for people: documented figures, audits, and what an import took from each file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from capplan.answers.number_words import rate
from capplan.errors import InputError
from capplan.evidence.audit.audit import Audit, Missing, RowVerdict, audit_load_tests
from capplan.evidence.audit.finding import Finding
from capplan.evidence.audit.load_tests import LAYOUT
from capplan.evidence.import_files import FileReport, Import
from capplan.evidence.load_test_row import LATENCIES
from capplan.evidence.table import UNITS, Evidence, Source, layout_text
from capplan.grouped import grouped
from capplan.planner.data_factor import DataFactor
from capplan.reports import figure as look
from capplan.reports.document import (
    Block,
    Break,
    Bullets,
    Cell,
    Code,
    Column,
    Emphasis,
    Fact,
    Heading,
    Paragraph,
    table,
)
from capplan.reports.figure import go
from capplan.reports.numbers import many

STATISTICS = {name.removeprefix("latency_").removesuffix("_ms"): name for name in LATENCIES}
"""Columns of latencies by the names of their statistics."""
_PREFERRED = ("p99", "mean", "p95", "p50", "p90", "p999", "p75", "max")
_PANEL_PIXELS, _BOTTOM_PIXELS, _LEGEND_PIXELS = 380, 62, 24
_SYMBOLS = {"believed": "circle", "saturated": "circle-open", "refused": "x"}
_BAD, _DOUBTFUL = ("contradicted", "contradictory"), ("missing", "rounding")
_EMPHASES: dict[str, Emphasis] = {
    **dict.fromkeys(_BAD, "bad"),
    **dict.fromkeys(_DOUBTFUL, "caveat"),
    "consistent": "good",
}
_CLAIMS = {
    "Register of contradictions: the document against its own figures": ("contradicted",),
    "Claims that the figures support, at least within rounding": ("consistent", "rounding"),
    "Claims that no figure tests": ("untested",),
}
_LEFT_OUT = ("value", "low", "high", "unit", "written", "text", "id")  # shown as one figure with its rounding, or above
_SHOWN = 4  # rows of one rule, of which there may be thousands
_MOST_FILES = 40


def rows(found: Sequence[Evidence]) -> Iterator[Block]:
    """Yield rows of evidence, one line each."""
    figure = Column("figure", right=True, prose=True)  # a fact in words may need two lines
    yield table(
        ["id", figure, "rounding", "status", "use"],
        (
            [row.id, row.written, _rounding(row), Cell(row.status, emphasis=_EMPHASES.get(row.status, "")), row.use]
            for row in found
        ),
    )
    uses = ", ".join(f"{count} {use}" for use, count in Counter(row.use for row in found).most_common())
    one = f"All of one: capplan evidence show {found[0].id} {found[0].system}"
    yield Paragraph(f"{len(found)} figures: {uses}. {one}", "remark")


def _rounding(row: Evidence) -> str:
    """Return the rounding interval in the unit in which the figure was written."""
    if row.text or row.low == row.high:
        return ""
    unit = row.written.partition(" ")[2]
    scale = float(UNITS[unit][1]) if unit else 1.0
    if math.isinf(row.high):
        return "or more"
    return f"[{row.low / scale:.7g}, {row.high / scale:.7g}]"


def one_row(found: Evidence, source: Source) -> Iterator[Block]:
    """Yield every field of a row, and its source."""
    yield Heading(found.id, 1)
    figure = found.text or f"{found.written} {_rounding(found)}".strip()
    cells = {field.name: _field(getattr(found, field.name)) for field in fields(found) if field.name not in _LEFT_OUT}
    named = {name.replace("_", " "): text for name, text in cells.items() if text}
    yield from _facts({"value": figure, **named})
    yield Heading("Source")
    about = {"title": source.title, "kind": source.kind, "citation": source.citation, "dating": source.dating}
    yield from _facts({**about, "measured": source.measured})
    if source.defects:
        yield Heading("What is known to be wrong with it")
        yield Bullets(tuple(source.defects), level=1)


def data_factor(found: DataFactor, name: str) -> Iterator[Block]:
    """Yield the data factor, the runs that it comes from, and the option that states it."""
    its = found.factor
    words = f"a request takes {its.value:.3g} times the CPU on aged data ({its.low:.3g} to {its.high:.3g})"
    yield Heading(f"{name}: {words}", 1)
    yield Paragraph(_WAYS[found.way])
    yield Break()
    yield table(
        ["data", "rate", "CPU of nodes", "CPU for 1,000/s", "runs"],
        (
            [one.data, rate(one.rate_tps), f"{one.busy_percent:.0f} %", f"{one.cpu_percent:.3g} %", str(one.runs)]
            for one in found.runs
        ),
    )
    yield Break()
    yield Code(f"capplan predict ... {found.option}", "State it")


_WAYS = {
    "full nodes": "The ratio of full nodes, which divides the capacity.",
    "one rate": "What aged data add at one rate, over what a request takes of full nodes with fresh data.",
}


def _facts(named: Mapping[str, str]) -> Iterator[Fact]:
    yield from (Fact(name, text, level=1) for name, text in named.items())


def _field(value: object) -> str:
    if isinstance(value, Mapping):
        return layout_text(value)
    return {True: "yes", False: "no", None: ""}[value] if value is None or isinstance(value, bool) else str(value)


def documents(found: Audit) -> Iterator[Block]:
    """Yield the audit of documents: load tests, laws, worker gaps, the register of contradictions, and readings."""
    yield Heading(f"Audit of the evidence about {found.subject}", 1)
    laws, claims = (sum(each.verdict == "contradicted" for each in some) for some in (found.laws, found.claims))
    yield Paragraph(
        f"The figures contradict {laws} of {len(found.laws)} checks of operational laws and {claims} of "
        f"{len(found.claims)} claims, however the figures were rounded."
    )
    if found.rows:
        yield Heading(f"Load tests: {_rows_and_runs(found)}, by the rules for load-test tables")
        yield from _by_rules(found)
    yield Heading("Operational laws")
    yield from _findings(each for each in found.laws if each.verdict != "consistent")
    for law, count in Counter(each.means for each in found.laws if each.verdict == "consistent").items():
        yield _finding("consistent", f"{law}: {many(count, 'check')}")
    for name, verdicts in _CLAIMS.items():
        yield Heading(name)
        yield from _findings(each for each in found.claims if each.verdict in verdicts)
    yield Heading("Readings that the document leaves open")
    yield from _findings(found.readings)
    if found.missing:
        yield Heading("Figures that the document refers to and its text does not have")
        yield from _missing(found.missing)
    yield Paragraph(f"data {str(found.data_hash)[:12]}", "remark")


def _findings(found: Iterable[Finding]) -> Iterator[Fact]:
    yield from (_finding(each.verdict or "", f"{each.sentence} ({each.rule})") for each in found)


def _missing(found: Iterable[Missing]) -> Iterator[Fact]:
    """Yield the missing figures, one line per place in the document."""
    for place, absent in groupby(found, key=lambda row: row.locator):
        listed = tuple(absent)
        kinds = Counter((row.quantity, row.text) for row in listed)
        what = ", ".join(
            f"{kind} ({text})" if count == 1 else f"{count} {kind}s ({text})" for (kind, text), count in kinds.items()
        )
        yield _finding("missing", f"{place}: {what} ({' '.join(row.id for row in listed)})")


def _finding(verdict: str, words: str) -> Fact:
    return Fact(verdict, words, emphasis=_EMPHASES.get(verdict, ""), level=1)


def imported(found: Import, written: Mapping[str, Path]) -> Iterator[Block]:
    """Yield what was taken from each file, and what was written."""
    yield from _files(found)
    yield Break()
    names = found.load_tests["run_id"]
    runs = int(names.nunique() + names.isna().sum())  # a row without a name is a run of its own
    rows_found = f"{many(len(names), 'row')} of {many(runs, 'run')}"
    if "load_tests" in written or not written:
        yield Code(f"{rows_found} in {written['load_tests']}" if written else rows_found)
    if "microbenchmarks" in written:
        yield Code(f"{many(len(found.microbenchmarks), 'server figure')} in {written['microbenchmarks']}")
    if "load_tests" in written:
        yield Code(f"capplan evidence audit {written['load_tests']}", "Next")


def _files(found: Import) -> Iterator[Block]:
    """Yield what was taken from each file, and what was left out."""
    taken = [each for each in found.files if each.tool]
    files = [[Path(each.path).name, each.tool, _count(each)] for each in taken]
    if len(files) > _MOST_FILES:
        files = [*files[:_MOST_FILES], [f"and {len(files) - _MOST_FILES} more files", "", ""]]
    if files:
        yield table(("file", "from", "taken"), files)
    yield Bullets(tuple(f"{Path(each.path).name}: {remark}" for each in taken for remark in each.remarks), marked=False)
    left = grouped((each for each in found.files if not each.tool), lambda each: "; ".join(each.remarks))
    if left:
        yield Heading("Left out")
        names = {reason: ", ".join(Path(each.path).name for each in those) for reason, those in left.items()}
        yield Bullets(tuple(f"{files}: {reason}" for reason, files in names.items()), marked=False, level=1)


def _count(each: FileReport) -> str:
    parts = [(each.load_tests, "row"), (each.microbenchmarks, "server figure")]
    return ", ".join(many(count, kind) for count, kind in parts if count)


def audit(found: Audit) -> Iterator[Block]:
    """Yield the audit of a table of load tests."""
    yield Heading(f"{found.subject}: {_rows_and_runs(found)}", 1)
    yield Break()
    yield from _by_rules(found)


def _rows_and_runs(found: Audit) -> str:
    return f"{many(len(found.rows), 'row')} of {many(len({each.run_id or each.line for each in found.rows}), 'run')}"


def _by_rules(found: Audit) -> Iterator[Block]:
    """Yield what must not be believed, then remarks, then the saturation verdicts."""
    refused = sum(not each.believed for each in found.rows)
    if refused:
        yield Paragraph(f"Do not believe {many(refused, 'row')}:", "bad")
        yield from _rules([each for each in found.of_load_tests if each.severity == "refused"])
    else:
        yield Paragraph("No figure is refused.", "good")
    cautions = [each for each in found.of_load_tests if each.severity == "caution"]
    if cautions:
        yield Break()
        yield Paragraph("Know before you use them:", "verdict")
        yield from _rules(cautions)
    yield Break()
    verdicts = Counter(each.saturation for each in found.rows).most_common()
    yield Fact("Saturation", ", ".join(f"{count} {name}" for name, count in verdicts))
    repeats = "none: how much a repeat would differ is unknown"
    if found.repeated:
        differ = (
            "" if found.scatter is None else f"; their throughput differs by {100 * found.scatter:.2g} % in the median"
        )
        repeats = f"of {found.repeated} of {many(found.loads, 'load')}{differ}"
    yield Fact("Repeats", repeats)


def _rules(findings: Sequence[Finding]) -> Iterator[Block]:
    """Yield findings by rule: its meaning, the rows, what to do."""
    for rule, found in grouped(findings, lambda each: each.rule).items():
        yield Bullets((f"{rule}: {found[0].means}",), marked=False, level=1)
        rows = []
        for each in found[:_SHOWN]:
            name = f"row {each.line}, {each.run_id or 'no run_id'} {each.request_class or ''}".rstrip()
            rows.append(f"{name}: {each.sentence}")
        if len(found) > _SHOWN:
            rows.append(f"and {len(found) - _SHOWN} more rows: --csv lists them")
        yield Bullets((*rows, f"-> {found[0].action}"), marked=False, level=2)


def plot(frame: pd.DataFrame, name: str, statistic: str | None = None, page: bool = True) -> go.Figure:
    """Return the figure: a mark for each row, and a line through the medians of each load of a layout and class.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table as `LOAD_TESTS.read` returns it.
    name : str
        Name of the table, for the title.
    statistic : str, optional
        A key of `STATISTICS`. Without it, the 99th percentile is drawn if at least half of the rows with a rate and
        any latency have it, or else the mean, the 95th percentile and so on.
    page : bool
        Whether it is for a page with a toolbar.
    """
    import plotly.express as px  # slow to import

    with_rate = frame[frame["throughput_tps"].notna()]
    counts = {each: int(with_rate[STATISTICS[each]].notna().sum()) for each in _PREFERRED}
    chosen = statistic or next(each for each in _PREFERRED if counts[each] >= max(counts.values()) / 2)
    column = STATISTICS[chosen]
    frame = frame.assign(audit=[_verdict_on(each) for each in audit_load_tests(frame).rows])
    shown = frame[frame["throughput_tps"].notna() & frame[column].notna()]
    if shown.empty:
        known = [each for each, count in counts.items() if count]
        why = f"give --statistic one of {', '.join(known)}" if known else "no latency of it can be drawn"
        raise InputError(f"{name} has no row with throughput_tps and {column}: {why}")
    words = [_words(row.dropna()) or "every row" for _, row in shown[_telling(shown)].iterrows()]
    shown, loads = shown.assign(series=words).sort_values("series"), ["offered_tps", "clients"]
    middle = shown.groupby(["series", *loads], dropna=False, as_index=False)[["throughput_tps", column]].median()
    look_of = {"x": "throughput_tps", "y": column, "color": "series", "color_discrete_sequence": look.COLOURS}
    marks = {"symbol": "audit", "symbol_map": _SYMBOLS, "hover_name": "run_id", "hover_data": loads}
    figure = px.scatter(shown, **look_of, **marks).update_traces(marker_size=7, showlegend=False)
    figure.add_traces(px.line(middle, **look_of).update_traces(hoverinfo="skip", hovertemplate=None).data)
    what = "longest latency" if chosen == "max" else f"{chosen} latency"
    figure.update_xaxes(title_text="completed requests per second", **look.RATE_AXIS)
    figure.update_yaxes(look.latency_axis(f"{what} [ms]"))
    text = [
        f"Measured: {many(len(shown), 'row')}. Lines: medians of the rows with the same load. Open circles: more "
        "offered than carried. Crosses: refused by the audit."
    ]
    legend = look.above(title=None, orientation="v", yanchor="top", y=-_BOTTOM_PIXELS / _PANEL_PIXELS, tracegroupgap=0)
    below = _BOTTOM_PIXELS + _LEGEND_PIXELS * shown["series"].nunique()
    look.frame(
        figure, f"{name}: {what} against throughput", text, _PANEL_PIXELS, page, 8, below, margin_l=64, legend=legend
    )
    return figure


def _telling(frame: pd.DataFrame) -> list[str]:
    """Return the fewest columns, in their order, that tell layouts and request classes apart."""
    kept, count = list[str](), 1
    for name in ("request_class", "load_kind", *LAYOUT, "read_fraction"):
        if (found := len(frame.drop_duplicates([*kept, name]))) > count:
            kept, count = [*kept, name], found
    return kept


def _words(row: pd.Series[Any]) -> str:
    """Return what tells a series apart in words: names alone, and numbers with their columns."""
    known = {str(name).replace("_", " "): value for name, value in row.items()}
    return ", ".join(str(value) if str(value)[0].isalpha() else f"{name} {value}" for name, value in known.items())


def _verdict_on(row: RowVerdict) -> str:
    if not row.believed:
        return "refused"
    return "saturated" if row.saturation in ("overloaded", "backlogged") else "believed"
