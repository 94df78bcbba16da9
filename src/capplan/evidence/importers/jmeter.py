"""JMeter: its results (JTL) as CSV or XML, one sample after the other.

Written from real output of JMeter 5.4; XML, other separators and files without a header from public results.

A thread group does not say whether its threads wait (closed), are paced by a timer (throttled) or come at a rate (the
open model thread group), so the kind of load stays undetermined. A transaction controller writes a sample of its own
behind those in it: they are the requests, and the transactions become a run of their own, for classes must add up.
A sample with parts (redirects, embedded files, a transaction that is a parent) stands before them: it is the request.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from defusedxml.ElementTree import ParseError, iterparse
from numpy.typing import NDArray

from capplan.errors import InputError
from capplan.evidence.importers.importer import Imported, Importer, matching
from capplan.evidence.importers.listed_requests import COLUMNS, ListedRun, begun, named_runs, time_s
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile

_NEEDED = ("timeStamp", "elapsed", "label", "success")
_OPTIONAL = ("responseCode", "responseMessage", "threadName", "allThreads", "IdleTime")
_TRANSACTION = "Number of samples in transaction : "
_UNANSWERED = "Non HTTP response code"
_MOST_THREADS = 100_000  # that may be in a transaction at once
_EXACT_S, _BETWEEN_S = 0.0005, 0.005  # of times, and by how much a transaction may begin before the last one ends
_REQUEST, _PART, _NESTED = range(3)
_BATCH = 50_000
_BLOCK_BYTES = 2**20
_Table = tuple[pa.Table, NDArray[np.int64]]  # cells as text by JMeter's names, and the line of each sample


def _read(file: TextFile) -> Imported:
    runs = _runs(file)
    rows: list[LoadTestRow] = []
    remarks = [*begun(runs)]
    if not (_IS_XML(file) or _HEADER(file)):
        remarks.append("the file has no header: its columns are taken for those that JMeter writes by default")
    for name, run in named_runs(file, runs):
        rows += run.rows(file.path, "JMeter", name)
        remarks += run.remarks()
        if run.parts:
            remarks.append(f"{run.parts:,} samples are parts of those before them, such as redirects: these are taken")
        if run.transactions.classes:
            transactions = run.transactions.rows(file.path, "JMeter", f"{name}-transactions")
            rows += [each for each in transactions if each.request_class != ALL]
            remarks.append(f"transactions are the run '{name}-transactions': they are no requests beside those in them")
    return Imported(tuple(rows), remarks=tuple(remarks))


def _runs(file: TextFile) -> list[_Run]:
    """Return the runs of a file: one, and another for each further header."""
    runs = [_Run(1)]
    for table, lines in _xml_tables(file) if _IS_XML(file) else _csv_tables(file):
        headers = set(np.flatnonzero(pc.equal(table["timeStamp"], "timeStamp").to_numpy()).tolist())
        for start, end in pairwise([0, *sorted(headers), len(lines)]):
            if start == end:
                continue
            if start in headers:
                runs.append(_Run(int(lines[start])))
            first = start + (start in headers)
            if first < end:
                samples = _samples(table.slice(first, end - first), lines[first:end], file)
                runs[-1].add_samples(samples, flat=not _IS_XML(file))
    return runs


class _Parent(NamedTuple):
    """A sample that may have parts; JMeter numbers them, unless it is a transaction."""

    label: str
    start_s: float
    end_s: float
    transaction: bool

    def contains(self, label: str, start_s: float, *, transaction: bool) -> bool:
        """Return whether a later sample of its thread is a part of it."""
        until_s = max(self.end_s - (_BETWEEN_S if transaction else _EXACT_S), self.start_s + _EXACT_S)
        numbered = label.startswith(f"{self.label}-") and label[len(self.label) + 1 :].isdecimal()
        return self.start_s <= start_s < until_s and (numbered or self.transaction)


_NO_PARENT = _Parent("", math.inf, -math.inf, transaction=False)


class _Run(ListedRun):
    """The requests of a run, and its transactions."""

    def __init__(self, first_line: int) -> None:
        super().__init__(first_line)
        self.transactions = ListedRun(first_line)
        self.parts = 0
        self._threads: dict[str, tuple[float, _Parent]] = {}  # when the last sample began, and who may have parts

    def add_samples(self, samples: pd.DataFrame, *, flat: bool) -> None:
        """Add samples in the order of their lines, where their parts may be, too."""
        kinds = self._kinds(samples, flat=flat)
        self.parts += int((kinds == _PART).sum())
        self.add(samples[kinds == _REQUEST])
        self.transactions.take(samples[kinds == _NESTED])
        self.transactions.first_s, self.transactions.last_s = self.first_s, self.last_s
        self.transactions.clients = self.clients

    def _kinds(self, samples: pd.DataFrame, *, flat: bool) -> NDArray[np.int64]:
        """Return which samples are parts of another, and which are transactions whose own samples are there, too.

        A thread writes these before the transaction, which began no later, and parts behind their parent, before whose
        end they begin.
        """
        kinds = []
        placed = samples[["thread", "label", "start_s", "end_s", "message"]]
        for thread, label, start_s, end_s, message in placed.itertuples(index=False):
            last_s, parent = self._threads.pop(thread, (-math.inf, _NO_PARENT))  # the latest are at the end
            transaction = message.startswith(_TRANSACTION)
            if transaction and last_s >= start_s:
                kinds.append(_NESTED)
            elif flat and parent.contains(label, start_s, transaction=transaction):
                kinds.append(_PART)
            else:
                kinds.append(_REQUEST)
                parent = _Parent(label, start_s, end_s, transaction and bool(thread))
            self._threads[thread] = start_s, parent
        while len(self._threads) > _MOST_THREADS:
            del self._threads[next(iter(self._threads))]
        return np.array(kinds)


def _samples(table: pa.Table, lines: NDArray[np.int64], file: TextFile) -> pd.DataFrame:
    """Return samples with the columns of `listed_requests`, their messages and threads.

    Raises
    ------
    InputError
        If a time is none.
    """
    absent = [""] * len(lines)
    label, success, codes, messages, names, threads, idle = (
        table[name].to_pylist() if name in table.column_names else absent for name in ("label", "success", *_OPTIONAL)
    )
    starts_s, elapsed_s = (_times_s(table[name], lines, name, file) for name in ("timeStamp", "elapsed"))
    cells = (
        *(lines, starts_s, starts_s + elapsed_s + np.array(_counts(idle)) / 1000, np.round(1000 * elapsed_s), label),
        *([each.lower() != "true" for each in success], [not each.startswith(_UNANSWERED) for each in codes], codes),
        _counts(threads),
    )
    return pd.DataFrame({**dict(zip(COLUMNS, cells, strict=True)), "message": messages, "thread": names})


def _counts(cells: list[str]) -> list[int]:
    return [int(each) if each.isdecimal() and len(each) < 10 else 0 for each in cells]


def _times_s(cells: pa.ChunkedArray, lines: NDArray[np.int64], name: str, file: TextFile) -> NDArray[np.float64]:
    """Return times in s; JMeter writes milliseconds, or local times in a format of its settings."""
    if pc.all(pc.match_substring_regex(cells, r"^-?\d{1,18}$")).as_py():
        return np.asarray(cells.cast(pa.int64()), dtype=np.float64) / 1000
    found = np.empty(len(lines))
    for place, cell in enumerate(cells.to_pylist()):
        try:
            found[place] = int(cell) / 1000 if name == "elapsed" else time_s(cell.replace("/", "-"))
        except (ValueError, OverflowError):
            other = ", or a date and a time such as 2026/11/22 10:00:00.500" if name == "timeStamp" else ""
            raise InputError(
                f"{file.path}, line {lines[place]}: {name} has {cell!r}: it must be milliseconds, as a whole number"
                f"{other}"
            ) from None
    return found


# ---- CSV. The separator and the columns are settings of JMeter, and so is the header.


_HEADER = matching(r"\A(?=.*timeStamp).*elapsed")
_DELIMITER = re.compile(r'timeStamp"?(?P<after>[^\w"\s]|\t)|(?P<before>[^\w"\s]|\t)"?timeStamp')
_UNNAMED = re.compile(r'\A"?\d{13}"?(?P<mark>[,;|\t])"?\d{1,9}"?(?P=mark)(?=.*(?P=mark)"?(?:true|false)"?(?P=mark))')
_ALL_THREADS = {17: 12, 16: 12, 12: 10}  # place of the column by how many there are: JMeter 5, 3 and 2.13


def _layout(file: TextFile) -> tuple[str, list[str], int]:
    """Return the separator of a CSV file, its columns, and how many lines its header has."""
    first = file.head.partition("\n")[0]
    if _HEADER(file):
        found = _DELIMITER.search(first)
        if not found:
            raise InputError(f"{file.path}, line 1 has no separator: save the results with one, such as a comma")
        delimiter = found["after"] or found["before"]
        names = next(csv.reader([first], delimiter=delimiter))
        if missing := [name for name in _NEEDED if name not in names]:
            raise InputError(f"{file.path}, line 1: column {missing[0]!r} is missing: save the results with it")
        return delimiter, names, 1
    delimiter = (_UNNAMED.match(first) or {"mark": ","})["mark"]
    cells = next(csv.reader([first], delimiter=delimiter))
    success = next((place for place, cell in enumerate(cells) if cell in ("true", "false")), 0)
    places = {0: "timeStamp", 1: "elapsed", 2: "label", 3: "responseCode", success: "success"}
    places |= {4: "responseMessage", 5: "threadName"} if success > 6 else {}
    places |= {_ALL_THREADS[len(cells)]: "allThreads"} if len(cells) in _ALL_THREADS else {}
    return delimiter, [places.get(place, f"column {place}") for place in range(len(cells))], 0


def _csv_tables(file: TextFile) -> Iterator[_Table]:
    delimiter, names, skipped = _layout(file)
    wanted = [name for name in (*_NEEDED, *_OPTIONAL) if name in names]
    read = pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=names, skip_rows=skipped)
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()), include_columns=wanted, strings_can_be_null=False
    )
    line = 1 + skipped
    try:
        for batch in pa_csv.open_csv(file.path, read, parse, convert):
            yield pa.Table.from_batches([batch]), np.arange(line, line + batch.num_rows)
            line += batch.num_rows
    except pa.ArrowInvalid as error:
        for _ in file.lines():  # refuses a line that is no text
            pass
        reason = str(error).splitlines()[0]
        if found := re.search(r"Row #(\d+): Expected \d+ columns, got (\d+)", reason):
            reason = f"line {found[1]} has {found[2]} cells, not {len(names)}: the file is damaged or cut off"
        elif "Empty" in reason:
            reason = "it has no samples: the run was interrupted, or measured nothing"
        raise InputError(f"{file.path}, {reason}") from None


# ---- XML. A sample may contain others, such as redirects: they are parts of it.


_IS_XML = matching(r"\A\s*(?:<\?xml[^>]*>\s*)?<testResults\b")
_ATTRIBUTES = {
    **{"timeStamp": "ts", "elapsed": "t", "label": "lb", "success": "s"},
    **{"responseCode": "rc", "responseMessage": "rm", "threadName": "tn", "allThreads": "na"},
}


def _xml_tables(file: TextFile) -> Iterator[_Table]:
    samples, read = _xml_samples(file), 0
    while batch := list(islice(samples, _BATCH)):
        yield pa.Table.from_pylist(batch), np.arange(read, read + len(batch)) + 3  # one sample a line, after two lines
        read += len(batch)
    if not read:
        raise InputError(f"{file.path} has no samples: the run was interrupted, or measured nothing")


def _xml_samples(file: TextFile) -> Iterator[dict[str, str]]:
    depth, count, root = 0, 0, None
    with file.path.open("rb") as stream:
        try:
            for event, element in iterparse(stream, ("start", "end")):
                depth += 1 if event == "start" else -1
                if event == "start" and depth == 1:
                    root = element
                elif event == "end" and depth == 1 and root is not None:
                    count += 1
                    yield _sample(element, count, file)
                    root.clear()
        except ParseError as error:
            what = "a second document begins: put it into a file of its own"
            what = what if "junk" in str(error) else "the XML ends, or is damaged: JMeter must stop by itself"
            raise InputError(f"{file.path}, line {error.position[0]}: {what}") from None


def _sample(element: Any, place: int, file: TextFile) -> dict[str, str]:
    """Return the attributes of a sample by the names of the columns."""
    for name in _NEEDED:
        if (cell := element.get(_ATTRIBUTES[name])) is None:
            missing = f"attribute {_ATTRIBUTES[name]!r} ({name}) is missing"
            raise InputError(f"{file.path}: {missing} in sample {place}: save the results with it")
        if name in ("timeStamp", "elapsed") and not cell.isdecimal():
            raise InputError(f"{file.path}: {name} has {cell!r} in sample {place}: it must be milliseconds")
    return {name: element.get(key, "") for name, key in _ATTRIBUTES.items()}


JMETER = Importer(
    "JMeter",
    lambda file: _HEADER(file) or _IS_XML(file) or bool(_UNNAMED.match(file.head)),
    _read,
    exactness=2,
)
