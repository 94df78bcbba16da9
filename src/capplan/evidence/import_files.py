"""Imports files of any known tool into one table; files about the same run complement each other.

Files of one folder whose names differ in the ending only, such as `run7.txt` and `run7.hdr`, are about one run. Each
cell of its rows comes from the most exact file that has it: a report or a histogram before the rounded figures of a
console.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError
from capplan.evidence.documented_runs import documented_runs
from capplan.evidence.importers import (
    database_load_generators,
    easy_stress,
    hdr_log,
    jmeter,
    percentile_text,
    server_metrics,
    web_load_generators,
)
from capplan.evidence.importers.column_names import column_name
from capplan.evidence.importers.importer import Imported, Importer
from capplan.evidence.importers.log_prefix import without_prefix
from capplan.evidence.importers.mapped_table import (
    ColumnMap,
    is_table,
    mapping_of,
    parse_mapping,
    proposal,
    read_mapped,
    read_table,
)
from capplan.evidence.importers.other_formats import why_unread
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS, MicrobenchRow
from capplan.evidence.table import Evidence
from capplan.evidence.text_file import TextFile
from capplan.grouped import grouped

IMPORTERS: tuple[Importer, ...] = (
    database_load_generators.CASSANDRA_STRESS,
    hdr_log.HDR_LOG,
    database_load_generators.YCSB,
    easy_stress.EASY_STRESS,
    database_load_generators.LATTE_REPORT,
    web_load_generators.GHZ,
    server_metrics.NODETOOL,
    jmeter.JMETER,
    web_load_generators.K6_POINTS,
    web_load_generators.K6_CSV,
    web_load_generators.LOCUST,
    web_load_generators.LOCUST_HISTORY,
    web_load_generators.GATLING_REPORT,
    web_load_generators.WRK,
    percentile_text.PERCENTILE_TEXT,
    server_metrics.OPENMETRICS,
    server_metrics.PROMETHEUS,
)
TABLE, MAPPED, DOCUMENTS = "load-test table", "CSV by --map", "documents"
_TEXTS, _RATE = ("source", "note"), "offered_tps"
_WHOLE = (None, ALL)  # classes of every request of a run
_MOST_TABLES = 10
_EXACT = 3  # how exact figures of single requests are
_BY_PATH = (jmeter.JMETER,)  # importers that do not read line by line


@dataclass(frozen=True)
class FileReport:
    """What an import took from one file.

    Attributes
    ----------
    path
        The file.
    tool
        What wrote it; empty if nothing was taken.
    load_tests
        Rows of load tests that it has.
    microbenchmarks
        Rows of microbenchmarks that it has.
    remarks
        What was left out or computed again, or why nothing was taken.
    """

    path: str
    tool: str
    load_tests: int
    microbenchmarks: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class ImportReport(VerbAnswer):
    """What an import wrote, and what it took from each file.

    Attributes
    ----------
    load_tests
        File of the load-test table; none if there was no load test.
    microbenchmarks
        File of the table of microbenchmarks; none if there was none.
    files
        What was taken from each file.
    """

    SCHEMA = "capplan.import/1"

    load_tests: str | None
    microbenchmarks: str | None
    files: tuple[FileReport, ...]


@dataclass(frozen=True)
class Import:
    """The combined tables, and what was taken from each file.

    Attributes
    ----------
    load_tests
        One row per run and request class.
    microbenchmarks
        One row per figure of a part.
    files
        In the order of the files.
    """

    load_tests: pd.DataFrame
    microbenchmarks: pd.DataFrame
    files: tuple[FileReport, ...]


def import_files(
    paths: Sequence[Path],
    mapping: ColumnMap | None = None,
    constants: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
    documented: Mapping[str, Sequence[Evidence]] = MappingProxyType({}),
) -> Import:
    """Import files and folders into one table.

    Parameters
    ----------
    paths : sequence of Path
        Files, and folders, whose files are taken with those of their folders. A file that is given by its name must be
        known; in a folder, others are left out and reported.
    mapping : ColumnMap, optional
        What the columns of CSV files are, and the unit of latencies that a file does not state.
    constants : mapping of str to str, optional
        Cells by column, for what a tool does not know, such as the number of nodes. A cell that a file has must not be
        given another value.
    progress : callable
        Called with the number of files that are read, and of all.
    documented : mapping of str to sequence of Evidence, optional
        Documented figures by system, whose load tests are taken too.

    Returns
    -------
    Import

    Raises
    ------
    InputError
        If nothing can be taken, a file that is given by its name is of no known tool or is damaged, or a constant
        contradicts a file.
    """
    for name, text in (constants or {}).items():
        column_name(name, f"--set {name}={text}: {name!r} is no column of a load-test table")
    given = {name: LOAD_TESTS.cell(name, text, f"--set {name}={text}") for name, text in (constants or {}).items()}
    reports: list[FileReport] = []
    runs: dict[_Place, list[tuple[int, LoadTestRow]]] = {}
    parts: list[MicrobenchRow] = []
    every = list(_files(paths))
    taken: dict[tuple[Path, str, str | None], Path] = {}
    for done, (path, named) in enumerate(every):
        progress(done, len(every))
        try:
            tool, exactness, found = _imported(path, mapping)
            where = path.with_suffix("") if tool in (TABLE, MAPPED) else path.parent
            _claim(taken, path, tool, {row.run_id for row in found.load_tests})
        except InputError as error:
            if named:
                raise
            reports.append(FileReport(str(path), "", 0, 0, (str(error).removeprefix(str(path)).lstrip(",: "),)))
            continue
        reports.append(FileReport(str(path), tool, len(found.load_tests), len(found.microbenchmarks), found.remarks))
        parts.extend(found.microbenchmarks)
        seen: Counter[_Place] = Counter()
        for row in found.load_tests:
            place = _Place(where, row.run_id, row.repeat, row.request_class)
            runs.setdefault(replace(place, number=seen[place]), []).append((exactness, row))
            seen[place] += 1
    for system, evidence in documented.items():
        found_runs = documented_runs(evidence)
        if not found_runs:
            raise InputError(f"the documents about {system} have no rate and no latency of a load test")
        reports.append(FileReport(system, DOCUMENTS, len(found_runs), 0, ()))
        for each in found_runs:
            place = _Place(Path(system), each.row.run_id, each.row.repeat, each.row.request_class)
            runs.setdefault(place, []).append((1, each.row))
    if not runs and not parts:
        raise InputError(
            f"{' '.join(map(str, paths))} has no file of a known tool: {_known()}, or a CSV file with --map"
        )
    rows = _told_apart(runs)
    of_runs = grouped(rows, lambda row: (row.run_id, row.repeat))
    together = [_with_constants(row, _of_class(given, row, of_runs[row.run_id, row.repeat])) for row in rows]
    return Import(LOAD_TESTS.frame(list(map(_with_class, together))), MICROBENCHMARKS.frame(parts), tuple(reports))


def import_load_tests(
    *paths: str | Path, mapping: str | Path | None = None, columns: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Import load tests from files of any known tool, and from folders of them.

    Parameters
    ----------
    *paths : str or Path
        Outputs of load generators, load-test tables, or folders.
    mapping : str or Path, optional
        What the columns of a CSV are: a .toml file, or pairs such as `nodes=cass_nodes,p99=latency_p99_ms:us`.
    columns : mapping of str to str, optional
        Cells that no tool knows, such as `{"cass_nodes": "3"}`.

    Returns
    -------
    pandas.DataFrame
        A load-test table: one row per run and request class, with all columns of `capplan evidence schema`.

    Raises
    ------
    InputError
        As for `import_files`.
    """
    described = None if mapping is None else parse_mapping([str(mapping)])
    return import_files([Path(each) for each in paths], described, columns).load_tests


def _known() -> str:
    return ", ".join(dict.fromkeys(each.tool.partition(" ")[0] for each in IMPORTERS))


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield every file, and whether it was given by its name."""
    for path in paths:
        if path.is_dir():
            yield from (
                (each, False) for each in sorted(path.rglob("*")) if each.is_file() and not each.name.startswith(".")
            )
        else:
            yield path, True


def _imported(path: Path, mapping: ColumnMap | None) -> tuple[str, int, Imported]:
    """Return the tool of a file, how exact its figures are, and its rows."""
    if path.suffix.lower() == ".parquet":
        if easy_stress.has_requests(path):
            return easy_stress.REQUESTS, _EXACT, easy_stress.read_requests(path)
        return TABLE, _MOST_TABLES, Imported(tuple(LOAD_TESTS.rows(LOAD_TESTS.read(path))))
    file, remarks = without_prefix(TextFile(path))
    for importer in IMPORTERS:
        if importer.recognises(file):
            found = _read(importer, file, mapping.unit if mapping else "")
            return importer.tool, importer.exactness, replace(found, remarks=(*remarks, *found.remarks))
    if columns := mapping_of(file, mapping):
        return MAPPED, 1, _with_mapped_constants(read_mapped(file, columns), columns)
    if is_table(file):
        return TABLE, _MOST_TABLES, read_table(file)
    known = f"is of no known tool; known: {_known()}; a CSV file needs --map"
    raise InputError(f"{path} {why_unread(file) or known}{proposal(file)}")


def _claim(
    taken: dict[tuple[Path, str, str | None], Path], path: Path, tool: str, run_ids: Iterable[str | None]
) -> None:
    """Note which file has a run.

    Raises
    ------
    InputError
        If another file of the same tool has a run of that name: they would complement each other.
    """
    for run_id in run_ids if tool not in (TABLE, MAPPED) else ():
        other = taken.setdefault((path.parent, tool, run_id), path)
        if other != path:
            raise InputError(f"{path} is output of {tool}, as {other} is, and both would be run {run_id!r}: rename one")


def _read(importer: Importer, file: TextFile, unit: str) -> Imported:
    """Read a file; refuse in one sentence anything that its importer does not expect.

    Raises
    ------
    InputError
        If the file has something that its importer does not expect.
    """
    if importer in _BY_PATH and (file.prefix or file.encoding == "utf-16"):
        what = "something before each line" if file.prefix else "UTF-16"
        raise InputError(f"{file.path} is output of {importer.tool} with {what}: save it as it is, in UTF-8")
    try:
        found = importer.read_in(file, unit) if importer.read_in else importer.read(file)
        LOAD_TESTS.frame(found.load_tests)  # every cell has the type of its column
        MICROBENCHMARKS.frame(found.microbenchmarks)
    except InputError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, csv.Error, RecursionError) as error:
        raise InputError(
            f"{file.path} looks like output of {importer.tool}, and something in it cannot be read "
            f"({str(error).splitlines()[0] if str(error) else type(error).__name__}): report it, if the tool wrote it"
        ) from None
    return found


def _with_mapped_constants(found: Imported, mapping: ColumnMap) -> Imported:
    given = {name: LOAD_TESTS.cell(name, text, f"[constants] {name}") for name, text in mapping.constants.items()}
    return replace(found, load_tests=tuple(_with_constants(row, given) for row in found.load_tests))


def _with_constants(row: LoadTestRow, given: Mapping[str, Any]) -> LoadTestRow:
    """Return a row with cells that its tool does not write.

    Raises
    ------
    InputError
        If the row has another value.
    """
    cells = dict(given)
    for name, value in given.items():
        known = getattr(row, name)
        if name in _TEXTS:
            cells[name] = "; ".join(dict.fromkeys(filter(None, (known, value))))
        elif known not in (None, value):
            where = row.source or f"run {row.run_id!r}"
            raise InputError(
                f"{name} is {value} by what was set, and {known} in {where}: leave it out, or import its file apart"
            )
    return replace(row, **cells)


def _of_class(given: Mapping[str, Any], row: LoadTestRow, run: Sequence[LoadTestRow]) -> dict[str, Any]:
    """Return constants of a run for one row: a class has its share of the offered rate, by what was completed."""
    if _RATE not in given or row.request_class in _WHOLE or row.run_id is None:
        return dict(given)
    total = sum(each.throughput_tps or 0.0 for each in run if each.request_class not in _WHOLE)
    share = (row.throughput_tps or 0.0) / total if total else 1.0
    return {**given, _RATE: given[_RATE] * share}


def _with_class(row: LoadTestRow) -> LoadTestRow:
    """Return a row with class `all` unless it has a class."""
    return row if row.request_class else replace(row, request_class=ALL)


@dataclass(frozen=True)
class _Place:
    """What a row tells of: rows with the same are merged. Of one file no two have the same.

    Outputs of load generators tell of their folder's runs together, and a table only of its own.
    """

    where: Path
    run_id: str | None
    repeat: int | None
    request_class: str | None
    number: int = 0


def _told_apart(runs: Mapping[_Place, list[tuple[int, LoadTestRow]]]) -> list[LoadTestRow]:
    """Return one row per place; a run name found in several folders or tables gets their name as a prefix."""
    found_in = Counter(name for _, name in {(place.where, place.run_id) for place in runs})
    rows = []
    for place, found in runs.items():
        row = _merged([row for _, row in sorted(found, key=lambda each: -each[0])])
        several = place.run_id is not None and found_in[place.run_id] > 1
        rows.append(replace(row, run_id=f"{place.where.name}/{place.run_id}") if several else row)
    return rows


def _merged(rows: Sequence[LoadTestRow]) -> LoadTestRow:
    """Merge rows: each cell comes from the first row that has it; sources and notes are joined."""
    cells = {
        each.name: next((value for row in rows if (value := getattr(row, each.name)) is not None), None)
        for each in fields(LoadTestRow)
    }
    for name in _TEXTS:
        cells[name] = "; ".join(dict.fromkeys(text for row in rows if (text := getattr(row, name)))) or None
    return LoadTestRow(**cells)
