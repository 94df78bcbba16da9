"""The contract of an importer, and shared code: how a file is recognised, names of runs, and columns of percentiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capplan.evidence.load_test_row import PERCENTILES, LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.evidence.text_file import TextFile

# of a sample in the text format of Prometheus; a brace may stand in a value, and behind the sample
LABELS = r'(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?'


@dataclass(frozen=True)
class Imported:
    """The rows of one file.

    Attributes
    ----------
    load_tests : tuple of LoadTestRow
        What clients saw.
    microbenchmarks : tuple of MicrobenchRow
        What a part or a server counted.
    remarks : tuple of str
        What was left out or computed again, in sentences.
    """

    load_tests: tuple[LoadTestRow, ...] = ()
    microbenchmarks: tuple[MicrobenchRow, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Importer:
    """A format.

    Attributes
    ----------
    tool : str
        What writes it, as the report of an import names it.
    recognises : function
        Whether a file has the format, from its first 64 KiB.
    read : function
        Returns the rows of such a file.
    exactness : int
        Which of several files about one run its cells are taken from: the highest has the best figures.
    read_in : function, optional
        Returns the rows of a file whose unit of latencies is given, for a format that does not name it.
    """

    tool: str
    recognises: Callable[[TextFile], bool]
    read: Callable[[TextFile], Imported]
    exactness: int = 1
    read_in: Callable[[TextFile, str], Imported] | None = None


def matching(pattern: str) -> Callable[[TextFile], bool]:
    """Return a function that recognises a file by a pattern in its first 64 KiB."""
    return lambda file: re.search(pattern, file.head, re.MULTILINE) is not None


def run_id(file: TextFile) -> str:
    """Return the name of a file's run: the file name without its ending, which files of one run share."""
    return file.path.stem


def run_names(file: TextFile, labels: Sequence[str]) -> list[str]:
    """Return the names of the runs of one file: that of the file, if there are several with a label or a number."""
    if len(labels) == 1:
        return [run_id(file)]
    befores = [labels[:place].count(label) for place, label in enumerate(labels)]
    numbers = [str(before + 1) if before or not label else "" for label, before in zip(labels, befores, strict=True)]
    return ["-".join(filter(None, (run_id(file), *each))) for each in zip(labels, numbers, strict=True)]


def percentile_columns(percentiles: Mapping[float, float]) -> dict[str, Any]:
    """Return the columns of the percentiles that the table has.

    Parameters
    ----------
    percentiles : mapping of float to float
        Latency in ms by percentile between 0 and 100.
    """
    columns = {round(100 * share, 6): name for name, share in PERCENTILES.items()}
    return {columns[round(key, 6)]: value for key, value in percentiles.items() if round(key, 6) in columns}
