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

from capplan.evidence.audit.audit import Audit, Missing, RowVerdict, audit_load_tests
from capplan.evidence.audit.finding import Finding
from capplan.evidence.audit.load_tests import LAYOUT
from capplan.evidence.import_files import FileReport, Import
from capplan.evidence.load_test_row import LATENCIES
from capplan.evidence.table import UNITS, Evidence, Source, layout_text
from capplan.models.errors import InputError
from capplan.models.grouped import grouped
from capplan.models.number_words import rate
from capplan.planner.data_factor import CpuOfRequest, DataFactor
from capplan.reports import figure as look
from capplan.reports.document import Block, Cell, Column, Line, Paragraph, Table, grid, heading, ruled, table
from capplan.reports.figure import go
from capplan.reports.numbers import many

STATISTICS = {name.removeprefix("latency_").removesuffix("_ms"): name for name in LATENCIES}
"""Columns of latencies by the names of their statistics."""
_PREFERRED = ("p99", "mean", "p95", "p50", "p90", "p999", "p75", "max")
_PANEL_PIXELS, _BOTTOM_PIXELS, _LEGEND_PIXELS = 380, 62, 24
_SYMBOLS = {"believed": "circle", "saturated": "circle-open", "refused": "x"}
_STYLES = {
    "contradicted": "bold red",
    "contradictory": "red",
    "missing": "magenta",
    "rounding": "yellow",
    "consistent": "green",
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
    figure = Column("figure", right=True, wrap=True)  # a fact in words may need two lines
    yield ruled([Column("id"), figure, *map(Column, ("rounding", "status", "use"))], map(_row, found))
    uses = ", ".join(f"{count} {use}" for use, count in Counter(row.use for row in found).most_common())
    one = f"All of one: capplan evidence show {found[0].id} {found[0].system}"
    yield Line(f"{len(found)} figures: {uses}. {one}", "dim", fill=True)


def _row(row: Evidence) -> list[Cell]:
    status = Cell(row.status, style=_STYLES.get(row.status, ""))
    return [Cell(row.id), Cell(row.written), Cell(_rounding(row)), status, Cell(row.use)]


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
    yield Line(found.id, "bold", fill=True)
    figure = found.text or f"{found.written} {_rounding(found)}".strip()
    cells = {field.name: _field(getattr(found, field.name)) for field in fields(found) if field.name not in _LEFT_OUT}
    named = {name.replace("_", " "): text for name, text in cells.items() if text}
    yield facts({"value": figure, **named})
    yield heading("Source")
    about = {"title": source.title, "kind": source.kind, "citation": source.citation, "dating": source.dating}
    yield facts({**about, "measured": source.measured})
    if source.defects:
        yield heading("What is known to be wrong with it")
        yield grid(((Cell("  -"), Cell(text)) for text in source.defects), gap=1)


def data_factor(found: DataFactor, name: str) -> Iterator[Block]:
    """Yield the data factor, the runs that it comes from, and the option that states it."""
    its = found.factor
    yield Line(f"{name}: a request takes {its.value:.3g} times the CPU on aged data ({its.low:.3g} to {its.high:.3g})")
    yield Line(_WAYS[found.way])
    yield Line()
    heads = ["data", "rate", "CPU of nodes", "CPU for 1,000/s", "runs"]
    yield table(heads, map(_cpu, found.runs))
    yield Line()
    yield Line(f"State it: capplan predict ... {found.option}")


_WAYS = {
    "full nodes": "The ratio of full nodes, which divides the capacity.",
    "one rate": "What aged data add at one rate, over what a request takes of full nodes with fresh data.",
}


def _cpu(each: CpuOfRequest) -> list[str]:
    return [each.data, rate(each.rate_tps), f"{each.busy_percent:.0f} %", f"{each.cpu_percent:.3g} %", str(each.runs)]


def facts(named: Mapping[str, str]) -> Table:
    """Return names and texts in two columns, indented."""
    return grid((Cell(f"  {name}", style="cyan"), Cell(text)) for name, text in named.items())


def _field(value: object) -> str:
    if isinstance(value, Mapping):
        return layout_text(value)
    return {True: "yes", False: "no", None: ""}[value] if value is None or isinstance(value, bool) else str(value)


def documents(found: Audit) -> Iterator[Block]:
    """Yield the audit of documents: load tests, laws, worker gaps, the register of contradictions, and readings."""
    yield Line(f"Audit of the evidence about {found.subject}", "bold", fill=True)
    laws, claims = (sum(each.verdict == "contradicted" for each in some) for some in (found.laws, found.claims))
    yield Line(
        f"The figures contradict {laws} of {len(found.laws)} checks of operational laws and {claims} of "
        f"{len(found.claims)} claims, however the figures were rounded.",
        fill=True,
    )
    if found.rows:
        yield heading(f"Load tests: {_rows_and_runs(found)}, by the rules for load-test tables")
        yield from _by_rules(found)
    yield heading("Operational laws")
    yield from _findings(each for each in found.laws if each.verdict != "consistent")
    for law, count in Counter(each.means for each in found.laws if each.verdict == "consistent").items():
        yield _verdict("consistent", f"{law}: {many(count, 'check')}")
    for name, verdicts in _CLAIMS.items():
        yield heading(name)
        yield from _findings(each for each in found.claims if each.verdict in verdicts)
    yield heading("Readings that the document leaves open")
    yield from _findings(found.readings)
    if found.missing:
        yield heading("Figures that the document refers to and its text does not have")
        yield from _missing(found.missing)
    yield Line(f"data {str(found.data_hash)[:12]}", "dim", fill=True)


def _findings(found: Iterable[Finding]) -> Iterator[Table]:
    for each in found:
        yield _verdict(each.verdict or "", f"{each.sentence} ({each.rule})")


def _missing(found: Iterable[Missing]) -> Iterator[Table]:
    """Yield the missing figures, one line per place in the document."""
    for place, absent in groupby(found, key=lambda row: row.locator):
        listed = tuple(absent)
        kinds = Counter((row.quantity, row.text) for row in listed)
        what = ", ".join(
            f"{kind} ({text})" if count == 1 else f"{count} {kind}s ({text})" for (kind, text), count in kinds.items()
        )
        yield _verdict("missing", f"{place}: {what} ({' '.join(row.id for row in listed)})")


def _verdict(verdict: str, text: str) -> Table:
    style = _STYLES.get(verdict, "")
    return grid([(Cell(f"  {verdict}", style=style), Cell(text))], gap=1, width=14)


def imported(found: Import, written: Mapping[str, Path]) -> Iterator[Block]:
    """Yield what was taken from each file, and what was written."""
    yield from _files(found)
    yield Line()
    names = found.load_tests["run_id"]
    runs = int(names.nunique() + names.isna().sum())  # a row without a name is a run of its own
    rows_found = f"{many(len(names), 'row')} of {many(runs, 'run')}"
    if "load_tests" in written or not written:
        yield Line(f"{rows_found} in {written['load_tests']}" if written else rows_found)
    if "microbenchmarks" in written:
        yield Line(f"{many(len(found.microbenchmarks), 'server figure')} in {written['microbenchmarks']}")
    if "load_tests" in written:
        yield Line(f"Next: capplan evidence audit {written['load_tests']}", "dim")


def _files(found: Import) -> Iterator[Block]:
    """Yield what was taken from each file, and what was left out."""
    taken = [each for each in found.files if each.tool]
    files = [[Path(each.path).name, each.tool, _count(each)] for each in taken]
    if len(files) > _MOST_FILES:
        files = [*files[:_MOST_FILES], [f"and {len(files) - _MOST_FILES} more files", "", ""]]
    if files:
        below = [Line(text) for name, tool, count in files for text in (name, f"  {tool}, {count}" if tool else "")]
        yield table(("file", "from", "taken"), files, below)
    for each in taken:
        for remark in each.remarks:
            yield Paragraph(f"{Path(each.path).name}: {remark}", hanging=2)
    left = grouped((each for each in found.files if not each.tool), lambda each: "; ".join(each.remarks))
    if left:
        yield Line()
        yield Line("Left out", "bold")
    for reason, those in left.items():
        yield Paragraph(f"{', '.join(Path(each.path).name for each in those)}: {reason}", indent=2, hanging=4)


def _count(each: FileReport) -> str:
    parts = [(each.load_tests, "row"), (each.microbenchmarks, "server figure")]
    return ", ".join(many(count, kind) for count, kind in parts if count)


def audit(found: Audit) -> Iterator[Block]:
    """Yield the audit of a table of load tests."""
    yield Line(f"{found.subject}: {_rows_and_runs(found)}", "bold")
    yield Line()
    yield from _by_rules(found)


def _rows_and_runs(found: Audit) -> str:
    return f"{many(len(found.rows), 'row')} of {many(len({each.run_id or each.line for each in found.rows}), 'run')}"


def _by_rules(found: Audit) -> Iterator[Block]:
    """Yield what must not be believed, then remarks, then the saturation verdicts."""
    refused = sum(not each.believed for each in found.rows)
    if refused:
        yield Line(f"Do not believe {many(refused, 'row')}:", "bold red")
        yield from _rules([each for each in found.of_load_tests if each.severity == "refused"])
    else:
        yield Line("No figure is refused.", "green")
    cautions = [each for each in found.of_load_tests if each.severity == "caution"]
    if cautions:
        yield Line()
        yield Line("Know before you use them:", "bold")
        yield from _rules(cautions)
    yield Line()
    verdicts = Counter(each.saturation for each in found.rows).most_common()
    yield Paragraph(f"Saturation   {', '.join(f'{count} {name}' for name, count in verdicts)}", hanging=13)
    repeats = "none: how much a repeat would differ is unknown"
    if found.repeated:
        differ = (
            "" if found.scatter is None else f"; their throughput differs by {100 * found.scatter:.2g} % in the median"
        )
        repeats = f"of {found.repeated} of {many(found.loads, 'load')}{differ}"
    yield Paragraph(f"Repeats      {repeats}", hanging=13)


def _rules(findings: Sequence[Finding]) -> Iterator[Block]:
    """Yield findings by rule: its meaning, the rows, what to do."""
    for rule, found in grouped(findings, lambda each: each.rule).items():
        yield Paragraph(f"{rule}: {found[0].means}", indent=2, hanging=4)
        for each in found[:_SHOWN]:
            name = f"row {each.line}, {each.run_id or 'no run_id'} {each.request_class or ''}".rstrip()
            yield Paragraph(f"{name}: {each.sentence}", indent=4, hanging=6)
        if len(found) > _SHOWN:
            yield Paragraph(f"and {len(found) - _SHOWN} more rows: --csv lists them", indent=4)
        yield Paragraph(f"-> {found[0].action}", indent=4, hanging=6)


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
