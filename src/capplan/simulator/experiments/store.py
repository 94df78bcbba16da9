"""What an experiment has found, in a folder: every replication is a Parquet file as soon as it is there.

A record is one row: the key of its case, its number, and its rows as a list of structures. Files appear under their
names when they are whole. One process at a time owns the folder; its lock ends with it, however it ends.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from capplan.models.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[dict[str, Any]]
Place = tuple[str, int]  # the key of a case, and the number of a replication

TOGETHER = "runs.parquet"
PART = "run-"
UNFINISHED = ".unfinished"
LOCK = ".lock"


class Store:
    """The records in a folder; made by `open_store`."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder = folder
        self._schema = record_schema(schema)
        self._found: dict[Place, Any] = {}
        for file in self._files():
            self._found |= _records(self._read(file))

    def __len__(self) -> int:
        """Count the replications that were there when the store was opened, and those saved since."""
        return len(self._found)

    def rows(self, key: str, replication: int) -> Rows | None:
        """Return what a replication has given, None if it is not there."""
        found = self._found.get((key, replication))
        return None if found is None else found.as_py()

    def save(self, record: pa.Table) -> None:
        """Keep one replication; when this returns, its file is whole.

        Parameters
        ----------
        record
            What `record` makes.

        Raises
        ------
        InputError
            When the file cannot be written.
        """
        (place,) = _places(record)
        name = hashlib.blake2b(repr(place).encode(), digest_size=16).hexdigest()
        self._write(record, f"{PART}{name}.parquet")
        self._found |= _records(record)

    def compact(self) -> None:
        """Put all records into one file, ordered by key and number; interrupted, it loses and doubles nothing."""
        import pyarrow as pa

        files = self._files()
        if not [file for file in files if file.name != TOGETHER]:
            return
        table = pa.concat_tables([self._read(file) for file in files])
        rows = {place: row for row, place in enumerate(_places(table))}  # a record may stand in two files, the same
        self._write(table.take([rows[place] for place in sorted(rows)]), TOGETHER)
        for file in files:
            if file.name != TOGETHER:
                file.unlink()

    def _files(self) -> list[Path]:
        """List the files of records; what is left of unfinished ones goes."""
        files = sorted(file for file in self._folder.iterdir() if file.name != LOCK)
        for file in files:
            if file.name.startswith(".") and file.name.endswith(UNFINISHED):
                file.unlink()
        return [file for file in files if not file.name.startswith(".")]

    def _read(self, file: Path) -> pa.Table:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            table = parquet.ParquetFile(file).read()
        except (OSError, pa.ArrowException):
            raise self._foreign(file) from None
        if not table.schema.equals(self._schema):
            raise self._foreign(file)
        return table

    def _foreign(self, file: Path) -> InputError:
        return InputError(
            f"{file.name!r} in {str(self._folder)!r} holds no results of this kind of experiment: remove it, or name"
            " another folder"
        )

    def _write(self, table: pa.Table, name: str) -> None:
        from pyarrow import parquet

        beside = self._folder / f".{name}{UNFINISHED}"
        try:
            parquet.write_table(table, beside)
            beside.replace(self._folder / name)
        except OSError as error:
            raise _unusable(self._folder, error) from None


@contextmanager
def open_store(folder: Path, schema: pa.Schema) -> Iterator[Store]:
    """Own a folder of results, made if it is missing; yield what is in it.

    Parameters
    ----------
    folder
        Where results are kept.
    schema
        The columns of their rows.

    Raises
    ------
    InputError
        When another process owns the folder, when it holds something else, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / LOCK).open("ab")
    except OSError as error:
        raise _unusable(folder, error) from None
    with lock:
        _own(lock, folder)
        yield Store(folder, schema)


def record_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a record of rows with these columns."""
    import pyarrow as pa

    rows = pa.list_(pa.struct(list(schema)))
    return pa.schema({"key": pa.string(), "replication": pa.int64(), "rows": rows})


def record(key: str, replication: int, rows: Rows, schema: pa.Schema) -> pa.Table:
    """Return what a replication has given as one record.

    Parameters
    ----------
    key, replication
        Whose rows they are.
    rows
        The rows.
    schema
        Their columns, as that of a record (`record_schema`).

    Raises
    ------
    ValueError, TypeError
        When a row has other columns, or values of other types.
    """
    import pyarrow as pa

    columns = {field.name for field in schema.field("rows").type.value_type}
    for row in rows:
        if row.keys() != columns:
            raise ValueError(f"a row has columns {sorted(row)}; those of the experiment are {sorted(columns)}")
    return pa.Table.from_pylist([{"key": key, "replication": replication, "rows": rows}], schema)


def rows_of(record: pa.Table) -> Rows:
    """Return the rows of one record, as they are when they are read again."""
    (rows,) = record.column("rows").to_pylist()
    return list(rows)


def _places(table: pa.Table) -> list[Place]:
    return list(zip(table.column("key").to_pylist(), table.column("replication").to_pylist(), strict=True))


def _records(table: pa.Table) -> dict[Place, Any]:
    """Map places to rows as Arrow scalars: Python objects are made of what is asked for only."""
    return dict(zip(_places(table), table.column("rows"), strict=True))


def _unusable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"results cannot be kept in {str(folder)!r} ({error.strerror or error}): name a folder of yours that has space"
    )


def _own(lock: IO[bytes], folder: Path) -> None:
    try:
        _lock(lock)
    except OSError:
        raise InputError(
            f"the results in {str(folder)!r} belong to another run that has not ended: wait for it, or name another"
            " folder"
        ) from None


if sys.platform == "win32":
    import msvcrt

    def _lock(lock: IO[bytes]) -> None:
        msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(lock: IO[bytes]) -> None:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
