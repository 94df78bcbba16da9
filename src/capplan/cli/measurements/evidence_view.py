"""Tables of evidence for people, readable in 80 columns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from capplan.calibration.audit.audit import Audit, Missing
from capplan.calibration.audit.finding import Finding, shown
from capplan.calibration.evidence.table import UNITS, Evidence, Source, layout_text
from capplan.cli.measurements.load_tests_view import rows_and_runs, rules
from capplan.cli.views.tables import bullets, facts, heading, section, table

STYLES = {
    "contradicted": "bold red",
    "contradictory": "red",
    "missing": "magenta",
    "rounding": "yellow",
    "consistent": "green",
}
SAVED = ("consistent", "rounding")
LEFT_OUT = ("value", "low", "high", "unit", "written", "text")  # shown as one figure with its rounding


def rows(found: Sequence[Evidence], console: Console) -> None:
    """Print rows of evidence, one line each."""
    listed = table(("id", "left"), ("figure", "right"), ("rounding", "left"), ("status", "left"), ("use", "left"))
    listed.columns[1].no_wrap = False  # a fact in words may need two lines
    for row in found:
        status = Text(row.status, style=STYLES.get(row.status, ""))
        listed.add_row(row.id, row.written, _rounding(row), status, row.use)
    console.print(listed)
    counts = Counter(row.use for row in found)
    uses = ", ".join(f"{count} {use}" for use, count in counts.most_common())
    one = f"All of one: capplan evidence show {found[0].id} {found[0].system}"
    console.print(Text(f"{len(found)} figures: {uses}. {one}", style="dim"))


def _rounding(row: Evidence) -> str:
    """Return the interval of the rounding in the unit that the figure was written in."""
    if row.text or row.low == row.high:
        return ""
    unit = row.written.partition(" ")[2]
    scale = float(UNITS[unit][1]) if unit else 1.0
    if math.isinf(row.high):
        return "or more"
    return f"[{row.low / scale:.7g}, {row.high / scale:.7g}]"


def row(found: Evidence, source: Source, console: Console) -> None:
    """Print every field of a row, and its source."""
    console.print(heading(found.id))
    figure = found.text or f"{found.written} {_rounding(found)}".strip()
    cells = {"value": figure, **{field.name: _field(getattr(found, field.name)) for field in fields(found)}}
    wanted = {name: text for name, text in cells.items() if text and (name == "value" or name not in LEFT_OUT)}
    wanted["value"] = figure
    console.print(facts({name.replace("_", " "): text for name, text in wanted.items() if name != "id"}))
    console.print(section("Source"))
    about = {"title": source.title, "kind": source.kind, "citation": source.citation, "dating": source.dating}
    console.print(facts({**about, "measured": source.measured}))
    if source.defects:
        console.print(section("What is known to be wrong with it"))
        console.print(bullets(source.defects))


def _field(value: object) -> str:
    if isinstance(value, Mapping):
        return layout_text(value)
    return {True: "yes", False: "no", None: ""}[value] if value is None or isinstance(value, bool) else str(value)


def documents(found: Audit, console: Console) -> None:
    """Print the audit of documents: load tests, laws, worker gaps, the register of contradictions, and readings."""
    console.print(heading(f"Audit of the evidence about {found.subject}"))
    console.print(Text(_summary(found)))
    if found.rows:
        console.print(section(f"Load tests: {rows_and_runs(found)}, by the rules for load-test tables"))
        rules(found, console)
    console.print(section("Operational laws"))
    _tally(found.laws, console)
    if found.worker_gaps:
        console.print(section("Busy workers of a front node"))
        _worker_gaps(found, console)
    console.print(section("Register of contradictions: the document against its own figures"))
    _findings((each for each in found.claims if each.verdict == "contradicted"), console)
    console.print(section("Claims that the figures support, at least within rounding"))
    _findings((each for each in found.claims if each.verdict in SAVED), console)
    console.print(section("Claims that no figure tests"))
    _findings((each for each in found.claims if each.verdict == "untested"), console)
    console.print(section("Readings that the document leaves open"))
    _findings(found.readings, console)
    if found.missing:
        console.print(section("Figures that the document refers to and its text does not have"))
        _missing(found.missing, console)
    console.print(Text(f"data {str(found.data_hash)[:12]}", style="dim"))


def _summary(found: Audit) -> str:
    laws = sum(each.verdict == "contradicted" for each in found.laws)
    claims = sum(each.verdict == "contradicted" for each in found.claims)
    return (
        f"The figures contradict {laws} of {len(found.laws)} checks of operational laws and {claims} of "
        f"{len(found.claims)} claims, however the figures were rounded."
    )


def _tally(found: Sequence[Finding], console: Console) -> None:
    """Print what is contradicted or only just saved; count the rest by law."""
    fine = Counter(each.means for each in found if each.verdict == "consistent")
    _findings((each for each in found if each.verdict != "consistent"), console)
    for law, count in fine.items():
        console.print(_line("consistent", Text(f"{law}: {count} {'check' if count == 1 else 'checks'}")))


def _worker_gaps(found: Audit, console: Console) -> None:
    listed = table(("  test", "left"), ("Little's law", "left"), ("documented", "left"), ("ratio", "left"))
    listed.add_column("longer hold", no_wrap=True)
    for gap in found.worker_gaps:
        intervals = (shown(each) for each in (gap.expected, gap.documented, gap.ratio))
        listed.add_row(f"  {gap.scenario}", *intervals, shown(gap.extra_hold_s.printed, "s"))
    console.print(listed)
    note = (
        "[ ] shows what the rounding allows. Little's law is applied to the peak rate, so it gives an upper bound of "
        "the mean number. The gap closes if each request holds its worker longer."
    )
    console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))


def _findings(found: Iterable[Finding], console: Console) -> None:
    for each in found:
        console.print(_line(each.verdict or "", Text.assemble(each.sentence, (f"  {each.rule}", "dim"))))


def _missing(found: Iterable[Missing], console: Console) -> None:
    """Print what is missing, one line for each place in the document."""
    for place, absent in groupby(found, key=lambda row: row.locator):
        listed = tuple(absent)
        kinds = Counter((row.quantity, row.text) for row in listed)
        what = ", ".join(
            f"{kind} ({text})" if count == 1 else f"{count} {kind}s ({text})" for (kind, text), count in kinds.items()
        )
        ids = " ".join(row.id for row in listed)
        console.print(_line("missing", Text.assemble(f"{place}: {what}", (f"  {ids}", "dim"))))


def _line(verdict: str, text: Text) -> Table:
    line = Table.grid(padding=(0, 1))
    line.add_column(width=14, no_wrap=True)
    line.add_column()
    line.add_row(Text(f"  {verdict}", style=STYLES.get(verdict, "")), text)
    return line
