"""`capplan calibrate`: fit a system to its evidence and write the fitted file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pandas import DataFrame

from capplan.calibration.fit.calibrate import calibrate, stages_of
from capplan.calibration.tables.fit_table import fit_table
from capplan.cli.shell.progress import stages
from capplan.cli.shell.target import read_target
from capplan.cli.shell.terminal import TABLE_ENDINGS, Json, WithRefused, check_output, print_rows
from capplan.errors import InputError
from capplan.evidence.audit.audit import check_believed
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.files import only_run, writable_cache
from capplan.layout.fitted_file import to_json, write
from capplan.layout.table_system import TableSystem, table_of
from capplan.reports.document import Bullets
from capplan.reports.fit import of_documents, of_table
from capplan.systems.registry import DEFAULT
from capplan.systems.registry import system as find_system


def calibrate_(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="The system to fit.")] = DEFAULT,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws; the same seed gives the same file.")] = 1,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your load tests, for systems such as cassandra: a table, or what 'capplan evidence import' reads.",
        ),
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(metavar="EXPRESSION", help="Rows of that table to fit, such as 'rf in (1, 3)'; all by default."),
    ] = None,
    with_refused: WithRefused = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file; the packaged fitted file when not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fit a system's parameters to its evidence, sample the posterior and refit without each scenario; takes minutes.

    An interrupted calibration resumes: finished stages are kept beside --output, or else in the user's cache.
    """
    its = find_system(read_target(system).scenario.system)
    table = table_of(its)
    if table is not None:
        rows, remarks = _rows(table, evidence, train, with_refused)
        if output is None:
            raise _needs_table(table)
        check_output(output)
        with only_run(output):
            fitted = fit_table(table, rows, seed=seed)
            write(fitted, output)
        described = (Bullets(tuple(remarks), marked=False), *of_table(table, fitted, output.name))
    elif evidence is not None or train is not None or with_refused:
        raise InputError(
            f"--evidence, --train and --with-refused are for systems that are fitted to your load tests, such as "
            f"cassandra: {its.name} has documents of its own"
        )
    else:
        path = output or its.fitted_path
        check_output(path)
        with stages(f"calibrating {its.name}", stages_of(its)) as progress:
            fitted = calibrate(its, seed, progress=progress, output=output or _in_cache(its.name))
        write(fitted, path)
        described = tuple(of_documents(fitted, path.name))
    print_rows(to_json(fitted), ((), ()), lambda: described, as_json, as_csv=False)


def _rows(
    system: TableSystem[Any], evidence: Path | None, train: str | None, with_refused: bool
) -> tuple[list[LoadTestRow], list[str]]:
    """Return the rows to fit, and what their importer said."""
    if evidence is None:
        raise _needs_table(system)
    frame, remarks = (LOAD_TESTS.read(evidence), []) if evidence.suffix in TABLE_ENDINGS else _imported(evidence)
    if train is not None:
        kept = chosen_rows(frame, train)
        if not kept.any():
            raise InputError(f"--train {train!r} keeps none of the {len(frame)} rows of {evidence}")
        frame = frame[kept]
    if not with_refused:
        check_believed(frame, evidence.name)
    return list(LOAD_TESTS.rows(frame)), remarks


def _imported(path: Path) -> tuple[DataFrame, list[str]]:
    from capplan.evidence.import_files import import_files  # slow to import

    found = import_files([path])
    if found.load_tests.empty:
        raise InputError(f"{path} has no load test: a fit needs rows with rates and latencies")
    return found.load_tests, [f"{path.name}: {each}" for file in found.files for each in file.remarks]


def _needs_table(system: TableSystem[Any]) -> InputError:
    return InputError(
        f"{system.name} is fitted to your load tests: run `capplan calibrate {system.name} --evidence table.csv "
        "-o mine.json`"
    )


def _in_cache(system: str) -> Path | None:
    """Return where to keep stages if there is no output beside them: the cache, never the installed package."""
    cache = writable_cache()
    return cache and cache / f"{system}-calibration.json"
