"""The contract of an importer, and shared code: reading numbers and JSON, and columns of latencies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from capplan.evidence.importers.number_format import POINT, NumberFormat
from capplan.evidence.load_test_row import PERCENTILES, LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.evidence.text_file import TextFile
from capplan.models.errors import InputError
from capplan.models.json_text import with_single_keys

# of a sample in the text format of Prometheus; a brace may stand in a value, and behind the sample
LABELS = r'(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?'
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_LAST_WORD = 8  # characters: a number or a word such as `false` at the end of a file may be cut


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


def in_unit(importer: Importer, unit: str) -> Importer:
    """Return an importer that reads latencies in a unit, if its format does not name one."""
    if not unit or importer.read_in is None:
        return importer
    read_in = importer.read_in
    return replace(importer, read=lambda file: read_in(file, unit))


def json_with(*keys: str) -> Callable[[TextFile], bool]:
    """Return a function that recognises JSON by keys near its start."""
    return lambda file: file.head.lstrip().startswith("{") and all(f'"{key}"' in file.head for key in keys)


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


def plain_line(line: str) -> str:
    """Return a line without the codes that colour it."""
    return _ANSI.sub("", line)


def number(text: str, where: str, what: str, read: NumberFormat = POINT) -> float:
    """Read a number that may have separators of thousands.

    Parameters
    ----------
    text : str
        The number.
    where : str
        Its place in the file, for a refusal.
    what : str
        What it says, for a refusal.
    read : NumberFormat
        How the numbers of its file are read: that of `number_format` where the tool prints in a locale.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        return read.value(text)
    except ValueError:
        raise InputError(f"{where}: {text.strip()!r} must be a number: {what} was expected") from None


def read_json(file: TextFile, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Mapping[str, Any]:
    """Read a file that holds one JSON object.

    Parameters
    ----------
    file : TextFile
        The file.
    hook : function, optional
        Makes a value of each object's pairs, as in `json.loads`; by default, no key may stand twice in one.

    Raises
    ------
    InputError
        If it is not JSON, has a key twice, or is something else than an object.
    """
    try:
        found = json.loads(file.text(), object_pairs_hook=hook or with_single_keys)
    except json.JSONDecodeError as error:
        raise InputError(f"{file.path}, line {error.lineno}: {_json_fault(error)}") from None
    except InputError as error:
        raise InputError(f"{file.path}: {error}") from None
    except RecursionError:
        raise InputError(f"{file.path} is nested too deeply for a report: it must be the JSON of a tool") from None
    if not isinstance(found, dict):
        raise InputError(f"{file.path} must be a JSON object, as a tool reports it")
    return found


def _json_fault(error: json.JSONDecodeError) -> str:
    """Return why a text is no JSON: it ends too early, a second value follows, or it has something else in it."""
    if error.msg == "Extra data":
        return "something follows the JSON object, such as a second report: save each in a file of its own"
    if error.msg.startswith("Unterminated") or error.pos >= len(error.doc.rstrip()) - _LAST_WORD:
        return "the JSON ends in the middle: the file is cut off"
    return f"{error.msg.lower()} in JSON, column {error.colno}: the file must be as the tool wrote it"


def at(found: Any, file: TextFile, *keys: str | int) -> Any:
    """Return a value inside JSON.

    Raises
    ------
    InputError
        If it is not there.
    """
    for place, key in enumerate(keys):
        try:
            found = found[key]
        except (KeyError, IndexError, TypeError):
            path = ".".join(map(str, keys[: place + 1]))
            raise InputError(f"{file.path}: {path!r} is missing: the report of the tool has it") from None
    return found


def real(found: Any, file: TextFile, *keys: str | int) -> float:
    """Return a number inside JSON.

    Raises
    ------
    InputError
        If it is not there, or something else.
    """
    value = at(found, file, *keys)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{file.path}: {'.'.join(map(str, keys))!r} has {value!r}: it must be a number")
    return float(value)


def percentile_columns(percentiles: Mapping[float, float]) -> dict[str, Any]:
    """Return the columns of the percentiles that the table has.

    Parameters
    ----------
    percentiles : mapping of float to float
        Latency in ms by percentile between 0 and 100.
    """
    columns = {round(100 * share, 6): name for name, share in PERCENTILES.items()}
    return {columns[round(key, 6)]: value for key, value in percentiles.items() if round(key, 6) in columns}


def of_histogram(histogram: HdrHistogram, per_ms: float) -> dict[str, Any]:
    """Return the columns of latencies of a histogram.

    Parameters
    ----------
    histogram : HdrHistogram
        Merged over intervals and threads. Percentiles of parts must never be averaged.
    per_ms : float
        Recorded units in a millisecond.
    """
    if not histogram.get_total_count():
        return {}
    found = histogram.get_percentile_to_value_dict([100 * share for share in PERCENTILES.values()])
    return {
        "latency_mean_ms": float(histogram.get_mean_value()) / per_ms,
        **percentile_columns({key: value / per_ms for key, value in found.items()}),
        "latency_max_ms": float(histogram.get_max_value()) / per_ms,
    }


def of_samples(
    milliseconds: NDArray[np.float64], method: Literal["inverted_cdf", "linear"] = "inverted_cdf"
) -> dict[str, Any]:
    """Return the columns of latencies of a list of samples.

    Parameters
    ----------
    milliseconds : ndarray of float (requests,)
        Latencies.
    method : str
        How the tool finds a percentile: as one of the samples, or between two of them.
    """
    if not len(milliseconds):
        return {}
    found = np.quantile(milliseconds, list(PERCENTILES.values()), method=method)
    columns: dict[str, Any] = dict(zip(PERCENTILES, map(float, found), strict=True))
    return {"latency_mean_ms": float(milliseconds.mean()), **columns, "latency_max_ms": float(milliseconds.max())}
