"""Single requests: the table of a run's trace, and its Parquet or CSV file.

A file has one row per request; times are nanoseconds since the start of the run, which are the engines' ticks.
`request` numbers the requests of a replication in the order of starting; rows need not be in that order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from capplan.models.errors import InputError
from capplan.models.files import check_replaceable, replacing
from capplan.models.language.network import Network
from capplan.simulator.results.histogram import IntArray

SCHEMA = "capplan.trace/1"


class Status(IntEnum):
    """How a request ended, for its client."""

    UNFINISHED = 0
    COMPLETED = 1
    DROPPED = 2
    TIMED_OUT = 3


@dataclass(frozen=True, eq=False)
class Requests:
    """One row per request in the order of starting; times in ticks.

    Attributes
    ----------
    source, request_class
        Indices into the names of the run.
    session
        Number of the arrival (open traffic) or of the client (closed).
    position
        Position among the requests of the session.
    intended_ticks, start_ticks, end_ticks
        Times of the request, from its first attempt to its last; `end_ticks` is -1 for unfinished requests.
    status
        A `Status`.
    attempts
        Number of attempts.
    """

    source: IntArray
    request_class: IntArray
    session: IntArray
    position: IntArray
    intended_ticks: IntArray
    start_ticks: IntArray
    end_ticks: IntArray
    status: IntArray
    attempts: IntArray


STATUSES = [status.name.lower() for status in Status]


class TraceWriter:
    """Writes a trace, piece by piece, so that it need not fit into memory; a context manager.

    The file appears under its name when it is complete; after an error nothing is left of it.

    Parameters
    ----------
    path : Path
        Where to write, as CSV if it ends in .csv, otherwise as Parquet; an existing file is replaced.
    network, seed
        What is run. The names of its classes and sources go into the rows, its own name and the seed into the metadata,
        which CSV does not have.

    Raises
    ------
    InputError
        When the folder does not exist, or the file cannot be written there.
    """

    def __init__(self, path: Path, network: Network, seed: int) -> None:
        import pyarrow as pa  # only a trace needs it
        from pyarrow import csv, parquet

        self._arrow, self._path = pa, path
        self._classes = pa.array([each.name for each in network.classes])
        self._sources = pa.array(list(network.traffic.mix))
        metadata = {"schema": SCHEMA, "network": network.name, "seed": str(seed)}
        self._open = csv.CSVWriter if path.suffix.lower() == ".csv" else parquet.ParquetWriter
        self._schema = _schema(pa).with_metadata(metadata)
        check_replaceable(path)

    def write(self, requests: Requests, replication: int = 0, numbers: IntArray | None = None) -> None:
        """Write a row group.

        Parameters
        ----------
        requests : Requests
            The rows.
        replication : int
            Their replication.
        numbers : array of int, optional
            Their numbers in the order of starting; without them, they are all requests of the replication, from 0 on.
        """
        rows = len(requests.start_ticks)
        if rows == 0:
            return
        pa, named = self._arrow, self._named
        ended = requests.status != Status.UNFINISHED
        columns = {
            "request": np.arange(rows) if numbers is None else numbers,
            "replication": np.full(rows, replication),
            "class": named(requests.request_class, self._classes),
            "source": named(requests.source, self._sources),
            "session": requests.session,
            "position": requests.position,
            "attempts": requests.attempts,
            "intended_ns": requests.intended_ticks,
            "start_ns": requests.start_ticks,
            "end_ns": pa.array(requests.end_ticks, mask=~ended),
            "status": named(requests.status, pa.array(STATUSES)),
        }
        with self._written():
            self._writer.write_table(pa.table(columns, schema=self._schema))

    def _named(self, indices: IntArray, names: Any) -> Any:
        return self._arrow.DictionaryArray.from_arrays(self._arrow.array(indices, self._arrow.int32()), names)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Refuse in one sentence what the disk refuses."""
        try:
            yield
        except OSError as error:
            raise InputError(f"{self._path} cannot be written: {error.strerror or error}") from None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            part = stack.enter_context(replacing(self._path))
            with self._written():
                self._writer = self._open(part, self._schema)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if kind is not None:
            with suppress(OSError):  # a full disk
                self._writer.close()
            self._stack.__exit__(kind, error, where)
            return
        with self._stack, self._written():
            self._writer.close()


def _schema(pa: Any) -> Any:
    name = pa.dictionary(pa.int32(), pa.string())
    whole = dict.fromkeys(("session", "position", "attempts", "intended_ns", "start_ns", "end_ns"), pa.int64())
    first = {"request": pa.int64(), "replication": pa.int64(), "class": name, "source": name}
    fields = {**first, **whole, "status": name}
    return pa.schema([pa.field(column, kind, nullable=column == "end_ns") for column, kind in fields.items()])
