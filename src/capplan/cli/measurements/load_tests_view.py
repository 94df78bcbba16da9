"""Load tests for people: what an import took from where, and what the audit of a table found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from capplan.calibration.audit.audit import Audit
from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.import_files import FileReport, Import
from capplan.cli.views.lines import paragraph, put, table

_SHOWN = 4  # rows of one rule, of which there may be thousands
_MOST_FILES = 40


def imported(found: Import, written: Mapping[str, Path], console: Console) -> None:
    """Print what was taken from which file, and what was written."""
    taken = [each for each in found.files if each.tool]
    left = [each for each in found.files if not each.tool]
    rows = [[Path(each.path).name, each.tool, _count(each)] for each in taken]
    shown = (
        rows
        if len(rows) <= _MOST_FILES
        else [*rows[:_MOST_FILES], [f"and {len(rows) - _MOST_FILES} more files", "", ""]]
    )
    if shown:
        table(console, ("file", "from", "taken"), shown, lambda narrow: _stacked(shown, narrow))
    for each in taken:
        for remark in each.remarks:
            paragraph(console, f"{Path(each.path).name}: {remark}", hanging=2)
    if left:
        put(console)
        put(console, "Left out", "bold")
        for reason, names in _by_reason(left).items():
            paragraph(console, f"{', '.join(names)}: {reason}", indent=2, hanging=4)
    put(console)
    runs = found.load_tests["run_id"].nunique()
    rows_found = f"{_many(len(found.load_tests), 'row')} of {_many(runs, 'run')}"
    if "load_tests" in written:
        put(console, f"{rows_found} in {written['load_tests']}")
    elif not written:
        put(console, rows_found)
    if "microbenchmarks" in written:
        put(console, f"{_many(len(found.microbenchmarks), 'server figure')} in {written['microbenchmarks']}")
    if "load_tests" in written:
        put(console, f"Next: capplan evidence audit {written['load_tests']}", "dim")


def _stacked(rows: Sequence[Sequence[str]], console: Console) -> None:
    for name, tool, count in rows:
        put(console, name)
        put(console, f"  {tool}, {count}" if tool else "")


def _count(each: FileReport) -> str:
    parts = [(each.load_tests, "row"), (each.microbenchmarks, "server figure")]
    return ", ".join(_many(count, kind) for count, kind in parts if count)


def _by_reason(left: Sequence[FileReport]) -> Mapping[str, list[str]]:
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for each in left:
        reasons["; ".join(each.remarks)].append(Path(each.path).name)
    return reasons


def audit(found: Audit, console: Console) -> None:
    """Print the audit of a table."""
    put(console, f"{found.subject}: {rows_and_runs(found)}", "bold")
    put(console)
    rules(found, console)


def rows_and_runs(found: Audit) -> str:
    """Return how many rows of how many runs there are."""
    runs = {each.run_id for each in found.rows}
    return f"{_many(len(found.rows), 'row')} of {_many(len(runs), 'run')}"


def rules(found: Audit, console: Console) -> None:
    """Print what must not be believed, then what a reader must know, then the verdicts about saturation."""
    refused = sum(not each.believed for each in found.rows)
    if refused:
        put(console, f"Do not believe {_many(refused, 'row')}:", "bold red")
        _rules([each for each in found.of_load_tests if each.severity == "refused"], console)
    else:
        put(console, "No figure is refused.", "green")
    cautions = [each for each in found.of_load_tests if each.severity == "caution"]
    if cautions:
        put(console)
        put(console, "Know before you use them:", "bold")
        _rules(cautions, console)
    put(console)
    verdicts = Counter(each.saturation for each in found.rows)
    paragraph(
        console, f"Saturation   {', '.join(f'{count} {name}' for name, count in verdicts.most_common())}", hanging=13
    )
    repeats = (
        "none: how much a repeat would differ is unknown"
        if not found.repeated
        else f"of {found.repeated} of {_many(found.loads, 'load')}"
        + ("" if found.scatter is None else f"; their throughput differs by {100 * found.scatter:.2g} % in the median")
    )
    paragraph(console, f"Repeats      {repeats}", hanging=13)


def _rules(findings: Sequence[Finding], console: Console) -> None:
    """Print findings by rule: what it means, the rows, what to do."""
    by_rule: defaultdict[str, list[Finding]] = defaultdict(list)
    for each in findings:
        by_rule[each.rule].append(each)
    for rule, rows in by_rule.items():
        paragraph(console, f"{rule}: {rows[0].means}", indent=2, hanging=4)
        for each in rows[:_SHOWN]:
            name = f"row {each.line}, {each.run_id or 'no run_id'} {each.request_class or ''}".rstrip()
            paragraph(console, f"{name}: {each.sentence}", indent=4, hanging=6)
        if len(rows) > _SHOWN:
            paragraph(console, f"and {len(rows) - _SHOWN} more rows: --csv lists them", indent=4)
        paragraph(console, f"-> {rows[0].action}", indent=4, hanging=7)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
